// Measures the recent calls to the store.

import type { HistogramCounts } from 'slidegate/metrics'
import type { RedisStore } from 'slidegate/redis'
import type { StoreStatus } from './api-types.ts'

/** The calls to a store in the last few seconds, as plain JSON. */
export interface Calls {
  readonly spanMs: number
  readonly calls: number
  /** The number of requests sent in these calls. */
  readonly requests: number
  readonly callMs: HistogramCounts
}

/** The store's totals at one point in time. */
interface Totals {
  readonly atMs: number
  readonly calls: number
  readonly requests: number
  readonly callMs: HistogramCounts
}

/** The length of the span to report, in milliseconds. */
const OVER_MS = 5000

/** Computes the recent calls to a store from its totals since it was created. */
export class CallTotals {
  readonly #store: RedisStore | undefined
  readonly #now: () => number
  /** Earlier totals, oldest first. */
  #known: Totals[] = []

  /**
   * @param store undefined for a store in this process, which makes no calls
   * @param now a monotonic clock, in milliseconds
   */
  constructor(store: RedisStore | undefined, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** Returns the calls in the last few seconds. Undefined for a store in this process, or one without recent calls. */
  lately(): Calls | undefined {
    const totals = this.#totals()
    if (totals === undefined) return undefined
    const from = totals.atMs - OVER_MS
    // Drops totals that are too old, because the previous call may have been hours ago.
    const lately = this.#known.filter(({ atMs }) => atMs > from - OVER_MS)
    // Keeps the newest totals from before the span, and all later totals.
    const first = lately.findLastIndex(({ atMs }) => atMs <= from)
    this.#known = [...lately.slice(Math.max(0, first)), totals]
    const before = this.#known[0]!
    if (before === totals) return undefined
    const counts = totals.callMs.counts.map((count, i) => count - before.callMs.counts[i]!)
    return {
      spanMs: totals.atMs - before.atMs,
      calls: totals.calls - before.calls,
      requests: totals.requests - before.requests,
      callMs: { ...totals.callMs, counts, sum: totals.callMs.sum - before.callMs.sum },
    }
  }

  #totals(): Totals | undefined {
    if (this.#store === undefined) return undefined
    const { calls, callMs, requestsPerCall } = this.#store.stats()
    return { atMs: this.#now(), calls, requests: requestsPerCall.sum, callMs }
  }
}

/** Merges the calls from several processes. */
export function mergeCalls(
  each: readonly Calls[],
): Pick<StoreStatus, 'callsPerSecond' | 'callMs' | 'requestsPerCall'> {
  const [first] = each
  const sum = (of: (calls: Calls) => number) => each.reduce((total, calls) => total + of(calls), 0)
  const calls = sum((all) => all.calls)
  const perSecond = sum((all) => (all.spanMs === 0 ? 0 : (1000 * all.calls) / all.spanMs))
  if (first === undefined || calls === 0) return { callsPerSecond: 0, callMs: null, requestsPerCall: null }
  const { bounds } = first.callMs
  const counts = first.callMs.counts.map((_, i) => sum(({ callMs }) => callMs.counts[i] ?? 0))
  return {
    callsPerSecond: rounded(perSecond),
    callMs: { p50: quantile(bounds, counts, 0.5), p99: quantile(bounds, counts, 0.99) },
    requestsPerCall: rounded(sum((all) => all.requests) / calls),
  }
}

/** Estimates a quantile the way Prometheus does. Values are assumed to be spread evenly within a bucket. */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number {
  const all = counts.reduce((sum, count) => sum + count, 0)
  let missing = share * all
  for (const [i, count] of counts.entries()) {
    const upper = bounds[i]
    if (upper === undefined) break
    if (count >= missing && count > 0) {
      const lower = i === 0 ? 0 : bounds[i - 1]!
      return rounded(lower + ((upper - lower) * missing) / count)
    }
    missing -= count
  }
  return bounds.at(-1) ?? 0
}

function rounded(value: number): number {
  return Number(value.toPrecision(4))
}
