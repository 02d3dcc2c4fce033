import {
  type Attributes,
  type BatchObservableResult,
  type Histogram,
  type Meter,
  metrics,
  type Observable,
} from '@opentelemetry/api'
import { checkOptions, invalidOption, show } from '../errors.ts'
import type { LimiterEvents } from '../events.ts'
import type { AnyKey } from '../key.ts'
import type { WaitingState } from '../limiter/waiting/waiting.ts'
import type { Limiter } from '../limiter.ts'
import { nextTurn } from '../runtime/platform.ts'
import type { LimiterStats } from '../stats.ts'
import type { RedisStoreStats } from '../stores/redis/call-counts.ts'
import { ERROR_TYPE, LIMIT, POLICY, RESULT, resultOf, SOURCE } from './attributes.ts'
import { DecisionCounts, UTILIZATION } from './decision-counts.ts'
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
  const ofLimiter = new LimiterInstruments(meter, limiter, counts)
  const ofStore = store && new StoreInstruments(meter, limiter.name, store)
  const observables = [...ofLimiter.observables, ...(ofStore?.observables ?? [])]
  const collect = (result: BatchObservableResult) =>
    inTurn(() => {
      ofLimiter.observe(result)
      ofStore?.observe(result)
    })
  limiter.on('decision', count)
  meter.addBatchObservableCallback(collect, observables)
  return () => {
    limiter.off('decision', count)
    meter.removeBatchObservableCallback(collect, observables)
  }
}

/** When those have told who were asked before. */
let told: Promise<unknown> = Promise.resolve()

/** Limiters tell one after another, each in a turn of the event loop: a hundred in one would make requests wait for long. */
function inTurn(tell: () => void): Promise<void> {
  const turn = told.then(() => new Promise<void>((resolve) => void nextTurn(resolve)))
  const telling = turn.then(tell)
  told = telling.catch(() => {})
  return telling
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

class LimiterInstruments {
  readonly observables: readonly Observable[]
  readonly #limiter: Measured
  readonly #counts: DecisionCounts
  readonly #requests: Observable
  readonly #blocked: Observable
  readonly #bans: Observable
  readonly #denials: Observable
  readonly #shadowDenials: Observable
  readonly #near: Observable
  readonly #utilization: Histogram
  readonly #utilizationOf = new Map<string, ReplayedHistogram>()
  readonly #leases: Observable
  readonly #queued: Observable
  readonly #waits: ReplayedHistogram
  readonly #waitErrors: Observable
  readonly #storeErrors: Observable
  readonly #isStoreDown: Observable
  readonly #breakerOpened: Observable
  readonly #clockSteps: Observable

  constructor(meter: Meter, limiter: Measured, counts: DecisionCounts) {
    this.#limiter = limiter
    this.#counts = counts
    const make = new Maker(meter)
    this.#requests = make.counter('requests', '{request}', 'Requests that were decided.')
    this.#blocked = make.counter(
      'blocked_requests',
      '{request}',
      'Requests denied because their key was blocked before.',
    )
    this.#bans = make.counter('bans', '{ban}', 'Denials that have brought a ban about.')
    this.#denials = make.counter(
      'limit.denials',
      '{request}',
      'Requests that an enforced limit had no room for.',
    )
    this.#shadowDenials = make.counter(
      'limit.shadow_denials',
      '{request}',
      'Requests that a shadow limit had no room for.',
    )
    this.#near = make.counter(
      'limit.near',
      '{request}',
      'Requests admitted with 80% of the limit used, or more.',
    )
    this.#utilization = make.histogram(
      'limit.utilization',
      '1',
      'Share of the limit that is used once a request is decided.',
      UTILIZATION,
    )
    this.#leases = make.level('active_request_leases', '{request}', 'Permits that are held.')
    this.#queued = make.level('queued_requests', '{request}', 'Requests that wait to be admitted.')
    const { waits } = limiter.stats()
    const timeInQueue = make.histogram(
      'request.time_in_queue',
      's',
      'How long requests have waited that were admitted in the end.',
      seconds(waits.bounds),
    )
    const served = { [POLICY]: limiter.name, [RESULT]: resultOf(true) }
    this.#waits = new ReplayedHistogram(timeInQueue, served, MS_PER_SECOND, waits)
    this.#waitErrors = make.counter('queue.errors', '{request}', 'Waits that ended without an admission.')
    this.#storeErrors = make.counter(
      'store.errors',
      '{request}',
      'What was asked of the store without an answer.',
    )
    this.#isStoreDown = make.gauge(
      'store.down',
      '1',
      '1 while the store is not asked, since it has failed; else 0.',
    )
    this.#breakerOpened = make.counter('store.breaker_openings', '{opening}', 'How often that has begun.')
    this.#clockSteps = make.counter('store.clock_steps', '{step}', "How often the store's clock was set.")
    this.observables = make.made
  }

  observe(result: BatchObservableResult): void {
    this.#observeDecisions(result)
    const policy = { [POLICY]: this.#limiter.name }
    const stats = this.#limiter.stats()
    result.observe(this.#leases, stats.permits, policy)
    result.observe(this.#queued, this.#waiting(), policy)
    this.#waits.record(stats.waits)
    observeByType(result, this.#waitErrors, stats.waitErrors, policy)
    observeByType(result, this.#storeErrors, stats.storeErrors, policy)
    result.observe(this.#isStoreDown, stats.isStoreDown ? 1 : 0, policy)
    result.observe(this.#breakerOpened, stats.breakerOpened, policy)
    result.observe(this.#clockSteps, stats.clockSteps, policy)
  }

  #observeDecisions(result: BatchObservableResult): void {
    const policy = { [POLICY]: this.#limiter.name }
    const { decisions, blocked, bans, limits } = this.#counts.read()
    for (const [source, { allowed, denied }] of Object.entries(decisions)) {
      const by = { ...policy, [SOURCE]: source }
      if (allowed > 0) result.observe(this.#requests, allowed, { ...by, [RESULT]: resultOf(true) })
      if (denied > 0) result.observe(this.#requests, denied, { ...by, [RESULT]: resultOf(false) })
    }
    result.observe(this.#blocked, blocked, policy)
    result.observe(this.#bans, bans, policy)
    for (const { name, denials, shadowDenials, near, utilization } of limits) {
      const limit = { ...policy, [LIMIT]: name }
      result.observe(this.#denials, denials, limit)
      result.observe(this.#shadowDenials, shadowDenials, limit)
      result.observe(this.#near, near, limit)
      this.#replayed(name, limit).record(utilization)
    }
  }

  #replayed(name: string, limit: Attributes): ReplayedHistogram {
    let replayed = this.#utilizationOf.get(name)
    if (replayed === undefined) {
      replayed = new ReplayedHistogram(this.#utilization, limit, 1)
      this.#utilizationOf.set(name, replayed)
    }
    return replayed
  }

  /** Nobody waits for a limiter that is closed. */
  #waiting(): number {
    try {
      return this.#limiter.waiting().length
    } catch {
      return 0
    }
  }
}

class StoreInstruments {
  readonly observables: readonly Observable[]
  readonly #policy: Attributes
  readonly #store: { stats(): RedisStoreStats }
  readonly #calls: Observable
  readonly #failedCalls: Observable
  readonly #scriptLoads: Observable
  readonly #callMs: ReplayedHistogram
  readonly #requests: ReplayedHistogram
  readonly #ops: ReplayedHistogram

  constructor(meter: Meter, policy: string, store: { stats(): RedisStoreStats }) {
    this.#store = store
    this.#policy = { [POLICY]: policy }
    const make = new Maker(meter)
    this.#calls = make.counter('store.calls', '{call}', 'Calls of Redis.')
    this.#failedCalls = make.counter(
      'store.failed_calls',
      '{call}',
      'Calls of Redis that have failed as a whole.',
    )
    this.#scriptLoads = make.counter(
      'store.script_loads',
      '{load}',
      'How often Redis did not know the script, and was sent it.',
    )
    const { callMs, requestsPerCall, opsPerCall } = store.stats()
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
    this.#callMs = new ReplayedHistogram(duration, this.#policy, MS_PER_SECOND, callMs)
    this.#requests = new ReplayedHistogram(requests, this.#policy, 1, requestsPerCall)
    this.#ops = new ReplayedHistogram(ops, this.#policy, 1, opsPerCall)
    this.observables = make.made
  }

  observe(result: BatchObservableResult): void {
    const { calls, failedCalls, scriptLoads, callMs, requestsPerCall, opsPerCall } = this.#store.stats()
    result.observe(this.#calls, calls, this.#policy)
    result.observe(this.#failedCalls, failedCalls, this.#policy)
    result.observe(this.#scriptLoads, scriptLoads, this.#policy)
    this.#callMs.record(callMs)
    this.#requests.record(requestsPerCall)
    this.#ops.record(opsPerCall)
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
