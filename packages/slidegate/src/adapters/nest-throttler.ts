import type { ThrottlerStorage } from '@nestjs/throttler'
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingWindow,
  tupleKey,
} from '../index.ts'

/** A record as the guard of `@nestjs/throttler` reads it, times in seconds. */
type Throttled = Awaited<ReturnType<ThrottlerStorage['increment']>>

/** Where the counts live and what happens while there is no answer from there: as in `createLimiter`. */
export type ThrottlerStorageOptions = Omit<
  LimiterOptions,
  'limits' | 'formerly' | 'ban' | 'dimensions' | 'overrides'
>

/** They may be told anew for each request, by its user for instance. */
const MAX_LIMITERS = 1024

/**
 * A storage for `@nestjs/throttler` 6 on any store:
 *
 *     ThrottlerModule.forRoot({ throttlers, storage: new SlidegateThrottlerStorage({ store: redisStore(client) }) })
 *
 * What differs from the memory storage of that package:
 * - Processes that share a store share the counts, and that is decided in one step, by the clock of the store.
 * - A window is exact to the millisecond, and `limit` requests in any `ttl` the most that are admitted. There, a key whose
 *   block has ended begins anew; here what it has used before counts until its `ttl` has passed.
 * - Requests that are denied are charged nothing; of several throttlers, which the guard asks in turn, those before the one
 *   that has denied are.
 * - `X-RateLimit-Reset` is when all of the limit is free again.
 * - A `ttl` or a `blockDuration` is from 10 ms to 366 days, a `limit` a whole number: else the request fails.
 *
 * As there, the first denial blocks for `blockDuration`, which the guard makes the `ttl` where none is given; with
 * `blockDuration: 0`, which the first releases of 6 take for none, a key is admitted as soon as its window has room, and
 * that is what `Retry-After` tells.
 */
export class SlidegateThrottlerStorage implements ThrottlerStorage {
  readonly #options: ThrottlerStorageOptions
  readonly #limiters = new Map<string, Limiter>()

  constructor(options: ThrottlerStorageOptions = {}) {
    const { name = 'throttler', store = memoryStore() } = options
    this.#options = { ...options, name, store }
    // What is wrong with them is told now.
    this.#limiterOf(1000, 1, 0)
  }

  /** One request: `ttl` and `blockDuration` are milliseconds, as the guard hands them in. */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<Throttled> {
    // No window admits nothing.
    if (limit === 0) return denied(1, ttl, Math.max(ttl, blockDuration))
    const limiter = this.#limiterOf(ttl, limit, blockDuration)
    const decision = await limiter.consume(tupleKey(throttlerName, key))
    const { allowed, remaining, resetAfterMs, retryAfterMs } = decision
    if (!allowed) return denied(limit + 1, resetAfterMs, retryAfterMs)
    return {
      totalHits: limit - remaining,
      timeToExpire: seconds(resetAfterMs),
      isBlocked: false,
      timeToBlockExpire: 0,
    }
  }

  /** They hold nothing themselves: under one name in one store all count together. */
  #limiterOf(ttl: number, limit: number, blockDuration: number): Limiter {
    const id = `${ttl} ${limit} ${blockDuration}`
    let limiter = this.#limiters.get(id)
    if (limiter === undefined) {
      const limits = [slidingWindow({ limit, window: ttl })]
      const ban = blockDuration > 0 ? { after: 1, within: ttl, for: blockDuration } : undefined
      limiter = createLimiter({ ...this.#options, limits, ...(ban && { ban }) })
      if (this.#limiters.size === MAX_LIMITERS) this.#limiters.clear()
      this.#limiters.set(id, limiter)
    }
    return limiter
  }
}

function denied(totalHits: number, resetAfterMs: number, retryAfterMs: number): Throttled {
  return {
    totalHits,
    timeToExpire: seconds(resetAfterMs),
    isBlocked: true,
    timeToBlockExpire: seconds(retryAfterMs),
  }
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
