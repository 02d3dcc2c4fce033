// tier: system
import { describe, expect, it } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { work } from '../support/work.ts'
import { type Arrival, SPELLINGS, type Spelling, Upstream } from './upstream.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** What a process is to do: so many callers send one request after the other, as fast as they may, until the upstream is gone. */
export interface Order {
  readonly port: number
  readonly url: string
  readonly limit: number
  readonly windowMs: number
  readonly marginMs: number
  /** How long requests are on their way at most: usually, and a few of them. */
  readonly transitMs: readonly [number, number]
  readonly callers: number
  readonly isInterceptor: boolean
  /** So many begin together. */
  readonly processes: number
  /** The limit that the upstream may come to tell of. */
  readonly lowered: number
}

/** Times are by the clock that processes of a machine share. */
export interface Report {
  /** When each request was sent. */
  readonly sent: Record<string, number>
  /** When the first answer came that told of the lowered limit. */
  taughtAtMs: number | undefined
  /** The longest that it stood still, or the store as it saw it. */
  pausedMs: number
  readonly failures: string[]
}

const PROCESSES = 3

/** What one process has learnt others hear of by the store: a few calls to it, unless one of them stands still. */
const TOLD_IN_MS = 250

/** For so many windows they go on. The long form is as long as a minute: `OUTBOUND_MS=60000`. */
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
 * A process that stands still for as long as a window lets its charges expire while its requests are on their way: there is
 * nothing to be held to.
 */
function couldKeepTo(windowMs: number, reports: readonly Report[]): boolean {
  return reports.every(({ pausedMs }) => pausedMs < windowMs / 2)
}

/** Waits until so many have come. */
const arrived = (upstream: Upstream, count: number, from = 0) =>
  until(
    `${count} requests`,
    async () => upstream.arrivals.slice(from).filter(({ allowed }) => allowed).length >= count,
    3 * DURATION_MS,
  )

/**
 * The part of the permitted rate that was used: so many more should have come within a window of each arrival. The median: a
 * machine may stand still now and then.
 */
function usedRate(arrivals: readonly Arrival[], limit: number, windowMs: number): number {
  const tookMs = arrivals.slice(limit).map(({ atMs }, i) => atMs - arrivals[i]!.atMs)
  return windowMs / tookMs.sort((a, b) => a - b)[tookMs.length >> 1]!
}

// Each waits for windows to pass: all do so at the same time.
describe.concurrent('three processes, one budget, and an upstream that counts what truly arrives', () => {
  const budgets = [
    { limit: 50, windowMs: 4000, marginMs: 100, transitMs: [60, 400] as const },
    ...(DURATION_MS >= 60_000
      ? [{ limit: 50, windowMs: 10_000, marginMs: 300, transitMs: [200, 2000] as const }]
      : []),
  ]
  it.each(budgets)(
    'never too many, and not too few: $limit per $windowMs ms',
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
      // On a machine that has more to do, who is next in line is late, by more than short windows can bear.
      expect(rate).toBeGreaterThanOrEqual(windowMs >= 10_000 ? 0.9 : 0.5)
    },
  )

  it.each(Object.entries(SPELLINGS))(
    'a limit that is lowered midway is obeyed from the next answer on: %s',
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
        `lowered: ${refused.length} refused, ${disobedient.length} of them sent ${toldInMs.toFixed()} ms after the first answer to anybody, ${ofItsOwn.length} after the first to their own process; then ${(100 * rate).toFixed(1)} % of the lower rate`,
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
