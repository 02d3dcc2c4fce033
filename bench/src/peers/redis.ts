import fastifyRedisStore from '@fastify/rate-limit/store/RedisStore.js'
import AsyncRateLimiter from 'async-ratelimiter'
import Bottleneck from 'bottleneck'
import type { Options } from 'express-rate-limit'
import { type HonoConfigType, RedisStore as HonoRedisStore } from 'hono-rate-limiter'
import type { Redis } from 'ioredis'
import { RedisStore as ExpressRedisStore, type RedisReply } from 'rate-limit-redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { SlidingWindowRateLimiter } from 'sliding-window-rate-limiter'
import type { RedisPeer } from './peer.ts'
import { isConsumed, isRun, sheddingJobs } from './rejected.ts'

const rateLimiterFlexible: RedisPeer = {
  name: 'rate-limiter-flexible',
  algorithm: 'fixed window',
  open(redis, { limit, windowMs }) {
    const limiter = new RateLimiterRedis({ storeClient: redis, points: limit, duration: windowMs / 1000 })
    return { decide: (key) => isConsumed(limiter.consume(key)) }
  },
}

/** The store of express-rate-limit. The middleware calls `increment` once per request and compares the result with the limit. */
const rateLimitRedis: RedisPeer = {
  name: 'rate-limit-redis',
  algorithm: 'fixed window',
  async open(redis, { limit, windowMs }) {
    const store = new ExpressRedisStore({
      sendCommand: (command: string, ...words: string[]) =>
        redis.call(command, ...words) as Promise<RedisReply>,
    })
    await store.init({ windowMs } as Options)
    return { decide: async (key) => (await store.increment(key)).totalHits <= limit }
  },
}

/**
 * The store that the plugin creates for a client. The plugin calls `incr` once per request and compares the result with the
 * limit.
 */
const fastifyRateLimit: RedisPeer = {
  name: '@fastify/rate-limit',
  algorithm: 'fixed window',
  open(redis, { limit, windowMs }) {
    const store = new fastifyRedisStore(false, false, redis)
    return {
      decide: (key) =>
        new Promise((resolve, reject) => {
          const answer = (error: Error | null, result: { current: number } | null) => {
            if (result === null) reject(error)
            else resolve(result.current <= limit)
          }
          store.incr(key, answer, windowMs, limit)
        }),
    }
  },
}

const honoRateLimiter: RedisPeer = {
  name: 'hono-rate-limiter',
  algorithm: 'fixed window',
  open(redis, { limit, windowMs }) {
    const store = new HonoRedisStore({
      client: {
        scriptLoad: (script) => redis.script('LOAD', script) as Promise<string>,
        evalsha: <Words extends unknown[], Reply>(sha1: string, keys: string[], words: Words) =>
          redis.evalsha(sha1, keys.length, ...keys, ...(words as unknown as string[])) as Promise<Reply>,
        decr: (key) => redis.decr(key),
        del: (key) => redis.del(key),
      },
    })
    store.init({ windowMs } as HonoConfigType)
    return { decide: async (key) => (await store.increment(key)).totalHits <= limit }
  },
}

const asyncRateLimiter: RedisPeer = {
  name: 'async-ratelimiter',
  algorithm: 'ZSET log',
  open(redis, { limit, windowMs }) {
    const limiter = new AsyncRateLimiter({ db: redis, max: limit, duration: windowMs })
    // `remaining` includes this request. It is 0 after a denial.
    return { decide: async (key) => (await limiter.get({ id: key })).remaining > 0 }
  },
}

const slidingWindowRateLimiter: RedisPeer = {
  name: 'sliding-window-rate-limiter',
  algorithm: 'ZSET log',
  open(redis, { limit, windowMs }) {
    const limiter = SlidingWindowRateLimiter.createLimiter({
      // The package's types expect an ioredis client with custom commands.
      redis: redis as Redis & never,
      interval: windowMs,
    })
    return {
      decide: async (key) => (await limiter.reserve(`sliding:${key}`, limit)).token !== undefined,
      close: () => limiter.destroy(),
    }
  },
}

/**
 * A job scheduler. Its denials are dropped jobs, which it would otherwise queue.
 *
 * Each job takes three calls: submit, run and done. Each key has its own limiter.
 */
const bottleneck: RedisPeer = {
  name: 'bottleneck',
  algorithm: 'refilled reservoir',
  leastWindowMs: 5000,
  isSlow: true,
  open(redis, { limit, windowMs }) {
    // Bottleneck closes this client.
    const connection = new Bottleneck.IORedisConnection({ client: redis.duplicate() })
    const options = { id: 'bench', datastore: 'ioredis', connection, ...sheddingJobs(limit, windowMs) }
    const group = new Bottleneck.Group(options as Bottleneck.ConstructorOptions)
    return { decide: (key) => isRun(group.key(key)), close: () => connection.disconnect(false) }
  },
}

/** Packages that count by key in Redis. All except the last make one call per request. */
export const REDIS_PEERS: readonly RedisPeer[] = [
  rateLimiterFlexible,
  rateLimitRedis,
  fastifyRateLimit,
  honoRateLimiter,
  asyncRateLimiter,
  slidingWindowRateLimiter,
  bottleneck,
]
