// tier: integration
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { concurrency, distinct, slidingWindow, tokenBucket } from '../../src/index.ts'
import type { Ahead, Ticket } from '../../src/limits/limit.ts'
import { limitSet, withLog } from '../../src/limits/limit-set.ts'
import { lineLog } from '../../src/limits/line.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { ConsumeOutcome, Op } from '../../src/stores/store.ts'
import { useRedis } from '../support/use-redis.ts'
import { TwinStores } from './twin-stores.ts'

const { redis } = await useRedis()
let twins: TwinStores
beforeEach(async () => {
  await redis.flushall()
  twins = new TwinStores(redis)
})

/** Ten tokens, of which one comes back in 100 ms. */
const set = withLog(
  limitSet('l', [tokenBucket({ capacity: 10, refill: 10, interval: '1s', name: 'bucket' })]),
  lineLog,
)
const parts = [{ key: 'k', set }]

const idOf = (name: string) => name.padEnd(12, '.')

/** Asks as one who waits; answers the outcome, and the ticket with which to ask again. */
async function wait(
  name: string,
  cost = 1,
  sinceMs = 0,
  count = 1,
): Promise<ConsumeOutcome & { readonly ticket: Ticket }> {
  const ticket = { id: idOf(name), sinceMs }
  const outcome = await twins.consume(set, { cost, ticket, count })
  return { ...outcome, ticket: { id: ticket.id, sinceMs: sinceMs || outcome.atMs } }
}

const leave = (name: string) => twins.ask({ type: 'leave', parts, id: idOf(name) })

const one = { cost: 1, count: 1, leaseMs: 0 } as const

/** Nothing is left in the bucket. */
const drain = () => twins.consume(set, { cost: 10 })

describe('who waits', () => {
  it('is admitted at once where there is room, and stands in no line', async () => {
    expect(await wait('a', 4)).toMatchObject({ admitted: 1, limits: [0, 0, 400] })
    expect(await redis.keys('*:q')).toEqual([])
    expect(twins.memory.stats()).toEqual({ keys: 1, evicted: 0 })
  })

  it('waits for those before it, too', async () => {
    await drain()
    expect(await wait('a', 3)).toMatchObject({ admitted: 0, limits: [10, 300, 1000] })
    expect(await wait('b', 2)).toMatchObject({ admitted: 0, limits: [10, 500, 1000] })
    expect(await wait('c', 1)).toMatchObject({ admitted: 0, limits: [10, 600, 1000] })
  })

  it('is not admitted before those who came first, though there is room for it alone', async () => {
    await drain()
    const first = await wait('a', 5)
    twins.clock.advance(200)
    const second = await wait('b', 1)
    expect(second).toMatchObject({ admitted: 0, limits: [8, 400, 800] })
    twins.clock.advance(300)
    // Five are free, for the first.
    expect(await wait('b', 1, second.ticket.sinceMs)).toMatchObject({ admitted: 0, limits: [5, 100, 500] })
    expect(await wait('a', 5, first.ticket.sinceMs)).toMatchObject({ admitted: 1 })
    expect(await wait('b', 1, second.ticket.sinceMs)).toMatchObject({ admitted: 0, limits: [10, 100, 1000] })
    twins.clock.advance(100)
    expect(await wait('b', 1, second.ticket.sinceMs)).toMatchObject({ admitted: 1 })
    expect(await redis.keys('*:q')).toEqual([])
  })

  it('asks again soon where both would fit, had they come the other way round', async () => {
    await drain()
    await wait('a', 10)
    twins.clock.advance(995)
    const late = await wait('b', 5)
    // Ahead and cost are more than the limit: it waits for an empty bucket, and for what the first then takes.
    expect(late).toMatchObject({ admitted: 0, limits: [1, 105, 5], isBehind: true })
    twins.clock.advance(5)
    expect(await wait('b', 5, late.ticket.sinceMs)).toMatchObject({ admitted: 0, limits: [0, 100, 0] })
  })

  it('comes before one that asks later, whoever asks first again; of the same time, by id', async () => {
    await drain()
    const b = await wait('b', 1)
    const a = await wait('a', 1)
    expect(a.ticket.sinceMs).toBe(b.ticket.sinceMs)
    expect(a.limits[1]).toBe(100)
    expect((await wait('b', 1, b.ticket.sinceMs)).limits[1]).toBe(200)
    expect((await wait('a', 1, a.ticket.sinceMs)).limits[1]).toBe(100)
    twins.clock.advance(1)
    const c = await wait('Z', 1)
    expect(c.limits[1]).toBe(299)
    expect((await wait('a', 1, a.ticket.sinceMs)).limits[1]).toBe(99)
  })

  it('ids are ordered by their bytes, whatever the locale', async () => {
    await drain()
    const names = ['a', 'B', '_', '-', '0', 'Z', 'z', 'A1', 'a1']
    for (const name of names) await wait(name)
    const nowMs = twins.clock.now()
    for (const [i, name] of names.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1)).entries()) {
      expect((await wait(name, 1, nowMs)).limits[1], name).toBe(100 * (i + 1))
    }
  })

  it('does not stand before itself', async () => {
    await drain()
    const first = await wait('a', 3)
    for (let i = 0; i < 3; i++) expect((await wait('a', 3, first.ticket.sinceMs)).limits[1]).toBe(300)
    // Even where it forgets that it waits.
    expect((await wait('a', 3)).limits[1]).toBe(300)
  })

  it('may come to wait for more or for less', async () => {
    await drain()
    const first = await wait('a', 3)
    await wait('b')
    await wait('a', 5, first.ticket.sinceMs)
    expect((await wait('c')).limits[1]).toBe(700)
    await wait('a', 1, first.ticket.sinceMs)
    expect((await wait('d')).limits[1]).toBe(400)
  })

  it('where some of its requests were admitted, waits from now on with the rest', async () => {
    await twins.consume(set, { cost: 8 })
    const first = await wait('a', 1, 0, 5)
    expect(first).toMatchObject({ admitted: 2, limits: [8, 100, 1000] })
    expect((await wait('b')).limits[1]).toBe(200)
  })

  it('for what will never fit, stands in no line', async () => {
    await drain()
    await wait('a', 1)
    expect(await wait('a', 11)).toMatchObject({ admitted: 0, limits: [10, Number.POSITIVE_INFINITY, 1000] })
    expect(await redis.keys('*:q')).toEqual([])
  })

  it('loses its place when it does not ask again half a second after it could have', async () => {
    await drain()
    await wait('a', 3)
    twins.clock.advance(799)
    const late = await wait('b', 6)
    expect(late).toMatchObject({ admitted: 0, limits: [3, 101, 201] })
    twins.clock.advance(1)
    expect((await wait('b', 6, late.ticket.sinceMs)).admitted).toBe(1)
  })

  it('leaves', async () => {
    await drain()
    await wait('a', 3)
    await wait('b', 2)
    await leave('a')
    expect((await wait('c')).limits[1]).toBe(300)
    await leave('b')
    await leave('c')
    await leave('nobody')
    expect(await redis.keys('*:q')).toEqual([])
    await twins.ask({ type: 'leave', parts: [{ key: 'unknown', set }], id: idOf('a') })
  })

  it('others, who do not wait, do not see the line', async () => {
    await drain()
    await wait('a', 3)
    twins.clock.advance(100)
    expect(await twins.consume(set)).toMatchObject({ admitted: 1 })
    expect(await twins.peek(set, 2)).toMatchObject({ admitted: 0, limits: [10, 200, 1000] })
  })

  it('who sleeps though there is room holds up nobody; who has none yet, or is about to come, does', async () => {
    const hour = withLog(limitSet('hour', [slidingWindow({ limit: 5, window: '1h' })]), lineLog)
    const ask = (name: string, cost: number, sinceMs: number) =>
      twins.consume(hour, { cost, ticket: { id: idOf(name), sinceMs } })
    const charged = await twins.consume(hour, { cost: 5 })
    const { atMs: sinceMs } = await ask('a', 3, 0)
    const op = { type: 'refund', parts: [{ key: 'k', set: hour }], atMs: charged.atMs } as const
    await twins.ask({ ...op, units: 2, charged: [true, false] })
    twins.clock.advance(1)
    expect(await ask('b', 1, 0)).toMatchObject({ admitted: 0, isBehind: true })
    await twins.ask({ ...op, units: 2, charged: [true, false] })
    expect(await ask('b', 1, sinceMs + 1)).toMatchObject({ admitted: 1, isBehind: true })
    // The first will come for what it was told.
    twins.clock.advance(3_600_000 - 502)
    expect((await ask('c', 1, 0)).admitted).toBe(1)
    twins.clock.advance(1)
    expect((await ask('d', 2, 0)).admitted).toBe(0)
  })

  it.each([
    [3_599_499, 1],
    [3_599_500, 0],
  ])('who is about to come is awaited, though there is room: after %i ms', async (waitMs, admitted) => {
    const hour = withLog(limitSet('hour', [slidingWindow({ limit: 5, window: '1h' })]), lineLog)
    const ask = (name: string, cost: number) =>
      twins.consume(hour, { cost, ticket: { id: idOf(name), sinceMs: 0 } })
    const { atMs } = await twins.consume(hour, { cost: 5 })
    expect((await ask('a', 3)).limits[1]).toBe(3_600_000)
    const parts = [{ key: 'k', set: hour }] as const
    await twins.ask({ type: 'refund', parts, atMs, units: 5, charged: [true, false] })
    twins.clock.advance(waitMs)
    expect((await ask('b', 3)).admitted).toBe(admitted)
  })

  it('since a time that the clock has not reached again, comes before who comes later', async () => {
    await drain()
    const first = await wait('a', 3)
    twins.clock.advance(-3_600_000)
    await wait('a', 3, first.ticket.sinceMs)
    twins.clock.advance(100)
    expect(await wait('b', 1)).toMatchObject({ admitted: 0, isBehind: true })
    expect(await wait('a', 3, first.ticket.sinceMs)).not.toHaveProperty('isBehind')
  })

  it('with a value that is new keeps its place for as long as it was told to wait', async () => {
    const seen = withLog(limitSet('seen', [distinct({ limit: 1, window: '1m' })]), lineLog)
    for (const store of [twins.memory, twins.redis]) {
      const ask = async (name: string) => {
        const op = { type: 'consume', parts: [{ key: 'k', set: seen }], ...one, requestId: name } as const
        return (await outcomesOf(store, [{ ...op, ticket: { id: idOf(name), sinceMs: 0 } }]))[0]
      }
      expect(await ask('a')).toMatchObject({ admitted: 1 })
      expect(await ask('b')).toMatchObject({ limits: [1, 60_000, 60_000] })
      twins.clock.advance(1000)
      expect(await ask('c')).toMatchObject({ admitted: 0, isBehind: true })
    }
  })

  it('where something is held, is expected to ask again soon', async () => {
    const held = withLog(limitSet('held', [concurrency({ limit: 1, ttl: '1m' })]), lineLog)
    const ask = (name: string, ticket?: Ticket) => twins.consume(held, { requestId: name, ticket })
    await ask('holder')
    const { atMs: sinceMs } = await ask('dead', { id: idOf('dead'), sinceMs: 0 })
    twins.clock.advance(1)
    await twins.ask({ type: 'release', parts: [{ key: 'k', set: held }], requestId: 'holder', units: 1 })
    expect((await ask('b', { id: idOf('b'), sinceMs: 0 })).limits[1]).toBe(100)
    twins.clock.advance(599)
    expect((await ask('b', { id: idOf('b'), sinceMs: sinceMs + 1 })).admitted).toBe(1)
  })

  it('is told a time apart from those of the others, where a limit is filled many times', async () => {
    const waits = async (limit: number, windowMs: number) => {
      const many = withLog(limitSet('many', [slidingWindow({ limit, window: windowMs })]), lineLog)
      const told: number[] = []
      for (let i = 0; i < 30; i++) {
        const ticket = { id: idOf(`w${100 + i}`), sinceMs: 0 }
        told.push((await twins.consume(many, { ticket, cost: i === 0 ? limit : 1 }, `${limit}`)).limits[1]!)
      }
      return told
    }
    const ranks = Array.from({ length: 29 }, (_, i) => i)
    expect(await waits(1, 100)).toEqual([0, ...ranks.map((rank) => 100 + Math.min(100 * rank, 1000))])
    const ofTen = (await waits(10, 2000)).slice(1)
    expect(ofTen).toEqual(ranks.map((rank) => 2000 + 100 * Math.floor(rank / 10)))
    expect((await waits(100, 2000)).slice(1)).toEqual(ranks.map(() => 2000))
  })

  it('lines of several parts are each their own', async () => {
    const other = withLog(limitSet('m', [slidingWindow({ limit: 5, window: '1s' })]), lineLog)
    await drain()
    await wait('a', 3)
    const both = [...parts, { key: 'k', set: other }]
    const ticket = { id: idOf('b'), sinceMs: 0 }
    expect(await twins.consume(set, { parts: both, ticket })).toMatchObject({
      admitted: 0,
      limits: [10, 400, 1000, 0, 0, 0],
    })
    expect(await redis.keys('*:q')).toHaveLength(2)
    // Not of what has room long before.
    expect(await twins.consume(set, { parts: both, ticket, cost: 3 })).toMatchObject({
      limits: [10, 600, 1000, 0, 0, 0],
    })
    expect(await redis.keys('*:q')).toHaveLength(1)
    await twins.consume(set, { parts: both, ticket })
    expect(await redis.keys('*:q')).toHaveLength(2)
    await twins.ask({ type: 'leave', parts: both, id: ticket.id })
    expect(await redis.keys('*:q')).toHaveLength(1)
  })
})

it('where Redis is out of memory, who is denied waits all the same, in no line', async () => {
  await drain()
  await redis.config('SET', 'maxmemory', '1')
  try {
    const op = { type: 'consume', parts, ...one, ticket: { id: idOf('a'), sinceMs: 0 } } as const
    expect(await outcomesOf(twins.redis, [op])).toMatchObject([{ admitted: 0, limits: [10, 100, 1000] }])
  } finally {
    await redis.config('SET', 'maxmemory', '0')
  }
  expect(await redis.keys('*:q')).toEqual([])
})

it('a line lives as long as it may be asked for by who waits for longest, whoever asked last', async () => {
  const hour = withLog(limitSet('hour', [slidingWindow({ limit: 5, window: '1h' })]), lineLog)
  const ask = (name: string, cost: number, sinceMs = 0) =>
    twins.consume(hour, { cost, ticket: { id: idOf(name), sinceMs } })
  const { atMs } = await twins.consume(hour, { cost: 3 })
  twins.clock.advance(1_800_000)
  await twins.consume(hour, { cost: 2 })
  expect((await ask('long', 5)).limits[1]).toBe(3_600_000)
  expect((await ask('short', 1, atMs)).limits[1]).toBe(1_800_000)
  const [key = ''] = await redis.keys('*:q')
  expect(await redis.pttl(key)).toBeGreaterThan(3_600_000)
})

describe('the line is bounded', () => {
  it('by 256 tickets: one more sees all before it, and takes no place', async () => {
    const large = withLog(
      limitSet('large', [tokenBucket({ capacity: 1000, refill: 1000, interval: '1000s' })]),
      lineLog,
    )
    await twins.consume(large, { cost: 1000 })
    const ask = (name: string, sinceMs = 0) => twins.consume(large, { ticket: { id: idOf(name), sinceMs } })
    const nowMs = twins.clock.now()
    for (let i = 0; i < 256; i++) await ask(`w${i}`)
    expect((await ask('x-late-1')).limits[1]).toBe(257_000)
    expect((await ask('x-late-2')).limits[1]).toBe(257_000)
    const [key = ''] = await redis.keys('*:q')
    expect(await redis.strlen(key)).toBe(7 + 256 * 30)
    // One who stands there may move.
    expect((await ask('w0', nowMs)).limits[1]).toBe(1000)
    expect(await redis.strlen(key)).toBe(7 + 256 * 30)
    await twins.ask({ type: 'leave', parts: [{ key: 'k', set: large }], id: idOf('w7') })
    twins.clock.advance(2)
    await ask('x-late-1', nowMs + 1)
    expect((await ask('x-late-2', nowMs + 2)).limits[1]).toBe(256_998)
    // All are over, and are forgotten with the next that is written.
    twins.clock.advance(300_000)
    expect((await ask('new')).admitted).toBe(1)
    expect(await redis.keys('*:q')).toEqual([])
  })

  it('and its units by 2^40', async () => {
    const limit = 2 ** 40
    const huge = withLog(limitSet('huge', [slidingWindow({ limit, window: '1s' })]), lineLog)
    await twins.ask({ type: 'charge', parts: [{ key: 'k', set: huge }], units: limit })
    for (const [name, waitMs] of Object.entries({ a: 1000, b: 1100, c: 1100 })) {
      const outcome = await twins.consume(huge, { cost: limit, ticket: { id: idOf(name), sinceMs: 0 } })
      expect(outcome).toMatchObject({ admitted: 0, limits: [limit, waitMs, 1000] })
    }
    const { kind, params } = lineLog
    const logs = kind.createLogs()
    const state = logs.at(logs.create())
    const putOf = (id: string) =>
      kind.line!.put(state, params, 1000, { id: idOf(id), sinceMs: 1000 }, 2 ** 52, 2000)
    putOf('a')
    putOf('b')
    const most = 2 ** 40
    expect(kind.line!.ahead(state, params, 1000, { id: idOf('z'), sinceMs: 0 }, 0, 0)).toEqual({
      units: most,
      awaited: most,
    })
  })
})

describe('a clock that was set back', () => {
  it('by more than a second: the line is forgotten, and all ask again', async () => {
    await drain()
    const a = await wait('a', 3)
    twins.clock.advance(-5000)
    expect((await wait('b', 2)).limits[1]).toBe(200)
    twins.clock.advance(1)
    // Later than now counts as now.
    expect((await wait('a', 3, a.ticket.sinceMs)).limits[1]).toBe(499)
    twins.clock.advance(1)
    expect((await wait('c', 1, a.ticket.sinceMs)).limits[1]).toBe(598)
  })

  it('leaving then does not hide it', async () => {
    await drain()
    await wait('a', 3)
    await wait('b', 3)
    twins.clock.advance(-5000)
    await leave('b')
    expect((await wait('c', 2)).limits[1]).toBe(200)
  })

  it('by less: time stands still, and it stays', async () => {
    await drain()
    await wait('a', 3)
    twins.clock.advance(-900)
    expect((await wait('b', 2)).limits[1]).toBe(500)
  })
})

describe('the key in Redis', () => {
  const lifetimeOf = (keepMs: number) => keepMs + Math.max(4000, keepMs / 4)

  it('lives until the last ticket is over, and not much longer', async () => {
    const slow = withLog(
      limitSet('slow', [tokenBucket({ capacity: 10, refill: 1, interval: '1m' })]),
      lineLog,
    )
    const store = redisStore(redis)
    const ask = (cost: number, ticket?: Ticket) =>
      outcomesOf(store, [
        { type: 'consume', parts: [{ key: 'k', set: slow }], cost, count: 1, leaseMs: 0, ticket },
      ])
    const expectKept = async (keepMs: number) => {
      const [key = ''] = await redis.keys('*:q')
      const ttlMs = await redis.pttl(key)
      expect(ttlMs).toBeGreaterThan(lifetimeOf(keepMs) - 30_000)
      expect(ttlMs).toBeLessThanOrEqual(lifetimeOf(keepMs))
    }
    await ask(10)
    await ask(5, { id: idOf('a'), sinceMs: 0 })
    await expectKept(300_500)
    await ask(1, { id: idOf('b'), sinceMs: 0 })
    await expectKept(360_500)
    await outcomesOf(store, [{ type: 'leave', parts: [{ key: 'k', set: slow }], id: idOf('b') }])
    await expectKept(300_500)
    await outcomesOf(store, [{ type: 'leave', parts: [{ key: 'k', set: slow }], id: idOf('a') }])
    expect(await redis.keys('*:q')).toEqual([])
  })

  const foreign: Readonly<Record<string, (key: string, value: Buffer) => Promise<unknown>>> = {
    'a list': (key) => redis.rpush(key, 'x'),
    'a text': (key) => redis.set(key, 'x'.repeat(37)),
    'a later format': (key, value) => redis.set(key, Buffer.concat([Buffer.from([2]), value.subarray(1)])),
    'one byte less': (key, value) => redis.set(key, value.subarray(0, -1)),
    'one byte more': (key, value) => redis.set(key, Buffer.concat([value, Buffer.from([0])])),
    'no tickets': (key, value) => redis.set(key, value.subarray(0, 7)),
    'too many tickets': (key, value) => redis.set(key, Buffer.concat([value, Buffer.alloc(30 * 256)])),
  }

  it.each(Object.entries(foreign))('%s in its place is unavailable, and left alone', async (_, put) => {
    await drain()
    await wait('a', 3)
    const [key = ''] = await redis.keys('*:q')
    const value = (await redis.getBuffer(key))!
    await redis.del(key)
    await put(key, value)
    const stored = await redis.dumpBuffer(key)
    const ops: Op[] = [
      { type: 'consume', parts, cost: 1, count: 1, leaseMs: 0, ticket: { id: idOf('b'), sinceMs: 0 } },
      { type: 'leave', parts, id: idOf('a') },
    ]
    for (const op of ops) {
      await expect(outcomesOf(twins.redis, [op])).rejects.toMatchObject({
        reason: 'state',
        name: 'StoreUnavailableError',
      })
    }
    expect(await redis.dumpBuffer(key)).toEqual(stored)
  })

  it('with any byte changed it answers, or says that it is damaged', async () => {
    await drain()
    await wait('a', 3)
    await wait('b', 3)
    const [key = ''] = await redis.keys('*:q')
    const value = (await redis.getBuffer(key))!
    for (let place = 0; place < value.length; place++) {
      for (const change of [0x01, 0x80, 0xff]) {
        const changed = Buffer.from(value)
        changed[place] = changed[place]! ^ change
        await redis.set(key, changed)
        const ticket = { id: idOf('c'), sinceMs: 0 }
        const op = { type: 'consume', parts, cost: 1, count: 1, leaseMs: 0, ticket } as const
        const [answer] = await Promise.allSettled([outcomesOf(twins.redis, [op])])
        if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ reason: 'state' })
        else expect(await redis.pttl(key)).not.toBe(-1)
      }
    }
  })
})

/** As a list in the order in which it is served. */
class PlainLine {
  readonly #tickets: { id: string; sinceMs: number; units: number; untilMs: number }[] = []

  put(nowMs: number, id: string, sinceMs: number, units: number, untilMs: number): void {
    this.remove(nowMs, id)
    if (untilMs <= nowMs || this.#tickets.length === 256) return
    this.#tickets.push({ id, sinceMs, units, untilMs })
    this.#tickets.sort((a, b) => a.sinceMs - b.sinceMs || (a.id < b.id ? -1 : 1))
  }

  remove(nowMs: number, id: string): void {
    const stay = this.#tickets.filter((each) => each.id !== id && each.untilMs > nowMs)
    this.#tickets.splice(0, this.#tickets.length, ...stay)
  }

  ahead(nowMs: number, id: string, sinceMs: number, room: number, soonMs: number): Ahead {
    let [units, awaited] = [0, 0]
    for (const each of this.#tickets) {
      const since = sinceMs || nowMs
      const isBehind = each.sinceMs > since || (each.sinceMs === since && each.id > id)
      if (isBehind) break
      if (each.id === id || each.untilMs <= nowMs) continue
      units += each.units
      if (each.untilMs <= soonMs || each.units > room) awaited += each.units
    }
    return { units, awaited }
  }
}

it('random lines are those of a plain list', () => {
  const step = fc.record({
    what: fc.constantFrom('put', 'put', 'remove', 'ahead', 'ahead'),
    who: fc.nat(6),
    sinceMs: fc.nat(4),
    units: fc.integer({ min: 1, max: 9 }),
    forMs: fc.nat(20),
    afterMs: fc.nat(6),
  })
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const { kind, params } = lineLog
      const line = kind.line!
      const logs = kind.createLogs()
      const log = logs.create()
      const plain = new PlainLine()
      let nowMs = 1000
      for (const { what, who, sinceMs, units, forMs, afterMs } of steps) {
        nowMs += afterMs
        const ticket = { id: idOf(`w${who}`), sinceMs }
        const state = logs.at(log)
        if (what === 'remove') {
          line.remove(state, params, nowMs, ticket.id)
          plain.remove(nowMs, ticket.id)
        } else if (what === 'put') {
          line.put(state, params, nowMs, { ...ticket, sinceMs: sinceMs + 1 }, units, nowMs + forMs)
          plain.put(nowMs, ticket.id, sinceMs + 1, units, nowMs + forMs)
        }
        const [room, soonMs] = [units, nowMs + forMs]
        const ahead = line.ahead(state, params, nowMs, ticket, room, soonMs)
        expect(ahead).toEqual(plain.ahead(nowMs, ticket.id, sinceMs, room, soonMs))
      }
    }),
    { numRuns: 500 },
  )
})

it('nobody is admitted out of turn, and all are in the end', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ cost: fc.integer({ min: 1, max: 10 }), afterMs: fc.nat(300) }), {
        minLength: 1,
        maxLength: 12,
      }),
      async (comers) => {
        const world = new TwinStores(redis)
        const order: string[] = []
        const waiting = new Map<string, { cost: number; sinceMs: number; atMs: number }>()
        const ask = async (id: string, cost: number, sinceMs: number) => {
          const outcome = await world.consume(set, { cost, ticket: { id, sinceMs } })
          if (outcome.admitted === 1) {
            order.push(id)
            waiting.delete(id)
          } else {
            const atMs = outcome.atMs + outcome.limits[1]!
            expect(atMs).toBeGreaterThan(outcome.atMs)
            waiting.set(id, { cost, sinceMs: sinceMs || outcome.atMs, atMs })
          }
        }
        await world.consume(set, { cost: 10 })
        const come = comers.map(({ cost, afterMs }, i) => ({ id: idOf(`w${100 + i}`), cost, afterMs }))
        let nextMs = world.clock.now()
        for (let asked = 0; come.length > 0 || waiting.size > 0; asked++) {
          expect(asked).toBeLessThan(3000)
          // Whoever is due next: one who waits, or one who comes.
          const [due] = Array.from(waiting).toSorted(([, a], [, b]) => a.atMs - b.atMs)
          const comer = come[0]
          if (comer !== undefined && (due === undefined || nextMs + comer.afterMs <= due[1].atMs)) {
            nextMs += comer.afterMs
            come.shift()
            world.clock.set(Math.max(world.clock.now(), nextMs))
            await ask(comer.id, comer.cost, 0)
          } else if (due !== undefined) {
            world.clock.set(Math.max(world.clock.now(), due[1].atMs))
            await ask(due[0], due[1].cost, due[1].sinceMs)
          }
        }
        expect(order).toEqual(order.toSorted())
      },
    ),
    { numRuns: 60 },
  ))
