import { afterAll, beforeEach, expect, it } from 'vitest'
import { type Admission, fullestWindow } from '../audit/fullest-window.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import { useRedis } from '../support/use-redis.ts'
import { work } from '../support/work.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** What a process is to do: so many callers wait for the same key, one time after the other. */
export interface Order {
  readonly port: number
  readonly limit: number
  readonly windowMs: number
  readonly cost: number
  readonly callers: number
  /** When all begin, by the machine's clock, and for how long they go on. */
  readonly startAtMs: number
  readonly durationMs: number
}

export interface Report {
  readonly admissions: Admission[]
  longestMs: number
}

const PROCESSES = 4
const DURATION_MS = 5000

/** Replies to one of them are so late. */
const SLOW_MS = 15

const { server, redis } = await useRedis()
const proxy = await startProxy(server.port)
afterAll(() => proxy.stop())
beforeEach(() => redis.flushall())

it.each([
  ['one at a time', { limit: 5, cost: 5, windowMs: 40, callers: 6 }],
  ['one each at a time', { limit: 4, cost: 1, windowMs: 100, callers: 6 }],
])('four processes, of which one is far away, are admitted in turn: %s', async (_, numbers) => {
  proxy.delay(SLOW_MS, SLOW_MS)
  const startAtMs = Date.now() + 2500
  const order: Order = { ...numbers, port: server.port, startAtMs, durationMs: DURATION_MS }
  const orders = Array.from({ length: PROCESSES }, (_, i) =>
    i === 0 ? { ...order, port: proxy.port } : order,
  )
  const reports = await Promise.all(orders.map((order) => work<Order, Report>(WORKER, order)))

  // As long as all of them ask.
  const shares = reports.map(
    ({ admissions }) => admissions.filter(({ atMs }) => atMs < startAtMs + DURATION_MS).length,
  )
  const all = shares.reduce((sum, share) => sum + share, 0)
  console.log(
    `shares ${shares.join(', ')}, the longest waits ${reports.map(({ longestMs }) => Math.round(longestMs)).join(', ')} ms`,
  )
  const { limit, cost, windowMs, callers } = numbers
  const admissions = reports.flatMap((report) => report.admissions)
  expect(fullestWindow(admissions, windowMs)).toBeLessThanOrEqual(limit)
  // While it is the turn of the slow one, what it has not asked for yet is nobody's; and a busy machine is slow everywhere.
  expect(all).toBeGreaterThanOrEqual(0.25 * (limit / cost) * (DURATION_MS / windowMs))
  for (const share of shares) expect(share).toBeGreaterThanOrEqual((0.3 * all) / PROCESSES)
  // Each caller is admitted after those of its process that came before.
  const fairMs = (callers * PROCESSES * windowMs) / (limit / cost)
  for (const { longestMs } of reports) expect(longestMs).toBeLessThan(6 * fairMs)
})
