import { describe, expect, it } from 'vitest'
import { COMMON_SCRIPTS, DISTINCT_VALUES, ONCE, SEMAPHORE } from '../src/redis/scripts.ts'
import { withRedis } from '../src/redis/with-redis.ts'

const ALL_SCRIPTS = [...COMMON_SCRIPTS, SEMAPHORE, DISTINCT_VALUES, ...Object.values(ONCE)]
const POLICY = { limit: 3, windowMs: 60_000 }

/** The start of a fixed window. Other windows start here too. */
const START_MS = Math.ceil(Date.now() / POLICY.windowMs) * POLICY.windowMs

/** Makes a request at each of these times after the start. Returns the remaining requests or 'denied'. */
function remainingAt(script: (typeof COMMON_SCRIPTS)[number], times: readonly number[]) {
  return withRedis(async (redis) => {
    const { consume } = await script.open(redis, POLICY)
    const answers: (number | 'denied')[] = []
    for (const afterMs of times) {
      const [admitted, remaining] = await consume('user:1', START_MS + afterMs)
      answers.push(admitted === 1 ? remaining : 'denied')
    }
    return answers
  })
}

describe.each(ALL_SCRIPTS)('$name', (script) => {
  it('admits requests up to the limit, and again two windows later', async () => {
    expect(await remainingAt(script, [0, 0, 0, 0, 1, 120_000])).toEqual([2, 1, 0, 'denied', 'denied', 2])
  })

  it('sets a TTL on every key', async () => {
    await withRedis(async (redis) => {
      const { consume } = await script.open(redis, POLICY)
      for (const afterMs of [0, 1, 60_000]) await consume('user:1', START_MS + afterMs)
      const ttls = await Promise.all((await redis.keys('*')).map((key) => redis.pttl(key)))
      expect(ttls.length).toBeGreaterThan(0)
      for (const ttl of ttls) expect(ttl).toBeGreaterThan(0)
    })
  })
})

describe.each(ALL_SCRIPTS.filter(({ isLog }) => isLog))('the log $name', (script) => {
  it('admits a new request exactly when an old one leaves the window', async () => {
    const times = [0, 10, 20, 59_999, 60_000, 60_009, 60_010]
    expect(await remainingAt(script, times)).toEqual([2, 1, 0, 'denied', 0, 'denied', 0])
  })
})

describe.each(ALL_SCRIPTS.filter(({ isLog }) => !isLog))('the counter $name', (script) => {
  it('admits more than the limit around a window boundary', async () => {
    const boundary = [59_900, 59_900, 59_900, ...Array.from({ length: 31 }, (_, i) => 60_000 + 1990 * i)]
    const answers = await remainingAt(script, [0, ...boundary])
    const admitted = answers.slice(1).filter((answer, i) => answer !== 'denied' && boundary[i]! < 119_900)
    expect(admitted.length).toBeGreaterThan(POLICY.limit)
  })
})

describe.each(Object.values(ONCE))('$name', (script) => {
  it('charges a repeated call only once, with the same reply', async () => {
    await withRedis(async (redis) => {
      const twice = Object.create(redis, {
        evalsha: {
          value: async (...words: [string, number, ...string[]]) => {
            const answer = await redis.evalsha(...words)
            expect(await redis.evalsha(...words)).toEqual(answer)
            return answer
          },
        },
      })
      const { consume } = await script.open(twice, POLICY)
      expect(await consume('user:1', START_MS)).toEqual([1, 2])
      expect(await consume('user:1', START_MS)).toEqual([1, 1])
    })
  })

  it('keeps the time of the newest entry if the clock is set back', async () => {
    const answers = await remainingAt(script, [0, 0, 70_000, 20_000, 130_000])
    expect(answers).toEqual([2, 1, 2, 1, 2])
  })
})

describe('ZSET semaphore', () => {
  it('admits another holder after a release, and releases a slot only once', async () => {
    await withRedis(async (redis) => {
      const { consume, release } = await SEMAPHORE.open(redis, POLICY)
      for (const holder of ['a', 'b', 'c']) await consume('user:1', START_MS, holder)
      expect(await consume('user:1', START_MS + 1, 'd')).toEqual([0, 0])
      expect(await release('user:1', 'b')).toBe(true)
      expect(await release('user:1', 'b')).toBe(false)
      expect(await consume('user:1', START_MS + 1, 'd')).toEqual([1, 0])
      expect(await consume('user:1', START_MS + 1, 'e')).toEqual([0, 0])
    })
  })
})

describe('ZSET of values', () => {
  it('always admits a known value, and restarts its window', async () => {
    await withRedis(async (redis) => {
      const { consume } = await DISTINCT_VALUES.open(redis, POLICY)
      const answers = []
      for (const [afterMs, value] of [
        [0, 'a'],
        [0, 'b'],
        [0, 'c'],
        [1, 'd'],
        [2, 'a'],
        [60_001, 'd'],
        [60_001, 'a'],
      ] as const) {
        answers.push(await consume('user:1', START_MS + afterMs, value))
      }
      expect(answers).toEqual([
        [1, 2],
        [1, 1],
        [1, 0],
        [0, 0],
        [1, 0],
        [1, 1],
        [1, 1],
      ])
    })
  })
})
