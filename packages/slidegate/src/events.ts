// What a limiter reports: events for listeners, a log, and its stats.
import type { Decision } from './decision.ts'
import {
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
  /** A request was decided, with or without the store: see its `source`. */
  readonly decision: { readonly key: Key; readonly decision: Decision }
  /** The store gave no answer. `onStoreError` says what the request gets instead. */
  readonly storeError: { readonly error: StoreUnavailableError }
  /** The circuit breaker has opened. On a Cluster: that of a part of it. */
  readonly storeDown: { readonly error: StoreUnavailableError }
  /** The store answers again, all of it. Requests find that out, so without requests the event is late. */
  readonly storeUp: {
    /** Milliseconds since `storeDown`. */
    readonly downMs: number
    /** Requests that were answered without the store meanwhile. */
    readonly requests: number
  }
  /** The store's clock was set, by more than a second. */
  readonly clockStep: {
    /** Milliseconds; below 0 if it was set back. */
    readonly byMs: number
  }
}

/** The name of an event. */
export type LimiterEvent = keyof LimiterEvents

/** Called at once, with the event. */
export type LimiterListener<Event extends LimiterEvent, Key extends AnyKey = string> = (
  event: LimiterEvents<Key>[Event],
) => void

type AnyListener = (event: unknown) => unknown

const NO_LISTENERS: Readonly<Record<LimiterEvent, readonly AnyListener[]>> = {
  ...{ decision: [], storeError: [], storeDown: [], storeUp: [], clockStep: [] },
}

const EVENTS: readonly string[] = Object.keys(NO_LISTENERS)

/** Where a limiter writes a line when its store goes down or comes back. */
export interface Logger {
  /** Takes a line without its end. */
  warn(line: string): void
}

/** Counts since the limiter was made. They hold no keys, so they can be exported as metrics. */
export interface LimiterStats {
  /** Ops without an answer of the store, by reason. With `down` they were not sent. */
  readonly storeErrors: Readonly<Record<StoreUnavailableReason, number>>
  /** Requests that were answered without the store, by the `source` of their decisions. On a Cluster: per part. */
  readonly withoutStore: Readonly<Record<'failOpen' | 'failClosed' | 'fallback', number>>
  /** How often a circuit breaker has opened. On a Cluster each part has one. */
  readonly breakerOpened: number
  /** Whether a circuit breaker is open now. */
  readonly isStoreDown: boolean
  /** How often the store's clock was set by more than a second. */
  readonly clockSteps: number
  /** Milliseconds that requests waited, by `wait` or `schedule`, until they were admitted. */
  readonly waits: HistogramCounts
  /** Requests that waited and weren't admitted, by the reason of their `WaitError`. */
  readonly waitErrors: Readonly<Record<WaitErrorReason, number>>
  /** Permits that are held now, by `acquire` or `schedule` in this process. */
  readonly permits: number
}

const WAITS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** The {@link LimiterStats} while they are counted. */
export class StatCounts {
  readonly storeErrors: Record<StoreUnavailableReason, number> = {
    timeout: 0,
    error: 0,
    down: 0,
    overload: 0,
    full: 0,
    invalid_state: 0,
  }
  readonly withoutStore = { failOpen: 0, failClosed: 0, fallback: 0 }
  breakerOpened = 0
  isStoreDown = false
  clockSteps = 0
  readonly waits: Histogram = new Histogram(WAITS_MS)
  readonly waitErrors: Record<WaitErrorReason, number> = { full: 0, timeout: 0, aborted: 0, impossible: 0 }

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

/** Calls listeners and counts failures. An error of a listener is logged once, and fails no request. */
export class Announcer {
  readonly #limiter: string
  readonly logger: Logger | undefined
  /** Lists are replaced, never changed: a listener that is added during an event gets the next one. */
  readonly #listeners: Record<LimiterEvent, readonly AnyListener[]> = { ...NO_LISTENERS }
  /** Listeners whose error was logged. */
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

  /** Removes the listener, once. @throws as `on` does */
  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, AnyKey>): void {
    check(event, listener)
    const listeners = this.#listeners[event]
    const last = listeners.lastIndexOf(listener as AnyListener)
    if (last >= 0) this.#listeners[event] = listeners.toSpliced(last, 1)
  }

  isHeard(event: LimiterEvent): boolean {
    return this.#listeners[event].length > 0
  }

  /** The same error with the name of the limiter. */
  named({ reason, message, cause }: StoreUnavailableError): StoreUnavailableError {
    const options = cause === undefined ? undefined : { cause }
    return new StoreUnavailableError(reason, `limiter "${this.#limiter}": ${message}`, options)
  }

  /** The store gave no answer. */
  storeFailed(error: StoreUnavailableError): void {
    this.counts.storeErrors[error.reason]++
    this.emit('storeError', { error })
  }

  emit<Event extends LimiterEvent>(event: Event, what: LimiterEvents<AnyKey>[Event]): void {
    for (const listener of this.#listeners[event]) {
      try {
        const result: unknown = listener(what)
        // An async function fails by its promise.
        if (result instanceof Promise) result.catch((error: unknown) => this.#failed(event, listener, error))
      } catch (error) {
        this.#failed(event, listener, error)
      }
    }
  }

  /** Logs the first error only: a listener may fail at every request. */
  #failed(event: LimiterEvent, listener: object, error: unknown): void {
    if (this.#failing.has(listener)) return
    this.#failing.add(listener)
    this.log(`a listener of "${event}" has failed: ${error instanceof Error ? error.message : show(error)}`)
  }

  log(line: string): void {
    try {
      this.logger?.warn(`slidegate: limiter "${this.#limiter}": ${line}`)
    } catch {
      // A failing log is no reason to reject a request.
    }
  }
}

function check(event: LimiterEvent, listener: unknown): void {
  if (!EVENTS.includes(event)) {
    throw invalidOption(`there is no event ${show(event)}, only ${EVENTS.join(', ')}`, event)
  }
  if (typeof listener !== 'function') {
    throw invalidOption(`the listener is ${show(listener)}; it must be a function`, listener)
  }
}

/** Takes the reports of a failure policy. Without private fields: a store may come from another copy of the package. */
export interface FailureReports extends Pick<Announcer, 'logger' | 'log' | 'named' | 'storeFailed' | 'emit'> {
  readonly counts: Pick<
    StatCounts,
    'storeErrors' | 'withoutStore' | 'breakerOpened' | 'isStoreDown' | 'clockSteps'
  >
}
