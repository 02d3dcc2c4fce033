import assert from 'node:assert/strict'
import {
  type AnyKey,
  type ConsumeOptions,
  concurrency,
  createLimiter,
  type Decision,
  distinct,
  fixedWindow,
  type Limit,
  type Limiter,
  type LimiterOptions,
  type Store,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from 'slidegate'
import { calendarWindow } from 'slidegate/calendar'
import type { Subject } from './instructions.ts'

/** A limit that never denies here. */
const LIMIT = 1_000_000
/** The most entries a log can hold. */
const ENTRIES = 10_000
/** A deadline long enough for counting instructions. */
const PATIENT = { timeoutMs: 60_000, logger: false } as const

const minute = slidingWindow({ name: 'minute', limit: LIMIT, window: '1m', precision: 10 })
const hour = slidingWindow({ name: 'hour', limit: ENTRIES, window: '1h', precision: 10 })
const day = slidingWindow({ name: 'day', limit: ENTRIES, window: '1d', precision: 10 })
const shadow = slidingWindow({ name: 'shadow', limit: LIMIT, window: '1m', precision: 10, shadow: true })
const tight = slidingWindow({ name: 'minute', limit: 10, window: '1m', precision: 10 })
const bucket = tokenBucket({ name: 'bucket', capacity: ENTRIES, refill: ENTRIES, interval: '1m' })
const zset = slidingWindow({ limit: ENTRIES, window: '1m', log: 'zset' })
const ban = { after: 10, within: '1m', for: '1h' } as const

type Shape = (store: Store) => Subject

/** Decisions that cost Redis different amounts: kinds of limits, combinations and request options. */
export const SHAPES = {
  'window, admitted': consumes([minute]),
  'window, denied': (store) => {
    const limiter = limiterOf(store, [tight])
    return {
      prepare: (key) => limiter.consume(key, { cost: 10 }),
      ask: async (key) => assert(!(await limiter.consume(key)).allowed),
    }
  },
  'three windows': consumes([minute, hour, day]),
  bucket: consumes([bucket]),
  'fixed window': consumes([fixedWindow({ limit: LIMIT, window: '1m' })]),
  'window and bucket': consumes([minute, bucket]),
  'window and shadow window': consumes([minute, shadow]),
  'window with ban': consumes([minute], { ban }),
  'two keys': (store) => {
    const limiter = createLimiter({ store, ...PATIENT, dimensions: { user: [minute], address: [minute] } })
    return admits(limiter, twoKeys)
  },
  'window, overrides, none set': consumes([minute], { overrides: true }),
  'window, overrides, one per key': (store) => {
    const limiter = limiterOf(store, [minute], { overrides: true })
    const prepare = (key: string) => limiter.overrides.set(key, { limit: LIMIT - 1 })
    return { ...admits(limiter, sameKey), prepare }
  },
  'everything on': (store) => {
    const dimensions = { user: [minute, shadow], address: [minute] }
    const limiter = createLimiter({ store, ...PATIENT, dimensions, ban: { user: ban }, overrides: true })
    const prepare = (user: string) => limiter.overrides.set({ user }, { minute: { limit: LIMIT - 1 } })
    return { ...admits(limiter, twoKeys), prepare }
  },
  zset: consumes([zset]),
  'zset, request id': consumes([zset], {}, (n) => ({ requestId: `payment-${n}` })),
  distinct: consumes([distinct({ limit: ENTRIES, window: '1m' })], {}, (n) => ({ value: `value-${n}` })),
  'distinct, approximate': consumes(
    [distinct({ limit: ENTRIES, window: '1h', approximate: true })],
    {},
    (n) => ({ value: `value-${n}` }),
  ),
  stream: consumes([slidingWindow({ limit: ENTRIES, window: '1m', log: 'stream' })]),
  'concurrency, acquire or release': (store) => {
    const limiter = limiterOf(store, [concurrency({ limit: ENTRIES, ttl: '1h' })])
    return {
      decisions: 2,
      async ask(key) {
        const permit = await limiter.acquire(key)
        assert(permit.allowed && (await permit.release()))
      },
    }
  },
  'sliding counter': consumes([slidingCounter({ limit: LIMIT, window: '1m' })]),
  'calendar window': consumes([calendarWindow({ limit: LIMIT, unit: 'day' })]),
  'window, cost of 5': consumes([minute], {}, () => ({ cost: 5 })),
  'window, refund': (store) => {
    const limiter = limiterOf(store, [minute])
    const decisions = new Map<string, Decision>()
    return {
      prepare: async (key) => decisions.set(key, await limiter.consume(key, { cost: 1000 })),
      ask: async (key) => assert.equal(await limiter.refund(key, decisions.get(key)!, 1), 1),
    }
  },
  'window, peek': (store) => {
    const limiter = limiterOf(store, [minute])
    return {
      prepare: (key) => limiter.consume(key),
      ask: async (key) => assert((await limiter.peek(key)).allowed),
    }
  },
} satisfies Record<string, Shape>

export type ShapeName = keyof typeof SHAPES

type Options = Omit<LimiterOptions, 'limits' | 'store'>

function limiterOf(store: Store, limits: readonly Limit[], options?: Options): Limiter {
  return createLimiter({ store, ...PATIENT, limits, ...options })
}

function consumes(
  limits: readonly Limit[],
  options?: Options,
  optionsOf?: (n: number) => ConsumeOptions,
): Shape {
  return (store) => admits(limiterOf(store, limits, options), sameKey, optionsOf)
}

function admits<Key extends AnyKey>(
  limiter: Limiter<Key>,
  keyOf: (key: string) => Key,
  optionsOf?: (n: number) => ConsumeOptions,
): Subject {
  return { ask: async (key, n) => assert((await limiter.consume(keyOf(key), optionsOf?.(n))).allowed) }
}

function sameKey(key: string): string {
  return key
}

function twoKeys(user: string): { user: string; address: string } {
  return { user, address: `10.0.0.${user.length}:${user}` }
}
