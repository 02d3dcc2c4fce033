import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { Config } from '../../src/config/schema.ts'
import { type RunningService, startService } from '../../src/service/running.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))

export interface TestService extends RunningService, AsyncDisposable {
  /** Posts JSON, and reads what is answered. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: whatever the service has said
  readonly body: any
}

/** A service in this process, on a free port of loopback. `await using` ends it. */
export async function testService(config: Config): Promise<TestService> {
  const listen = { http: '127.0.0.1:0', ...config.listen }
  const running = await startService({
    loaded: { config: { ...config, listen }, folder: HERE },
    log: pino({ level: 'silent' }),
    environment: {},
  })
  const ask = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await fetch(running.httpUrl + path, init)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
  }
  return {
    ...running,
    get: (path, headers = {}) => ask(path, { headers }),
    post: (path, body, headers = {}) =>
      ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => running.stop(),
  }
}
