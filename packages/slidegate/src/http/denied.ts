// What happens to denied requests: they are rejected, delayed, queued or dropped.
import type { Decision } from '../decision.ts'
import {
  checkNames,
  invalidOption,
  type SlidegateError,
  show,
  WaitError,
  type WaitErrorReason,
} from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { WaitOptions } from '../limiter/waiting/waiter.ts'
import type { Limiter } from '../limiter.ts'
import { type Duration, parseDuration } from '../runtime/duration.ts'

/**
 * What happens to requests without room:
 * - `'reject'`: answered with 429
 * - `{ delay: '2s' }`: waits for its turn, up to this long; rejected if it takes longer
 * - `{ queue: 100, maxWait: '10s' }`: the same, for up to 100 requests of all callers in this process at a time, from 1 to
 *   2^20; more are rejected. Default `maxWait`: 30 s
 * - `'drop'`: the connection is closed without an answer
 *
 * Requests of a key wait first come, first served, until the client hangs up. Times are from 1 ms to 2^31 - 1 ms. The limiter's
 * `maxWaiting` is a bound, too.
 */
export type DeniedPolicy =
  | 'reject'
  | 'drop'
  | { readonly delay: Duration }
  | { readonly queue: number; readonly maxWait?: Duration }

/** A policy, checked. */
export interface Treatment {
  readonly isDropped: boolean
  /** Milliseconds that a request waits at most; 0 if it doesn't wait. */
  readonly maxWaitMs: number
  /** Requests that wait at the same time, at most. */
  readonly maxQueued: number
}

const REJECT: Treatment = { isDropped: false, maxWaitMs: 0, maxQueued: 0 }
const DROP: Treatment = { isDropped: true, maxWaitMs: 0, maxQueued: 0 }

const MAX_WAIT_MS = 2 ** 31 - 1
const MAX_QUEUED = 2 ** 20

/** What can be done here. */
export interface Means {
  readonly canDrop: boolean
  /** A limiter may be a wrapper of the user's that only consumes. */
  readonly canWait: boolean
}

/** @throws {SlidegateError} `invalid_option` */
export function parseDenied(denied: DeniedPolicy, { canDrop, canWait }: Means): Treatment {
  if (denied === 'reject') return REJECT
  if (denied === 'drop') {
    if (canDrop) return DROP
    throw cannotDrop()
  }
  const {
    delay,
    queue,
    maxWait = '30s',
  } = (denied ?? {}) as { delay?: unknown; queue?: unknown; maxWait?: unknown }
  if (!canWait && (delay !== undefined || queue !== undefined)) {
    throw invalidOption(
      `denied is ${show(denied)}, but the limiter cannot wait: give one of createLimiter`,
      denied,
    )
  }
  if (delay !== undefined && queue === undefined) {
    checkNames(denied as object, { delay: true }, 'invalid_option', 'denied: { delay }')
    return { isDropped: false, maxWaitMs: waitMs('delay', delay), maxQueued: Number.POSITIVE_INFINITY }
  }
  if (queue !== undefined && delay === undefined) {
    checkNames(denied as object, { queue: true, maxWait: true }, 'invalid_option', 'denied: { queue }')
    if (!Number.isInteger(queue) || (queue as number) < 1 || (queue as number) > MAX_QUEUED) {
      throw invalidOption(
        `queue of denied is ${show(queue)}; it must be an integer from 1 to ${MAX_QUEUED}`,
        queue,
      )
    }
    return { isDropped: false, maxWaitMs: waitMs('maxWait', maxWait), maxQueued: queue as number }
  }
  throw invalidOption(
    `denied is ${show(denied)}; it must be 'reject', 'drop', { delay: '2s' } or { queue: 100, maxWait: '10s' }`,
    denied,
  )
}

export function cannotDrop(): SlidegateError {
  return invalidOption("denied is 'drop', but connections cannot be closed without an answer here", 'drop')
}

function waitMs(name: string, duration: unknown): number {
  const ms = parseDuration(duration)
  if (ms !== undefined && ms >= 1 && ms <= MAX_WAIT_MS) return ms
  throw invalidOption(
    `${name} of denied is ${show(duration)}; it must be a duration from 1 ms to ${MAX_WAIT_MS} ms, such as '2s'`,
    duration,
  )
}

/** What is asked of a limiter for a request. */
export interface Ask {
  readonly cost?: number
  readonly request: unknown
}

/** Requests of a guard that wait for room. */
export class Waiters<Key extends AnyKey> {
  readonly #limiter: Limiter<Key>
  #waiting = 0

  constructor(limiter: Limiter<Key>) {
    this.#limiter = limiter
  }

  /**
   * The decision in the end; undefined if the client has hung up, and nothing is charged. If the queue is full, a request is
   * admitted only if there is room for it and for all before it.
   */
  async decide(
    key: Key,
    ask: Ask | undefined,
    treatment: Treatment,
    signal: AbortSignal,
  ): Promise<Decision | undefined> {
    const { maxWaitMs, maxQueued } = treatment
    const ends = (maxWaitMs: number) => this.#wait(key, { ...ask, maxWaitMs, signal })
    const isFull = this.#waiting >= maxQueued
    let end = await ends(isFull ? 0 : maxWaitMs)
    // Those that held the places may have been admitted at once.
    if (isFull && end === 'late' && this.#waiting < maxQueued) end = await ends(maxWaitMs)
    if (end === 'aborted') return undefined
    if (typeof end === 'string') return await this.#denial(key, ask)
    if (!signal.aborted) return end
    // It was admitted while its client went.
    await this.#limiter.refund(key, end).catch(() => 0)
    return undefined
  }

  async #wait(key: Key, options: WaitOptions & { maxWaitMs: number }): Promise<Decision | WaitErrorReason> {
    // A request that doesn't wait takes no place.
    const places = Math.sign(options.maxWaitMs)
    this.#waiting += places
    try {
      return await this.#limiter.wait(key, options)
    } catch (error) {
      if (error instanceof WaitError) return error.reason
      throw error
    } finally {
      this.#waiting -= places
    }
  }

  /** For a request that waits no longer: those before it take what room there is. */
  async #denial(key: Key, ask: Ask | undefined): Promise<Decision> {
    const now = await this.#limiter.peek(key, ask)
    const { expectedWaitMs } = this.#limiter.waiting(key)
    return { ...now, allowed: false, retryAfterMs: Math.max(1, now.retryAfterMs, expectedWaitMs) }
  }
}
