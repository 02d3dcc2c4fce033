// tier: integration
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  type Limiter,
  memoryStore,
  SlidegateError,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { errorOf } from './refusal.ts'

const { redis } = await useRedis()

/** Anything at all, and what is nearly right. */
const garbage = fc.oneof(
  fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSparseArray: true,
  }),
  fc.constantFrom(
    0,
    -0,
    1,
    10,
    60_000,
    0.1,
    2 ** 31,
    2 ** 40,
    2 ** 53,
    1e21,
    1e300,
    Number.NaN,
    10n,
    Symbol('x'),
  ),
  fc.constantFrom('1m', '10', '1e3', 'x', '', '__proto__', true, null, undefined, () => 1, class {}, /x/, []),
)

const good = { limit: 3, window: '1m' } as const
const anyLimit = fc.record(
  { limit: garbage, window: garbage, precision: garbage, name: garbage, shadow: garbage },
  { requiredKeys: [] },
)
const sliding = slidingWindow({ ...good, name: 'good' })

/** What it makes; `undefined` where it is refused as it should be. */
function made<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    expect(error).toBeInstanceOf(SlidegateError)
    return undefined
  }
}

function expectDecision(decision: Decision): void {
  const numbers = [decision, ...decision.limits].flatMap(({ remaining, retryAfterMs, resetAfterMs }) => [
    remaining,
    retryAfterMs,
    resetAfterMs,
  ])
  for (const number of numbers)
    expect(number >= 0 && (Number.isInteger(number) || number === Infinity)).toBe(true)
  expect(decision.allowed).toBe(decision.deniedBy.length === 0)
  expect(Number.isSafeInteger(decision.atMs)).toBe(true)
}

describe('garbage of any type is refused as such, or makes a limiter that works', () => {
  it('for each option of a limit', () =>
    fc.assert(
      fc.asyncProperty(fc.constantFrom(slidingWindow, fixedWindow), anyLimit, async (kind, options) => {
        // Most by far would fail at the first; so that the others have their turn.
        for (const given of [options, { ...good, ...options }, { ...options, ...good }]) {
          const limit = made(() => kind(given as typeof good))
          if (limit === undefined) continue
          for (const store of [memoryStore(), redisStore(redis)]) {
            const limiter = createLimiter({ limits: [limit], store, timeoutMs: 30_000 })
            expectDecision(await limiter.consume('k'))
            limiter.close()
          }
        }
      }),
      { numRuns: 300 },
    ))

  it('for each option of a limiter', () =>
    fc.assert(
      fc.asyncProperty(garbage, garbage, garbage, garbage, async (name, limits, store, timeoutMs) => {
        for (const options of [
          { limits: [sliding], name },
          { limits },
          { limits: [sliding, limits] },
          { limits: [sliding], store },
          { limits: [sliding], timeoutMs },
          name,
        ]) {
          const limiter = made(() => createLimiter(options as { limits: [] }))
          // What a function of the caller's tells, or throws, is known only when it is asked.
          if (limiter === undefined || typeof limits === 'function') continue
          expectDecision(await limiter.consume('k'))
        }
      }),
      { numRuns: 500 },
    ))

  it('for each option of a store', () =>
    fc.assert(
      fc.property(garbage, garbage, (value, other) => {
        for (const options of [{ maxKeys: value }, { onFull: value }, value]) {
          const store = made(() => memoryStore(options as { maxKeys: 1 }))
          if (store !== undefined) {
            expectDecision(createLimiter({ limits: [sliding], store }).consumeSync('k'))
          }
        }
        made(() => redisStore(value as Redis))
        for (const options of [{ prefix: value }, { clock: value }, { prefix: other, clock: value }, value]) {
          made(() => redisStore(redis, options as { prefix: 'x' }))
        }
      }),
      { numRuns: 500 },
    ))

  it('for whatever a clock may say', () =>
    fc.assert(
      fc.asyncProperty(garbage, async (time) => {
        const clock = () => time as number
        for (const store of [
          memoryStore({ clock }),
          redisStore(redis, { clock, prefix: 'slidegate:clock' }),
        ]) {
          const limiter = createLimiter({ limits: [sliding], store, timeoutMs: 30_000 })
          const error = await errorOf(() => limiter.consume('k').then(expectDecision))
          if (error !== undefined) expect(error).toBeInstanceOf(SlidegateError)
          limiter.close()
        }
      }),
      { numRuns: 300 },
    ))
})

it('no garbage in a request touches what is stored', async () => {
  await redis.flushall()
  const stores = [memoryStore(), redisStore(redis)]
  const limits = [slidingWindow({ limit: 1000, window: '1h' }), fixedWindow({ limit: 1000, window: '1d' })]
  const limiters = stores.map((store) => createLimiter({ limits, store, timeoutMs: 30_000 }))
  for (const limiter of limiters) await limiter.charge('control', 7)
  const isKey = (key: unknown) => typeof key === 'string' && key !== '' && key.isWellFormed()
  await fc.assert(
    fc.asyncProperty(garbage, garbage, async (value, other) => {
      fc.pre(!isKey(value))
      for (const limiter of limiters) {
        for (const ask of asksWith(limiter, value, other)) {
          expect(await errorOf(ask)).toBeInstanceOf(SlidegateError)
        }
      }
    }),
    { numRuns: 300 },
  )
  for (const limiter of limiters) expect((await limiter.peek('control')).remaining).toBe(993)
  expect((await redis.keys('*')).map((key) => key.replace(/\{\d+\}/, '{}')).sort()).toEqual([
    'slidegate:{}:default:control:f86400000',
    'slidegate:{}:default:control:w1',
  ])
})

/** Requests with a key that is none, or with anything but a number for the units. */
function asksWith(limiter: Limiter, value: unknown, other: unknown): (() => Promise<unknown>)[] {
  const key = value as string
  const decision = other as Decision
  const units = (typeof value === 'number' ? -1 : value) as number
  const asks = [
    () => limiter.consume(key, other as object),
    () => limiter.peek(key, other as object),
    () => limiter.charge(key, other as number),
    () => limiter.refund(key, decision),
    () => limiter.reset(key),
    () => limiter.refund('control', decision),
    () => limiter.refund('control', decision, units),
  ]
  // Left out, the cost is 1.
  if (units !== undefined) asks.push(() => limiter.consume('control', { cost: units }))
  return asks
}
