// tier: integration
import { afterAll, expect, it, vi } from 'vitest'
import { createLimiter, type Limiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { limitSet, withOverrides } from '../../src/limits/limit-set.ts'
import { FOREVER } from '../../src/limits/override.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { tagsOf } from '../../src/stores/redis/keyspace.ts'
import type { Op } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { bytesInUse } from '../faults/matrix/meter.ts'
import { useRedis } from '../support/use-redis.ts'

// A decision costs the same with 10,000 overrides as with one, and listing holds one page in memory at a time.

const { redis } = await useRedis()
afterAll(() => redis.flushall())

const MANY = 10_000
const RULE = '{"minute":{"limit":7}}'
const minute = slidingWindow({ limit: 3, window: '1m', name: 'minute' })

/** Reads up to `most` overrides. Returns how many there were, and the bytes in use halfway. */
async function walk(limiter: Limiter, most: number): Promise<{ read: number; bytes: number }> {
  let [read, bytes] = [0, 0]
  for await (const { limits } of limiter.overrides.list()) {
    if (limits!.minute!.limit !== 7) throw new Error(`${JSON.stringify(limits)}`)
    if (++read === most / 2) bytes = bytesInUse()
    if (read === most) break
  }
  return { read, bytes }
}

/** A decision with an override, a decision without, and a change. */
const ACTS: readonly ((limiter: Limiter) => Promise<unknown>)[] = [
  (limiter) => limiter.consume('k0'),
  (limiter) => limiter.consume('other'),
  (limiter) => limiter.overrides.set('k0', { limit: 7 }),
]

it('10,000 overrides cost no more than one in memory', async () => {
  const set = withOverrides(limitSet('default', []))
  const lookUps: number[][] = []
  for (const many of [1, MANY]) {
    const store = memoryStore({ maxKeys: 2 * MANY })
    for (let i = 0; i < many; i++) {
      const op: Op = { type: 'override', parts: [{ key: `k${i}`, set }], rule: RULE, ruleMs: FOREVER }
      store.applySync([op])
    }
    const limiter = createLimiter({ limits: [minute], store, overrides: true })
    const spies = [vi.spyOn(Map.prototype, 'get'), vi.spyOn(Map.prototype, 'has')]
    const counts: number[] = []
    for (const act of [...ACTS, ...ACTS]) {
      for (const spy of spies) spy.mockClear()
      await act(limiter)
      counts.push(spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0))
    }
    for (const spy of spies) spy.mockRestore()
    lookUps.push(counts)
    expect((await limiter.peek('k0')).limits[0]!.limit).toBe(7)
    const before = bytesInUse()
    // Runs several lists at once, none of which may search for its position with each page.
    const walks = await Promise.all([many, many / 2, many / 2].map((most) => walk(limiter, Math.ceil(most))))
    expect(walks.map(({ read }) => read)).toEqual([many, Math.ceil(many / 2), Math.ceil(many / 2)])
    if (many > 1) expect(walks[0]!.bytes - before).toBeLessThan(2e6)
    limiter.close()
  }
  expect(lookUps[1]).toEqual(lookUps[0])
})

it('10,000 overrides cost no more than one in Redis', async () => {
  const calls: Record<string, number>[] = []
  const head = `slidegate:{${tagsOf(1)[0]}}:default:`
  for (const many of [1, MANY]) {
    await redis.flushall()
    const script = `for i = ARGV[1], ARGV[2] do
      redis.call('SET', KEYS[1] .. 'k' .. i .. ':o', ARGV[3])
      redis.call('ZADD', KEYS[1] .. '~overrides', 0, 'k' .. i)
    end`
    for (let i = 0; i < many; i += 5000) {
      await redis.eval(script, 1, head, `${i}`, `${Math.min(many, i + 5000) - 1}`, `1 0 ${FOREVER} ${RULE}\n`)
    }
    // By a real clock, only some charges renew the TTL.
    const store = redisStore(redis, { buckets: 1, clock: new ManualClock().now })
    const limiter = createLimiter({ limits: [minute], store, overrides: true, timeoutMs: 30_000 })
    for (const act of ACTS) await act(limiter)
    for (const act of ACTS) {
      await redis.config('RESETSTAT')
      await act(limiter)
      const stats = (await redis.info('commandstats')).matchAll(/cmdstat_([^:|]+)[^:]*:calls=(\d+)/g)
      calls.push(Object.fromEntries(Array.from(stats, ([, name, count]) => [name!, Number(count)])))
    }
    await redis.config('RESETSTAT')
    const most = Math.min(many, 5000)
    const before = bytesInUse()
    const { read, bytes } = await walk(limiter, most)
    expect(read).toBe(most)
    if (many > 1) expect(bytes - before).toBeLessThan(2e6)
    const pages = /cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))![1]
    expect(Number(pages)).toBe(Math.ceil(most / 250))
    limiter.close()
  }
  // A change checks two other overrides.
  expect(calls.slice(3, 5)).toEqual(calls.slice(0, 2))
  expect(calls[5]).toEqual({ ...calls[2], exists: 2 })
})
