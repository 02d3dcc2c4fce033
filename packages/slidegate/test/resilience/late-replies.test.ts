// tier: integration
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  createLimiter,
  failurePolicy,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type OnStoreError,
  type Store,
  slidingWindow,
  withDenyCache,
} from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { LateCharges } from '../../src/resilience/refunds.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import type { ConsumeOp, ConsumeOutcome } from '../../src/stores/store.ts'
import { startRedis } from '../support/redis-server.ts'
import { useRedis } from '../support/use-redis.ts'
import { type HeldStore, held, recorded } from './stores.ts'

const UNBREAKABLE = { minRequests: 2 ** 20 }
const limits = [
  slidingWindow({ limit: 10, window: '1h', name: 'hourly' }),
  slidingWindow({ limit: 2, window: '1h', name: 'tried', shadow: true }),
]

describe('a reply after the deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  function create(options: Partial<LimiterOptions> = {}) {
    const behind = recorded(memoryStore())
    const store: HeldStore = held(behind)
    const limiter = createLimiter({ limits, store, breaker: UNBREAKABLE, logger: false, ...options })
    return { behind, store, limiter }
  }

  /** Settles requests whose replies are held back until after their deadline. */
  async function settleLate<T>(
    store: HeldStore,
    ask: () => readonly Promise<T>[],
  ): Promise<PromiseSettledResult<T>[]> {
    store.isHolding = true
    const settled = Promise.allSettled(ask())
    await vi.advanceTimersByTimeAsync(60)
    const results = await settled
    store.isHolding = false
    store.release()
    await vi.advanceTimersByTimeAsync(1)
    return results
  }

  const leftOf = async (limiter: Limiter, key = 'k') =>
    (await limiter.peek(key)).limits.map(({ remaining }) => remaining)

  it.each<[OnStoreError, number[]]>([
    ['throw', [10, 2]],
    ['deny', [10, 2]],
    // These callers were allowed, so the charge stays.
    ['allow', [7, 0]],
    ['local', [7, 0]],
  ])('keeps the charge only if the request was allowed, onStoreError: %s', async (onStoreError, left) => {
    const { store, limiter } = create({ onStoreError })
    await settleLate(store, () => [1, 2, 3].map(() => limiter.consume('k')))
    expect(await leftOf(limiter)).toEqual(left)
  })

  it("with onStoreError: 'local' refunds the charge of requests that this process denied", async () => {
    const { store, limiter } = create({ onStoreError: 'local', instances: 5 })
    const results = await settleLate(store, () => [1, 2, 3].map(() => limiter.consume('k')))
    expect(results.map((each) => each.status === 'fulfilled' && each.value.allowed)).toEqual([
      true,
      true,
      false,
    ])
    expect((await leftOf(limiter))[0]).toBe(8)
  })

  it('refunds nothing for a denial, a peek, a charge or a reset', async () => {
    const { behind, store, limiter } = create()
    await limiter.charge('k', 20)
    behind.ops.length = 0
    await settleLate<unknown>(store, () => [
      ...[limiter.consume('k'), limiter.consume('k', { cost: 11 }), limiter.peek('k'), limiter.peek('new')],
      ...[limiter.charge('new', 3), limiter.reset('other')],
    ])
    expect(behind.ops.filter(({ type }) => type === 'refund')).toEqual([])
    expect((await leftOf(limiter, 'new'))[0]).toBe(7)
  })

  it('to a refund that timed out still refunds exactly once', async () => {
    const { behind, store, limiter } = create()
    const decision = await limiter.consume('k')
    await settleLate(store, () => [limiter.refund('k', decision)])
    expect(await leftOf(limiter)).toEqual([10, 2])
    expect(behind.ops.filter(({ type }) => type === 'refund').length).toBe(1)
    await limiter.consume('k')
    expect(await limiter.refund('k', decision)).toBe(0)
    expect((await leftOf(limiter))[0]).toBe(9)
  })

  it('refunds the full cost in the window that was charged', async () => {
    const { behind, store, limiter } = create()
    await settleLate(store, () => [limiter.consume('k', { cost: 7 }), limiter.consume('k', { cost: 3 })])
    expect(await leftOf(limiter)).toEqual([10, 2])
    const refunds = behind.ops.filter((op) => op.type === 'refund')
    expect(refunds.map(({ units }) => units)).toEqual([7, 3])
  })

  it('refunds its own charge each time, and no other', async () => {
    const { behind, store, limiter } = create()
    for (let times = 1; times <= 3; times++) {
      await settleLate(store, () => [limiter.consume('k'), limiter.consume('k')])
      expect(await leftOf(limiter)).toEqual([10, 2])
      expect(behind.ops.filter(({ type }) => type === 'refund').length).toBe(2 * times)
    }
  })

  it("refunds charges of one batch in one op, without requests that didn't time out", async () => {
    const behind = recorded(memoryStore())
    const late = new LateCharges(behind)
    const set = limitSet('api', limits)
    const op: ConsumeOp = { type: 'consume', parts: [{ key: 'k', set }], cost: 1, count: 6, leaseMs: 0 }
    const [outcome] = (await outcomesOf(behind, [op])) as [ConsumeOutcome]
    for (const position of [0, 1, 3, 4, 5]) late.add({ ...op, count: 1 }, outcome, position, position + 1)
    await vi.advanceTimersByTimeAsync(1)
    const refunds = behind.ops.filter((each) => each.type === 'refund')
    // The shadow limit was only charged for the first two.
    expect(refunds.map(({ units, charged }) => [units, charged])).toEqual([
      [2, [true, true]],
      [3, [true, false]],
    ])
    const [peeked] = await outcomesOf(behind, [{ type: 'peek', parts: op.parts, cost: 1, count: 1 }])
    expect((peeked as ConsumeOutcome).limits.filter((_, i) => i % 3 === 0)).toEqual([1, 0])
  })

  it("refunds the charge through the store's wrappers", async () => {
    const store = held(recorded(memoryStore()))
    const wrapped = withDenyCache(store)
    const limiter = createLimiter({ limits, store: wrapped, breaker: UNBREAKABLE, logger: false })
    await limiter.consume('k', { cost: 5 })
    const [late] = await settleLate(store, () => [limiter.consume('k', { cost: 5 })])
    expect(late?.status).toBe('rejected')
    expect(await limiter.consume('k', { cost: 5 })).toMatchObject({ allowed: true, source: 'store' })
  })

  it('causes no refund if it arrives twice in time', async () => {
    const behind = recorded(memoryStore())
    const store: Store = {
      failurePolicy,
      apply(ops, call) {
        behind.apply(ops, {
          isSettled: false,
          resolve(outcomes, position) {
            call.resolve(outcomes, position)
            call.resolve(outcomes, position)
            call.reject(new Error('changed my mind'))
          },
          reject: (error) => call.reject(error),
        })
      },
      close() {},
    }
    const limiter = createLimiter({ limits, store, logger: false })
    for (let i = 0; i < 10; i++) expect((await limiter.consume('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(false)
    expect(behind.ops.some(({ type }) => type === 'refund')).toBe(false)
  })

  it('refunds the charge once, even if it arrives twice', async () => {
    const { behind, store, limiter } = create()
    store.isHolding = true
    const lost = limiter.consume('k').catch(() => 'lost')
    const [call] = store.waiting
    await vi.advanceTimersByTimeAsync(60)
    expect(await lost).toBe('lost')
    store.isHolding = false
    store.release()
    const outcome = {
      source: 'store',
      atMs: Date.now(),
      admitted: 1,
      limits: [0, 0, 0, 0, 0, 0],
      waitMs: 0,
    } as const
    call!.resolve([outcome], 0)
    await vi.advanceTimersByTimeAsync(1)
    expect(behind.ops.filter(({ type }) => type === 'refund').length).toBe(1)
  })

  it('refunds the charge even after the limiter was closed', async () => {
    const { store, limiter } = create()
    await settleLate(store, () => {
      const requests = [limiter.consume('k')]
      limiter.close()
      return requests
    })
    expect(await leftOf(createLimiter({ limits, store, logger: false }))).toEqual([10, 2])
  })

  it("causes no error if the store can't refund the charge", async () => {
    const { store, limiter } = create()
    const { apply } = store
    store.apply = function (ops, call) {
      if (ops[0]!.type === 'refund') throw new Error('not now')
      apply.call(this, ops, call)
    }
    await settleLate(store, () => [limiter.consume('k')])
    expect((await leftOf(limiter))[0]).toBe(9)
  })
})

const { redis } = await useRedis()

/** Creates a client whose replies can be held back. Commands are executed immediately in any case. */
function holding() {
  let gate: Promise<void> | undefined
  let carriedOut = 0
  const client: CommandClient = {
    async command([name = '', ...words]) {
      const opened = gate
      const reply = await redis.call(name, ...words)
      carriedOut++
      await opened
      return reply
    },
  }
  return {
    client,
    get carriedOut() {
      return carriedOut
    },
    /** Holds back replies from now on. Returns a function that releases them. */
    hold(): () => void {
      let open = () => {}
      gate = new Promise((resolve) => {
        open = resolve
      })
      return open
    },
  }
}

describe('requests that Redis decides in one batch', () => {
  it('refund the charges of those that timed out, once, and keep the others', async () => {
    const gate = holding()
    const store = redisStore(gate.client, { prefix: 'slidegate:together' })
    const limiter = createLimiter({ limits, store, timeoutMs: 2000, breaker: UNBREAKABLE, logger: false })
    const patientLimiter = createLimiter({ limits, store, timeoutMs: 30_000, logger: false })
    const ask = (requests: number) => Array.from({ length: requests }, () => limiter.consume('k'))
    // The first call loads the script. Until then, calls are sent one at a time.
    for (let i = 0; i < 2; i++) await patientLimiter.peek('k')
    // Fake timers decide which requests time out. Redis still runs in real time.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const openFirst = gate.hold()
    // This many calls are sent without waiting for a reply. Later requests wait for each other.
    const ahead = [limiter.peek('a')]
    await nextTurn()
    ahead.push(limiter.peek('b'))
    await nextTurn()
    const impatient = Promise.allSettled(ask(5))
    await vi.advanceTimersByTimeAsync(1000)
    const patient = Promise.all(ask(7))
    const { carriedOut } = gate
    const openSecond = gate.hold()
    openFirst()
    await Promise.all(ahead)
    while (gate.carriedOut === carriedOut) await nextTurn()
    await vi.advanceTimersByTimeAsync(1500)
    expect((await impatient).map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
    openSecond()
    // The first requests were admitted first, so 5 of 10 units were left.
    expect((await patient).map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
      false,
    ])
    while ((await limiter.peek('k')).remaining !== 5) await nextTurn()
    for (let i = 0; i < 5; i++) await nextTurn()
    const { limits: left } = await limiter.peek('k')
    expect(left.map(({ remaining }) => remaining)).toEqual([5, 2])
  })
})

describe('a Redis server that was frozen', () => {
  it.each<[OnStoreError, number]>([
    ['throw', 1000],
    ['deny', 1000],
    ['allow', 970],
    ['local', 970],
  ])('charges only allowed requests once it resumes, onStoreError: %s', async (onStoreError, left) => {
    const server = await startRedis()
    const client = new Redis(server.port)
    client.on('error', () => {})
    onTestFinished(async () => {
      client.disconnect()
      await server.stop()
    })
    const many = [slidingWindow({ limit: 1000, window: '1h' })]
    const store = redisStore(client)
    const options = { limits: many, store, logger: false } as const
    const limiter = createLimiter({ ...options, timeoutMs: 50, breaker: UNBREAKABLE, onStoreError })
    const patient = createLimiter({ ...options, timeoutMs: 20_000 })
    await patient.peek('k')
    server.freeze()
    const pending = []
    // There are so few calls that all are sent before the store counts as silent.
    for (let i = 0; i < 3; i++) pending.push(...Array.from({ length: 10 }, () => limiter.consume('k')))
    const settled = await Promise.allSettled(pending)
    expect(
      settled.every(({ status }) => status === (onStoreError === 'throw' ? 'rejected' : 'fulfilled')),
    ).toBe(true)
    server.thaw()
    await vi.waitUntil(async () => (await patient.peek('k')).remaining === left, { timeout: 20_000 })
    for (let i = 0; i < 5; i++) await nextTurn()
    expect((await patient.peek('k')).remaining).toBe(left)
  })
})
