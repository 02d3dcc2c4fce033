// tier: system
import { Cluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createLimiter,
  failurePolicy,
  type Limit,
  memoryStore,
  type OnStoreError,
  type Store,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { banLog } from '../../src/limits/ban.ts'
import { limitSet, withLog, withOverrides } from '../../src/limits/limit-set.ts'
import { acrossShards } from '../../src/resilience/cluster/across-shards.ts'
import { guardStore } from '../../src/resilience/guard.ts'
import { refundsOf } from '../../src/resilience/refunds.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { bucketOf, crc16, tagsOf } from '../../src/stores/redis/keyspace.ts'
import type {
  ConsumeOp,
  ConsumeOutcome,
  ExplainOutcome,
  Op,
  Outcome,
  OverridesOutcome,
  Part,
  RefundOutcome,
} from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { until } from '../support/until.ts'

import { held, recorded } from './stores.ts'

/** Returns the shard of an op. Almost every key is on its own shard. */
const shardOf = ({ parts: [part] }: Op) => bucketOf(part!.key, 1024)

let names = 0

/** Creates a part whose key has its own limiter. */
function partOf(key: string, ...limits: readonly Limit[]): Part {
  return { key, set: limitSet(`s${names++}/${key}`, limits) }
}

function consumption(parts: readonly Part[], more: Partial<ConsumeOp> = {}): ConsumeOp {
  return { type: 'consume', parts, cost: 1, count: 1, leaseMs: 0, ...more }
}

async function ask<T extends Outcome = ConsumeOutcome>(store: Store, op: Op): Promise<T> {
  return (await outcomesOf(store, [op]))[0] as T
}

/** Returns the used units of a key's first limit. */
async function usedOf(store: Store, part: Part): Promise<number> {
  return (await ask(store, { type: 'peek', parts: [part], cost: 1, count: 1 })).limits[0]!
}

const usedOfEach = (store: Store, parts: readonly Part[]) =>
  Promise.all(parts.map((part) => usedOf(store, part)))

const hourly = (limit: number, name?: string) => slidingWindow({ limit, window: '1h', ...(name && { name }) })

/** Creates several shards in this process, and a recorder of the ops that reach them. */
function scene() {
  const clock = new ManualClock()
  const memory = memoryStore({ clock: clock.now })
  const behind = recorded(memory)
  const store = acrossShards(behind, shardOf)
  /** Returns the types and keys of the ops since the last call. */
  const sentOps = () =>
    behind.ops.splice(0).map(({ type, parts }) => `${type} ${parts.map(({ key }) => key)}`)
  return { clock, memory, behind, store, sentOps }
}

describe('an op for several keys', () => {
  it('passes unchanged if all keys are on one shard', () => {
    const { store, behind } = scene()
    const op = consumption([partOf('a', hourly(1)), partOf('a', hourly(2))])
    const call = { isSettled: false, resolve() {}, reject() {} }
    let passed: unknown
    const across = acrossShards({ apply: (ops, call) => (passed = [ops, call]), close() {} }, shardOf)
    const ops = [op]
    across.apply(ops, call)
    expect(passed).toEqual([ops, call])
    expect((passed as unknown[])[0]).toBe(ops)
    expect((passed as unknown[])[1]).toBe(call)
    store.apply(ops, call)
    expect(behind.ops[0]).toBe(op)
  })

  it('groups keys by shard', async () => {
    const { store, sentOps } = scene()
    const parts = [partOf('a', hourly(9)), partOf('b', hourly(8)), partOf('a', hourly(7))]
    const { limits, admitted } = await ask(store, consumption(parts, { cost: 2 }))
    expect(sentOps()).toEqual(['consume a,a', 'consume b'])
    expect([admitted, limits.length]).toEqual([1, 9])
    await ask(store, { type: 'charge', parts, units: 1 })
    const looked = await ask<ExplainOutcome>(store, {
      ...{ type: 'explain', parts, cost: 5, count: 1, charges: 9 },
    })
    expect(looked.limits.filter((_, i) => i % 3 === 0)).toEqual([3, 3, 3])
    expect(looked.limits.map((ms, i) => i % 3 === 1 && ms > 0).filter((_, i) => i % 3 === 1)).toEqual([
      false,
      false,
      true,
    ])
    expect(looked.frees.map(({ length }) => length > 0)).toEqual([true, true, true])
    expect(looked.bans).toEqual([undefined, undefined, undefined])
    expect(looked.charges).toEqual(parts.map(() => [{ atMs: looked.atMs, units: 3 }]))
  })

  it('charges all keys or none', async () => {
    const { store } = scene()
    const parts = [partOf('user', hourly(5)), partOf('ip', hourly(2)), partOf('endpoint', hourly(9))]
    for (const admitted of [1, 1, 0, 0]) {
      expect((await ask(store, consumption(parts))).admitted).toBe(admitted)
    }
    expect(await usedOfEach(store, parts)).toEqual([2, 2, 2])
    const some = await ask(store, consumption([parts[0]!, parts[2]!], { count: 4 }))
    expect(some.admitted).toBe(3)
    expect(await usedOfEach(store, parts)).toEqual([5, 2, 5])
  })

  it('answers without waiting for its refunds to arrive', async () => {
    const memory = memoryStore()
    const far = held(memory)
    const store = acrossShards(far, shardOf)
    const parts = [partOf('user', hourly(1)), partOf('ip', hourly(9))]
    await ask(store, consumption([parts[0]!]))
    const deciding = ask(store, consumption(parts))
    far.isHolding = true
    expect((await deciding).admitted).toBe(0)
    await until('the refund is in flight', async () => far.waiting.length === 1)
    expect(await usedOf(memory, parts[1]!)).toBe(0)
  })

  it('refunds all charges if the caller has timed out', async () => {
    const memory = memoryStore()
    const far = held(memory)
    const store = acrossShards(far, shardOf)
    const parts = [partOf('user', hourly(9)), partOf('ip', hourly(9))]
    far.isHolding = true
    const call = { isSettled: false, resolve: () => expect.unreachable(), reject: () => expect.unreachable() }
    store.apply([consumption(parts)], call)
    call.isSettled = true
    expect(await usedOfEach(memory, parts)).toEqual([1, 1])
    far.isHolding = false
    far.release()
    await until('all units are returned', async () =>
      (await usedOfEach(memory, parts)).every((used) => used === 0),
    )
  })

  it('refunds only its own charge to a shadow limit', async () => {
    const { store, memory } = scene()
    const shadow = slidingWindow({ limit: 2, window: '30m', name: 'tried', shadow: true })
    const parts = [partOf('user', hourly(9), shadow), partOf('ip', hourly(4)), partOf('full', hourly(4))]
    await ask(store, consumption(parts.slice(0, 2)))
    await ask(memory, { type: 'charge', parts: [parts[2]!], units: 4 })
    for (let i = 0; i < 3; i++) expect((await ask(store, consumption(parts))).admitted).toBe(0)
    expect(await usedOfEach(memory, parts)).toEqual([1, 1, 4])
    for (let i = 0; i < 3; i++) await ask(store, consumption(parts.slice(0, 2)))
    const { limits } = await ask(memory, { type: 'peek', parts: [parts[0]!], cost: 1, count: 1 })
    expect([limits[0], limits[3]]).toEqual([4, 2])
  })

  it('refunds each shard at the time of its charge', async () => {
    const clocks = { user: new ManualClock(1_000_000), ip: new ManualClock(9_000_000) }
    const stores = {
      user: memoryStore({ clock: clocks.user.now }),
      ip: memoryStore({ clock: clocks.ip.now }),
    }
    const of = ({ parts: [part] }: Op) => stores[part!.key as keyof typeof stores]
    const both: Store = { apply: (ops, call) => of(ops[0]!).apply(ops, call), close() {} }
    const store = acrossShards(both, shardOf)
    const parts = [
      partOf('user', hourly(9)),
      partOf('ip', tokenBucket({ capacity: 9, refill: 1, interval: '1h' })),
    ]
    const op = consumption(parts, { cost: 3 })
    const outcome = await ask(store, op)
    expect(outcome).toMatchObject({ atMs: 9_000_000, debits: [{ atMs: 1_000_000 }, { atMs: 9_000_000 }] })
    for (const clock of Object.values(clocks)) clock.advance(50)
    await ask(store, op)
    const [refund, ...more] = refundsOf(op, outcome, 0, 1)
    expect(more).toEqual([])
    expect(await ask(store, refund!)).toEqual({ returned: [3, 3] })
    // Nothing is refunded twice to a window, which keeps timestamps, unlike a token bucket.
    expect((await ask<RefundOutcome>(store, refund!)).returned[0]).toBe(0)
  })

  it("decides with the latest shard's time, and refunds each key at its own time", async () => {
    const clocks = { user: new ManualClock(1_000_000), ip: new ManualClock(9_000_000) }
    const stores = {
      user: memoryStore({ clock: clocks.user.now }),
      ip: memoryStore({ clock: clocks.ip.now }),
    }
    const of = ({ parts: [part] }: Op) => (part!.set.limiter.endsWith('/user') ? 'user' : 'ip')
    const both: Store = {
      failurePolicy,
      apply: (ops, call) => stores[of(ops[0]!)].apply(ops, call),
      shardOf: (op) => (of(op) === 'user' ? 0 : 1),
      close() {},
    }
    const limits = [slidingWindow({ limit: 9, window: '1h' })]
    const limiter = createLimiter({
      dimensions: { user: limits, ip: limits },
      store: both,
      timeoutMs: 30_000,
    })
    const key = { user: 'ada', ip: '203.0.113.7' }
    const first = await limiter.consume(key)
    expect(first.atMs).toBe(9_000_000)
    for (const clock of Object.values(clocks)) clock.advance(50)
    await limiter.consume(key)
    expect(await limiter.refund(key, first)).toBe(1)
    for (const { charges } of (await limiter.explain(key, { charges: true })).limits) {
      expect(charges).toEqual([{ atMs: expect.any(Number), units: 1 }])
    }
    // Only the second charge is left. It counts for an hour from its own timestamp.
    for (const clock of Object.values(clocks)) clock.advance(3_600_000 - 1)
    expect((await limiter.peek(key)).limits.map(({ remaining }) => remaining)).toEqual([8, 8])
    for (const clock of Object.values(clocks)) clock.advance(1)
    expect((await limiter.peek(key)).limits.map(({ remaining }) => remaining)).toEqual([9, 9])
  })

  it("rejects a request id, which couldn't be repeated", async () => {
    const { store } = scene()
    const parts = [
      partOf('a', slidingWindow({ limit: 1, window: '1h', log: 'zset' })),
      partOf('b', hourly(1)),
    ]
    const repeatable = consumption(parts, { requestId: 'r1', mayRepeat: true })
    await expect(ask(store, repeatable)).rejects.toMatchObject({ code: 'invalid_request_id', value: 'r1' })
    await expect(ask(store, { ...repeatable, type: 'peek', count: 1 })).rejects.toMatchObject({
      code: 'invalid_request_id',
    })
    expect(await usedOf(store, parts[1]!)).toBe(0)
  })

  it('shares a call with other ops', async () => {
    const { store } = scene()
    const parts = [partOf('a', hourly(3)), partOf('b', hourly(9))]
    const ops = [consumption(parts), consumption([parts[1]!]), consumption(parts, { cost: 9 })]
    const outcomes = await outcomesOf(store, ops)
    expect(outcomes.map((outcome) => (outcome as ConsumeOutcome).admitted)).toEqual([1, 1, 0])
    expect(await usedOfEach(store, parts)).toEqual([1, 2])
  })

  it('gets denied while any key is blocked, and reports which one and the limits of all keys', async () => {
    const { store, clock, memory } = scene()
    const plain = partOf('ip', hourly(9))
    const banned = partOf('user', hourly(1))
    const log = banLog({ after: 2, within: '1m', for: '10s' })
    const parts = [{ key: 'user', set: withLog(banned.set, log) }, plain]
    for (let i = 0; i < 3; i++) await ask(store, consumption(parts))
    clock.advance(1)
    const denied = await ask(store, consumption(parts))
    const hourMs = 3_600_000
    expect(denied).toMatchObject({ admitted: 0, ban: { ms: 9_999, parts: [0] } })
    expect(denied.limits).toEqual([1, hourMs - 1, hourMs - 1, 1, 0, hourMs])
    expect(await usedOf(memory, plain)).toBe(1)
    await ask(store, { type: 'override', parts, blockMs: 0 })
    expect((await ask(store, consumption(parts))).ban).toBeUndefined()
  })
})

it("an override of several keys is written to each key's shard, with the key as given", async () => {
  const { store } = scene()
  const set = withOverrides(limitSet('api', []))
  const parts = ['~a', '~b'].map((key) => ({ key, set }))
  const op: Op = { type: 'override', parts, blockMs: 1000, given: ['', 'bé'] }
  expect(await ask(store, op)).toEqual({ existed: false })
  const page: Op = { type: 'overrides', parts: [parts[0]!], bucket: 0, after: '' }
  const { overrides } = await ask<OverridesOutcome>(store, page)
  expect(overrides.map(({ key, given }) => [key, given])).toEqual([
    ['~a', undefined],
    ['~b', 'bé'],
  ])
})

describe('refunding a request', () => {
  it('takes one op for all keys, and skips bans and shadow limits that had no room', () => {
    const tried = slidingWindow({ limit: 3, window: '30m', name: 'tried', shadow: true })
    const [user, ip] = [partOf('user', hourly(9), tried), partOf('ip', hourly(9, 'requests'))]
    const banned = { key: 'user', set: withLog(user.set, banLog({ after: 2, within: '1m', for: '10s' })) }
    const op = consumption([banned, ip], { cost: 2 })
    const limits = [0, 0, 1, 1, 0, 1, 0, 0, 1]
    const outcome = { source: 'store', atMs: 7, admitted: 2, limits, waitMs: 0 } as const
    const names = { requestId: undefined }
    const returned = { type: 'refund', parts: op.parts, atMs: 7, ...names }
    expect(refundsOf({ ...op, count: 2 }, outcome, 0, 2)).toEqual([
      { ...returned, units: 4, charged: [true, false, false, true] },
      { ...returned, units: 2, charged: [false, true, false, false] },
    ])
    expect(refundsOf(op, outcome, 1, 2)).toEqual([
      { ...returned, units: 2, charged: [true, false, false, true] },
    ])
    expect(refundsOf(op, { ...outcome, source: 'fallback' }, 1, 2)).toMatchObject([{ source: 'fallback' }])
    expect(refundsOf(op, { ...outcome, source: 'failOpen' }, 0, 1)).toEqual([])
    expect(refundsOf(op, { ...outcome, repeats: 2 }, 0, 1)).toEqual([])
  })
})

describe('shards', () => {
  it('receive their calls in parallel, and decisions have current numbers', async () => {
    const { store, sentOps, clock } = scene()
    const parts = [partOf('user', slidingWindow({ limit: 1, window: '1s' })), partOf('ip', hourly(9))]
    await ask(store, consumption(parts))
    sentOps()
    for (const waitMs of [1000, 900]) {
      const { admitted, limits } = await ask(store, consumption(parts))
      expect(admitted).toBe(0)
      expect(limits).toEqual([1, waitMs, waitMs, 1, 0, 3_600_000])
      expect(sentOps()).toEqual(['consume user', 'consume ip', 'refund ip'])
      clock.advance(100)
    }
  })
})

describe('if a shard is down', () => {
  /** Creates a store whose key `down` can't be reached. */
  function outage(onStoreError: OnStoreError) {
    const memory = memoryStore()
    let isDown = true
    const half: Store = {
      failurePolicy,
      apply(ops, call) {
        if (isDown && ops[0]!.parts[0]!.key === 'down') call.reject(new Error('ECONNREFUSED'))
        else memory.apply(ops, call)
      },
      shardOf,
      close() {},
    }
    const { store } = guardStore('x', { store: half, onStoreError, logger: false })
    const parts = [partOf('up', hourly(2)), partOf('down', hourly(9)), partOf('also', hourly(9))]
    const recover = () => {
      isDown = false
    }
    return { memory, parts, store, recover }
  }

  it('the request fails, and charges on other shards are refunded', async () => {
    const { store, memory, parts } = outage('throw')
    for (let i = 0; i < 3; i++) {
      await expect(ask(store, consumption(parts))).rejects.toMatchObject({ code: 'store_unavailable' })
      expect(await usedOfEach(memory, parts)).toEqual([0, 0, 0])
    }
    await expect(ask(store, { type: 'charge', parts, units: 2 })).rejects.toThrow('ECONNREFUSED')
    expect(await usedOfEach(memory, parts)).toEqual([2, 0, 2])
  })

  it("the request is denied with onStoreError: 'deny', unless a limit denies it", async () => {
    const { store, memory, parts } = outage('deny')
    const { source, waitMs, admitted } = await ask(store, consumption(parts))
    expect({ source, admitted }).toEqual({ source: 'failClosed', admitted: 0 })
    expect(waitMs).toBeGreaterThan(0)
    expect(await usedOfEach(memory, parts)).toEqual([0, 0, 0])
  })

  it("debits show which shards counted, with onStoreError: 'allow'", async () => {
    const { store, memory, parts, recover } = outage('allow')
    const op = consumption(parts)
    const outcome = await ask(store, op)
    expect(outcome).toMatchObject({
      source: 'failOpen',
      admitted: 1,
      debits: [{ source: 'store' }, { source: 'failOpen' }, { source: 'store' }],
    })
    await ask(store, op)
    const denied = await ask(store, op)
    expect(denied).toMatchObject({ source: 'store', admitted: 0 })
    expect(denied.limits[1]).toBeGreaterThan(0)
    expect(await usedOfEach(memory, parts)).toEqual([2, 0, 2])
    recover()
    const charged = [true, true, true]
    const { atMs, debits } = outcome
    const refund: Op = { type: 'refund', parts, units: 1, atMs, charged, debits }
    expect(await ask(store, refund)).toEqual({ returned: [1, 0, 1] })
  })

  it("its keys are decided and refunded in this process, with onStoreError: 'local'", async () => {
    const { store, memory, parts } = outage('local')
    const op = consumption(parts)
    const outcome = await ask(store, op)
    expect(outcome).toMatchObject({
      source: 'fallback',
      admitted: 1,
      debits: [{ source: 'store' }, { source: 'fallback' }, { source: 'store' }],
    })
    const { limits } = await ask(store, consumption([parts[1]!]))
    expect(limits[0]).toBe(1)
    const { atMs, debits } = outcome
    const refund: Op = {
      type: 'refund',
      parts,
      units: 1,
      atMs,
      charged: [true, true, true],
      debits,
    }
    expect(await ask(store, refund)).toEqual({ returned: [1, 1, 1] })
    expect(await usedOfEach(memory, parts)).toEqual([0, 0, 0])
  })
})

describe('on a Cluster', () => {
  let cluster: RedisCluster
  let client: Cluster
  beforeAll(async () => {
    // One shard may be down while the others work.
    cluster = await startCluster({
      masters: 3,
      replicas: 0,
      settings: ['--cluster-require-full-coverage', 'no'],
    })
    client = new Cluster([{ host: '127.0.0.1', port: cluster.nodes[0]!.port }])
    client.on('error', () => {})
  })
  afterAll(async () => {
    client.disconnect()
    await cluster.stop()
  })

  function storesOn(
    on: Cluster,
    options: { onStoreError?: OnStoreError; timeoutMs?: number; clock?: ManualClock } = {},
  ) {
    const { clock, timeoutMs = 30_000, onStoreError } = options
    const raw = redisStore(on, clock && { clock: clock.now })
    const { store } = guardStore('x', {
      store: raw,
      timeoutMs,
      logger: false,
      ...(onStoreError && { onStoreError }),
    })
    return { raw, store }
  }

  /** Returns a key on the nth master. */
  function keyOn(master: number, prefix: string): string {
    for (let i = 0; ; i++) {
      const key = `${prefix}${i}`
      const slot = crc16(tagsOf(64)[bucketOf(key, 64)]!) % 16_384
      if (slot >= Math.floor((master * 16_384) / 3) && slot < Math.floor(((master + 1) * 16_384) / 3))
        return key
    }
  }

  it('concurrent requests charge each key for exactly what was admitted', async () => {
    const { raw, store } = storesOn(client)
    const dimensions = [
      Array.from({ length: 12 }, (_, i) => partOf(`user${i}`, hourly(25), hourly(20, 'other'))),
      Array.from({ length: 5 }, (_, i) => partOf(`ip${i}`, hourly(40))),
      Array.from({ length: 2 }, (_, i) => partOf(`endpoint${i}`, hourly(80))),
    ]
    const admitted = new Map<Part, number>()
    let denied = 0
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        Array.from({ length: 100 }, async (_, i) => {
          const parts = dimensions.map((parts) => parts[Math.floor(Math.random() * parts.length)]!)
          const cost = 1 + (i % 2)
          const outcome = await ask(store, consumption(parts, { cost }))
          if (outcome.admitted === 0) denied++
          else for (const part of parts) admitted.set(part, (admitted.get(part) ?? 0) + cost)
        }),
      )
    }
    expect(denied).toBeGreaterThan(500)
    for (const part of dimensions.flat()) {
      const units = admitted.get(part) ?? 0
      await until('all units are returned', async () => (await usedOf(raw, part)) === units)
      expect(units).toBeLessThanOrEqual(part.set.limits.at(-1)!.limit)
    }
    // The shared keys are used up, although other keys denied most requests.
    for (const part of dimensions[2]!) expect(admitted.get(part)).toBeGreaterThanOrEqual(79)
  })

  it('requests that a shard decided in one batch each get their own refund', async () => {
    const { raw, store } = storesOn(client)
    const shadow = slidingWindow({ limit: 5, window: '30m', name: 'tried', shadow: true })
    const shared = partOf(keyOn(0, 'shared'), hourly(6), shadow)
    const users = Array.from({ length: 8 }, (_, i) => partOf(keyOn(1, `user${i}-`), hourly(1)))
    for (const i of [0, 1, 5]) await ask(store, consumption([users[i]!]))
    const outcomes = await Promise.all(users.map((user) => ask(store, consumption([user, shared]))))
    // Three users denied the request, and the last two found the shared key used up.
    expect(outcomes.map(({ admitted }) => admitted)).toEqual([0, 0, 1, 1, 1, 0, 0, 0])
    const ofShared = outcomes.map(({ limits }) => limits.slice(3, 5))
    // Each outcome is as if its request had been sent alone, after the earlier ones: there was room.
    expect([ofShared[0], ofShared[1], ofShared[5]]).toEqual([
      [0, 0],
      [1, 0],
      [5, 0],
    ])
    expect(ofShared[7]![1]).toBeGreaterThan(0)
    await until('three units are returned', async () => (await usedOf(raw, shared)) === 3)
    expect(await usedOfEach(raw, users)).toEqual([1, 1, 1, 1, 1, 1, 0, 0])
    // The shadow limit had room for five requests, two of which were denied.
    const { limits } = await ask(raw, { type: 'peek', parts: [shared], cost: 1, count: 1 })
    expect(limits[3]).toBe(3)
  })

  it.each(['frozen', 'dead'])('charges on other shards are refunded while a server is %s', async (state) => {
    const parts = [0, 1, 2].map((master) => partOf(keyOn(master, 'k'), hourly(9)))
    // A separate client, because some of its calls may never be answered.
    const own = new Cluster([{ host: '127.0.0.1', port: cluster.nodes[1]!.port }])
    own.on('error', () => {})
    const { store } = storesOn(own, { timeoutMs: 300 })
    const lenient = storesOn(own, { timeoutMs: 300, onStoreError: 'deny' })
    const patient = storesOn(own)
    const { raw } = storesOn(client)
    await ask(patient.store, consumption(parts))
    const node = cluster.nodes[0]!
    if (state === 'frozen') node.freeze()
    else await node.kill()
    const others = parts.slice(1)
    try {
      for (let i = 0; i < 3; i++) {
        await expect(ask(store, consumption(parts))).rejects.toMatchObject({ code: 'store_unavailable' })
        expect((await ask(lenient.store, consumption(parts))).source).toBe('failClosed')
      }
      await until('all units are returned', async () =>
        (await usedOfEach(raw, others)).every((used) => used === 1),
      )
      expect((await ask(patient.store, consumption(others))).admitted).toBe(1)
    } finally {
      if (state === 'frozen') node.thaw()
      else await node.start()
    }
    await cluster.settled()
    // Late charges are returned too. A server that was killed has lost its data.
    const left = state === 'frozen' ? 1 : 0
    await until('all units are returned', async () => (await usedOf(raw, parts[0]!)) === left)
    await expect.poll(() => usedOfEach(raw, others)).toEqual([2, 2])
    own.disconnect()
  })
})
