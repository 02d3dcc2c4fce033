// Reports when a store goes down or comes back, with events per limiter and one log line for all.

import { asUnavailable, plainError, StoreUnavailableError } from '../errors.ts'
import type { FailureReports, Logger } from '../events.ts'
import { backgroundTimer } from '../runtime/platform.ts'
import type { OnStoreError, Store } from '../stores/store.ts'
import type { BreakerListener } from './breaker.ts'

const MEANWHILE: Readonly<Record<OnStoreError, string>> = {
  throw: 'requests fail',
  deny: 'requests are denied',
  allow: 'requests are allowed without being counted',
  local: 'requests are decided in this process',
}

/** The health of a store as seen by one limiter. A Cluster is down while any of its parts is. */
export class StoreHealth implements BreakerListener {
  readonly #reports: FailureReports
  readonly #onStoreError: OnStoreError
  readonly #what: string
  readonly #log: OutageLog
  /** Number of parts that are down. */
  #down = 0
  #downSinceMs = 0
  /** Requests decided without the store since then. */
  #requests = 0
  /** Not the error itself: its stack would retain the failed request and its async context. */
  #message = ''
  #cause: Error | undefined

  constructor(reports: FailureReports, onStoreError: OnStoreError, store: Store) {
    this.#reports = reports
    this.#what = store.shardOf === undefined ? 'the store' : 'a part of the store'
    this.#onStoreError = onStoreError
    this.#log = outageLogOf(store, reports.logger)
  }

  /** The error for requests that aren't sent. */
  error(): StoreUnavailableError {
    const cause = this.#cause
    return new StoreUnavailableError(
      'down',
      `the circuit breaker is open; the last error was: ${this.#message}`,
      cause && { cause },
    )
  }

  opened(reason: unknown): void {
    const error = asUnavailable(reason)
    this.#message = error.message
    this.#cause = error.cause === undefined ? undefined : plainError(error.cause)
    this.#reports.counts.breakerOpened++
    this.#reports.counts.isStoreDown = true
    this.#down++
    if (this.#down > 1) return
    this.#downSinceMs = performance.now()
    this.#requests = 0
    const { message } = error
    this.#log.wentDown(() =>
      this.#reports.log(
        `${this.#what} is down (${message}); ${MEANWHILE[this.#onStoreError]} until it answers`,
      ),
    )
    this.#reports.emit('storeDown', { error: this.#reports.named(error) })
  }

  closed(): void {
    this.#down--
    if (this.#down > 0) return
    this.#reports.counts.isStoreDown = false
    const downMs = Math.round(performance.now() - this.#downSinceMs)
    this.#log.cameUp((downMs, requests) =>
      this.#reports.log(
        `${this.#what} is up again after ${downMs} ms; ${requests} requests were decided without it`,
      ),
    )
    this.#reports.emit('storeUp', { downMs, requests: this.#requests })
  }

  /** Counts a request that was answered without the store, or failed. */
  countRequest(): void {
    this.#requests++
    this.#log.countRequest()
  }
}

/** Maximum lines per period. The last change beyond that is logged at the end of the period. */
const MAX_LINES = 10
const STRETCH_MS = 10_000

/** Logs each outage of a store once, even if many limiters notice it. */
class OutageLog {
  #downSinceMs: number | undefined
  /** Requests of all limiters decided without the store since then. */
  #requests = 0
  #lines = 0
  #sinceMs = Number.NEGATIVE_INFINITY
  #next: (() => void) | undefined

  /** @param log called unless another limiter noticed first */
  wentDown(log: () => void): void {
    if (this.#downSinceMs !== undefined) return
    this.#downSinceMs = performance.now()
    this.#requests = 0
    this.#write(log)
  }

  cameUp(log: (downMs: number, requests: number) => void): void {
    if (this.#downSinceMs === undefined) return
    const downMs = Math.round(performance.now() - this.#downSinceMs)
    const requests = this.#requests
    this.#downSinceMs = undefined
    this.#write(() => log(downMs, requests))
  }

  countRequest(): void {
    this.#requests++
  }

  #write(log: () => void): void {
    const nowMs = performance.now()
    if (nowMs - this.#sinceMs >= STRETCH_MS) {
      this.#sinceMs = nowMs
      this.#lines = 0
    }
    if (++this.#lines <= MAX_LINES) {
      log()
      return
    }
    if (this.#next === undefined) backgroundTimer(() => this.#writeNext(), this.#sinceMs + STRETCH_MS - nowMs)
    this.#next = log
  }

  #writeNext(): void {
    const next = this.#next!
    this.#next = undefined
    this.#write(next)
  }
}

const logs = new WeakMap<Store, WeakMap<Logger, OutageLog>>()

/** Limiters with the same store and logger share one. */
function outageLogOf(store: Store, logger: Logger | undefined): OutageLog {
  if (logger === undefined) return new OutageLog()
  const ofStore = logs.get(store) ?? new WeakMap<Logger, OutageLog>()
  logs.set(store, ofStore)
  const log = ofStore.get(logger) ?? new OutageLog()
  ofStore.set(logger, log)
  return log
}
