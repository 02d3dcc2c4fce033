// Rejects, delays, queues or drops denied requests.
import type { Decision } from '../decision.ts'
import {
  checkInteger,
  checkNames,
  checkThat,
  invalidOption,
  type SlidegateError,
  show,
  WaitError,
  type WaitErrorReason,
  wrongValue,
} from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { WaitOptions } from '../limiter/waiting/waiter.ts'
import type { Limiter } from '../limiter.ts'
import { type Duration, parseDuration } from '../runtime/duration.ts'

/**
 * What to do with denied requests:
 * - `'reject'`: respond with 429
 * - `{ delay: '2s' }`: wait up to this long, then reject
 * - `{ queue: 100, maxWait: '10s' }`: the same, but reject if this many requests are already waiting in this process (1 to 2^20).
 *   Default `maxWait`: 30 s
 * - `'drop'`: close the connection without a response
 *
 * Requests with the same key wait in order. A request stops waiting if its client disconnects. Durations can be from
 * 1 to 2^31 - 1 ms. The limiter's `maxWaiting` also applies.
 */
export type DeniedPolicy =
  | 'reject'
  | 'drop'
  | { readonly delay: Duration }
  | { readonly queue: number; readonly maxWait?: Duration }

/** Adds a random time of up to `jitterMs` to a denial's wait times. */
export function withJitter(decision: Decision, jitterMs: number): Decision {
  const ms = Math.round(Math.random() * jitterMs)
  return {
    ...decision,
    retryAfterMs: decision.retryAfterMs + ms,
    limits: decision.limits.map((limit) =>
      limit.allowed ? limit : { ...limit, retryAfterMs: limit.retryAfterMs + ms },
    ),
  }
}

/** A validated policy. */
export interface Treatment {
  readonly isDropped: boolean
  /** Maximum wait in milliseconds. 0 if requests don't wait. */
  readonly maxWaitMs: number
  /** Maximum number of waiting requests. */
  readonly maxQueued: number
}

const REJECT: Treatment = { isDropped: false, maxWaitMs: 0, maxQueued: 0 }
const DROP: Treatment = { isDropped: true, maxWaitMs: 0, maxQueued: 0 }

const MAX_WAIT_MS = 2 ** 31 - 1
const MAX_QUEUED = 2 ** 20

/** Which policies an adapter and its limiter support. */
export interface Capabilities {
  readonly canDrop: boolean
  /** `false` if the limiter is a wrapper without `wait`. */
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
    throw wrongValue('denied', denied, "'reject', 'drop', { delay: '2s' } or { queue: 100, maxWait: '10s' }")
  }
  if (!canWait) {
    throw invalidOption(
      `denied is ${show(denied)}, but the limiter has no wait(); pass a limiter from createLimiter`,
      denied,
    )
  }
  if (delay !== undefined) {
    checkNames(denied as object, { delay: true }, 'invalid_option', 'denied: { delay }')
    return { isDropped: false, maxWaitMs: waitMs('delay', delay), maxQueued: Number.POSITIVE_INFINITY }
  }
  checkNames(denied as object, { queue: true, maxWait: true }, 'invalid_option', 'denied: { queue }')
  checkInteger('denied.queue', queue, 1, MAX_QUEUED)
  return { isDropped: false, maxWaitMs: waitMs('maxWait', maxWait), maxQueued: queue as number }
}

export function cannotDrop(): SlidegateError {
  return invalidOption(
    "denied is 'drop', but the platform can't close a connection without a response; use 'reject'",
    'drop',
  )
}

function waitMs(name: string, duration: unknown): number {
  const ms = parseDuration(duration) ?? 0
  const right = `a duration from 1 ms to ${MAX_WAIT_MS} ms, such as '2s'`
  checkThat(ms >= 1 && ms <= MAX_WAIT_MS, `denied.${name}`, duration, right)
  return ms
}

export interface LimiterCallOptions {
  readonly cost?: number
  readonly request: unknown
}

/** Makes a guard's requests wait, and counts the waiting requests. */
export class Waiters<Key extends AnyKey> {
  readonly #limiter: Limiter<Key>
  #waiting = 0

  constructor(limiter: Limiter<Key>) {
    this.#limiter = limiter
  }

  /**
   * Resolves to the final decision, or `undefined` if the client disconnected.
   *
   * A disconnected client's request isn't charged. If the queue is full, a request is admitted only if enough units would
   * remain for it after the requests ahead of it.
   */
  async decide(
    key: Key,
    options: LimiterCallOptions | undefined,
    treatment: Treatment,
    signal: AbortSignal,
  ): Promise<Decision | undefined> {
    const { maxWaitMs, maxQueued } = treatment
    const ends = (maxWaitMs: number) => this.#wait(key, { ...options, maxWaitMs, signal })
    const isFull = this.#waiting >= maxQueued
    let end = await ends(isFull ? 0 : maxWaitMs)
    // In the meantime, requests may have left the queue.
    if (isFull && end === 'timeout' && this.#waiting < maxQueued) end = await ends(maxWaitMs)
    if (end === 'aborted') return undefined
    if (typeof end === 'string') return await this.#denial(key, options)
    if (!signal.aborted) return end
    // The request was admitted just as its client disconnected.
    await this.#limiter.refund(key, end).catch(() => 0)
    return undefined
  }

  async #wait(key: Key, options: WaitOptions & { maxWaitMs: number }): Promise<Decision | WaitErrorReason> {
    // A request that doesn't wait doesn't occupy a place in the queue.
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

  /** Returns the denial for a request that stops waiting. Units that become available go to the requests ahead of it. */
  async #denial(key: Key, options: LimiterCallOptions | undefined): Promise<Decision> {
    const now = await this.#limiter.peek(key, options)
    const { expectedWaitMs } = this.#limiter.waiting(key)
    return { ...now, allowed: false, retryAfterMs: Math.max(1, now.retryAfterMs, expectedWaitMs) }
  }
}
