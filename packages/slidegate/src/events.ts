import type { Decision } from './decision.ts'
import { invalidOption, StoreUnavailableError, show } from './errors.ts'
import type { AnyKey } from './key.ts'
import { Tally } from './stats.ts'

/** What a limiter tells those who listen. */
export interface LimiterEvents<Key extends AnyKey = string> {
  /** A request was decided, by whomever: see its `source`. */
  readonly decision: { readonly key: Key; readonly decision: Decision }
  /**
   * A request got no answer though the store was to be asked: what it was told goes by `onStoreError`. Or overrides could not
   * be read, all or some of them: what is known of these stands, or the declared limits do.
   */
  readonly storeError: { readonly error: StoreUnavailableError }
  /** The store is no longer asked, but for attempts now and then; of a Cluster, a part of it. */
  readonly storeDown: { readonly error: StoreUnavailableError }
  /** It answers again, all of it. That is found out by requests: where none come, it is told with the next. */
  readonly storeUp: {
    /** Milliseconds since `storeDown`. */
    readonly downMs: number
    /** Requests that were told something without it meanwhile. */
    readonly requests: number
  }
  /** The store's clock was set, by more than a second. */
  readonly clockStep: {
    /** Milliseconds; below 0 where it was set back. */
    readonly byMs: number
  }
}

/** The name of an event. */
export type LimiterEvent = keyof LimiterEvents

const EVENTS: Readonly<Record<LimiterEvent, true>> = {
  decision: true,
  storeError: true,
  storeDown: true,
  storeUp: true,
  clockStep: true,
}

/** Called at once, with the event. */
export type LimiterListener<Event extends LimiterEvent, Key extends AnyKey = string> = (
  event: LimiterEvents<Key>[Event],
) => void

type AnyListener = (event: unknown) => unknown

/** Where a limiter writes a line when its store goes down or comes back. */
export interface Logger {
  /** Takes a line without its end. */
  warn(line: string): void
}

/**
 * Hands events to those who listen, and counts failures for those who ask. What they throw is theirs: it is logged
 * once, and troubles no request.
 */
export class Announcer {
  readonly #limiter: string
  readonly logger: Logger | undefined
  /** Lists are never changed but replaced: whoever comes or goes while an event is told does so for the next. */
  readonly #listeners: Record<LimiterEvent, readonly AnyListener[]> = {
    decision: [],
    storeError: [],
    storeDown: [],
    storeUp: [],
    clockStep: [],
  }
  /** Listeners of which it was logged that they fail. */
  readonly #failing = new WeakSet<object>()
  readonly tally: Tally = new Tally()

  constructor(limiter: string, logger: Logger | undefined) {
    this.#limiter = limiter
    this.logger = logger
  }

  /** @throws {SlidegateError} `invalid_option` for an event that there is not, or a listener that is no function */
  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, AnyKey>): void {
    check(event, listener)
    this.#listeners[event] = [...this.#listeners[event], listener as AnyListener]
  }

  /** Of one that listens several times the last is taken out. @throws as `on` does */
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

  /** Something was asked of the store without an answer. */
  storeFailed(error: StoreUnavailableError): void {
    this.tally.storeErrors[error.reason]++
    this.tell('storeError', { error })
  }

  tell<Event extends LimiterEvent>(event: Event, what: LimiterEvents<AnyKey>[Event]): void {
    for (const listener of this.#listeners[event]) {
      try {
        const result: unknown = listener(what)
        // Of an async function it is the promise that fails.
        if (result instanceof Promise) result.catch((error: unknown) => this.#failed(event, listener, error))
      } catch (error) {
        this.#failed(event, listener, error)
      }
    }
  }

  /** Once for each: it may fail at every request. */
  #failed(event: LimiterEvent, listener: object, error: unknown): void {
    if (this.#failing.has(listener)) return
    this.#failing.add(listener)
    this.log(`a listener of "${event}" has failed: ${error instanceof Error ? error.message : show(error)}`)
  }

  log(line: string): void {
    try {
      this.logger?.warn(`slidegate: limiter "${this.#limiter}": ${line}`)
    } catch {
      // A log that fails is no reason to refuse a request.
    }
  }
}

function check(event: unknown, listener: unknown): void {
  if (typeof event !== 'string' || !Object.hasOwn(EVENTS, event)) {
    const known = Object.keys(EVENTS).join(', ')
    throw invalidOption(`there is no event ${show(event)}, only ${known}`, event)
  }
  if (typeof listener !== 'function') {
    throw invalidOption(`the listener is ${show(listener)}; it must be a function`, listener)
  }
}
