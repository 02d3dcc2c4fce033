// tier: system
import { describe, expect, it } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { work } from '../support/work.ts'
import { type Arrival, SPELLINGS, type Spelling, Upstream } from './upstream.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** The task of a process: `callers` send requests one after the other, as fast as allowed, until the upstream stops. */
export interface Order {
  readonly port: number
  readonly url: string
  readonly limit: number
  readonly windowMs: number
  readonly marginMs: number
  /** Maximum transit times: of most requests, and of a few slow ones. */
  readonly transitMs: readonly [number, number]
  readonly callers: number
  readonly isInterceptor: boolean
  /** The number of processes that start together. */
  readonly processes: number
  /** The lower limit that the upstream may report later. */
  readonly lowered: number
}

/** The result of a process. Times are by a clock that all processes of the machine share. */
export interface Report {
  /** When each request was sent, by id. */
  readonly sent: Record<string, number>
  /** When the first response with the lowered limit arrived. */
  taughtAtMs: number | undefined
  /** The longest pause of the process, or of the store as the process saw it. */
  pausedMs: number
  readonly failures: string[]
}

const PROCESSES = 3

/** The time until a limit learned by one process reaches the others. Unless a process pauses, it takes a few store calls. */
const TOLD_IN_MS = 250

/** The length of a run. For a long run, set `OUTBOUND_MS=60000`. */
const DURATION_MS = Number(process.env.OUTBOUND_MS ?? 12_000)

async function run(
  { limit, windowMs, spelling }: { limit: number; windowMs: number; spelling: Spelling },
  order: Pick<Order, 'marginMs' | 'transitMs' | 'lowered'>,
  course: (upstream: Upstream) => Promise<unknown>,
): Promise<{ readonly reports: readonly Report[]; readonly upstream: Upstream }> {
  const server = await startRedis()
  const latencyMs = () => 1 + Math.random() * 40
  const upstream = await new Upstream({ limit, windowMs, spelling, latencyMs }).start()
  try {
    const { url } = upstream
    const common = { ...order, port: server.port, url, limit, windowMs, processes: PROCESSES }
    const orders = Array.from({ length: PROCESSES }, (_, i) => ({
      ...common,
      callers: limit,
      isInterceptor: i === 0,
    }))
    const working = Promise.all(orders.map((each) => work<Order, Report>(WORKER, each)))
    await Promise.race([course(upstream), working])
    upstream.isOver = true
    const reports = await working
    expect(reports.flatMap(({ failures }) => failures)).toEqual([])
    return { reports, upstream }
  } finally {
    await upstream.stop()
    await server.stop()
  }
}

/**
 * Whether all processes ran well enough to keep the limit. If a process pauses for a window, its charges expire while its
 * requests are in transit.
 */
function couldKeepTo(windowMs: number, reports: readonly Report[]): boolean {
  return reports.every(({ pausedMs }) => pausedMs < windowMs / 2)
}

/** Waits until this many requests were admitted. */
const arrived = (upstream: Upstream, count: number, from = 0) =>
  until(
    `${count} requests`,
    async () => upstream.arrivals.slice(from).filter(({ allowed }) => allowed).length >= count,
    3 * DURATION_MS,
  )

/**
 * Returns the share of the permitted rate that was used.
 * `limit` more requests should arrive within a window of each arrival. Uses the median, since a machine may pause.
 */
function usedRate(arrivals: readonly Arrival[], limit: number, windowMs: number): number {
  const tookMs = arrivals.slice(limit).map(({ atMs }, i) => atMs - arrivals[i]!.atMs)
  return windowMs / tookMs.sort((a, b) => a - b)[tookMs.length >> 1]!
}

// The tests wait for windows to pass, so they run concurrently.
describe.concurrent('three processes with one budget, against an upstream that counts arrivals,', () => {
  const budgets = [
    { limit: 50, windowMs: 4000, marginMs: 100, transitMs: [60, 400] as const },
    ...(DURATION_MS >= 60_000
      ? [{ limit: 50, windowMs: 10_000, marginMs: 300, transitMs: [200, 2000] as const }]
      : []),
  ]
  it.each(budgets)(
    'never exceed the limit and use most of it: $limit per $windowMs ms',
    { timeout: 5 * DURATION_MS },
    async (budget) => {
      const { limit, windowMs } = budget
      const spelling = SPELLINGS['draft 11']
      const windows = Math.floor(DURATION_MS / windowMs)
      const { reports, upstream } = await run(
        { limit, windowMs, spelling },
        { ...budget, lowered: 0 },
        (upstream) => arrived(upstream, windows * limit),
      )
      const pausedMs = Math.max(...reports.map((report) => report.pausedMs))
      const { arrivals } = upstream
      const violations = arrivals.filter(({ allowed }) => !allowed).length
      const rate = usedRate(arrivals, limit, windowMs)
      console.log(
        `${limit} per ${windowMs} ms: ${arrivals.length} requests, ${violations} violations, ${(100 * rate).toFixed(1)} % of the rate, the longest pause ${pausedMs.toFixed()} ms`,
      )
      if (couldKeepTo(windowMs, reports)) expect(violations).toBe(0)
      // On a busy machine, the next waiter is late, which matters more for short windows.
      expect(rate).toBeGreaterThanOrEqual(windowMs >= 10_000 ? 0.9 : 0.5)
    },
  )

  it.each(Object.entries(SPELLINGS))(
    'obey a lowered limit from the next response on: %s',
    { timeout: 5 * DURATION_MS },
    async (_, spelling) => {
      const [limit, lowered, windowMs] = [50, 20, 3000]
      const { reports, upstream } = await run(
        { limit, windowMs, spelling },
        { marginMs: 100, transitMs: [60, 60], lowered },
        async (upstream) => {
          await arrived(upstream, 2 * limit)
          upstream.limit = lowered
          await arrived(upstream, 3 * lowered, upstream.arrivals.length)
        },
      )
      const sent = Object.assign({}, ...reports.map((report) => report.sent)) as Record<string, number>
      const taughtAtMs = Math.min(...reports.map((report) => report.taughtAtMs ?? Number.POSITIVE_INFINITY))
      const refused = upstream.arrivals.filter(({ allowed }) => !allowed)
      const toldInMs = TOLD_IN_MS + Math.max(...reports.map(({ pausedMs }) => pausedMs))
      const disobedient = refused.filter(({ id }) => sent[id]! > taughtAtMs + toldInMs)
      const ofItsOwn = reports.flatMap((report) =>
        refused.filter(({ id }) => (report.sent[id] ?? 0) > (report.taughtAtMs ?? Number.POSITIVE_INFINITY)),
      )
      const after = upstream.arrivals.filter(({ atMs, allowed }) => allowed && atMs > taughtAtMs + windowMs)
      const rate = usedRate(after, lowered, windowMs)
      console.log(
        `lowered: ${refused.length} refused, ${disobedient.length} of them sent ${toldInMs.toFixed()} ms after the first response to any process, ${ofItsOwn.length} after the first to their own process; then ${(100 * rate).toFixed(1)} % of the lower rate`,
      )
      expect(reports.map((report) => report.taughtAtMs === undefined)).toEqual([false, false, false])
      if (couldKeepTo(windowMs, reports)) {
        expect(ofItsOwn).toEqual([])
        expect(disobedient).toEqual([])
      }
      expect(rate).toBeGreaterThan(0.4)
    },
  )
})
