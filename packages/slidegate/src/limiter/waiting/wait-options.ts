import { invalidOption, show } from '../../errors.ts'
import { parseCost } from '../units.ts'

/** For how long a request waits, and before whom. */
export interface WaitOptions {
  /** Units that the request takes, an integer from 1. Default: 1. */
  readonly cost?: number
  /**
   * Milliseconds to wait at most, an integer from 0 to 2^31 - 1; 0 is to be admitted now or not at all. Who would
   * certainly wait for longer is told at once. While the store is being asked its answer is awaited all the same.
   * Default: 30,000.
   */
  readonly maxWaitMs?: number
  /** Ends the wait. A request that has been aborted charges nothing. */
  readonly signal?: AbortSignal
  /** Who comes first of those that wait in this process: the higher, an integer. Among equals, whoever came first. Default: 0. */
  readonly priority?: number
  /** Handed to functions that tell limits. */
  readonly request?: unknown
}

/** What is asked for, checked and completed. */
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
  if (!Number.isInteger(maxWaitMs) || maxWaitMs < 0 || maxWaitMs > MAX_WAIT_MS) {
    throw invalidOption(
      `maxWaitMs is ${show(maxWaitMs)}; it must be an integer from 0 to ${MAX_WAIT_MS}`,
      maxWaitMs,
    )
  }
  if (!Number.isSafeInteger(priority)) {
    throw invalidOption(`priority is ${show(priority)}; it must be an integer`, priority)
  }
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw invalidOption(`signal is ${show(signal)}; it must be an AbortSignal`, signal)
  }
  return { cost, maxWaitMs, priority, signal }
}

/** By what it can do: it may come from another realm, or a polyfill. */
function isAbortSignal(signal: unknown): boolean {
  if (typeof signal !== 'object' || signal === null) return false
  const { aborted, addEventListener } = signal as Partial<AbortSignal>
  return typeof aborted === 'boolean' && typeof addEventListener === 'function'
}
