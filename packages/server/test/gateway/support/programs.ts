import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '../../../../slidegate/test/support/ports.ts'
import { until } from '../../../../slidegate/test/support/until.ts'

const DEPLOY = fileURLToPath(new URL('../../../../../deploy/', import.meta.url))
const run = promisify(execFile)
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Reads a file of the documentation or examples. */
export function deployed(name: string): Promise<string> {
  return readFile(join(DEPLOY, name), 'utf8')
}

/** Replaces texts, each of which must exist. */
export function replaced(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((all, [from, to]) => {
    if (!all.includes(from)) throw new Error(`missing text: ${from}`)
    return all.replaceAll(from, to)
  }, text)
}

/** The app behind a gateway. It counts requests that pass. */
export interface Upstream extends AsyncDisposable {
  readonly address: string
  readonly served: readonly Served[]
}

interface Served {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export async function startUpstream(): Promise<Upstream> {
  const served: Served[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      served.push({ method: request.method!, url: request.url!, headers: request.headers, body })
      // An app that rejects requests on its own.
      response.statusCode = request.url === '/forbidden' ? 403 : 200
      response.end('hello\n')
    })
  })
  // Keeps gateways' connections open, so that none closes during a request after a pause.
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    served,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export interface Gateway extends AsyncDisposable {
  readonly url: string
  readonly port: number
}

/** Addresses for a gateway. */
export interface Behind {
  /** The host and port of the service. */
  readonly slidegate: string
  readonly upstream: string
  readonly token?: string
  /** Further replacements in the file. */
  readonly changes?: Readonly<Record<string, string>>
}

const NGINX_TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

/** Runs nginx with a configuration. It writes to its folder only. */
async function runNginx(config: string, port: number): Promise<Gateway> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-nginx-'))
  const paths = NGINX_TEMPORARY.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  const own = `http { access_log off; ${paths}`
  await writeFile(join(folder, 'nginx.conf'), replaced(config, { 'http {': own }))
  const words = ['-p', folder, '-c', 'nginx.conf', '-e', join(folder, 'error.log')]
  const globals = `daemon off; pid ${folder}/pid; error_log ${folder}/error.log;`
  return startGateway('nginx', [...words, '-g', globals], port, folder)
}

async function runCaddy(config: string, port: number, token = ''): Promise<Gateway> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-caddy-'))
  const file = join(folder, 'Caddyfile')
  await writeFile(file, config)
  const environment = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, SLIDEGATE_TOKEN: token }
  return startGateway('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], port, folder, environment)
}

/** Starts an nginx that returns its reading of a path. */
export async function startPathNginx(): Promise<Gateway> {
  const port = await freePort()
  const location = 'location / { default_type text/plain; return 200 $uri; }'
  return runNginx(`events {} http { server { listen 127.0.0.1:${port}; ${location} } }`, port)
}

/** Starts a Caddy that returns the route that matches a path. */
export async function startPathCaddy(routes: readonly string[]): Promise<Gateway> {
  const port = await freePort()
  const handlers = routes.map((route) => `handle ${route} {\nrespond * "${route}"\n}`).join('\n')
  return runCaddy(
    `{\nadmin off\nauto_https off\n}\nhttp://:${port} {\nbind 127.0.0.1\n${handlers}\n}\n`,
    port,
  )
}

/** Starts the installed nginx with the example configuration. */
export async function startNginx({ slidegate, upstream, token, changes = {} }: Behind): Promise<Gateway> {
  const port = await freePort()
  const ofToken = '# proxy_set_header X-Slidegate-Token "the token"'
  const config = replaced(await deployed('nginx/nginx.conf'), {
    '127.0.0.1:8000;': `127.0.0.1:${port};`,
    'server 127.0.0.1:8080;': `server ${slidegate};`,
    'server 127.0.0.1:3000;': `server ${upstream};`,
    // A stalled machine must not look like an outage.
    'proxy_connect_timeout 1s;': 'proxy_connect_timeout 60s;',
    'proxy_read_timeout 5s;': 'proxy_read_timeout 60s;',
    ...(token !== undefined && { [ofToken]: `proxy_set_header X-Slidegate-Token "${token}"` }),
    ...changes,
  })
  return runNginx(config, port)
}

/** Starts the installed Caddy with the example configuration. */
export async function startCaddy({ slidegate, upstream, token, changes = {} }: Behind): Promise<Gateway> {
  const port = await freePort()
  const config = replaced(await deployed('caddy/Caddyfile'), {
    'http://:8000 {': `http://:${port} {`,
    '127.0.0.1:8080 {': `${slidegate} {`,
    'reverse_proxy 127.0.0.1:3000': `reverse_proxy ${upstream}`,
    ...changes,
  })
  return runCaddy(config, port, token)
}

/** Waits until the program responds. The result stops it and removes its folder. */
async function startGateway(
  program: string,
  words: readonly string[],
  port: number,
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Gateway> {
  const child = spawn(program, words, { stdio: 'ignore', env: { ...process.env, ...environment } })
  running.add(child)
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  }).then(() => running.delete(child))
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const url = `http://127.0.0.1:${port}`
  try {
    // Any response shows that it is up. No rule matches this method.
    await until(`${program} on port ${port}`, () => fetch(url, { method: 'OPTIONS' }).then(() => true))
  } catch (error) {
    await stop()
    throw error
  }
  return { url, port, [Symbol.asyncDispose]: stop }
}

/** Connections of wrk, and so the maximum number of requests in flight when it stops. */
export const CONNECTIONS = 64

const ENOUGH_MS = 60_000

/** Results of wrk. */
export interface Load {
  readonly requests: number
  /** Responses by status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Denials that lack a `Retry-After`, `RateLimit` or `RateLimit-Policy` header. */
  readonly untold: number
}

const SCRIPT = `
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() statuses = {}; untold = 0 end
function response(status, headers)
  statuses[status] = (statuses[status] or 0) + 1
  if status == 429 then
    local found = {}
    for name in pairs(headers) do found[name:lower()] = true end
    if not (found['retry-after'] and found['ratelimit'] and found['ratelimit-policy']) then untold = untold + 1 end
  end
end
function done(summary)
  local total, lines = {}, 0
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get('statuses')) do total[status] = (total[status] or 0) + count end
    lines = lines + thread:get('untold')
  end
  for status, count in pairs(total) do io.write(string.format('STATUS %d %d\\n', status, count)) end
  io.write(string.format('UNTOLD %d\\nREQUESTS %d\\n', lines, summary.requests))
end
`

/** Sends requests at full speed over 64 connections until `isEnough`. */
export async function wrk(
  url: string,
  headers: Readonly<Record<string, string>>,
  isEnough: () => Promise<boolean>,
): Promise<Load> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-wrk-'))
  try {
    await mkdir(folder, { recursive: true })
    const script = join(folder, 'count.lua')
    await writeFile(script, SCRIPT)
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const ended = run('wrk', [`-c${CONNECTIONS}`, '-t2', '-d5m', ...fields, '-s', script, url])
    running.add(ended.child)
    await until('enough', isEnough, ENOUGH_MS).finally(() => ended.child.kill('SIGINT'))
    const { stdout } = await ended
    running.delete(ended.child)
    const statuses = Object.fromEntries(
      Array.from(stdout.matchAll(/^STATUS (\d+) (\d+)$/gm), ([, status, count]) => [status!, Number(count)]),
    )
    const number = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stdout)?.[1])
    return { requests: number('REQUESTS'), statuses, untold: number('UNTOLD') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
