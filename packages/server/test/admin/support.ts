import { pino } from 'pino'
import { afterAll, beforeAll, describe } from 'vitest'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { SYNC_EVERY_MS } from '../../src/admin/shadow-switches.ts'
import { type Every, everyByTimer } from '../../src/admin/timer.ts'
import type { OverrideBody } from '../../src/client/format.ts'
import { type Answer, ServiceClient } from '../../src/client/service-client.ts'
import type { Config } from '../../src/config/schema.ts'
import { type RunningService, startService } from '../../src/service/running.ts'
import { describedApi } from '../support/described.ts'
import { adminTokenOf } from '../support/service.ts'

export interface AdminService extends AsyncDisposable {
  readonly running: RunningService
  readonly url: string
  /** The token of its admin link. Undefined if its configuration has tokens. */
  readonly token: string | undefined
  /** All log lines. */
  readonly logged: Record<string, unknown>[]
  ask(method: string, path: string, body?: unknown, token?: string): Promise<Answer>
  /** The overrides of a limiter, as the API lists them. */
  overrides(limiter: string, count?: number): Promise<OverrideBody[]>
  /** Makes the instance read the shadow settings of others, as it does periodically. */
  steer(): Promise<void>
}

/**
 * Starts a service in this process. It throws if a response doesn't match `/openapi.json`.
 *
 * All timers run, except the one that reads the shadow settings. Call `steer` to read them.
 *
 * @param now the wall clock of the history
 */
export async function adminService(config: Config, now?: () => number): Promise<AdminService> {
  const logged: Record<string, unknown>[] = []
  const switches: (() => unknown)[] = []
  const every: Every = (ms, run) => {
    if (ms !== SYNC_EVERY_MS) return everyByTimer(ms, run)
    switches.push(run)
    return () => {}
  }
  const running = await startService({
    loaded: {
      config: { ...config, listen: { http: '127.0.0.1:0', grpc: false, ...config.listen } },
      folder: '/',
      files: [],
    } as never,
    log: pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) }),
    environment: {},
    every,
    ...(now && { now }),
  })
  const described = describedApi(running.app)
  return {
    running,
    url: running.httpUrl,
    token: adminTokenOf(running),
    logged,
    ask: async (method, path, body, token = adminTokenOf(running)) => {
      const client = new ServiceClient({ url: new URL(running.httpUrl), token })
      const answer = await client.answer(method, path, body)
      const { status } = answer
      const type = status < 400 || path === '/readyz' ? 'application/json' : 'application/problem+json'
      const isLines = status < 400 && method === 'GET' && path.startsWith('/v1/admin/overrides')
      const denied = /^[/]v1[/](consume|peek)/.test(path)
      const mistake =
        denied || isLines ? undefined : described.mistakeIn({ method, path, status, type, body: answer.body })
      if (mistake !== undefined) throw new Error(mistake)
      return answer
    },
    overrides: async (limiter, count) => {
      const client = new ServiceClient({ url: new URL(running.httpUrl), token: adminTokenOf(running) })
      const query = `limiter=${limiter}${count === undefined ? '' : `&count=${count}`}`
      const found: OverrideBody[] = []
      for await (const line of client.lines(`/v1/admin/overrides?${query}`)) found.push(JSON.parse(line))
      return found
    },
    steer: async () => {
      await Promise.all(switches.map((run) => run()))
    },
    [Symbol.asyncDispose]: () => running.stop(),
  }
}

/** Runs tests for a service without Redis and for one with. */
export function forEachStore(tests: (store: () => NonNullable<Config['store']>) => void): void {
  describe('on a memory store', () => tests(() => ({ memory: {} })))
  describe('on Redis', () => {
    let server: RedisServer
    let prefix = 0
    beforeAll(async () => {
      server = await startRedis()
    })
    afterAll(() => server.stop())
    // Each test has its own prefix.
    tests(() => ({ redis: { url: server.url, prefix: `slidegate:${++prefix}` } }))
  })
}
