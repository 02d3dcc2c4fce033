// Counts each limiter's decisions, waits and errors, across reloads.

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

/** Maximum number of limiters with separate metrics, including Envoy's domains. All others are counted together. */
const MAX_LIMITERS = 1024

/** Label for the limiters that are counted together. No limiter can have this name. */
const OTHERS = '(others)'

/** How long `store_down` stays 1 after the last failed request. An idle limiter can't detect a recovery. */
const DOWN_MS = 60_000

const WAITS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** How long an outage is remembered after its end. */
const REMEMBERED_MS = 900_000

/** A store outage. Times are epoch milliseconds. `untilMs` is undefined while the outage lasts. */
export interface StoreOutage {
  readonly sinceMs: number
  readonly untilMs?: number
}

/** A limiter's live state. */
export interface LimiterState {
  readonly isStoreDown: boolean
  readonly waiting: number
}

/** Counters that the limiters maintain. */
interface Totals {
  readonly storeErrors: Record<StoreUnavailableReason, number>
  breakerOpened: number
  clockSteps: number
}

/** The counts for one limiter name in this process, across reloads. */
class Counts {
  readonly decisions = new DecisionCounts()
  readonly waitErrors: Record<WaitErrorReason, number> = { full: 0, timeout: 0, aborted: 0, impossible: 0 }
  /** Created for the first waiter, because most limiters have none. */
  waits: Histogram | undefined
  readonly inUse = new Set<AnyLimiter>()
  readonly #former: Totals = zeros()
  /** The current or latest outage. */
  outage: StoreOutage | undefined
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

function isOn(outage: StoreOutage | undefined): boolean {
  return outage !== undefined && outage.untilMs === undefined
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

/** Counts decisions, waits and store errors by limiter. */
export class LimiterCounts {
  readonly #now: () => number
  readonly #counts = new Map<string, Counts>()

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Creates the limiter's counters at 0. Otherwise, Prometheus would miss their first increase. */
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
    const counts = this.#of(limiter)
    if (!isOn(counts.outage)) counts.outage = { sinceMs: Date.now() }
  }

  storeUp(limiter: string): void {
    const counts = this.#of(limiter)
    if (counts.outage !== undefined) counts.outage = { ...counts.outage, untilMs: Date.now() }
  }

  /** Whether the circuit breaker is open and a request has failed within the last minute. */
  isStoreDown(limiter: string): boolean {
    const { outage, failedAtMs = 0 } = this.#counts.get(limiter) ?? {}
    return isOn(outage) && this.#now() - failedAtMs < DOWN_MS
  }

  /** The current outage, or one that ended within the last 15 minutes. */
  outageOf(limiter: string): StoreOutage | undefined {
    const outage = this.#counts.get(limiter)?.outage
    const isRecent = Date.now() - (outage?.untilMs ?? Date.now()) < REMEMBERED_MS
    return isRecent ? outage : undefined
  }

  /** Records the wait of an admitted request. */
  waited(limiter: string, ms: number): void {
    this.#waitsOf(limiter).observe(ms)
  }

  waitFailed(limiter: string, reason: WaitErrorReason): void {
    this.#waitsOf(limiter)
    this.#of(limiter).waitErrors[reason]++
  }

  /** Returns a limiter's counts, with one entry per limit. */
  limitsOf(limiter: string): readonly LimitCounts[] {
    return this.#counts.get(limiter)?.decisions.read().limits ?? []
  }

  /** @param stateOf returns the state of an active limiter */
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
      counter('slidegate_decisions_total', 'Decisions.', all.flatMap(decisionsOf)),
      counter(
        'slidegate_limit_denials_total',
        'Requests that an enforced limit denied.',
        eachLimit(({ denials }) => denials),
      ),
      counter(
        'slidegate_limit_shadow_denials_total',
        'Requests that a shadow limit would have denied.',
        eachLimit(({ shadowDenials }) => shadowDenials),
      ),
      counter(
        'slidegate_near_limit_total',
        'Requests admitted when at least 80% of the limit was used.',
        eachLimit(({ nearLimit }) => nearLimit),
      ),
      histogram(
        'slidegate_limit_utilization_ratio',
        'Share of the limit in use after each decision.',
        eachLimit(({ utilization }) => utilization),
      ),
      counter(
        'slidegate_bans_total',
        'Denials that started a ban.',
        each(({ read }) => read.bans),
      ),
      counter(
        'slidegate_blocked_requests_total',
        'Requests denied because their key was already banned or blocked.',
        each(({ read }) => read.blocked),
      ),
      gauge(
        'slidegate_queue_length',
        'Waiting requests.',
        all.flatMap(({ limiter, state }) => (state === undefined ? [] : [[{ limiter }, state.waiting]])),
      ),
      histogram(
        'slidegate_wait_duration_seconds',
        'Wait times of admitted requests.',
        waited.map(({ limiter, counts }): Row<HistogramCounts> => [{ limiter }, counts.waits!.read()]),
        1000,
      ),
      counter(
        'slidegate_wait_errors_total',
        'Requests that waited, or tried to, but were not admitted.',
        waited.flatMap(({ limiter, counts }) => byReason(limiter, counts.waitErrors)),
      ),
      counter(
        'slidegate_store_errors_total',
        'Store operations that failed.',
        all.flatMap(({ limiter, totals }) => byReason(limiter, totals.storeErrors)),
      ),
      gauge(
        'slidegate_store_down',
        '1 if calls to the store are paused because it failed recently.',
        each(({ limiter, state }) => (state?.isStoreDown !== false && this.isStoreDown(limiter) ? 1 : 0)),
        // 1 if any process can't reach the store.
        'max',
      ),
      counter(
        'slidegate_store_breaker_opened_total',
        'Times the circuit breaker opened.',
        each(({ totals }) => totals.breakerOpened),
      ),
      counter(
        'slidegate_store_clock_steps_total',
        "Times the store's clock jumped by more than a second.",
        each(({ totals }) => totals.clockSteps),
        // All processes see the same jumps in the store's clock, so their counts aren't added up.
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
    // Omits unused sources. Most limiters use only the store.
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
