// The metrics for a limiter and its store. They are read when OpenTelemetry collects metrics.
import {
  type Attributes,
  type BatchObservableResult,
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
import {
  DecisionCounts,
  type DecisionCountsSnapshot,
  type HistogramCounts,
  type LimitCounts,
} from './metrics.ts'
import { ReplayedHistogram } from './replayed-histogram.ts'

/** Options for {@link measure}. */
export interface MeasureOptions {
  /** Creates the instruments. Default: `metrics.getMeter('slidegate')`, resolved when `measure` is called. */
  readonly meter?: Meter
  /**
   * The limiter's Redis store. If set, calls to Redis are measured, too. If several limiters share a store, pass it for just one
   * of them.
   */
  readonly store?: { stats(): RedisStoreStats }
}

const MS_PER_SECOND = 1000

/**
 * Reports a limiter's metrics to OpenTelemetry. Returns a function that stops reporting.
 *
 * It adds no more than {@link DecisionCounts.add} to the cost of a decision; all other work happens when metrics are collected.
 * Attributes contain the names of limiters and limits and a few fixed words, but never keys.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function measure<Key extends AnyKey>(limiter: Limiter<Key>, options: MeasureOptions = {}): () => void {
  checkOptions(options, 'measure', { meter: true, store: true })
  const { meter = metrics.getMeter('slidegate'), store } = options
  checkStore(store)
  const counts = new DecisionCounts()
  const count = ({ decision }: LimiterEvents<Key>['decision']) => counts.add(decision)
  const all: Pick<Instruments<never>, 'observables' | 'collect'>[] = [
    limiterInstruments(meter, limiter, counts),
  ]
  if (store !== undefined) all.push(storeInstruments(meter, limiter.name, store))
  const observables = all.flatMap((each) => each.observables)
  const collect = (result: BatchObservableResult) =>
    inTurn(() => {
      for (const each of all) each.collect(result)
    })
  limiter.on('decision', count)
  meter.addBatchObservableCallback(collect, observables)
  return () => {
    limiter.off('decision', count)
    meter.removeBatchObservableCallback(collect, observables)
  }
}

/** Resolves when all earlier reports are complete. */
let reported: Promise<unknown> = Promise.resolve()

/** Runs each report in its own turn of the event loop. Reporting a hundred limiters in one turn would delay requests. */
function inTurn(report: () => void): Promise<void> {
  const turn = reported.then(() => new Promise<void>((resolve) => void nextTurn(resolve)))
  const reporting = turn.then(report)
  reported = reporting.catch(() => {})
  return reporting
}

function checkStore(store: unknown): void {
  if (store === undefined) return
  // A memory store has different stats.
  const { stats } = Object(store) as { stats?: unknown }
  if (typeof stats === 'function' && 'callMs' in stats.call(store)) return
  throw invalidOption(`the store is ${show(store)}; it must come from redisStore()`, store)
}

type Sample<Value> = readonly [value: Value, attributes?: Attributes]

/** Instruments that read their values from the same state. Their names follow ASP.NET Core's rate limiter. */
class Instruments<State> {
  readonly observables: Observable[] = []
  readonly #meter: Meter
  readonly #policy: Attributes
  readonly #read: () => State
  readonly #reports: ((state: State, result: BatchObservableResult) => void)[] = []

  /** @param read called once per collection */
  constructor(meter: Meter, policy: string, read: () => State) {
    this.#meter = meter
    this.#policy = { [POLICY]: policy }
    this.#read = read
  }

  collect(result: BatchObservableResult): void {
    const state = this.#read()
    for (const report of this.#reports) report(state, result)
  }

  counter(
    name: string,
    unit: string,
    description: string,
    samples: (state: State) => Sample<number>[],
  ): void {
    this.#observe(this.#meter.createObservableCounter(nameOf(name), { unit, description }), samples)
  }

  /** Creates a gauge whose values can be summed across processes. */
  level(name: string, unit: string, description: string, samples: (state: State) => Sample<number>[]): void {
    this.#observe(this.#meter.createObservableUpDownCounter(nameOf(name), { unit, description }), samples)
  }

  gauge(name: string, unit: string, description: string, samples: (state: State) => Sample<number>[]): void {
    this.#observe(this.#meter.createObservableGauge(nameOf(name), { unit, description }), samples)
  }

  /** @param scale the divisor that converts counted values to `unit`: 1000 for ms to s */
  histogram(
    name: string,
    unit: string,
    description: string,
    bounds: readonly number[],
    samples: (state: State) => readonly Sample<HistogramCounts>[],
    scale = 1,
  ): void {
    const advice = { explicitBucketBoundaries: bounds.map((bound) => bound / scale) }
    const histogram = this.#meter.createHistogram(nameOf(name), { unit, description, advice })
    const replay = ([, attributes]: Sample<HistogramCounts>, known?: HistogramCounts) =>
      new ReplayedHistogram(histogram, { ...this.#policy, ...attributes }, scale, known)
    const replayed = samples(this.#read()).map((sample) => replay(sample, sample[0]))
    this.#reports.push((state) =>
      samples(state).forEach((sample, i) => {
        replayed[i] ??= replay(sample)
        replayed[i].record(sample[0])
      }),
    )
  }

  #observe(observable: Observable, samples: (state: State) => Sample<number>[]): void {
    this.observables.push(observable)
    this.#reports.push((state, result) => {
      for (const [value, attributes] of samples(state)) {
        result.observe(observable, value, { ...this.#policy, ...attributes })
      }
    })
  }
}

function nameOf(name: string): string {
  return `slidegate.rate_limiting.${name}`
}

/** The parts of a limiter that are measured. */
interface Measured {
  readonly name: string
  stats(): LimiterStats
  waiting(): WaitingState
}

function limiterInstruments(meter: Meter, limiter: Measured, counts: DecisionCounts) {
  const make = new Instruments(meter, limiter.name, () => ({
    ...counts.read(),
    ...limiter.stats(),
    queued: queuedIn(limiter),
  }))
  make.counter('requests', '{request}', 'Admitted and denied requests.', outcomes)
  make.counter('blocked_requests', '{request}', 'Requests denied by an active ban.', ({ blocked }) => [
    [blocked],
  ])
  make.counter('bans', '{ban}', 'Denials that caused a ban.', ({ bans }) => [[bans]])
  make.counter('limit.denials', '{request}', 'Requests denied by the limit.', perLimit('denials'))
  make.counter(
    'limit.shadow_denials',
    '{request}',
    'Requests that a shadow limit would have denied.',
    perLimit('shadowDenials'),
  )
  make.counter(
    'near_limit',
    '{request}',
    'Requests admitted with at least 80% of the limit used.',
    perLimit('nearLimit'),
  )
  make.histogram('limit.utilization', '1', 'Share of the limit in use.', UTILIZATION, perLimit('utilization'))
  make.level('active_request_leases', '{request}', 'Permits currently held.', ({ permits }) => [[permits]])
  make.level('queued_requests', '{request}', 'Requests currently waiting.', ({ queued }) => [[queued]])
  make.histogram(
    'request.time_in_queue',
    's',
    'Wait times of admitted requests.',
    limiter.stats().waits.bounds,
    (state) => [[state.waits, { [RESULT]: resultOf(true) }]],
    MS_PER_SECOND,
  )
  make.counter('queue.errors', '{request}', 'Failed waits.', ({ waitErrors }) => byType(waitErrors))
  make.counter(
    'store.errors',
    '{request}',
    'Operations that the store failed to answer.',
    ({ storeErrors }) => byType(storeErrors),
  )
  make.gauge('store.down', '1', '1 while the circuit breaker is open.', ({ isStoreDown }) => [
    [isStoreDown ? 1 : 0],
  ])
  make.counter('store.breaker_opened', '{opening}', 'Circuit breaker openings.', ({ breakerOpened }) => [
    [breakerOpened],
  ])
  make.counter('store.clock_steps', '{step}', 'Store clock jumps.', ({ clockSteps }) => [[clockSteps]])
  return make
}

function storeInstruments(meter: Meter, name: string, store: { stats(): RedisStoreStats }) {
  const { callMs, requestsPerCall, opsPerCall } = store.stats()
  const make = new Instruments(meter, name, () => store.stats())
  make.counter('store.calls', '{call}', 'Calls to Redis.', ({ calls }) => [[calls]])
  make.counter('store.failed_calls', '{call}', 'Failed calls to Redis.', ({ failedCalls }) => [[failedCalls]])
  make.counter('store.script_loads', '{load}', 'Script loads.', ({ scriptLoads }) => [[scriptLoads]])
  make.histogram(
    'store.call.duration',
    's',
    'Duration of calls to Redis.',
    callMs.bounds,
    (stats) => [[stats.callMs]],
    MS_PER_SECOND,
  )
  make.histogram(
    'store.call.requests',
    '{request}',
    'Requests per call.',
    requestsPerCall.bounds,
    (stats) => [[stats.requestsPerCall]],
  )
  make.histogram(
    'store.call.operations',
    '{operation}',
    'Operations per call. Identical requests for one key count as one.',
    opsPerCall.bounds,
    (stats) => [[stats.opsPerCall]],
  )
  return make
}

/** Returns the number of waiting requests: 0 for a closed limiter, whose `waiting` throws. */
function queuedIn(limiter: Measured): number {
  try {
    return limiter.waiting().length
  } catch {
    return 0
  }
}

function outcomes({ decisions }: DecisionCountsSnapshot): Sample<number>[] {
  return Object.entries(decisions)
    .flatMap(([source, { allowed, denied }]): Sample<number>[] => [
      [allowed, { [SOURCE]: source, [RESULT]: resultOf(true) }],
      [denied, { [SOURCE]: source, [RESULT]: resultOf(false) }],
    ])
    .filter(([count]) => count > 0)
}

function perLimit<Field extends keyof LimitCounts>(field: Field) {
  return ({ limits }: DecisionCountsSnapshot): Sample<LimitCounts[Field]>[] =>
    limits.map((limit) => [limit[field], { [LIMIT]: limit.name }])
}

function byType(counts: Readonly<Record<string, number>>): Sample<number>[] {
  const types = Object.entries(counts).filter(([, count]) => count > 0)
  return types.map(([type, count]) => [count, { [ERROR_TYPE]: type }])
}
