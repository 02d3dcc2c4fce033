// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, type Limiter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'

// Reads the logs as other programs would.

const { redis } = await useRedis()
beforeEach(async () => {
  await redis.config('SET', 'maxmemory', '0')
  await redis.flushall()
})

const clock = new ManualClock()
const limiterOf = (log: 'zset' | 'stream', limit: number, window: number, isByRedis = false): Limiter =>
  createLimiter({
    limits: [slidingWindow({ limit, window, log })],
    store: redisStore(redis, isByRedis ? {} : { clock: clock.now }),
    timeoutMs: 30_000,
  })

const keyOf = async (key: string) => (await redis.keys(`*:${key}:*`))[0]!

/** The fields of a stream entry. */
type Fields = readonly [string, string, string, string, string, string]

/** Entries for a follower that has read up to this id. */
async function readAfter(key: string, id: string): Promise<[id: string, fields: Fields][]> {
  const read = (await redis.xread('STREAMS', key, id)) as [string, [string, Fields][]][] | null
  return read?.[0]?.[1] ?? []
}

const unitsAndTotals = (entries: readonly [string, Fields][]) =>
  entries.map(([id, fields]) => [Number(id.split('-')[0]), Number(fields[3]), Number(fields[5])])

describe("log: 'zset'", () => {
  it('stores request ids by time in a sorted set', async () => {
    const limiter = limiterOf('zset', 9, 10_000)
    const startMs = clock.now()
    await limiter.consume('k', { requestId: 'payment:1', cost: 3 })
    clock.advance(5)
    await limiter.consume('k', { requestId: 'payment:2' })
    await limiter.consume('k', { requestId: 'payment:1' })
    await limiter.consume('k')
    const members = await redis.zrange(await keyOf('k'), 0, -1, 'WITHSCORES')
    expect(members.slice(0, 6)).toEqual([
      'payment:1',
      String(startMs),
      'payment:1 2',
      String(startMs),
      'payment:1 3',
      String(startMs),
    ])
    expect(members).toHaveLength(10)
    expect(members).toContain('payment:2')
    const { entries } = (await limiter.list('k'))[0]!
    expect(entries.slice(0, 1)).toEqual([{ name: 'payment:1', units: 3, atMs: startMs }])
    expect(entries.map(({ name }) => name)).toContain('payment:2')
  })

  it('stores a long or unprintable request id as its hash', async () => {
    const limiter = limiterOf('zset', 9, 10_000)
    const requestId = `Zahlung über ${'x'.repeat(200)}`
    const first = await limiter.consume('k', { requestId })
    clock.advance(1)
    expect(await limiter.consume('k', { requestId })).toEqual(first)
    const members = await redis.zrange(await keyOf('k'), 0, -1)
    expect(members).toEqual([expect.stringMatching(/^~[\w-]{43}$/)])
  })
})

it('a charge removes only a few more entries from a sorted set than it adds', async () => {
  const limiter = limiterOf('zset', 1000, 1000)
  await limiter.consume('k', { cost: 1000 })
  clock.advance(1000)
  await limiter.consume('k', { cost: 5 })
  expect(await redis.zcard(await keyOf('k'))).toBe(1005 - 5 - 100)
})

describe("log: 'stream'", () => {
  it('returns each admission to XREAD once, in order, with its units', async () => {
    const limiter = limiterOf('stream', 9, 10_000)
    const startMs = clock.now()
    await limiter.consume('k', { cost: 2 })
    const key = await keyOf('k')
    const first = await readAfter(key, '0')
    expect(unitsAndTotals(first)).toEqual([[startMs, 2, 2]])
    expect(first[0]![1].filter((_, i) => i % 2 === 0)).toEqual(['id', 'cost', 'total'])
    // Some of these requests are denied.
    await Promise.all([3, 9, 1].map((cost) => limiter.consume('k', { cost })))
    clock.advance(7)
    await limiter.charge('k', 12)
    const then = await readAfter(key, first[0]![0])
    expect(unitsAndTotals(then)).toEqual([
      [startMs, 3, 5],
      [startMs, 1, 6],
      [startMs + 7, 12, 18],
    ])
    expect(await readAfter(key, then.at(-1)![0])).toEqual([])
    const { entries } = (await limiter.list('k'))[0]!
    const names = new Map(entries.map(({ name, units }) => [name, units]))
    for (const [, fields] of [...first, ...then]) expect(names.get(fields[1])).toBe(Number(fields[3]))
  })

  it('returns no entry twice to a follower when requests are refunded', async () => {
    const limiter = limiterOf('stream', 100, 10_000)
    const decisions = []
    for (let i = 0; i < 6; i++) {
      decisions.push(await limiter.consume('k', { cost: i + 1 }))
      clock.advance(1)
    }
    const key = await keyOf('k')
    const before = await readAfter(key, '0')
    await limiter.refund('k', decisions[1]!)
    expect(await readAfter(key, before.at(-1)![0])).toEqual([])
    const after = await readAfter(key, '0')
    expect(after.map(([id]) => id)).toEqual(before.filter((_, i) => i !== 1).map(([id]) => id))
    expect(unitsAndTotals(after).map(([, units, total]) => [units, total])).toEqual([
      [1, 1],
      [3, 4],
      [4, 8],
      [5, 13],
      [6, 19],
    ])
    await limiter.refund('k', decisions[5]!)
    await limiter.consume('k', { cost: 7 })
    const [next] = await readAfter(key, before.at(-1)![0])
    expect(unitsAndTotals([next!])).toEqual([[clock.now(), 7, 20]])
  })

  it('restarts totals when nothing counts, and before they exceed their maximum', async () => {
    const limiter = limiterOf('stream', 10_000, 1000)
    await limiter.consume('k', { cost: 5000 })
    clock.advance(1000)
    await limiter.consume('k', { cost: 7 })
    const key = await keyOf('k')
    const shown = async () =>
      unitsAndTotals(await readAfter(key, '0')).map(([, units, total]) => [units, total])
    expect((await shown()).at(-1)).toEqual([7, 7])
    clock.advance(1000)
    await redis.xadd(key, `${clock.now()}-*`, 'id', 'x', 'cost', '20', 'total', String(2 ** 52 - 100))
    clock.advance(999)
    await limiter.charge('k', 100)
    expect((await shown()).at(-1)).toEqual([100, 2 ** 52])
    await limiter.charge('k', 9)
    expect(await shown()).toEqual([
      [20, 20],
      [100, 120],
      [9, 129],
    ])
    expect((await limiter.peek('k', { cost: 9900 })).retryAfterMs).toBe(1000)
    clock.advance(1)
    expect((await limiter.peek('k')).remaining).toBe(10_000 - 109)
  })

  it('restarts with the entries that count after the clock was set back', async () => {
    const limiter = limiterOf('stream', 9, 1000)
    await limiter.consume('k', { cost: 4 })
    clock.advance(600)
    await limiter.consume('k')
    clock.advance(600)
    await limiter.consume('k', { cost: 2 })
    clock.advance(-60_000)
    await limiter.consume('k')
    const nowMs = clock.now()
    expect(unitsAndTotals(await readAfter(await keyOf('k'), '0'))).toEqual([
      [nowMs, 1, 1],
      [nowMs, 2, 3],
      [nowMs, 1, 4],
    ])
  })

  it("continues with a clock that hasn't caught up with a refunded request", async () => {
    const limiter = limiterOf('stream', 9, 1000)
    await limiter.consume('k')
    clock.advance(500)
    const newest = await limiter.consume('k', { cost: 3 })
    await limiter.refund('k', newest)
    clock.advance(-300)
    expect(await limiter.consume('k', { cost: 8 })).toMatchObject({ allowed: true, atMs: clock.now() })
    clock.advance(800)
    expect(await limiter.peek('k')).toMatchObject({ remaining: 1, retryAfterMs: 0, resetAfterMs: 200 })
  })

  it('refunds the newest request at any time, and others only if at most 1,024 count', async () => {
    const limiter = limiterOf('stream', 10_000, 60_000)
    const pending = []
    for (let i = 0; i < 1026; i++) {
      pending.push(limiter.consume('k'))
      if (i % 10 === 0) clock.advance(1)
    }
    const decisions = await Promise.all(pending)
    expect(await limiter.refund('k', decisions[700]!)).toBe(0)
    expect(await limiter.refund('k', decisions[1025]!)).toBe(1)
    expect(await limiter.refund('k', decisions[701]!)).toBe(0)
    expect(await limiter.refund('k', decisions[1024]!)).toBe(1)
    expect(await limiter.refund('k', decisions[702]!)).toBe(1)
    // A rejected refund can be retried.
    expect(await limiter.refund('k', decisions[700]!)).toBe(1)
    expect((await limiter.peek('k')).remaining).toBe(10_000 - 1022)
  })

  it('skips entries written by another program, or reports damage', async () => {
    const limiter = limiterOf('stream', 9, 1000)
    const first = await limiter.consume('k')
    const key = await keyOf('k')
    await redis.xadd(key, `${clock.now()}-*`, 'x', 'y')
    await expect(limiter.consume('k')).rejects.toMatchObject({ reason: 'invalid_state' })
    await redis.xadd(key, `${clock.now()}-*`, 'id', 'other', 'cost', '2', 'total', '3')
    expect((await limiter.peek('k')).remaining).toBe(6)
    await limiter.consume('k')
    expect(await limiter.refund('k', first)).toBe(1)
    expect((await limiter.peek('k')).remaining).toBe(6)
    expect(await redis.xlen(key)).toBe(2)
  })

  it('continues after another program emptied it', async () => {
    const limiter = limiterOf('stream', 9, 10_000)
    await limiter.consume('k')
    const key = await keyOf('k')
    clock.advance(-500)
    await redis.xtrim(key, 'MAXLEN', 0)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, atMs: clock.now() })
    expect((await limiter.peek('k')).remaining).toBe(8)
  })

  it('writes nothing if Redis is out of memory, not even after a removal', async () => {
    const limiter = limiterOf('stream', 9, 1000)
    await limiter.consume('k', { cost: 2 })
    await limiter.consume('k')
    const key = await keyOf('k')
    const before = await redis.xrange(key, '-', '+')
    await redis.config('SET', 'maxmemory', '1')
    await expect(limiter.consume('k')).rejects.toThrow(/OOM/)
    clock.advance(-60_000)
    await expect(limiter.consume('k')).rejects.toThrow(/OOM/)
    expect(await redis.xrange(key, '-', '+')).toEqual(before)
  })
})

describe.each(['zset', 'stream'] as const)('log: %s', (log) => {
  const sizeOf = (key: string) => (log === 'zset' ? redis.zcard(key) : redis.xlen(key))

  it('removes entries that left the window as requests arrive', async () => {
    const limiter = limiterOf(log, 300, 1000)
    let largest = 0
    for (let i = 0; i < 10; i++) {
      for (let second = 0; second < 20; second++) {
        await Promise.all(Array.from({ length: 15 }, () => limiter.consume('k')))
        clock.advance(50)
        largest = Math.max(largest, await sizeOf(await keyOf('k')))
      }
    }
    expect(largest).toBeGreaterThanOrEqual(300)
    // A stream is trimmed by whole nodes of up to 100 entries.
    expect(largest).toBeLessThanOrEqual(420)
  })

  it('keeps at most 10,000 entries, whatever is charged', async () => {
    const limiter = limiterOf(log, 50, 60_000)
    for (let i = 0; i < 105; i++) {
      await Promise.all(Array.from({ length: 100 }, () => limiter.charge('k', log === 'zset' ? 2 : 1)))
      if (i % 10 === 0) clock.advance(1)
    }
    const size = await sizeOf(await keyOf('k'))
    expect(size).toBe(10_000)
    clock.advance(4)
    expect((await limiter.peek('k')).retryAfterMs).toBe(60_000 - 4)
  })

  it('sets a TTL of the window and a quarter, renewed within that quarter', async () => {
    const limiter = limiterOf(log, 9, 3_600_000, true)
    const decision = await limiter.consume('k')
    await limiter.consume('k', { cost: 2 })
    const key = await keyOf('k')
    const most = 3_600_000 * 1.25
    for (const act of [
      () => limiter.consume('k'),
      () => limiter.charge('k', 2),
      () => limiter.refund('k', decision),
    ]) {
      await act()
      expect(await redis.pttl(key)).toBeGreaterThan(most - 60_000)
      expect(await redis.pttl(key)).toBeLessThanOrEqual(most)
    }
    await redis.pexpire(key, 3_000_000)
    await limiter.consume('k', { cost: 9 })
    await limiter.peek('k')
    await limiter.list('k')
    expect(await redis.pttl(key)).toBeLessThanOrEqual(3_000_000)
    // Makes it look as if the newest charge had been made 15 minutes ago.
    const before = Date.now() - 900_000
    await redis.del(key)
    if (log === 'zset') await redis.zadd(key, before, 'id')
    else await redis.xadd(key, `${before}-0`, 'id', 'id', 'cost', '1', 'total', '1')
    await redis.pexpire(key, 3_000_000)
    await limiter.consume('k')
    expect(await redis.pttl(key)).toBeGreaterThan(most - 60_000)
  })

  // This uses more entries than one charge removes.
  it("doesn't count entries again that had left the window before the clock was set back", async () => {
    const limiter = limiterOf(log, 300, 1000)
    await limiter.consume('k', { cost: 250 })
    clock.advance(600)
    await limiter.consume('k')
    clock.advance(600)
    await limiter.consume('k', { cost: 2 })
    clock.advance(-60_000)
    expect((await limiter.peek('k')).remaining).toBe(297)
    expect((await limiter.consume('k')).remaining).toBe(296)
    clock.advance(999)
    expect((await limiter.peek('k')).remaining).toBe(296)
    clock.advance(1)
    expect((await limiter.peek('k')).remaining).toBe(300)
  })

  it("doesn't count entries again that had left the window when the newest is refunded", async () => {
    const limiter = limiterOf(log, 300, 1000)
    await limiter.consume('k', { cost: 250 })
    clock.advance(200)
    await limiter.consume('k')
    clock.advance(900)
    const newest = await limiter.consume('k')
    await limiter.refund('k', newest)
    clock.advance(-200)
    expect((await limiter.peek('k')).remaining).toBe(299)
  })

  it('gets its full TTL again when it is restamped without a charge', async () => {
    const limiter = limiterOf(log, 1, 3_600_000)
    await limiter.consume('k')
    clock.advance(-600_000)
    await redis.pexpire(await keyOf('k'), 10_000)
    expect((await limiter.consume('k')).allowed).toBe(false)
    expect(await redis.pttl(await keyOf('k'))).toBeGreaterThan(3_600_000)
  })

  it('leaves no key behind after everything was refunded', async () => {
    const limiter = limiterOf(log, 9, 10_000)
    const decisions = [await limiter.consume('k', { cost: 2 }), await limiter.consume('k')]
    for (const decision of decisions) expect(await limiter.refund('k', decision)).toBe(decision.cost)
    expect(await redis.dbsize()).toBe(0)
  })
})
