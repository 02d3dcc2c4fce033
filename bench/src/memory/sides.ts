import fastifyLocalStore from '@fastify/rate-limit/store/LocalStore.js'
import { ThrottlerStorageService } from '@nestjs/throttler'
import { MemoryStore as ExpressMemoryStore, type Options } from 'express-rate-limit'
import { type HonoConfigType, MemoryStore as HonoMemoryStore } from 'hono-rate-limiter'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { createLimiter, type Decision, memoryStore, slidingWindow } from 'slidegate'
import { Audit } from '../audit.ts'
import type { Policy } from '../peers/peer.ts'
import type { Role } from '../report/plot.ts'

/** A limiter in memory, called in the cheapest possible way. */
export interface MemorySide {
  readonly name: string
  readonly role: Role
  /** Whether requests get slower as the window fills up. */
  readonly slowsDown?: boolean
  open(policy: Policy, keys: readonly string[]): OpenSide
}

interface OpenSide {
  /** Makes `count` requests for the picked keys. Throws if one is denied. */
  decide(pick: () => number, count: number): void | Promise<void>
  /** Checks the answers after the measurement. */
  verify?(): void
  close?(): void
}

/** Keys whose decisions are all verified. */
const AUDITED_KEYS = 16

/** Keeps the last 64 answers, because the compiler would remove unused objects. */
const HELD = 63

const slidegate: MemorySide = {
  name: 'slidegate',
  role: 'ours',
  open({ limit, windowMs }, keys) {
    const store = memoryStore({ maxKeys: 2 * keys.length + 1 })
    const limiter = createLimiter({ limits: [slidingWindow({ limit, window: windowMs })], store })
    const audits = Array.from(
      { length: Math.min(AUDITED_KEYS, keys.length) },
      () => new Audit(limit, windowMs),
    )
    const held: Decision[] = []
    return {
      decide(pick, count) {
        for (let i = 0; i < count; i++) {
          const index = pick()
          const decision = limiter.consumeSync(keys[index]!)
          if (!decision.allowed) throw new Error('The limiter denied a request that fits')
          held[i & HELD] = decision
          if (index < audits.length) audits[index]!.record(decision)
        }
      },
      verify() {
        for (const audit of audits) audit.verify()
      },
      close: () => limiter.close(),
    }
  },
}

/** A minimal fixed window. Looks up the key, reads the clock, and returns an object like ours. */
const mapFloor: MemorySide = {
  name: 'Map, clock, literal',
  role: 'floor',
  open({ limit, windowMs }, keys) {
    const counters = new Map<string, { units: number; endsAtMs: number }>()
    const held: Decision[] = []
    const decide = (key: string): Decision => {
      const nowMs = Date.now()
      let counter = counters.get(key)
      if (counter === undefined || counter.endsAtMs <= nowMs) {
        counter = { units: 0, endsAtMs: nowMs + windowMs }
        counters.set(key, counter)
      }
      const allowed = counter.units < limit
      if (allowed) counter.units++
      const remaining = limit - counter.units
      const resetAfterMs = counter.endsAtMs - nowMs
      const retryAfterMs = allowed ? 0 : resetAfterMs
      const shared = { allowed, remaining, retryAfterMs, resetAfterMs }
      const only = { name: 'floor', limit, windowMs, precisionMs: 1, shadow: false, ...shared }
      return {
        allowed,
        cost: 1,
        remaining,
        retryAfterMs,
        resetAfterMs,
        deniedBy: allowed ? [] : [only.name],
        limits: [only],
        source: 'store',
        atMs: nowMs,
      }
    }
    return {
      decide(pick, count) {
        for (let i = 0; i < count; i++) {
          const decision = decide(keys[pick()]!)
          if (!decision.allowed) throw new Error('The limiter denied a request that fits')
          held[i & HELD] = decision
        }
      },
    }
  },
}

const rateLimiterFlexible: MemorySide = {
  name: 'rate-limiter-flexible',
  role: 'peer',
  open({ limit, windowMs }, keys) {
    const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
    const held: unknown[] = []
    return {
      async decide(pick, count) {
        // Rejects if the request is denied.
        for (let i = 0; i < count; i++) held[i & HELD] = await limiter.consume(keys[pick()]!)
      },
    }
  },
}

const expressRateLimit: MemorySide = {
  name: 'express-rate-limit',
  role: 'peer',
  open({ windowMs }, keys) {
    const store = new ExpressMemoryStore()
    store.init({ windowMs } as Options)
    const held: unknown[] = []
    return {
      async decide(pick, count) {
        for (let i = 0; i < count; i++) held[i & HELD] = await store.increment(keys[pick()]!)
      },
      close: () => store.shutdown(),
    }
  },
}

const honoRateLimiter: MemorySide = {
  name: 'hono-rate-limiter',
  role: 'peer',
  open({ windowMs }, keys) {
    const store = new HonoMemoryStore()
    store.init({ windowMs } as HonoConfigType)
    const held: unknown[] = []
    return {
      async decide(pick, count) {
        for (let i = 0; i < count; i++) held[i & HELD] = await store.increment(keys[pick()]!)
      },
      close: () => store.shutdown(),
    }
  },
}

const nestThrottler: MemorySide = {
  name: '@nestjs/throttler',
  role: 'peer',
  slowsDown: true,
  open({ limit, windowMs }, keys) {
    const storage = new ThrottlerStorageService()
    const held: unknown[] = []
    return {
      async decide(pick, count) {
        for (let i = 0; i < count; i++) {
          held[i & HELD] = await storage.increment(keys[pick()]!, windowMs, limit, 0, 'default')
        }
      },
      close: () => storage.onApplicationShutdown(),
    }
  },
}

/** An LRU cache, here large enough for all keys. */
const fastifyRateLimit: MemorySide = {
  name: '@fastify/rate-limit',
  role: 'peer',
  open({ limit, windowMs }, keys) {
    const store = new fastifyLocalStore(false, false, keys.length)
    const held: unknown[] = []
    let place = 0
    const answer = (_error: null, result: unknown) => {
      held[place] = result
    }
    return {
      decide(pick, count) {
        for (let i = 0; i < count; i++) {
          place = i & HELD
          store.incr(keys[pick()]!, answer, windowMs, limit)
        }
      },
    }
  },
}

/** The first three have targets. */
export const MEMORY_SIDES: readonly MemorySide[] = [
  slidegate,
  mapFloor,
  rateLimiterFlexible,
  expressRateLimit,
  honoRateLimiter,
  nestThrottler,
  fastifyRateLimit,
]
