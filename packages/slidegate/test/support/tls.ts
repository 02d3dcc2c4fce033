import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { freePort } from './ports.ts'
import { startProcess } from './redis-process.ts'
import { COMMON, type RedisServer } from './redis-server.ts'

const run = promisify(execFile)

/** A certificate authority for one test, and a server certificate that it signed. */
export interface Certificates {
  /** The authority's certificate, which clients must trust. */
  readonly ca: string
  /** Paths, for a server on 127.0.0.1 or localhost. */
  readonly files: { readonly ca: string; readonly certificate: string; readonly key: string }
  remove(): Promise<void>
}

/** Creates certificates with `openssl`. They are valid for a day. */
export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-tls-'))
  const file = (name: string) => join(folder, name)
  const openssl = (...words: string[]) => run('openssl', words, { cwd: folder })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  // Lists all extensions, so that the machine's configuration has no effect.
  await writeFile(
    file('openssl.cnf'),
    [
      '[req]',
      'distinguished_name = name',
      '[name]',
      '[authority]',
      'basicConstraints = critical, CA:TRUE',
      'keyUsage = critical, keyCertSign',
      'subjectKeyIdentifier = hash',
      '[server]',
      'basicConstraints = CA:FALSE',
      'subjectAltName = IP:127.0.0.1, DNS:localhost',
      'extendedKeyUsage = serverAuth, clientAuth',
      'authorityKeyIdentifier = keyid',
      '',
    ].join('\n'),
  )
  const config = ['-config', 'openssl.cnf']
  await openssl(
    ...['req', '-x509', ...config, '-extensions', 'authority', ...key, '-days', '1'],
    ...['-subj', '/CN=slidegate test authority', '-keyout', 'ca.key', '-out', 'ca.crt'],
  )
  await openssl(
    'req',
    ...config,
    ...key,
    '-subj',
    '/CN=localhost',
    '-keyout',
    'server.key',
    '-out',
    'server.csr',
  )
  await openssl(
    ...['x509', '-req', '-in', 'server.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
    ...['-extfile', 'openssl.cnf', '-extensions', 'server', '-days', '1', '-out', 'server.crt'],
  )
  return {
    ca: await readFile(file('ca.crt'), 'utf8'),
    files: { ca: file('ca.crt'), certificate: file('server.crt'), key: file('server.key') },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Starts a redis-server with TLS only, on `rediss://`. Clients need no certificate. */
export async function startTlsRedis(
  { ca, files }: Certificates,
  settings: readonly string[] = [],
): Promise<RedisServer> {
  const port = await freePort()
  const process = await startProcess({
    port,
    words: (folder) => [
      ...['--port', '0', '--tls-port', `${port}`, '--bind', '127.0.0.1', '--dir', folder],
      ...['--tls-ca-cert-file', files.ca, '--tls-cert-file', files.certificate, '--tls-key-file', files.key],
      ...['--tls-auth-clients', 'no'],
      ...COMMON,
      ...settings,
    ],
    answers: () => shakesHands(port, ca),
  })
  return Object.assign(process, { url: `rediss://127.0.0.1:${port}` })
}

function shakesHands(port: number, ca: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', ca }, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
