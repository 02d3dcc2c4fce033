// tier: system
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { testService } from '../support/service.ts'

const run = promisify(execFile)
const folder = await mkdtemp(join(tmpdir(), 'slidegate-mtls-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

const limiters: Config['limiters'] = { api: { limits: [{ kind: 'slidingWindow', limit: 9, window: '1h' }] } }
const file = (name: string) => join(folder, name)
const openssl = (...words: string[]) => run('openssl', words, { cwd: folder })
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** Creates a certificate authority and a certificate. */
async function certify(authority: string, name: string, usage: string): Promise<void> {
  await writeFile(
    file(`${name}.cnf`),
    [
      ...['[req]', 'distinguished_name = dn', '[dn]', '[ca]', 'basicConstraints = critical, CA:TRUE'],
      ...['[leaf]', 'basicConstraints = CA:FALSE', 'subjectAltName = IP:127.0.0.1, DNS:localhost'],
      ...[`extendedKeyUsage = ${usage}`, ''],
    ].join('\n'),
  )
  const config = ['-config', `${name}.cnf`]
  const paths = ['-keyout', `${authority}.key`, '-out', `${authority}.crt`]
  await openssl(
    'req',
    '-x509',
    ...config,
    '-extensions',
    'ca',
    ...KEY,
    '-days',
    '1',
    '-subj',
    `/CN=${authority}`,
    ...paths,
  )
  await openssl(
    'req',
    ...config,
    ...KEY,
    '-subj',
    `/CN=${name}`,
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.csr`,
  )
  await openssl(
    ...[
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      `${authority}.crt`,
      '-CAkey',
      `${authority}.key`,
      '-CAcreateserial',
    ],
    ...['-extfile', `${name}.cnf`, '-extensions', 'leaf', '-days', '1', '-out', `${name}.crt`],
  )
}

await certify('servers', 'server', 'serverAuth')
await certify('clients', 'client', 'clientAuth')
await certify('strangers', 'stranger', 'clientAuth')
const read = (name: string) => readFile(file(name), 'utf8')

/** Returns the status of a request, or its error. */
async function status(url: string, options: RequestOptions): Promise<number | string> {
  const agent = new Agent({ keepAlive: false, ca: await read('servers.crt') })
  const sent = request(`${url}/healthz`, { agent, ...options })
  sent.end()
  try {
    const [response] = await once(sent, 'response')
    response.resume()
    return response.statusCode
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown error'
  }
}

const tls = { cert: file('server.crt'), key: file('server.key') }

describe('TLS', () => {
  it('accepts any client without clientCa', async () => {
    await using service = await testService({ limiters, listen: { tls } })
    expect(service.httpUrl).toMatch(/^https:/)
    expect(await status(service.httpUrl, {})).toBe(200)
  })

  it('accepts only clients with a certificate of clientCa', async () => {
    await using service = await testService({
      limiters,
      listen: { tls: { ...tls, clientCa: file('clients.crt') } },
    })
    const as = async (name: string) =>
      status(service.httpUrl, { cert: await read(`${name}.crt`), key: await read(`${name}.key`) })
    expect(await as('client')).toBe(200)
    expect(await status(service.httpUrl, {})).toEqual(expect.any(String))
    expect(await as('stranger')).toEqual(expect.any(String))
    // This is a server certificate of another authority.
    expect(await as('server')).toEqual(expect.any(String))
    expect(await as('client')).toBe(200)
  })
})
