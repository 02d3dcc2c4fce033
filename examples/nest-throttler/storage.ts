// A storage for @nestjs/throttler 6 that counts in a slidegate store.
import type { ThrottlerStorage } from '@nestjs/throttler'
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingWindow,
  tupleKey,
} from 'slidegate'

/** The result for the guard. Times are in seconds. */
type Throttled = Awaited<ReturnType<ThrottlerStorage['increment']>>

/** The options of `createLimiter`, without the limits that the guard passes. */
type Options = Omit<LimiterOptions, 'limits' | 'ban' | 'dimensions' | 'overrides'>

/** The guard can pass different limits with each request. */
const MAX_LIMITERS = 1024

export class SlidegateThrottlerStorage implements ThrottlerStorage {
  readonly #options: Options
  readonly #limiters = new Map<string, Limiter>()

  constructor(options: Options = {}) {
    const { name = 'throttler', store = memoryStore() } = options
    this.#options = { ...options, name, store }
  }

  /** Decides one request. `ttl` and `blockDuration` are milliseconds. */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<Throttled> {
    if (limit === 0) return denied(1, ttl, Math.max(ttl, blockDuration))
    const limiter = this.#limiterOf(ttl, limit, blockDuration)
    const { allowed, remaining, resetAfterMs, retryAfterMs } = await limiter.consume(
      tupleKey(throttlerName, key),
    )
    if (!allowed) return denied(limit + 1, resetAfterMs, retryAfterMs)
    return {
      totalHits: limit - remaining,
      timeToExpire: seconds(resetAfterMs),
      isBlocked: false,
      timeToBlockExpire: 0,
    }
  }

  /** Returns a limiter for these limits. Limiters with the same name and store share their counts. */
  #limiterOf(ttl: number, limit: number, blockDuration: number): Limiter {
    const id = `${ttl} ${limit} ${blockDuration}`
    const known = this.#limiters.get(id)
    if (known !== undefined) return known
    const limits = [slidingWindow({ limit, window: ttl })]
    const ban = blockDuration > 0 && { after: 1, within: ttl, for: blockDuration }
    const limiter = createLimiter({ ...this.#options, limits, ...(ban && { ban }) })
    if (this.#limiters.size === MAX_LIMITERS) this.#limiters.clear()
    this.#limiters.set(id, limiter)
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
