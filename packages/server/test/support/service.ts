import { fileURLToPath } from 'node:url'
import { type Logger, pino } from 'pino'
import { Agent, fetch, type Headers, type RequestInit } from 'undici'
import type { Config } from '../../src/config/schema.ts'
import type { Domains } from '../../src/envoy/domains.ts'
import { type RunningService, startService } from '../../src/service/running.ts'
import { describedApi } from './described.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))

export interface TestService extends RunningService, AsyncDisposable {
  /** The URL of its page: the admin link, unless its configuration has tokens. */
  readonly page: string
  /** Posts JSON and reads the response. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Sends any request. */
  ask(path: string, init: RequestInit): Promise<Answer>
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: any response of the service
  readonly body: any
}

/** Returns the token of the admin link. Undefined if the configuration has tokens. */
export function adminTokenOf({ adminLink }: Pick<RunningService, 'adminLink'>): string | undefined {
  return adminLink === undefined ? undefined : new URL(adminLink).searchParams.get('token')!
}

/**
 * Starts a service in this process on a free loopback port. Stop it with `await using`.
 *
 * Checks every response against `/openapi.json`. Without tokens, its methods send the token of the admin link, unless they
 * get another `authorization`.
 */
export async function testService(
  config: Config,
  log: Logger = pino({ level: 'silent' }),
  domains?: Domains,
): Promise<TestService> {
  const listen = { http: '127.0.0.1:0', ...config.listen }
  const running = await startService({
    loaded: { config: { ...config, listen }, folder: HERE, files: [], ...(domains && { domains }) },
    log,
    environment: {},
  })
  const described = describedApi(running.app)
  // Separate connections, which are closed before the service waits for them.
  const dispatcher = new Agent()
  const ask = async (path: string, init: RequestInit): Promise<Answer> => {
    const token = adminTokenOf(running)
    const headers = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(init.headers as Record<string, string>),
    }
    const response = await fetch(running.httpUrl + path, { dispatcher, ...init, headers })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    const { status } = response
    const body = isJson ? JSON.parse(text) : text
    const { method = 'GET' } = init
    const mistake = described.mistakeIn({
      method,
      path,
      status,
      type: response.headers.get('content-type'),
      body,
    })
    if (mistake !== undefined) throw new Error(mistake)
    return { status, headers: response.headers, body }
  }
  return {
    ...running,
    get adminLink() {
      return running.adminLink
    },
    page: running.adminLink ?? running.httpUrl,
    ask,
    get: (path, headers = {}) => ask(path, { headers }),
    post: (path, body, headers = {}) =>
      ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: async () => {
      await dispatcher.destroy()
      await running.stop()
    },
  }
}
