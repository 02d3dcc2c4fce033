// tier: system
import { afterAll, beforeEach, expect, it } from 'vitest'
import { type Admission, fullestWindow } from '../processes/fullest-window.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import { useRedis } from '../support/use-redis.ts'
import { work } from '../support/work.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** The task of a process, whose callers wait for the same key again and again. */
export interface Order {
  readonly port: number
  readonly limit: number
  readonly windowMs: number
  readonly cost: number
  readonly callers: number
  /** How many processes start together. */
  readonly processes: number
  readonly durationMs: number
}

export interface Report {
  /** Admissions, with the time of each request. All times are by the machine's clock, which the server shares. */
  readonly admissions: (Admission & { readonly sinceMs: number })[]
  endedAtMs: number
}

const PROCESSES = 4
const DURATION_MS = 3000

/** Delay of the replies to one of them. */
const SLOW_MS = 15

const { server, redis } = await useRedis()
const proxy = await startProxy(server.port)
afterAll(() => proxy.stop())
beforeEach(() => redis.flushall())

it.each([
  ['with room for one process at a time', { limit: 5, cost: 5, windowMs: 40, callers: 6 }],
  ['with room for one request per process', { limit: 4, cost: 1, windowMs: 100, callers: 6 }],
])('four processes all get their turn, even a distant one, %s', async (_, numbers) => {
  proxy.delay(SLOW_MS, SLOW_MS)
  const order: Order = { ...numbers, port: server.port, processes: PROCESSES, durationMs: DURATION_MS }
  const orders = Array.from({ length: PROCESSES }, (_, i) =>
    i === 0 ? { ...order, port: proxy.port } : order,
  )
  const reports = await Promise.all(orders.map((order) => work<Order, Report>(WORKER, order)))

  // Until then, all processes are waiting.
  const untilMs = Math.min(...reports.map(({ endedAtMs }) => endedAtMs))
  const shares = reports.map(({ admissions }) => admissions.filter(({ atMs }) => atMs < untilMs).length)
  const all = shares.reduce((sum, share) => sum + share, 0)
  const { limit, cost, windowMs, callers } = numbers
  const admissions = reports.flatMap((report) => report.admissions)
  const inOrder = admissions.map(({ atMs }) => atMs).sort((a, b) => a - b)
  // Counts admissions of others during each wait, not its duration, because the machine may stall all processes.
  const overtaken = admissions.map(
    ({ atMs, sinceMs }) => inOrder.filter((otherMs) => otherMs > sinceMs && otherMs < atMs).length,
  )
  console.log(`shares ${shares.join(', ')}, at most ${Math.max(...overtaken)} were admitted during a wait`)
  expect(fullestWindow(admissions, windowMs)).toBeLessThanOrEqual(limit)
  // Random delays leave room unused for a moment, and a busy machine slows down everything.
  const atOnce = limit / cost
  const tookMs = inOrder.slice(atOnce).map((atMs, i) => atMs - inOrder[i]!)
  expect(tookMs.sort((a, b) => a - b)[tookMs.length >> 1]).toBeLessThanOrEqual(2 * windowMs)
  for (const share of shares) expect(share).toBeGreaterThanOrEqual((0.3 * all) / PROCESSES)
  // Each caller is admitted after the earlier ones of its process.
  expect(Math.max(...overtaken)).toBeLessThan(6 * callers * PROCESSES)
})
