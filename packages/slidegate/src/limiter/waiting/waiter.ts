// A waiting request: its checked options, and the promise that it settles.
import type { Decision } from '../../decision.ts'
import { invalidOption, show } from '../../errors.ts'
import { checkInteger } from '../../resilience/options.ts'
import type { Part } from '../../stores/store.ts'
import { parseCost } from '../request.ts'

/** Options of `wait` and `schedule`. */
export interface WaitOptions {
  /** Units that the request costs, an integer from 1. Default: 1. */
  readonly cost?: number
  /**
   * Maximum wait in milliseconds, an integer from 0 to 2^31 - 1. Default: 30,000.
   *
   * Rejects immediately if the wait would exceed this. With 0, the request is admitted now or not at all. A store call in flight
   * isn't interrupted.
   */
  readonly maxWaitMs?: number
  /** Ends the wait. An aborted request isn't charged. */
  readonly signal?: AbortSignal
  /** An integer. Waiters of this process are admitted by highest priority, then by arrival. Default: 0. */
  readonly priority?: number
  /** Passed to `limits` if it is a function. */
  readonly request?: unknown
}

/** The checked options, with defaults. */
export interface WaitRequest {
  readonly cost: number
  readonly maxWaitMs: number
  readonly priority: number
  readonly signal?: AbortSignal | undefined
}

const DEFAULT_MAX_WAIT_MS = 30_000

const MAX_WAIT_MS = 2 ** 31 - 1

/** @throws {SlidegateError} `invalid_cost`, `invalid_option` */
export function parseWaitOptions(options: WaitOptions | undefined): WaitRequest {
  const cost = parseCost(options)
  const { maxWaitMs = DEFAULT_MAX_WAIT_MS, priority = 0, signal } = options ?? {}
  checkInteger('maxWaitMs', maxWaitMs, 0, MAX_WAIT_MS)
  if (!Number.isSafeInteger(priority)) {
    throw invalidOption(`priority is ${show(priority)}; it must be an integer`, priority)
  }
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw invalidOption(`signal is ${show(signal)}; it must be an AbortSignal`, signal)
  }
  return { cost, maxWaitMs, priority, signal }
}

/** Checks the methods, because the signal may come from another realm or a polyfill. */
function isAbortSignal(signal: unknown): boolean {
  if (typeof signal !== 'object' || signal === null) return false
  const { aborted, addEventListener } = signal as Partial<AbortSignal>
  return typeof aborted === 'boolean' && typeof addEventListener === 'function'
}

export class Waiter {
  /** Its keys as words, joined. */
  readonly key: string
  readonly request: WaitRequest
  /** Its keys, and the limits in force when it is sent. */
  readonly parts: () => readonly Part[]
  /** Its number in order of arrival. */
  readonly place: number
  /** When it arrived and when it times out, by `performance.now()`. */
  readonly sinceMs: number
  readonly untilMs: number
  isSettled = false
  readonly promise: Promise<Decision>
  #resolve!: (decision: Decision) => void
  #reject!: (error: unknown) => void

  constructor(key: string, request: WaitRequest, parts: () => readonly Part[], place: number) {
    this.key = key
    this.request = request
    this.parts = parts
    this.place = place
    this.sinceMs = performance.now()
    this.untilMs = this.sinceMs + request.maxWaitMs
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  resolve(decision: Decision): void {
    this.isSettled = true
    this.#resolve(decision)
  }

  reject(error: unknown): void {
    this.isSettled = true
    this.#reject(error)
  }
}

/** No waiter overtakes one of its own priority. */
export function comesBefore(one: Waiter, other: Waiter): boolean {
  const [priority, otherPriority] = [one.request.priority, other.request.priority]
  return priority === otherPriority ? one.place < other.place : priority > otherPriority
}

export function endsBefore(one: Waiter, other: Waiter): boolean {
  return one.untilMs < other.untilMs
}
