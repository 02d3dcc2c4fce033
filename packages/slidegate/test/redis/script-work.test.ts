// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  type Duration,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests the limits on the work of one call: Redis serves no other client meanwhile. Thousands of requests of all kinds
// arrive at once.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

interface Sent {
  readonly keys: number
  readonly bytes: number
}

/** Creates a store, and a record of its calls. */
function watched() {
  const sent: Sent[] = []
  const command = (words: readonly string[]) => {
    const bytes = words.slice(3).reduce((sum, word) => sum + Buffer.byteLength(word), 0)
    sent.push({ keys: Number(words[2]), bytes })
    return redis.call(words[0]!, ...words.slice(1))
  }
  return { sent, store: redisStore({ command }) }
}

const most = (numbers: readonly number[]) => numbers.reduce((a, b) => Math.max(a, b), 0)

const FEW = { limit: 1000, window: '1h' } as const

/** Returns a name of the maximum length. */
const long = (n: number) => `${n}`.padEnd(128, '.')

/** Creates limits, each with its own log. */
function limitsOf(logs: number): Limit[] {
  const hours = Array.from({ length: logs }, (_, i): Duration => `${i + 1}h`)
  return hours.map((window, i) => {
    if (i % 3 === 0) return fixedWindow({ limit: 1000, window, name: `f${i}` })
    if (i % 3 === 1) return slidingCounter({ limit: 1000, window, name: `c${i}` })
    return tokenBucket({ capacity: 1000, refill: i, interval: '1h', name: `t${i}` })
  })
}

describe('a call has at most', () => {
  const limiting = (limits: readonly Limit[]) => {
    const { sent, store } = watched()
    return { sent, limiter: createLimiter({ name: 'n'.repeat(64), limits, store, timeoutMs: 2 ** 31 - 1 }) }
  }

  it('128 keys of common requests, in 40 KB', async () => {
    const { sent, limiter } = limiting([slidingWindow(FEW)])
    await Promise.all(Array.from({ length: 3000 }, (_, i) => limiter.consume(long(i))))
    expect(most(sent.map(({ keys }) => keys))).toBe(128)
    expect(most(sent.map(({ bytes }) => bytes))).toBeLessThan(40_000)
  })

  it('512 requests, however few their keys', async () => {
    const { sent, limiter } = limiting([slidingWindow({ limit: 10_000, window: '1h' })])
    const decisions = await Promise.all(Array.from({ length: 3000 }, () => limiter.consume('k')))
    expect(sent.length).toBeGreaterThanOrEqual(Math.ceil(3000 / 512))
    expect(new Set(decisions.map(({ remaining }) => remaining)).size).toBe(3000)
  })

  it('128 keys of requests with ids, in 60 KB', async () => {
    const { sent, limiter } = limiting([slidingWindow({ ...FEW, log: 'zset' })])
    await Promise.all(
      Array.from({ length: 2000 }, (_, i) => limiter.consume(long(i), { requestId: long(i) })),
    )
    expect(most(sent.map(({ keys }) => keys))).toBe(128)
    expect(most(sent.map(({ bytes }) => bytes))).toBeLessThan(60_000)
  })

  it('512 logs, or those of a single request', async () => {
    for (const logs of [2, 8, 32]) {
      const { sent, limiter } = limiting(limitsOf(logs))
      await Promise.all(Array.from({ length: 600 }, (_, i) => limiter.consume(`key${i}`)))
      expect(most(sent.map(({ keys }) => keys))).toBeLessThanOrEqual(512)
    }
    const { sent, store } = watched()
    const dimensions = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`d${i}`, limitsOf(64)]))
    const limiter = createLimiter({ dimensions, store, timeoutMs: 2 ** 31 - 1 })
    const keyOf = (n: number) => Object.fromEntries(Object.keys(dimensions).map((name) => [name, `key${n}`]))
    await Promise.all(Array.from({ length: 3 }, (_, i) => limiter.consume(keyOf(i))))
    expect(sent.map(({ keys }) => keys)).toEqual([1024, 1024, 1024])
  })

  it('12,800 units of logs with individual entries', async () => {
    const { sent, limiter } = limiting([slidingWindow({ limit: 10_000, window: '1h', log: 'zset' })])
    await Promise.all(Array.from({ length: 60 }, (_, i) => limiter.consume(`key${i}`, { cost: 1000 })))
    expect(most(sent.map(({ keys }) => keys)) * 1000).toBeLessThanOrEqual(12_800)
  })
})

it('at most 16 calls are in flight, however many requests come', async () => {
  let inFlight = 0
  let highest = 0
  const command = async (words: readonly string[]) => {
    highest = Math.max(highest, ++inFlight)
    const reply = await redis.call(words[0]!, ...words.slice(1))
    inFlight--
    return reply
  }
  const limiter = createLimiter({
    limits: [slidingWindow(FEW)],
    store: redisStore({ command }),
    timeoutMs: 2 ** 31 - 1,
  })
  await limiter.consume('first')
  await Promise.all(Array.from({ length: 10_000 }, (_, i) => limiter.consume(`key${i}`)))
  // The number is lower if Redis is slow.
  expect(highest).toBeGreaterThan(1)
  expect(highest).toBeLessThanOrEqual(16)
})

describe('the work of one request', () => {
  /** Counts the commands that scripts call during `work`. */
  async function commandsOf(work: () => Promise<unknown>): Promise<number> {
    await redis.config('RESETSTAT')
    await work()
    const counts = Array.from((await redis.info('commandstats')).matchAll(/cmdstat_(\w+):calls=(\d+)/g))
    const ours = counts.filter(([, name]) => !['config|resetstat', 'info', 'evalsha', 'eval'].includes(name!))
    return ours.reduce((sum, [, , calls]) => sum + Number(calls), 0)
  }

  it('takes a few short reads and writes, even for a log of thousands of records', async () => {
    let nowMs = 1_700_000_000_000
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 2 ** 40, window: '10m', precision: 10 })],
      store: redisStore(redis, { clock: () => nowMs }),
      timeoutMs: 2 ** 31 - 1,
    })
    const decisions: Decision[] = []
    for (let i = 0; i < 5000; i++) {
      nowMs += 10
      decisions.push(await limiter.consume('k'))
    }
    expect(await commandsOf(() => limiter.consume('k'))).toBeLessThan(10)
    expect(await commandsOf(() => limiter.explain('k'))).toBeLessThan(400)
    expect(await commandsOf(() => limiter.explain('k', { charges: true }))).toBeLessThan(550)
    // Records further back than the last 4,096 aren't refunded.
    expect(await limiter.refund('k', decisions[800]!)).toBe(0)
    expect(await commandsOf(() => limiter.refund('k', decisions[1000]!))).toBeLessThan(3000)
  })
})
