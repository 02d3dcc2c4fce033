import { pino } from 'pino'
import { type Decision, memoryStore } from 'slidegate'
import { expect, onTestFinished } from 'vitest'
import { History } from '../../../src/admin/history/history.ts'
import { type HistoryStore, MemoryHistoryStore } from '../../../src/admin/history/history-store.ts'
import { RedisHistoryStore } from '../../../src/admin/history/redis-history-store.ts'
import { RedisLink } from '../../../src/admin/redis-link.ts'
import { Usage } from '../../../src/admin/usage.ts'
import type { Config } from '../../../src/config/schema.ts'
import { Service } from '../../../src/service/service.ts'

const limits = [{ kind: 'slidingWindow', limit: 10, window: '1m' }] as const
const LIMITERS = {
  api: { limits },
  login: { dimensions: { user: limits, address: limits } },
  secret: { limits, hashKeys: 'a secret of sixteen bytes' },
} as unknown as Config['limiters']

/** 2026-11-27 10:00 UTC, a full hour. */
export const START_MS = Date.UTC(2026, 10, 27, 10)
export const MINUTE_MS = 60_000

/** The wall clock of a test. */
export interface Clock {
  nowMs: number
}

export interface Counted {
  readonly history: History
  readonly logged: string[]
  /** Counts requests of a key. */
  count(
    limiter: string,
    key: string | Record<string, string>,
    requests: number,
    more?: Partial<Decision>,
  ): void
  /** Moves the clock, minute by minute. */
  pass(minutes: number): Promise<void>
}

export function decision(allowed: boolean, more: Partial<Decision> = {}): Decision {
  const rest = { cost: 1, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, atMs: 0 }
  return { allowed, ...rest, deniedBy: [], limits: [], source: 'store', ...more }
}

/** Starts the history of a process. */
export function countedBy(store: HistoryStore, clock: Clock): Counted {
  const service = new Service({ limiters: LIMITERS }, memoryStore())
  onTestFinished(() => service.close())
  const logged: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line).msg) })
  const usage = new Usage(() => clock.nowMs)
  const now = () => clock.nowMs
  const history = new History({ ...{ service, usage, store, log, now }, every: () => () => {} })
  return {
    history,
    logged,
    count: (limiter, key, requests, more) => {
      for (let n = 0; n < requests; n++) usage.record(limiter, key, decision(more?.allowed ?? true, more))
    },
    pass: async (minutes) => {
      for (let n = 0; n < minutes; n++) {
        clock.nowMs += MINUTE_MS
        await history.run()
      }
    },
  }
}

export function inMemory(clock: Clock): HistoryStore {
  return new MemoryHistoryStore(() => clock.nowMs)
}

let runs = 0

/** Returns stores of as many processes on the same Redis and prefix. */
export async function onRedis(
  url: string,
  clock: Clock,
  count = 1,
  prefix = `slidegate:history-${++runs}`,
): Promise<HistoryStore[]> {
  const links = Array.from({ length: count }, () => new RedisLink({ url, prefix }, '/'))
  onTestFinished(() => {
    for (const link of links) link.close()
  })
  for (const link of links) await expect.poll(() => link.connected()).toBe(true)
  return links.map((link) => new RedisHistoryStore(link, () => clock.nowMs))
}

/** Returns the known values of a column, by step since the start of the test. */
export function known(
  { seconds, stepSeconds }: { readonly seconds: readonly number[]; readonly stepSeconds: number },
  column: readonly (number | null)[],
): Record<number, number> {
  const entries = column.flatMap((value, i) =>
    value === null ? [] : [[(seconds[i]! - START_MS / 1000) / stepSeconds, value] as const],
  )
  return Object.fromEntries(entries)
}
