// Metrics of a limiter and its store, read when OpenTelemetry collects them.
import {
  type Attributes,
  type BatchObservableResult,
  type Histogram,
  type Meter,
  metrics,
  type Observable,
} from '@opentelemetry/api'
import { checkOptions, invalidOption, show } from '../errors.ts'
import type { LimiterEvents, LimiterStats } from '../events.ts'
import type { AnyKey } from '../key.ts'
import type { WaitingState } from '../limiter/waiting/room.ts'
import type { Limiter } from '../limiter.ts'
import { nextTurn } from '../runtime/platform.ts'
import type { RedisStoreStats } from '../stores/redis/call-counts.ts'
import { ERROR_TYPE, LIMIT, POLICY, RESULT, resultOf, SOURCE, UTILIZATION } from './attributes.ts'
import { DecisionCounts } from './metrics.ts'
import { ReplayedHistogram } from './replayed-histogram.ts'

/** Who measures, and what besides the limiter. */
export interface MeasureOptions {
  /** Who makes the instruments. Default: `metrics.getMeter('slidegate')` of the API, as that is set up by then. */
  readonly meter?: Meter
  /** The limiter's store in Redis, where its calls are to be measured, too; of limiters that share one, by one of them. */
  readonly store?: { stats(): RedisStoreStats }
}

const MS_PER_SECOND = 1000

/**
 * Tells OpenTelemetry of a limiter, until the function is called that it answers. A decision costs no more than
 * {@link DecisionCounts.add}: all else is done when metrics are collected. Never of keys: attributes are the names of the
 * limiter and of its limits, and words of which there are few.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function measure<Key extends AnyKey>(limiter: Limiter<Key>, options: MeasureOptions = {}): () => void {
  checkOptions(options, 'measure', { meter: true, store: true })
  const { meter = metrics.getMeter('slidegate'), store } = options
  checkStore(store)
  const counts = new DecisionCounts()
  const count = ({ decision }: LimiterEvents<Key>['decision']) => counts.add(decision)
  const make = new Maker(meter)
  const observeLimiter = limiterInstruments(make, limiter, counts)
  const observeStore = store && storeInstruments(make, limiter.name, store)
  const collect = (result: BatchObservableResult) =>
    inTurn(() => {
      observeLimiter(result)
      observeStore?.(result)
    })
  limiter.on('decision', count)
  meter.addBatchObservableCallback(collect, make.made)
  return () => {
    limiter.off('decision', count)
    meter.removeBatchObservableCallback(collect, make.made)
  }
}

/** Resolves when all earlier reports are done. */
let reported: Promise<unknown> = Promise.resolve()

/** Limiters report one after another, each in a turn of the event loop: a hundred in one turn would hold up requests. */
function inTurn(report: () => void): Promise<void> {
  const turn = reported.then(() => new Promise<void>((resolve) => void nextTurn(resolve)))
  const reporting = turn.then(report)
  reported = reporting.catch(() => {})
  return reporting
}

function checkStore(store: unknown): void {
  if (store === undefined) return
  // That of a memory store tells other things.
  const { stats } = Object(store) as { stats?: unknown }
  if (typeof stats === 'function' && 'callMs' in stats.call(store)) return
  throw invalidOption(`the store is ${show(store)}; it must be a redisStore()`, store)
}

/** Makes instruments, named after those of ASP.NET Core's rate limiter. */
class Maker {
  /** Those that are asked when metrics are collected. */
  readonly made: Observable[] = []
  readonly #meter: Meter

  constructor(meter: Meter) {
    this.#meter = meter
  }

  counter(name: string, unit: string, description: string): Observable {
    return this.#observed(this.#meter.createObservableCounter(nameOf(name), { unit, description }))
  }

  /** What goes up and down, and may be added up over processes. */
  level(name: string, unit: string, description: string): Observable {
    return this.#observed(this.#meter.createObservableUpDownCounter(nameOf(name), { unit, description }))
  }

  gauge(name: string, unit: string, description: string): Observable {
    return this.#observed(this.#meter.createObservableGauge(nameOf(name), { unit, description }))
  }

  histogram(name: string, unit: string, description: string, bounds: readonly number[]): Histogram {
    const advice = { explicitBucketBoundaries: [...bounds] }
    return this.#meter.createHistogram(nameOf(name), { unit, description, advice })
  }

  #observed(observable: Observable): Observable {
    this.made.push(observable)
    return observable
  }
}

function nameOf(name: string): string {
  return `slidegate.rate_limiting.${name}`
}

function seconds(boundsMs: readonly number[]): number[] {
  return boundsMs.map((ms) => ms / MS_PER_SECOND)
}

/** What is read of a limiter. */
interface Measured {
  readonly name: string
  stats(): LimiterStats
  waiting(): WaitingState
}

/** Makes the instruments of a limiter. What it returns is called when metrics are collected. */
function limiterInstruments(
  make: Maker,
  limiter: Measured,
  counts: DecisionCounts,
): (result: BatchObservableResult) => void {
  const policy = { [POLICY]: limiter.name }
  const requests = make.counter('requests', '{request}', 'Requests that were decided.')
  const blocked = make.counter(
    'blocked_requests',
    '{request}',
    'Requests denied because their key was blocked before.',
  )
  const bans = make.counter('bans', '{ban}', 'Denials that have brought a ban about.')
  const denials = make.counter(
    'limit.denials',
    '{request}',
    'Requests that an enforced limit had no room for.',
  )
  const shadowDenials = make.counter(
    'limit.shadow_denials',
    '{request}',
    'Requests that a shadow limit had no room for.',
  )
  const near = make.counter(
    'limit.near',
    '{request}',
    'Requests admitted with 80% of the limit used, or more.',
  )
  const utilization = make.histogram(
    'limit.utilization',
    '1',
    'Share of the limit that is used once a request is decided.',
    UTILIZATION,
  )
  const leases = make.level('active_request_leases', '{request}', 'Permits that are held.')
  const queued = make.level('queued_requests', '{request}', 'Requests that wait to be admitted.')
  const { waits } = limiter.stats()
  const timeInQueue = make.histogram(
    'request.time_in_queue',
    's',
    'How long requests have waited that were admitted in the end.',
    seconds(waits.bounds),
  )
  const waitErrors = make.counter('queue.errors', '{request}', 'Waits that ended without an admission.')
  const storeErrors = make.counter(
    'store.errors',
    '{request}',
    'What was asked of the store without an answer.',
  )
  const isStoreDown = make.gauge(
    'store.down',
    '1',
    '1 while the store is not asked, since it has failed; else 0.',
  )
  const breakerOpened = make.counter('store.breaker_openings', '{opening}', 'How often that has begun.')
  const clockSteps = make.counter('store.clock_steps', '{step}', "How often the store's clock was set.")

  const served = { ...policy, [RESULT]: resultOf(true) }
  const replayedWaits = new ReplayedHistogram(timeInQueue, served, MS_PER_SECOND, waits)
  const utilizationOf = new Map<string, ReplayedHistogram>()

  function observeDecisions(result: BatchObservableResult): void {
    const read = counts.read()
    for (const [source, { allowed, denied }] of Object.entries(read.decisions)) {
      const by = { ...policy, [SOURCE]: source }
      if (allowed > 0) result.observe(requests, allowed, { ...by, [RESULT]: resultOf(true) })
      if (denied > 0) result.observe(requests, denied, { ...by, [RESULT]: resultOf(false) })
    }
    result.observe(blocked, read.blocked, policy)
    result.observe(bans, read.bans, policy)
    for (const each of read.limits) {
      const limit = { ...policy, [LIMIT]: each.name }
      result.observe(denials, each.denials, limit)
      result.observe(shadowDenials, each.shadowDenials, limit)
      result.observe(near, each.near, limit)
      const replayed = utilizationOf.get(each.name) ?? new ReplayedHistogram(utilization, limit, 1)
      utilizationOf.set(each.name, replayed)
      replayed.record(each.utilization)
    }
  }

  return (result) => {
    observeDecisions(result)
    const stats = limiter.stats()
    result.observe(leases, stats.permits, policy)
    result.observe(queued, waitingFor(limiter), policy)
    replayedWaits.record(stats.waits)
    observeByType(result, waitErrors, stats.waitErrors, policy)
    observeByType(result, storeErrors, stats.storeErrors, policy)
    result.observe(isStoreDown, stats.isStoreDown ? 1 : 0, policy)
    result.observe(breakerOpened, stats.breakerOpened, policy)
    result.observe(clockSteps, stats.clockSteps, policy)
  }
}

/** Nobody waits for a limiter that is closed. */
function waitingFor(limiter: Measured): number {
  try {
    return limiter.waiting().length
  } catch {
    return 0
  }
}

/** The same for a store in Redis. */
function storeInstruments(
  make: Maker,
  name: string,
  store: { stats(): RedisStoreStats },
): (result: BatchObservableResult) => void {
  const policy = { [POLICY]: name }
  const { callMs, requestsPerCall, opsPerCall } = store.stats()
  const calls = make.counter('store.calls', '{call}', 'Calls of Redis.')
  const failedCalls = make.counter(
    'store.failed_calls',
    '{call}',
    'Calls of Redis that have failed as a whole.',
  )
  const scriptLoads = make.counter(
    'store.script_loads',
    '{load}',
    'How often Redis did not know the script, and was sent it.',
  )
  const duration = make.histogram(
    'store.call.duration',
    's',
    'How long Redis took to answer a call.',
    seconds(callMs.bounds),
  )
  const requests = make.histogram(
    'store.call.requests',
    '{request}',
    'Requests that travelled in a call.',
    requestsPerCall.bounds,
  )
  const ops = make.histogram(
    'store.call.operations',
    '{operation}',
    'What Redis had to decide in a call: equal requests for a key are one.',
    opsPerCall.bounds,
  )
  const replayedDuration = new ReplayedHistogram(duration, policy, MS_PER_SECOND, callMs)
  const replayedRequests = new ReplayedHistogram(requests, policy, 1, requestsPerCall)
  const replayedOps = new ReplayedHistogram(ops, policy, 1, opsPerCall)

  return (result) => {
    const stats = store.stats()
    result.observe(calls, stats.calls, policy)
    result.observe(failedCalls, stats.failedCalls, policy)
    result.observe(scriptLoads, stats.scriptLoads, policy)
    replayedDuration.record(stats.callMs)
    replayedRequests.record(stats.requestsPerCall)
    replayedOps.record(stats.opsPerCall)
  }
}

/** Counts of what has failed, those that are none left out. */
function observeByType(
  result: BatchObservableResult,
  observable: Observable,
  counts: Readonly<Record<string, number>>,
  policy: Attributes,
): void {
  for (const [type, count] of Object.entries(counts)) {
    if (count > 0) result.observe(observable, count, { ...policy, [ERROR_TYPE]: type })
  }
}
