// tier: integration
import { expect, it } from 'vitest'
import { useRedis } from '../../../../slidegate/test/support/use-redis.ts'
import type { HistoryStore } from '../../../src/admin/history/history-store.ts'
import { type Counts, RANGES } from '../../../src/admin/history/records.ts'
import { countedBy, MINUTE_MS, onRedis, START_MS } from './support.ts'

const { server, redis } = await useRedis()

const KIB = 1024

/** Keys of the maximum length, with large counts. */
function worst(minute: number, count: number): [string, Counts][] {
  return Array.from({ length: count }, (_, i) => [
    `=${`${minute}-${i}-`.padEnd(64, 'k')}`,
    // Some of them are watched.
    [1_000_000 + i, 100_000 + i, 10_000_000 + i, i < 8 ? 2 : 0],
  ])
}

async function bytesOf(pattern: string): Promise<number> {
  const names = await redis.keys(pattern)
  const bytes = await Promise.all(names.map((name) => redis.memory('USAGE', name)))
  return bytes.reduce<number>((sum, each) => sum + (each ?? 0), 0)
}

it('a limiter takes at most 640 KiB in Redis, and with 16 short keys 180 KiB', async () => {
  const clock = { nowMs: START_MS }
  const [store] = await onRedis(server.url, clock, 1, 'slidegate:bytes')
  const first = START_MS / MINUTE_MS
  const entriesOf = {
    worst: (minute: number) => worst(minute, 40),
    usual: () =>
      Array.from({ length: 24 }, (_, i): [string, Counts] => [`=user:${i}`, [1000 + i, 100, 5000, 0]]),
  }
  // A record per minute, and one per hour of the other hours.
  const minutes = [
    ...Array.from({ length: RANGES['1h'].ttlMs / MINUTE_MS }, (_, i) => first + i),
    ...Array.from({ length: RANGES['7d'].ttlMs / (60 * MINUTE_MS) - 2 }, (_, i) => first - 60 * (i + 1)),
  ]
  for (const [number, minute] of minutes.entries()) {
    await store!.add({
      ...{ process: 'a process', number: number + 1, minute },
      limiters: Object.entries(entriesOf).map(([limiter, keysOf]) => ({
        limiter,
        entries: Object.fromEntries([['', [9_000_000, 900_000, 90_000_000, 9000]], ...keysOf(minute)]),
      })),
    })
  }
  // Minutes of earlier hours would have expired.
  for (const minute of minutes.filter((minute) => minute < first)) {
    await redis.del(...(await redis.keys(`slidegate:bytes:{history}:*:m${minute}`)))
  }
  expect(await redis.keys(`slidegate:bytes:{history}:worst:*`)).toHaveLength(70 + 170)
  const limiter = await bytesOf('slidegate:bytes:{history}:worst:*')
  expect(limiter).toBeLessThan(640 * KIB)
  const usual = await bytesOf('slidegate:bytes:{history}:usual:*')
  expect(usual).toBeLessThan(180 * KIB)
  expect(await bytesOf('slidegate:bytes:{history}:~:*')).toBeLessThan(40 * KIB)
})

it('a process with 200 limiters sends 52 commands a minute, each for up to 4 limiters', async () => {
  const clock = { nowMs: START_MS }
  const [store] = await onRedis(server.url, clock, 1, 'slidegate:calls')
  const { history, count, pass } = countedBy(store!, clock)
  for (let limiter = 0; limiter < 200; limiter++) {
    for (let key = 0; key < 30; key++) count(`limiter-${limiter}`, `user:${key}`, 1 + key)
  }
  const calls = async () => {
    const stats = await redis.info('commandstats')
    return (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  }
  const before = await calls()
  await pass(1)
  const after = await calls()
  expect(after('eval') - before('eval')).toBe(50)
  // Two by the script for each limiter, and two that say that the service was counting.
  expect(after('set') - before('set')).toBe(402)
  expect(after('mget') - before('mget')).toBe(400)
  expect(after('zrangebyscore') - before('zrangebyscore')).toBe(1)
  clock.nowMs += 10_000
  expect((await history.series('limiter-7', '1h')).allowed.at(-1)).toBe(465)
})

it('from 200 limiters on, the number of keys in a batch is bounded', async () => {
  const clock = { nowMs: START_MS }
  const sizes: number[] = []
  const store: HistoryStore = {
    ...{ read: async () => [], watched: async () => [], watch: async () => {} },
    add: async ({ limiters }) => {
      sizes.push(limiters.reduce((sum, { entries }) => sum + Object.keys(entries).length - 1, 0))
    },
  }
  const { count, pass } = countedBy(store, clock)
  for (const limiters of [200, 800]) {
    for (let limiter = 0; limiter < limiters; limiter++) {
      for (let key = 0; key < 30; key++) {
        count(`limiter-${limiter}`, `user:${key}`, 1)
        count(`limiter-${limiter}`, `user:${key}`, 1, { allowed: false })
      }
    }
    await pass(1)
  }
  expect(sizes).toEqual([3200, 3200])
})
