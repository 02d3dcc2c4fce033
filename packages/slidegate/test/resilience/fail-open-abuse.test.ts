// tier: system
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  type Decision,
  type Limit,
  type Limiter,
  type LimiterOptions,
  type OnStoreError,
  type Source,
  type StoreUnavailableError,
  slidingWindow,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'

const { server, redis } = await useRedis()
beforeEach(() => redis.flushall())

/** A deadline that only passes if the store isn't called at all. */
const PATIENT_MS = 50_000

const open: Limiter[] = []
afterEach(() => {
  for (const limiter of open.splice(0)) limiter.close()
})

function limiterOn(limits: readonly Limit[], options: Partial<LimiterOptions> = {}): Limiter {
  const store = redisStore(redis)
  const limiter = createLimiter({
    ...{ name: 'api', limits, store, timeoutMs: PATIENT_MS, onStoreError: 'allow', logger: false },
    ...(options as object),
  })
  open.push(limiter)
  return limiter
}

/** Counts decisions by their source. */
async function sourcesOf(requests: readonly Promise<Decision>[]): Promise<Partial<Record<Source, number>>> {
  const sources: Partial<Record<Source, number>> = {}
  for (const { source } of await Promise.all(requests)) sources[source] = (sources[source] ?? 0) + 1
  return sources
}

/** Limits with 64 logs, so that each op takes Redis a long time. */
const SLOW = Array.from({ length: 64 }, (_, i) =>
  slidingWindow({
    limit: 1_000_000,
    window: 3_600_000 + 60_000 * i,
    precision: 1000 * (i + 1),
    name: `l${i}`,
  }),
)
const ROOMY = [slidingWindow({ limit: 1_000_000, window: '1h' })]
const KEPT = [slidingWindow({ limit: 10_000, window: '1h', log: 'zset' })]

interface Flood {
  readonly limits: readonly Limit[]
  readonly requests: number
  ask(limiter: Limiter, i: number): Promise<unknown>
}

/** Floods by one caller for one key, whose requests can't be joined into one op. */
const FLOODS: Readonly<Record<string, Flood>> = {
  'with different costs': {
    ...{ limits: ROOMY, requests: 5000 },
    ask: (limiter, i) => limiter.consume('attacker', { cost: 1 + (i % 1000) }),
  },
  'with different request ids': {
    ...{ limits: KEPT, requests: 5000 },
    ask: (limiter, i) => limiter.consume('attacker', { requestId: `r${i}` }),
  },
  'against many limits': {
    ...{ limits: SLOW, requests: 500 },
    ask: (limiter, i) => limiter.consume('attacker', { cost: 1 + i }),
  },
  'with the highest cost': {
    ...{ limits: KEPT, requests: 500 },
    ask: (limiter) => limiter.consume('attacker', { cost: 10_000 }),
  },
  'of peeks': {
    ...{ limits: ROOMY, requests: 5000 },
    ask: (limiter, i) => limiter.peek('attacker', { cost: 1 + i }),
  },
  'of explanations': {
    ...{ limits: ROOMY, requests: 1000 },
    ask: (limiter) => limiter.explain('attacker'),
  },
  'with resets in between': {
    ...{ limits: ROOMY, requests: 2000 },
    ask: (limiter, i) => (i % 2 === 0 ? limiter.consume('attacker') : limiter.reset('attacker')),
  },
  'as one list of requests': {
    ...{ limits: ROOMY, requests: 1 },
    ask: (limiter) => {
      const requests = Array.from({ length: 10_000 }, (_, i) => ({ key: 'attacker', cost: 1 + (i % 1000) }))
      return limiter.consumeMany(requests)
    },
  },
}

describe.each(Object.entries(FLOODS))('a flood for one key, %s,', (_, { limits, requests, ask }) => {
  it("doesn't delay other keys: they are decided in the next call", async () => {
    const limiter = limiterOn(limits)
    await limiter.consume('warm')
    let answered = 0
    const flood = Array.from({ length: requests }, (_, i) => ask(limiter, i).then(() => answered++))
    expect(await limiter.consume('victim')).toMatchObject({ source: 'store', allowed: true })
    expect(answered).toBeLessThanOrEqual(128)
    await Promise.all(flood)
    expect(limiter.stats().breakerOpened).toBe(0)
  })
})

describe('a flood for several keys', () => {
  /** Returns how many requests of the flood were answered before the victim's request. */
  async function before(limiter: Limiter, makeAll: () => Promise<unknown>[]): Promise<number> {
    await limiter.consume('warm')
    let answered = 0
    const all = makeAll().map((each) => each.then(() => answered++))
    expect((await limiter.consume('victim')).source).toBe('store')
    const first = answered
    await Promise.all(all)
    return first
  }

  it("doesn't let slow requests delay fast ones", async () => {
    const limiter = limiterOn(KEPT)
    const makeAll = () =>
      Array.from({ length: 8 }, (_, i) => limiter.consume(`attacker${i}`, { cost: 10_000 }))
    expect(await before(limiter, makeAll)).toBeLessThanOrEqual(1)
  })

  it("doesn't split batches if some ops can't share a call", async () => {
    const limiter = limiterOn(ROOMY)
    const ask = (i: number) => (i % 2 === 0 ? limiter.consume(`a${i}`) : limiter.reset(`b${i}`))
    const makeAll = () => Array.from({ length: 100 }, (_, i) => ask(i))
    expect(await before(limiter, makeAll)).toBeLessThanOrEqual(50)
  })
})

describe('a flood for one key that Redis answers too slowly', () => {
  const TIMEOUT_MS = 250
  const REQUESTS = 4000
  /** Replies of Redis that are held back. */
  let answers: (() => void)[]
  let isSlow: boolean
  const client: CommandClient = {
    async command([name = '', ...words]) {
      const reply = await redis.call(name, ...words)
      if (isSlow) await new Promise<void>((answer) => answers.push(answer))
      return reply
    },
  }
  beforeEach(() => {
    answers = []
    isSlow = false
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Floods the limiter while Redis replies once per 20 ms. Returns all results. */
  async function flooded(limiter: Limiter): Promise<PromiseSettledResult<Decision>[]> {
    await limiter.consume('warm')
    isSlow = true
    let left = REQUESTS
    const pending = Array.from({ length: REQUESTS }, (_, i) =>
      limiter.consume('attacker', { cost: 1 + (i % 997) }).finally(() => left--),
    )
    const flood = Promise.allSettled(pending)
    while (left > 0) {
      while (answers.length === 0) await nextTurn()
      answers.shift()!()
      for (let turn = 0; turn < 3; turn++) await nextTurn()
      vi.advanceTimersByTime(20)
      for (let turn = 0; turn < 10; turn++) await nextTurn()
    }
    isSlow = false
    for (const answer of answers.splice(0)) answer()
    return flood
  }

  it.each(['throw', 'deny', 'allow', 'local'] as const)(
    "doesn't open the breaker, and allows no request without a decision, onStoreError: %s",
    async (onStoreError) => {
      const store = redisStore(client)
      const limiter = limiterOn(ROOMY, { store, timeoutMs: TIMEOUT_MS, onStoreError })
      const seen: Record<string, number> = {}
      let units = 0
      for (const each of await flooded(limiter)) {
        const what = each.status === 'fulfilled' ? each.value.source : (each.reason.reason as string)
        seen[what] = (seen[what] ?? 0) + 1
        if (each.status === 'fulfilled' && each.value.allowed) units += each.value.cost
      }
      const { store: decided = 0, ...others } = seen
      expect(decided).toBeGreaterThanOrEqual(500)
      expect(decided).toBeLessThan(REQUESTS / 2)
      expect(others).toEqual({ [onStoreError === 'throw' ? 'timeout' : 'failClosed']: REQUESTS - decided })
      const { storeErrors, breakerOpened } = limiter.stats()
      expect([storeErrors.timeout, storeErrors.down, breakerOpened]).toEqual([REQUESTS - decided, 0, 0])
      expect(await limiter.consume('victim')).toMatchObject({ source: 'store', allowed: true })
      // Late charges of denied requests are returned.
      await until('late charges are returned', async () => {
        return 1_000_000 - (await limiter.peek('attacker')).remaining === units
      })
    },
  )

  it("doesn't delay other keys: they are decided in the next calls", async () => {
    const limiter = limiterOn(ROOMY, { store: redisStore(client), timeoutMs: TIMEOUT_MS })
    await limiter.consume('warm')
    isSlow = true
    const ask = (i: number) => limiter.consume('attacker', { cost: 1 + (i % 997) })
    const flood = Array.from({ length: REQUESTS }, (_, i) => ask(i))
    while (answers.length < 16) await nextTurn()
    const victim = limiter.consume('victim')
    let source: Source | undefined
    void victim.then((decision) => {
      source = decision.source
    })
    let calls = 0
    for (; source === undefined; calls++) {
      while (answers.length === 0) await nextTurn()
      answers.shift()!()
      for (let turn = 0; turn < 10; turn++) await nextTurn()
    }
    // The store only got the calls that were in flight, and one more.
    expect([source, calls]).toEqual(['store', 17])
    isSlow = false
    for (const answer of answers.splice(0)) answer()
    await Promise.all(flood)
  })
})

describe('the queue of waiting requests', () => {
  it('leaves room for others when one key floods it: other keys are decided, and excess requests are denied', async () => {
    const limiter = limiterOn(ROOMY)
    await limiter.consume('warm')
    const flood = Array.from({ length: 20_000 }, () => limiter.consume('attacker'))
    expect((await limiter.consume('victim')).source).toBe('store')
    const { store = 0, failClosed = 0, ...others } = await sourcesOf(flood)
    expect([store, failClosed, others]).toEqual([13_108, 20_000 - 13_108, {}])
    expect(limiter.stats()).toMatchObject({ breakerOpened: 0, storeErrors: { overload: failClosed } })
  })

  it('leaves room for others when several keys flood it', async () => {
    const limiter = limiterOn(ROOMY)
    await limiter.consume('warm')
    const flood = Array.from({ length: 70_000 }, (_, i) => limiter.consume(`attacker${i % 8}`))
    const victims = Array.from({ length: 100 }, (_, i) => limiter.consume(`victim${i}`))
    expect(await sourcesOf(victims)).toEqual({ store: 100 })
    expect(Object.keys(await sourcesOf(flood)).sort()).toEqual(['failClosed', 'store'])
    expect(limiter.stats().breakerOpened).toBe(0)
  })

  it('holds a list of 10,000 requests for one key', async () => {
    const requests = Array.from({ length: 10_000 }, () => ({ key: 'k' }))
    expect((await limiterOn(ROOMY).consumeMany(requests)).every(({ source }) => source === 'store')).toBe(
      true,
    )
  })
})

describe('leases', () => {
  it("don't run out for other keys when one key floods, and excess requests are denied", async () => {
    const store = withLeases(withDenyCache(redisStore(redis)), { leaseMs: 2000 })
    const limiter = limiterOn(ROOMY, { store })
    for (const key of ['attacker', 'victim']) for (let i = 0; i < 10; i++) await limiter.consume(key)
    // More requests than a lease covers: all wait for the next one.
    const flood = Array.from({ length: 30_000 }, () => limiter.consume('attacker'))
    const costs = Array.from({ length: 10_000 }, () => limiter.consume('attacker', { cost: 2 }))
    const victims = Array.from({ length: 1000 }, () => limiter.consume('victim'))
    const decidedBy = Object.keys(await sourcesOf([...flood, ...costs]))
    expect(decidedBy.filter((source) => !['lease', 'store', 'failClosed'].includes(source))).toEqual([])
    expect((await sourcesOf(victims)).failClosed).toBeUndefined()
    expect(limiter.stats()).toMatchObject({ breakerOpened: 0, withoutStore: { failOpen: 0 } })
    await store.close()
  })
})

describe('a corrupted or foreign value under a key', () => {
  const VALUES: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    corrupted: (key) => redis.setrange(key, 3, '\x01\xff\x00\xfe\x7f'.repeat(5)),
    foreign: async (key) => {
      await redis.del(key)
      await redis.rpush(key, 'a list')
    },
    'from a later version': (key) => redis.set(key, Buffer.alloc(64, 2)),
  }
  const OPS: readonly ((limiter: Limiter) => Promise<unknown>)[] = [
    (limiter) => limiter.consume('bad'),
    (limiter) => limiter.peek('bad'),
    (limiter) => limiter.charge('bad', 1),
    (limiter) => limiter.explain('bad'),
    (limiter) => limiter.wait('bad'),
    (limiter) => limiter.consumeMany([{ key: 'bad' }]),
  ]

  async function damaged(
    put: (key: string) => Promise<unknown>,
    onStoreError: OnStoreError,
    logged: string[],
  ) {
    const logger = { warn: (line: string) => logged.push(line) }
    const limiter = limiterOn([slidingWindow({ limit: 100, window: '1h' })], { onStoreError, logger })
    const decision = await limiter.consume('bad')
    await put((await redis.keys('*bad*'))[0]!)
    const reported: StoreUnavailableError[] = []
    limiter.on('storeError', ({ error }) => reported.push(error))
    return { limiter, decision, reported }
  }

  it.each(Object.entries(VALUES))(
    'fails every op with invalid_state, is counted and reported, and a reset repairs it: %s',
    async (_, put) => {
      const logged: string[] = []
      const { limiter, decision, reported } = await damaged(put, 'throw', logged)
      const ops = [...OPS, () => limiter.refund('bad', decision)]
      for (const [i, ask] of ops.entries()) {
        await expect(ask(limiter)).rejects.toMatchObject({
          code: 'store_unavailable',
          reason: 'invalid_state',
        })
        expect(limiter.stats().storeErrors.invalid_state).toBeGreaterThan(i)
      }
      const { invalid_state: state, ...others } = limiter.stats().storeErrors
      expect(reported.map(({ reason }) => reason)).toEqual(Array(state).fill('invalid_state'))
      expect(others).toEqual({ timeout: 0, error: 0, down: 0, overload: 0, full: 0 })
      expect(await limiter.consume('good')).toMatchObject({ source: 'store', remaining: 99 })
      await limiter.reset('bad')
      expect(await limiter.consume('bad')).toMatchObject({ source: 'store', remaining: 99 })
      expect(limiter.stats().breakerOpened).toBe(0)
      expect(logged).toEqual([])
    },
  )
})

it('the stats of a new limiter are all zero', () => {
  const none = { timeout: 0, error: 0, down: 0, overload: 0, full: 0, invalid_state: 0 }
  const stats = {
    storeErrors: none,
    withoutStore: { failOpen: 0, failClosed: 0, fallback: 0 },
    breakerOpened: 0,
    isStoreDown: false,
    clockSteps: 0,
    waitErrors: { full: 0, timeout: 0, aborted: 0, impossible: 0 },
    permits: 0,
  }
  const { waits, ...others } = limiterOn(ROOMY).stats()
  expect(others).toEqual(stats)
  expect(waits).toMatchObject({ sum: 0, counts: expect.not.arrayContaining([1]) })
  expect(server.port).toBeGreaterThan(0)
})
