// Reports when a store goes down or comes back, and when its clock jumps.

import { asUnavailable, plainError, StoreUnavailableError } from '../errors.ts'
import type { FailureReports, Logger } from '../events.ts'
import { backgroundTimer } from '../runtime/platform.ts'
import type { OnStoreError, Store } from '../stores/store.ts'
import type { BreakerListener } from './breaker.ts'

/** Clock steps count as one if their times and sizes are this close. */
const SAME_STEP_MS = 1000

const MEANWHILE: Readonly<Record<OnStoreError, string>> = {
  throw: 'requests fail',
  deny: 'requests are denied',
  allow: 'requests are allowed without being counted',
  local: 'requests are decided in this process',
}

/** A store's health, as seen by one limiter. A Cluster is down while any of its parts is down. */
export class StoreHealth implements BreakerListener {
  readonly #reports: FailureReports
  readonly #onStoreError: OnStoreError
  readonly #what: string
  readonly #log: OutageLog
  /** Number of parts that are down. */
  #down = 0
  #downSinceMs = 0
  /** Requests decided without the store since it went down. */
  #requests = 0
  /** Kept instead of the error. An error's stack would retain the failed request and its async context. */
  #message = ''
  #cause: Error | undefined
  /** The clock's last step. */
  #stepAtMs = Number.NEGATIVE_INFINITY
  #stepMs = 0

  constructor(reports: FailureReports, onStoreError: OnStoreError, store: Store) {
    this.#reports = reports
    this.#what = store.shardOf === undefined ? 'the store' : 'part of the store'
    this.#onStoreError = onStoreError
    this.#log = outageLogOf(store, reports.logger)
  }

  error(): StoreUnavailableError {
    const message = `the circuit breaker is open; the last error was: ${this.#message}`
    return new StoreUnavailableError('down', message, this.#cause && { cause: this.#cause })
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
    const line = `${this.#what} is down (${error.message}); ${MEANWHILE[this.#onStoreError]} until it answers`
    this.#log.wentDown(() => this.#reports.log(line))
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

  countRequest(): void {
    this.#requests++
    this.#log.requests++
  }

  /** Reports each clock step once. Several parts of a Cluster may detect the same step. */
  clockStepped(byMs: number, nowMs: number): void {
    const isSame = nowMs - this.#stepAtMs < SAME_STEP_MS && Math.abs(byMs - this.#stepMs) < SAME_STEP_MS
    this.#stepAtMs = nowMs
    this.#stepMs = byMs
    if (isSame) return
    this.#reports.counts.clockSteps++
    this.#reports.emit('clockStep', { byMs })
  }
}

/** Maximum number of lines per period. Only the last of any further changes is logged, when the period ends. */
const MAX_LINES = 10
const STRETCH_MS = 10_000

/** Logs each of a store's outages once, even if many limiters notice it. */
class OutageLog {
  requests = 0
  #downSinceMs: number | undefined
  #lines = 0
  #sinceMs = Number.NEGATIVE_INFINITY
  #next: (() => void) | undefined

  wentDown(log: () => void): void {
    if (this.#downSinceMs !== undefined) return
    this.#downSinceMs = performance.now()
    this.requests = 0
    this.#write(log)
  }

  cameUp(log: (downMs: number, requests: number) => void): void {
    if (this.#downSinceMs === undefined) return
    const downMs = Math.round(performance.now() - this.#downSinceMs)
    const { requests } = this
    this.#downSinceMs = undefined
    this.#write(() => log(downMs, requests))
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

/** Limiters with the same store and logger share one log. */
function outageLogOf(store: Store, logger: Logger | undefined): OutageLog {
  if (logger === undefined) return new OutageLog()
  const ofStore = logs.get(store) ?? new WeakMap<Logger, OutageLog>()
  const log = ofStore.get(logger) ?? new OutageLog()
  logs.set(store, ofStore.set(logger, log))
  return log
}

/** Jumps of up to this size aren't reported. */
const TOLERANCE_MS = 1000

/** Detects steps in a store's clock. The store reads it at some time between a call and its answer. */
export class ClockWatch {
  #lastAtMs = Number.NaN
  #leastAheadMs = Number.NEGATIVE_INFINITY
  #mostAheadMs = Number.POSITIVE_INFINITY

  /** Returns how many milliseconds the clock was set forward since the last answer. Negative if it was set back. */
  stepAt(atMs: number, sentAtMs: number, nowMs: number): number {
    // Many answers have the same time.
    if (atMs === this.#lastAtMs) return 0
    this.#lastAtMs = atMs
    const leastAheadMs = atMs - nowMs
    const mostAheadMs = atMs + 1 - sentAtMs
    let stepMs = 0
    if (leastAheadMs > this.#mostAheadMs + TOLERANCE_MS) stepMs = leastAheadMs - this.#mostAheadMs
    else if (mostAheadMs < this.#leastAheadMs - TOLERANCE_MS) stepMs = mostAheadMs - this.#leastAheadMs
    this.#leastAheadMs = leastAheadMs
    this.#mostAheadMs = mostAheadMs
    return Math.round(stepMs)
  }
}
