// Treats denied requests: rejects, delays, queues or drops them.
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
 * How denied requests are treated:
 * - `'reject'`: answers with 429
 * - `{ delay: '2s' }`: waits for up to this long, then rejects
 * - `{ queue: 100, maxWait: '10s' }`: the same, for up to 100 requests of all callers of this process, from 1 to 2^20; rejects
 *   more. Default `maxWait`: 30 s
 * - `'drop'`: closes the connection without an answer
 *
 * Requests of a key wait first come, first served, until the client hangs up. Times are from 1 ms to 2^31 - 1 ms. The limiter's
 * `maxWaiting` applies, too.
 */
export type DeniedPolicy =
  | 'reject'
  | 'drop'
  | { readonly delay: Duration }
  | { readonly queue: number; readonly maxWait?: Duration }

/** A checked policy. */
export interface Treatment {
  readonly isDropped: boolean
  /** Maximum wait in milliseconds; 0 if requests don't wait. */
  readonly maxWaitMs: number
  /** Maximum number of waiting requests. */
  readonly maxQueued: number
}

const REJECT: Treatment = { isDropped: false, maxWaitMs: 0, maxQueued: 0 }
const DROP: Treatment = { isDropped: true, maxWaitMs: 0, maxQueued: 0 }

const MAX_WAIT_MS = 2 ** 31 - 1
const MAX_QUEUED = 2 ** 20

/** The policies that are possible. */
export interface Capabilities {
  readonly canDrop: boolean
  /** A limiter may be a wrapper without `wait`. */
  readonly canWait: boolean
}

/** @throws {SlidegateError} `invalid_option` */
export function parseDenied(denied: DeniedPolicy, { canDrop, canWait }: Capabilities): Treatment {
  if (denied === 'reject') return REJECT
  if (denied === 'drop') {
    if (canDrop) return DROP
    throw cannotDrop()
  }
  const {
    delay,
    queue,
    maxWait = '30s',
  } = Object(denied) as Partial<Record<'delay' | 'queue' | 'maxWait', unknown>>
  if ((delay === undefined) === (queue === undefined)) {
    throw invalidOption(
      `denied is ${show(denied)}; it must be 'reject', 'drop', { delay: '2s' } or { queue: 100, maxWait: '10s' }`,
      denied,
    )
  }
  if (!canWait) {
    throw invalidOption(
      `denied is ${show(denied)}, but the limiter cannot wait: give one of createLimiter`,
      denied,
    )
  }
  if (delay !== undefined) {
    checkNames(denied as object, { delay: true }, 'invalid_option', 'denied: { delay }')
    return { isDropped: false, maxWaitMs: waitMs('delay', delay), maxQueued: Number.POSITIVE_INFINITY }
  }
  checkNames(denied as object, { queue: true, maxWait: true }, 'invalid_option', 'denied: { queue }')
  if (!Number.isInteger(queue) || (queue as number) < 1 || (queue as number) > MAX_QUEUED) {
    throw invalidOption(
      `queue of denied is ${show(queue)}; it must be an integer from 1 to ${MAX_QUEUED}`,
      queue,
    )
  }
  return { isDropped: false, maxWaitMs: waitMs('maxWait', maxWait), maxQueued: queue as number }
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

/** Options of the limiter for a request. */
export interface Ask {
  readonly cost?: number
  readonly request: unknown
}

/** The waiting requests of a guard. */
export class Waiters<Key extends AnyKey> {
  readonly #limiter: Limiter<Key>
  #waiting = 0

  constructor(limiter: Limiter<Key>) {
    this.#limiter = limiter
  }

  /**
   * Resolves with the final decision, or undefined, uncharged, if the client hung up. If the queue is full, a request is admitted
   * only if there is room for it and all before it.
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
    // Those in the queue may have been admitted in the meantime.
    if (isFull && end === 'timeout' && this.#waiting < maxQueued) end = await ends(maxWaitMs)
    if (end === 'aborted') return undefined
    if (typeof end === 'string') return await this.#denial(key, ask)
    if (!signal.aborted) return end
    // It was admitted while its client hung up.
    await this.#limiter.refund(key, end).catch(() => 0)
    return undefined
  }

  async #wait(key: Key, options: WaitOptions & { maxWaitMs: number }): Promise<Decision | WaitErrorReason> {
    // A request that doesn't wait isn't in the queue.
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

  /** The denial of a request that stops waiting. Those before it take the room that there is. */
  async #denial(key: Key, ask: Ask | undefined): Promise<Decision> {
    const now = await this.#limiter.peek(key, ask)
    const { expectedWaitMs } = this.#limiter.waiting(key)
    return { ...now, allowed: false, retryAfterMs: Math.max(1, now.retryAfterMs, expectedWaitMs) }
  }
}
