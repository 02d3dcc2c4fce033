// Metrics of each limiter, kept over reloads.

import type { Decision, Source, StoreUnavailableReason, WaitErrorReason } from 'slidegate'
import {
  DecisionCounts,
  type DecisionCountsSnapshot,
  Histogram,
  type HistogramCounts,
  type LimitCounts,
} from 'slidegate/metrics'
import type { AnyLimiter } from '../service/service.ts'
import { counter, gauge, histogram, type Metric, type Row } from './metric.ts'

/** Limiters that are told apart, those of Envoy's domains among them; others are counted together. */
const MAX_LIMITERS = 1024

/** No limiter is called like that. */
const OTHERS = '(others)'

/** A store that was given up is told as down for so long after the last request that it failed: others may never be asked again. */
const DOWN_MS = 60_000

const WAITS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** What a limiter says of itself when it is asked. */
export interface LimiterState {
  readonly isStoreDown: boolean
  readonly waiting: number
}

/** What limiters count themselves. */
interface Totals {
  readonly storeErrors: Record<StoreUnavailableReason, number>
  breakerOpened: number
  clockSteps: number
}

/** Of all limiters that have had this name in this process: what is counted survives a reload. */
class Counts {
  readonly decisions = new DecisionCounts()
  readonly waitErrors: Record<WaitErrorReason, number> = { full: 0, timeout: 0, aborted: 0, impossible: 0 }
  /** Made with the first who waits: most limiters have none. */
  waits: Histogram | undefined
  readonly inUse = new Set<AnyLimiter>()
  readonly #former: Totals = zeros()
  isStoreDown = false
  failedAtMs = 0

  closed(limiter: AnyLimiter): void {
    if (this.inUse.delete(limiter)) add(this.#former, limiter)
  }

  totals(): Totals {
    const totals = zeros()
    add(totals, { stats: () => this.#former })
    for (const limiter of this.inUse) add(totals, limiter)
    return totals
  }
}

function zeros(): Totals {
  const storeErrors = { timeout: 0, error: 0, down: 0, overload: 0, full: 0, invalid_state: 0 }
  return { storeErrors, breakerOpened: 0, clockSteps: 0 }
}

function add(totals: Totals, limiter: { stats(): Readonly<Totals> }): void {
  const { storeErrors, breakerOpened, clockSteps } = limiter.stats()
  for (const reason of Object.keys(storeErrors) as StoreUnavailableReason[]) {
    totals.storeErrors[reason] += storeErrors[reason]
  }
  totals.breakerOpened += breakerOpened
  totals.clockSteps += clockSteps
}

/** What becomes of requests, by limiter. */
export class LimiterCounts {
  readonly #now: () => number
  readonly #counts = new Map<string, Counts>()

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** From now on it is told, if with 0: what begins with its first denial is a rise that nobody sees. */
  opened(limiter: AnyLimiter): void {
    this.#of(limiter.name).inUse.add(limiter)
  }

  closed(limiter: AnyLimiter): void {
    this.#of(limiter.name).closed(limiter)
  }

  decided(limiter: string, decision: Decision): void {
    this.#of(limiter).decisions.add(decision)
  }

  storeFailed(limiter: string): void {
    this.#of(limiter).failedAtMs = this.#now()
  }

  storeDown(limiter: string): void {
    this.#of(limiter).isStoreDown = true
  }

  storeUp(limiter: string): void {
    this.#of(limiter).isStoreDown = false
  }

  /** He was admitted in the end. */
  waited(limiter: string, ms: number): void {
    this.#waitsOf(limiter).observe(ms)
  }

  waitFailed(limiter: string, reason: WaitErrorReason): void {
    this.#waitsOf(limiter)
    this.#of(limiter).waitErrors[reason]++
  }

  /** What the limits of a limiter have said. */
  limitsOf(limiter: string): readonly LimitCounts[] {
    return this.#counts.get(limiter)?.decisions.read().limits ?? []
  }

  /** @param stateOf a limiter that is in force */
  metrics(stateOf: (limiter: string) => LimiterState | undefined): Metric[] {
    const all = Array.from(this.#counts, ([limiter, counts]) => ({
      limiter,
      counts,
      totals: counts.totals(),
      read: counts.decisions.read(),
      state: stateOf(limiter),
    }))
    const each = <Value>(value: (of: (typeof all)[number]) => Value): Row<Value>[] =>
      all.map((of) => [{ limiter: of.limiter }, value(of)])
    const limits = all.flatMap(({ limiter, read }) =>
      read.limits.map((counts) => ({ labels: { limiter, limit: counts.name }, counts })),
    )
    const eachLimit = <Value>(value: (of: DecisionCountsSnapshot['limits'][number]) => Value): Row<Value>[] =>
      limits.map(({ labels, counts }) => [labels, value(counts)])
    const waited = all.filter(({ counts }) => counts.waits !== undefined)
    return [
      counter('slidegate_decisions_total', 'Requests that were decided.', all.flatMap(decisionsOf)),
      counter(
        'slidegate_limit_denials_total',
        'Requests that an enforced limit had no room for.',
        eachLimit(({ denials }) => denials),
      ),
      counter(
        'slidegate_limit_shadow_denials_total',
        'Requests that a shadow limit had no room for.',
        eachLimit(({ shadowDenials }) => shadowDenials),
      ),
      counter(
        'slidegate_near_limit_total',
        'Requests that were admitted with 80% of the limit used, or more.',
        eachLimit(({ nearLimit }) => nearLimit),
      ),
      histogram(
        'slidegate_limit_utilization_ratio',
        'Share of the limit that was used once a request was decided.',
        eachLimit(({ utilization }) => utilization),
      ),
      counter(
        'slidegate_bans_total',
        'Denials that have blocked their key.',
        each(({ read }) => read.bans),
      ),
      counter(
        'slidegate_blocked_requests_total',
        'Requests that were denied because their key was blocked before.',
        each(({ read }) => read.blocked),
      ),
      gauge(
        'slidegate_queue_length',
        'Requests that wait for room.',
        all.flatMap(({ limiter, state }) => (state === undefined ? [] : [[{ limiter }, state.waiting]])),
      ),
      histogram(
        'slidegate_wait_duration_seconds',
        'How long requests have waited that were admitted in the end.',
        waited.map(({ limiter, counts }): Row<HistogramCounts> => [{ limiter }, counts.waits!.read()]),
        1000,
      ),
      counter(
        'slidegate_wait_errors_total',
        'Requests that have waited, or wanted to, and were not admitted.',
        waited.flatMap(({ limiter, counts }) => byReason(limiter, counts.waitErrors)),
      ),
      counter(
        'slidegate_store_errors_total',
        'What was asked of the store without an answer.',
        all.flatMap(({ limiter, totals }) => byReason(limiter, totals.storeErrors)),
      ),
      gauge(
        'slidegate_store_down',
        '1 where the store is not asked, since it has failed lately.',
        each(({ counts, state }) =>
          (state ?? counts).isStoreDown && this.#now() - counts.failedAtMs < DOWN_MS ? 1 : 0,
        ),
        // One process that cannot reach it is enough.
        'max',
      ),
      counter(
        'slidegate_store_breaker_opened_total',
        'How often the store was given up for a while.',
        each(({ totals }) => totals.breakerOpened),
      ),
      counter(
        'slidegate_store_clock_steps_total',
        "How often the store's clock was set by more than a second.",
        each(({ totals }) => totals.clockSteps),
        // All processes see the same clock.
        'max',
      ),
    ]
  }

  #of(limiter: string): Counts {
    const known = this.#counts.get(limiter)
    if (known !== undefined) return known
    if (this.#counts.size >= MAX_LIMITERS && limiter !== OTHERS) return this.#of(OTHERS)
    const counts = new Counts()
    this.#counts.set(limiter, counts)
    return counts
  }

  #waitsOf(limiter: string): Histogram {
    const counts = this.#of(limiter)
    counts.waits ??= new Histogram(WAITS_MS)
    return counts.waits
  }
}

function decisionsOf({ limiter, read }: { limiter: string; read: DecisionCountsSnapshot }): Row<number>[] {
  return (Object.keys(read.decisions) as Source[]).flatMap((source) => {
    const { allowed, denied } = read.decisions[source]
    // Most limiters never have others.
    if (source !== 'store' && allowed + denied === 0) return []
    return [
      [{ limiter, outcome: 'allowed', source }, allowed],
      [{ limiter, outcome: 'denied', source }, denied],
    ]
  })
}

function byReason(limiter: string, counts: Readonly<Record<string, number>>): Row<number>[] {
  return Object.entries(counts).map(([reason, count]) => [{ limiter, reason }, count])
}
