import { ThrottlerStorageService } from '@nestjs/throttler'
import Bottleneck from 'bottleneck'
import { MemoryStore as ExpressMemoryStore, type Options } from 'express-rate-limit'
import { type HonoConfigType, MemoryStore as HonoMemoryStore } from 'hono-rate-limiter'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { SlidingWindowRateLimiter } from 'sliding-window-rate-limiter'
import type { MemoryPeer } from './peer.ts'
import { isConsumed, isRun, sheddingJobs } from './rejected.ts'

const rateLimiterFlexible: MemoryPeer = {
  name: 'rate-limiter-flexible',
  algorithm: 'fixed window',
  open({ limit, windowMs }) {
    const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
    return { decide: (key) => isConsumed(limiter.consume(key)) }
  },
}

const expressRateLimit: MemoryPeer = {
  name: 'express-rate-limit',
  algorithm: 'fixed window',
  open({ limit, windowMs }) {
    const store = new ExpressMemoryStore()
    store.init({ windowMs } as Options)
    return {
      decide: async (key) => (await store.increment(key)).totalHits <= limit,
      close: () => store.shutdown(),
    }
  },
}

const honoRateLimiter: MemoryPeer = {
  name: 'hono-rate-limiter',
  algorithm: 'fixed window',
  open({ limit, windowMs }) {
    const store = new HonoMemoryStore()
    store.init({ windowMs } as HonoConfigType)
    return {
      decide: async (key) => (await store.increment(key)).totalHits <= limit,
      close: () => store.shutdown(),
    }
  },
}

/** The storage, called the way the guard calls it if no block duration is set. */
const nestThrottler: MemoryPeer = {
  name: '@nestjs/throttler',
  algorithm: 'log of hits',
  open({ limit, windowMs }) {
    const storage = new ThrottlerStorageService()
    return {
      decide: async (key) => !(await storage.increment(key, windowMs, limit, windowMs, 'default')).isBlocked,
      close: () => storage.onApplicationShutdown(),
    }
  },
}

const slidingWindowRateLimiter: MemoryPeer = {
  name: 'sliding-window-rate-limiter',
  algorithm: 'log of hits',
  open({ limit, windowMs }) {
    const limiter = SlidingWindowRateLimiter.createLimiter({ interval: windowMs })
    return {
      decide: async (key) => (await limiter.reserve(key, limit)).token !== undefined,
      close: () => limiter.destroy(),
    }
  },
}

/** A job scheduler. Its denials are dropped jobs, which it would otherwise queue. */
const bottleneck: MemoryPeer = {
  name: 'bottleneck',
  algorithm: 'refilled reservoir',
  open({ limit, windowMs }) {
    const group = new Bottleneck.Group(sheddingJobs(limit, windowMs))
    return {
      decide: (key) => isRun(group.key(key)),
      close: async () => {
        for (const { limiter } of group.limiters()) await limiter.disconnect(false)
      },
    }
  },
}

export const MEMORY_PEERS: readonly MemoryPeer[] = [
  rateLimiterFlexible,
  expressRateLimit,
  honoRateLimiter,
  nestThrottler,
  slidingWindowRateLimiter,
  bottleneck,
]
