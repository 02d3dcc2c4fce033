// The events, log lines and stats of a limiter.
import type { Decision } from './decision.ts'
import {
  checkThat,
  invalidOption,
  StoreUnavailableError,
  type StoreUnavailableReason,
  show,
  type WaitErrorReason,
} from './errors.ts'
import type { AnyKey } from './key.ts'
import { Histogram, type HistogramCounts } from './runtime/histogram.ts'

/** The events of a limiter. */
export interface LimiterEvents<Key extends AnyKey = string> {
  /** A decision was made, with or without the store: see its `source`. */
  readonly decision: { readonly key: Key; readonly decision: Decision }
  /** The store didn't answer, so `onStoreError` applies. */
  readonly storeError: { readonly error: StoreUnavailableError }
  /** The circuit breaker opened. A Redis Cluster's keys are divided into buckets, and each bucket has its own breaker. */
  readonly storeDown: { readonly error: StoreUnavailableError }
  /** The store answers again. Only a request can detect this, so without traffic the event is late. */
  readonly storeUp: {
    /** Milliseconds since `storeDown`. */
    readonly downMs: number
    /** Requests decided without the store while it was down. */
    readonly requests: number
  }
  /** The store's clock jumped by more than a second. */
  readonly clockStep: {
    /** Milliseconds. Negative if the clock was set back. */
    readonly byMs: number
  }
}

/** The name of an event. */
export type LimiterEvent = keyof LimiterEvents

/** A listener, called synchronously. */
export type LimiterListener<Event extends LimiterEvent, Key extends AnyKey = string> = (
  event: LimiterEvents<Key>[Event],
) => void

type AnyListener = (event: unknown) => unknown

const NO_LISTENERS: Readonly<Record<LimiterEvent, readonly AnyListener[]>> = {
  ...{ decision: [], storeError: [], storeDown: [], storeUp: [], clockStep: [] },
}

const EVENTS: readonly string[] = Object.keys(NO_LISTENERS)

/** Receives a log line when the limiter's store goes down or comes back. */
export interface Logger {
  /** Logs a line. The text has no line break. */
  warn(line: string): void
}

/** A limiter's statistics since it was created. They don't contain keys, so you can export them as metrics. */
export interface LimiterStats {
  /** Store operations without an answer, by reason. Operations with the reason `down` were never sent. */
  readonly storeErrors: Readonly<Record<StoreUnavailableReason, number>>
  /** Requests decided without the store, by `source`. On a Cluster, a request counts once per bucket that its keys are in. */
  readonly withoutStore: Readonly<Record<'failOpen' | 'failClosed' | 'fallback', number>>
  /** How often a circuit breaker opened. A Redis Cluster has one breaker per bucket of keys. */
  readonly breakerOpened: number
  /** Whether a circuit breaker is open now. */
  readonly isStoreDown: boolean
  /** How often the store's clock jumped by more than a second. */
  readonly clockSteps: number
  /** How long admitted requests waited in `wait` or `schedule`, in milliseconds. */
  readonly waits: HistogramCounts
  /** Waiting requests that weren't admitted, by the reason in their `WaitError`. */
  readonly waitErrors: Readonly<Record<WaitErrorReason, number>>
  /** Permits held now, from `acquire` or `schedule` in this process. */
  readonly permits: number
}

const WAITS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** Collects the {@link LimiterStats}. */
export class StatCounts {
  readonly storeErrors = { timeout: 0, error: 0, down: 0, overload: 0, full: 0, invalid_state: 0 }
  readonly withoutStore = { failOpen: 0, failClosed: 0, fallback: 0 }
  breakerOpened = 0
  isStoreDown = false
  clockSteps = 0
  readonly waits: Histogram = new Histogram(WAITS_MS)
  readonly waitErrors = { full: 0, timeout: 0, aborted: 0, impossible: 0 }

  stats(): Omit<LimiterStats, 'permits'> {
    return {
      ...this,
      storeErrors: { ...this.storeErrors },
      withoutStore: { ...this.withoutStore },
      waits: this.waits.read(),
      waitErrors: { ...this.waitErrors },
    }
  }
}

/** Calls listeners and counts failures. A listener's error is logged once and never fails a request. */
export class Announcer {
  readonly #limiter: string
  readonly logger: Logger | undefined
  /** Lists are replaced, never modified. A listener added during an event is first called for the next event. */
  readonly #listeners: Record<LimiterEvent, readonly AnyListener[]> = { ...NO_LISTENERS }
  /** Listeners whose error has been logged. */
  readonly #failing = new WeakSet<object>()
  readonly counts: StatCounts = new StatCounts()

  constructor(limiter: string, logger: Logger | undefined) {
    this.#limiter = limiter
    this.logger = logger
  }

  /** @throws {SlidegateError} `invalid_option` for an unknown event, or a listener that isn't a function */
  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, AnyKey>): void {
    check(event, listener)
    this.#listeners[event] = [...this.#listeners[event], listener as AnyListener]
  }

  /** Removes one registration of a listener. @throws the same errors as `on` */
  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, AnyKey>): void {
    check(event, listener)
    const listeners = this.#listeners[event]
    const last = listeners.lastIndexOf(listener as AnyListener)
    if (last >= 0) this.#listeners[event] = listeners.toSpliced(last, 1)
  }

  isHeard(event: LimiterEvent): boolean {
    return this.#listeners[event].length > 0
  }

  /** Adds the limiter's name to the error message. */
  named({ reason, message, cause }: StoreUnavailableError): StoreUnavailableError {
    const options = cause === undefined ? undefined : { cause }
    return new StoreUnavailableError(reason, `limiter "${this.#limiter}": ${message}`, options)
  }

  /** Reports that the store didn't answer. */
  storeFailed(error: StoreUnavailableError): void {
    this.counts.storeErrors[error.reason]++
    this.emit('storeError', { error })
  }

  emit<Event extends LimiterEvent>(event: Event, what: LimiterEvents<AnyKey>[Event]): void {
    for (const listener of this.#listeners[event]) {
      try {
        const result: unknown = listener(what)
        // An async listener fails by rejecting its promise.
        if (result instanceof Promise) result.catch((error: unknown) => this.#failed(event, listener, error))
      } catch (error) {
        this.#failed(event, listener, error)
      }
    }
  }

  /** Only the first error is logged, because a listener may fail on every request. */
  #failed(event: LimiterEvent, listener: object, error: unknown): void {
    if (this.#failing.has(listener)) return
    this.#failing.add(listener)
    this.log(`a listener of "${event}" failed: ${error instanceof Error ? error.message : show(error)}`)
  }

  log(line: string): void {
    try {
      this.logger?.warn(`slidegate: limiter "${this.#limiter}": ${line}`)
    } catch {
      // A failing logger must not fail a request.
    }
  }
}

function check(event: LimiterEvent, listener: unknown): void {
  if (!EVENTS.includes(event)) {
    throw invalidOption(`unknown event ${show(event)}; expected one of: ${EVENTS.join(', ')}`, event)
  }
  checkThat(typeof listener === 'function', 'the listener', listener, 'a function')
}

/** Receives reports from a failure policy. This is an interface because the store may come from another copy of the package. */
export interface FailureReports extends Pick<Announcer, 'logger' | 'log' | 'named' | 'storeFailed' | 'emit'> {
  readonly counts: Pick<
    StatCounts,
    'storeErrors' | 'withoutStore' | 'breakerOpened' | 'isStoreDown' | 'clockSteps'
  >
}
