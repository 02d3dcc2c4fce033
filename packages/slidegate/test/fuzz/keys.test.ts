// tier: integration
import fc from 'fast-check'
import { createLimiter, type Limiter, memoryStore, SlidegateError, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { fuzz } from './harness.ts'
import { type Given, hostile, mutated, plain, texts } from './hostile.ts'
import { expectUnpolluted, MAX_MESSAGE } from './sense.ts'

const { redis } = await useRedis()

/** Far above what any key is asked for in a round. */
const LIMIT = 1_000_000
const clock = new ManualClock()

/** What was counted of each key, by a table that cannot mistake one for another. */
let counts = new Map<unknown, number>()
let memory: Limiter
let inRedis: Limiter

const round = async () => {
  counts = new Map()
  await redis.flushall()
  const options = { limits: [slidingWindow({ limit: LIMIT, window: '1h' })], timeoutMs: 60_000 }
  memory = createLimiter({ ...options, store: memoryStore({ clock: clock.now }) })
  inRedis = createLimiter({ ...options, store: redisStore(redis, { clock: clock.now }) })
  return async () => {
    expectUnpolluted()
    memory.close()
    inRedis.close()
  }
}

const ordinary = fc.constantFrom(
  'user:42',
  '203.0.113.7',
  '2001:db8::/64',
  'ada@example.com',
  'k',
  'tenant/7',
)
const keys = fc.oneof(
  { weight: 4, arbitrary: mutated(ordinary).map(plain) },
  { weight: 3, arbitrary: mutated(texts).map(plain) },
  { weight: 2, arbitrary: texts.map(plain) },
  { weight: 2, arbitrary: hostile },
)

/** What a key is, as the documentation says it. */
function isKey(key: unknown): key is string {
  if (typeof key !== 'string' || key === '' || /\p{Surrogate}/u.test(key)) return false
  return new TextEncoder().encode(key).length <= 65_536
}

/** One more request of each: those that are keys have counts of their own, and nothing else is one. */
async function expectOwnCounts(limiter: Limiter, asked: readonly Given[], each: Ask): Promise<void> {
  for (const given of asked) {
    const key = given.make()
    try {
      const remaining = await each(limiter, key as string)
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      if (!isKey(key) || remaining !== LIMIT - count) throw new Error(`${count} requests left ${remaining}`)
    } catch (error) {
      if (isKey(key) || !(error instanceof SlidegateError)) throw error
      const { code, value, message } = error
      if (code !== 'invalid_key' || !Object.is(value, key) || message.length > MAX_MESSAGE) throw error
    }
  }
}

type Ask = (limiter: Limiter, key: string) => number | Promise<number>

fuzz(
  'keys on memory',
  fc.array(keys, { minLength: 1, maxLength: 8 }),
  (asked) => expectOwnCounts(memory, asked, (limiter, key) => limiter.consumeSync(key).remaining),
  round,
)

fuzz(
  'keys on Redis',
  fc.array(keys, { minLength: 1, maxLength: 8 }),
  (asked) => expectOwnCounts(inRedis, asked, async (limiter, key) => (await limiter.consume(key)).remaining),
  round,
)
