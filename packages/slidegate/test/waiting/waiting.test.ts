// tier: integration
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  concurrency,
  createLimiter,
  type Decision,
  failurePolicy,
  memoryStore,
  SlidegateError,
  type Store,
  StoreUnavailableError,
  slidingWindow,
  tokenBucket,
  WaitError,
} from '../../src/index.ts'
import { parseWaitOptions } from '../../src/limiter/waiting/waiter.ts'
import { errorOf } from '../input/refusal.ts'
import { FAILURES, failing } from '../resilience/failing-store.ts'
import { held } from '../resilience/stores.ts'
import { type Room, roomOn } from './room.ts'

const HOUR = [slidingWindow({ limit: 5, window: '1h' })]

/** Returns the error with which a wait is rejected. */
async function rejection(promise: Promise<unknown>): Promise<WaitError> {
  const error = await errorOf(() => promise)
  expect(error).toBeInstanceOf(WaitError)
  return error as WaitError
}

/** Returns the names of waits in order of admission. */
async function admissions(waits: Readonly<Record<string, Promise<unknown>>>): Promise<string[]> {
  const admitted: string[] = []
  await Promise.all(
    Object.entries(waits).map(async ([name, wait]) => {
      await wait
      admitted.push(name)
    }),
  )
  return admitted
}

/** Counts visited Map entries and searched texts until `act` is done. */
async function stepsOf(act: () => Promise<unknown>): Promise<number> {
  let steps = 0
  const walk = Map.prototype[Symbol.iterator]
  const walks = vi.spyOn(Map.prototype, Symbol.iterator).mockImplementation(function* (
    this: Map<unknown, unknown>,
  ) {
    for (const entry of { [Symbol.iterator]: () => walk.call(this) }) {
      steps++
      yield entry
    }
  } as typeof walk)
  const searches = vi.spyOn(String.prototype, 'includes')
  try {
    await act()
    return steps + searches.mock.calls.length
  } finally {
    walks.mockRestore()
    searches.mockRestore()
  }
}

async function fill(room: Room, key: string, cost: number): Promise<void> {
  await room.wait(key, { cost, maxWaitMs: 0 })
}

describe('a waiting request', () => {
  it('resolves immediately if there is room', async () => {
    const room = roomOn(memoryStore(), HOUR)
    expect(await room.wait('k', { cost: 2 })).toMatchObject({ allowed: true, cost: 2, remaining: 3 })
    expect(room.room.state()).toEqual({ length: 0, expectedWaitMs: 0 })
    expect(room.sent).toEqual([])
  })

  it('shares an op with others of the same tick, and gets its own decision', async () => {
    const room = roomOn(memoryStore(), HOUR)
    const decisions = await Promise.all([room.wait('k'), room.wait('k'), room.wait('k')])
    expect(decisions.map(({ remaining }) => remaining)).toEqual([4, 3, 2])
    expect(room.asked).toHaveLength(1)
  })

  it('gets its turn in order of arrival, and is resent only when there is room', async () => {
    // A pause of the process could add a request.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const store = memoryStore({ clock: () => Math.floor(performance.now()) })
    const room = roomOn(store, [slidingWindow({ limit: 1, window: 20 })])
    const order = 'abcdefgh'.split('')
    const admitted = admissions(Object.fromEntries(order.map((name) => [name, room.wait('k')])))
    await vi.advanceTimersByTimeAsync(20 * order.length)
    expect(await admitted).toEqual(order)
    expect(room.asked).toHaveLength(order.length)
  })

  it('goes by priority first, then by arrival', async () => {
    const room = roomOn(memoryStore(), [slidingWindow({ limit: 1, window: 20 })])
    await fill(room, 'k', 1)
    const priorities = { low: -1, first: 0, urgent: 9, second: 0, high: 3 }
    const waits = Object.entries(priorities).map(
      ([name, priority]) => [name, room.wait('k', { priority })] as const,
    )
    expect(await admissions(Object.fromEntries(waits))).toEqual(['urgent', 'high', 'first', 'second', 'low'])
  })

  it('stays ahead of cheaper requests', async () => {
    const room = roomOn(memoryStore(), [slidingWindow({ limit: 5, window: 40 })])
    await fill(room, 'k', 3)
    const big = room.wait('k', { cost: 5 })
    expect(await admissions({ big, a: room.wait('k'), b: room.wait('k'), c: room.wait('k') })).toEqual([
      'big',
      'a',
      'b',
      'c',
    ])
  })

  it('gets sent immediately if it is first in line and costs less than the denied one', async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 3)
    const big = room.wait('k', { cost: 5, maxWaitMs: 2 ** 31 - 1 })
    await turn()
    expect(await room.wait('k', { cost: 2, priority: 1 })).toMatchObject({ allowed: true })
    room.room.close()
    await errorOf(() => big)
  })

  it("doesn't depend on other keys", async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 5)
    const denied = room.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    expect((await room.wait('other')).allowed).toBe(true)
    room.room.close()
    await errorOf(() => denied)
  })

  it('keeps the process alive, but retains no async context', async () => {
    const context = new AsyncLocalStorage<string>()
    const store = memoryStore()
    const seen: unknown[] = []
    const watched: Store = {
      failurePolicy,
      apply(ops, call) {
        seen.push(context.getStore())
        store.apply(ops, call)
      },
      close() {},
    }
    const room = roomOn(watched, [slidingWindow({ limit: 1, window: 30 })])
    const waits = ['one', 'two', 'three'].map((name) => context.run(name, () => room.wait('k')))
    await waits[0]
    const timers = process.getActiveResourcesInfo().filter((type) => type === 'Timeout')
    expect(timers.length).toBeGreaterThan(0)
    await Promise.all(waits)
    expect(seen).toHaveLength(3)
    expect(seen.every((name) => name === undefined)).toBe(true)
  })
})

describe('a wait', () => {
  it('rejects immediately if the cost exceeds a limit', async () => {
    const room = roomOn(memoryStore(), HOUR)
    const { reason, code, decision } = await rejection(room.wait('k', { cost: 6 }))
    expect({ reason, code }).toEqual({ reason: 'impossible', code: 'wait_rejected' })
    expect(decision).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
    expect(await room.used('k')).toBe(0)
  })

  it('rejects immediately if it would take too long, even behind others', async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 4)
    const startMs = performance.now()
    const patient = room.wait('k', { cost: 2, maxWaitMs: 2 ** 31 - 1 })
    const together = rejection(room.wait('k', { maxWaitMs: 30_000 }))
    await together
    const { reason, decision } = await rejection(room.wait('k', { cost: 2 }))
    expect(performance.now() - startMs).toBeLessThan(25_000)
    expect(reason).toBe('timeout')
    expect(decision?.retryAfterMs).toBeGreaterThan(3_000_000)
    expect(room.asked).toHaveLength(2)
    room.room.close()
    await errorOf(() => patient)
    expect(await room.used('k')).toBe(4)
  })

  it('with maxWaitMs 0 is admitted immediately or not at all', async () => {
    const room = roomOn(memoryStore(), HOUR)
    const waits = Array.from({ length: 8 }, () => room.wait('k', { maxWaitMs: 0 }))
    const settled = await Promise.allSettled(waits)
    expect(settled.map(({ status }) => status)).toEqual([
      ...Array<string>(5).fill('fulfilled'),
      ...Array<string>(3).fill('rejected'),
    ])
    expect((await rejection(waits[7]!)).reason).toBe('timeout')
    expect(await room.used('k')).toBe(5)
  })

  it('ends when it is aborted, and the next request is sent', async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 3)
    const abort = new AbortController()
    const first = room.wait('k', { cost: 5, maxWaitMs: 2 ** 31 - 1, signal: abort.signal })
    const second = room.wait('k', { cost: 2, maxWaitMs: 2 ** 31 - 1 })
    await turn()
    abort.abort(new Error('no longer wanted'))
    const { reason, cause } = await rejection(first)
    expect(reason).toBe('aborted')
    expect(cause).toEqual(new Error('no longer wanted'))
    expect((await second).allowed).toBe(true)
    expect(await room.used('k')).toBe(5)
  })

  it('sends nothing if it was already aborted', async () => {
    const room = roomOn(memoryStore(), HOUR)
    const { reason, cause } = await rejection(room.wait('k', { signal: AbortSignal.abort('gone') }))
    expect([reason, cause]).toEqual(['aborted', 'gone'])
    const abort = new AbortController()
    const wait = room.wait('k', { signal: abort.signal })
    abort.abort()
    await rejection(wait)
    await turn()
    expect(room.asked).toEqual([])
  })

  it.each([1, 4])('charges nothing for %i of 4 requests aborted while the store answers', async (aborted) => {
    const store = held(memoryStore())
    const room = roomOn(store, [slidingWindow({ limit: 3, window: '1h' })])
    const abort = new AbortController()
    store.isHolding = true
    const waits = Array.from({ length: 4 }, (_, i) =>
      room.wait('k', { ...(i < aborted && { signal: abort.signal }), maxWaitMs: 0 }),
    )
    const settled = Promise.allSettled(waits)
    await turn()
    abort.abort()
    store.isHolding = false
    store.release()
    const results = await settled
    // The others get the units of the first one.
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(4 - aborted)
    await turn()
    expect(await room.used('k')).toBe(4 - aborted)
  })

  it('rejects if the maximum number is waiting', async () => {
    const room = roomOn(memoryStore(), HOUR, 3)
    await fill(room, 'k', 5)
    const waits = Array.from({ length: 3 }, (_, i) =>
      room.wait(i === 2 ? 'other' : 'k', { maxWaitMs: 2 ** 31 - 1 }),
    )
    expect((await rejection(room.wait('k'))).reason).toBe('full')
    await waits[2]
    const next = room.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await turn()
    expect(room.room.state('k').length).toBe(3)
    room.room.close()
    await Promise.allSettled([...waits, next])
    expect(room.room.state().length).toBe(0)
  })

  it("rejects with the store's error, and those behind it are sent", async () => {
    const store = failing(memoryStore())
    const room = roomOn(store, [slidingWindow({ limit: 1, window: 50 })])
    await fill(room, 'k', 1)
    store.failure = FAILURES['is overloaded']
    const failed = errorOf(() => room.wait('k', { cost: 1 }))
    await Promise.resolve()
    await Promise.resolve()
    store.failure = undefined
    const next = room.wait('k')
    expect(await failed).toBeInstanceOf(StoreUnavailableError)
    expect((await next).allowed).toBe(true)
  })

  it('rejects with the error of its limits function', async () => {
    const room = roomOn(memoryStore(), HOUR)
    const wrong = new SlidegateError('invalid_limit', 'no limits')
    const throwing = () => {
      throw wrong
    }
    const waits = Array.from({ length: 300 }, () =>
      errorOf(() => room.room.wait(['k'], throwing, parseWaitOptions({}))),
    )
    const last = room.wait('k')
    expect((await Promise.all(waits)).every((error) => error === wrong)).toBe(true)
    expect((await last).allowed).toBe(true)
  })

  it('rejects when the room is closed, then or later', async () => {
    const store = memoryStore()
    const room = roomOn(store, HOUR)
    await fill(room, 'k', 5)
    const wait = room.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await turn()
    room.room.close()
    expect(await errorOf(() => wait)).toMatchObject({ code: 'closed' })
    expect(await errorOf(() => room.wait('k'))).toMatchObject({ code: 'closed' })
    expect(room.sent).toEqual([])
  })

  it.each([
    [{ cost: 0 }, 'invalid_cost'],
    [{ maxWaitMs: -1 }, 'invalid_option'],
    [{ maxWaitMs: 0.5 }, 'invalid_option'],
    [{ maxWaitMs: 2 ** 31 }, 'invalid_option'],
    [{ priority: 0.5 }, 'invalid_option'],
    [{ priority: '1' as unknown as number }, 'invalid_option'],
    [{ signal: {} as AbortSignal }, 'invalid_option'],
  ])('rejects the options %j', (options, code) => {
    expect(() => parseWaitOptions(options)).toThrow(expect.objectContaining({ code }))
  })
})

describe('several waiting processes', () => {
  it('share the free units, and each serves its requests in order', async () => {
    const store = memoryStore()
    const limits = [slidingWindow({ limit: 1, window: 40 })]
    const rooms = [roomOn(store, limits), roomOn(store, limits)]
    const served: number[][] = [[], []]
    await Promise.all(
      rooms.flatMap(({ wait }, room) =>
        [0, 1, 2, 3].map(async (place) => {
          await wait('k')
          served[room]!.push(place)
        }),
      ),
    )
    expect(served).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ])
    // A process that finds the room taken tries again once there is room, not earlier.
    for (const { asked } of rooms) expect(asked.length).toBeLessThanOrEqual(4 + 8)
  })

  it('send early enough to arrive on time, whatever the distance of the store', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const near = memoryStore({ clock: () => Math.floor(performance.now()) })
    const far: Store = {
      failurePolicy,
      apply: (ops, call) => void setTimeout(() => near.apply(ops, call), 15),
      close() {},
    }
    const room = roomOn(far, [slidingWindow({ limit: 1, window: 100 })])
    const waits = [room.wait('k'), room.wait('k'), room.wait('k')]
    await vi.advanceTimersByTimeAsync(400)
    const decisions = await Promise.all(waits)
    expect(decisions.map(({ atMs }) => atMs - decisions[0]!.atMs)).toEqual([0, 100, 200])
    expect(room.asked).toHaveLength(3)
  })
})

describe('a long wait', () => {
  it('sends again after 5 s, to notice a limit raised elsewhere', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 5)
    const before = room.asked.length
    const wait = room.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await turn()
    expect(room.asked.length - before).toBe(1)
    await vi.advanceTimersByTimeAsync(4999)
    expect(room.asked.length - before).toBe(1)
    await vi.advanceTimersByTimeAsync(5002)
    expect(room.asked.length - before).toBe(3)
    room.room.close()
    await errorOf(() => wait)
  })
})

describe('limits that differ per request', () => {
  it('apply only to their own request', async () => {
    const [few, many] = [
      [slidingWindow({ limit: 1, window: '1h' })],
      [slidingWindow({ limit: 100, window: '1h' })],
    ]
    const limiter = createLimiter({
      name: 'told',
      store: memoryStore(),
      limits: (_, request) => (request === 'many' ? many : few),
    })
    const ask = (request: unknown, cost = 1) => limiter.wait('k', { request, cost, maxWaitMs: 1000 })
    const never = rejection(ask('few', 5))
    expect((await ask('many', 5)).limits[0]).toMatchObject({ limit: 100, remaining: 95 })
    expect((await never).reason).toBe('impossible')
    const late = rejection(ask('few'))
    expect((await ask('many')).allowed).toBe(true)
    expect((await late).reason).toBe('timeout')
  })

  it("with a request that times out don't affect requests that may have room", async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 3)
    const late = rejection(room.wait('k', { cost: 5, maxWaitMs: 1000 }))
    expect((await room.wait('k', { cost: 1, maxWaitMs: 10_000 })).allowed).toBe(true)
    expect((await late).reason).toBe('timeout')
  })

  it('reflect an override from another process when a waiter sends again', async () => {
    const store = memoryStore()
    const make = () =>
      createLimiter({
        name: 'set',
        store,
        limits: [slidingWindow({ limit: 4, window: 1000 })],
        overrides: true,
      })
    const [one, other] = [make(), make()]
    await one.consume('k', { cost: 4 })
    const waits = Array.from({ length: 3 }, () => one.wait('k'))
    // Waits until all of them are in the queue. No timer runs, so on any machine, none of them is woken before the
    // override is set.
    for (let i = 0; i < 50; i++) await undefined
    await other.overrides.set('k', { limit: 2 })
    const decisions = await Promise.all(waits)
    expect(decisions.map(({ limits }) => limits[0]!.limit)).toEqual([2, 2, 2])
    for (const limiter of [one, other]) limiter.close()
  })
})

describe('a key with several dimensions', () => {
  const dimensions = {
    user: [slidingWindow({ limit: 1, window: '1h' })],
    endpoint: [slidingWindow({ limit: 10, window: '1s' })],
  }

  it("doesn't wait behind requests whose other key is at its limit", async () => {
    const limiter = createLimiter({ name: 'several', store: memoryStore(), dimensions })
    const waits: Promise<unknown>[] = []
    for (let i = 0; i < 10; i++) {
      await limiter.consume({ user: `u${i}`, endpoint: null })
      waits.push(limiter.wait({ user: `u${i}`, endpoint: 'e' }, { maxWaitMs: 2 ** 31 - 1 }))
    }
    await turn()
    expect((await limiter.wait({ user: 'free', endpoint: 'e' }, { maxWaitMs: 10_000 })).allowed).toBe(true)
    limiter.close()
    await Promise.allSettled(waits)
  })

  it('in different shards is sent again soon, because the blocking process may be gone', async () => {
    const domains = [memoryStore(), memoryStore()]
    const shardOf: NonNullable<Store['shardOf']> = ({ parts }) => {
      return parts[0]!.set.limiter.endsWith('user') ? 0 : 1
    }
    /** Creates a store. Each process is closer to another shard. */
    const storeAt = (near: number): Store => ({
      shardOf,
      failurePolicy,
      apply(ops, call) {
        const domain = shardOf(ops[0]!)
        setTimeout(() => domains[domain]!.apply(ops, call), domain === near ? 1 : 15)
      },
      close() {},
    })
    const limiters = [0, 1].map((near) =>
      createLimiter({
        name: 'apart',
        store: storeAt(near),
        timeoutMs: 30_000,
        dimensions: { ...dimensions, endpoint: dimensions.user },
      }),
    )
    const key = { user: 'u', endpoint: 'e' }
    const startMs = performance.now()
    const waits = limiters.map((limiter) => limiter.wait(key, { maxWaitMs: 2 ** 31 - 1 }))
    const settled = Promise.allSettled(waits)
    expect((await Promise.race(waits)).allowed).toBe(true)
    expect(performance.now() - startMs).toBeLessThan(30_000)
    for (const limiter of limiters) limiter.close()
    await settled
  })
})

describe('a decision that throws', () => {
  it('rejects the waiters of its op', async () => {
    const wrong = new Error('no decision')
    const room = roomOn(memoryStore(), HOUR, 10, () => {
      throw wrong
    })
    expect(await Promise.all([room.wait('k'), room.wait('k')].map((wait) => errorOf(() => wait)))).toEqual([
      wrong,
      wrong,
    ])
    expect(room.room.state().length).toBe(0)
  })
})

describe('returned units', () => {
  it('go to the process that sends first', async () => {
    const store = memoryStore()
    const [one, other] = [roomOn(store, HOUR), roomOn(store, HOUR)]
    await fill(other, 'k', 5)
    const first = one.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await delay(3)
    const second = other.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await turn()
    const { op, outcome } = other.asked[0]!
    await other.giveBack(op, outcome)
    other.room.wake(['k'])
    expect((await second).allowed).toBe(true)
    one.room.close()
    await errorOf(() => first)
  })

  it('admit the next waiter immediately if the room is notified', async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 5)
    const wait = room.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await turn()
    const { op, outcome } = room.asked[0]!
    await room.giveBack(op, outcome)
    room.room.wake(['k'])
    expect((await wait).allowed).toBe(true)
    room.room.wake(['nobody'])
  })

  it('wake only the waiters of their keys, even if thousands wait for other keys', async () => {
    const limiter = createLimiter({
      dimensions: {
        user: [slidingWindow({ limit: 1, window: '1h' })],
        ip: [slidingWindow({ limit: 5000, window: '1h' })],
      },
      store: memoryStore(),
    })
    const keyOf = (i: number) => ({ user: `user${i}`, ip: `ip${i % 500}` })
    const waits: Promise<Decision>[] = []
    for (let i = 0; i < 1000; i++) {
      await limiter.consume(keyOf(i))
      waits.push(limiter.wait(keyOf(i), { maxWaitMs: 2 ** 31 - 1 }))
    }
    await turn()
    const steps = await stepsOf(() => limiter.reset({ user: 'stranger', ip: 'nowhere' }))
    expect(steps).toBeLessThan(50)
    await limiter.reset({ user: 'user7' })
    expect((await waits[7]!).allowed).toBe(true)
    const wake = await stepsOf(() => limiter.reset({ user: 'user8', ip: 'ip8' }))
    expect(wake).toBeLessThan(50)
    expect((await waits[8]!).allowed).toBe(true)
    expect(limiter.waiting().length).toBe(998)
    limiter.close()
    await Promise.allSettled(waits)
  })

  it("aren't missed while a request is in flight", async () => {
    const store = held(memoryStore())
    const room = roomOn(store, HOUR)
    await fill(room, 'k', 5)
    store.isHolding = true
    const wait = room.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await turn()
    // Its op has already been denied, but the reply hasn't arrived.
    store.isHolding = false
    const { op, outcome } = room.asked[0]!
    await room.giveBack(op, outcome)
    room.room.wake(['k'])
    store.release()
    expect((await wait).allowed).toBe(true)
  })

  it('admit a waiter on time without a notification', async () => {
    const room = roomOn(memoryStore(), [concurrency({ limit: 1, ttl: '1h' })])
    await room.wait('k')
    const wait = room.wait('k', { maxWaitMs: 40_000 })
    await turn()
    const { op } = room.asked[0]!
    await room.release(op)
    const startMs = performance.now()
    expect((await wait).allowed).toBe(true)
    expect(performance.now() - startMs).toBeLessThan(20_000)
  })

  it('a waiter for a release waits until its timeout', async () => {
    const room = roomOn(memoryStore(), [concurrency({ limit: 1, ttl: '1h' })])
    await room.wait('k')
    const startMs = performance.now()
    expect((await rejection(room.wait('k', { maxWaitMs: 50 }))).reason).toBe('timeout')
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(50)
  })
})

describe('the waiting state', () => {
  it('includes the number of waiting requests and the expected wait of another', async () => {
    const room = roomOn(memoryStore(), [tokenBucket({ capacity: 10, refill: 10, interval: '1h' })])
    await fill(room, 'k', 10)
    const waits = Array.from({ length: 3 }, () => room.wait('k', { cost: 2, maxWaitMs: 2 ** 31 - 1 }))
    await turn()
    const { length, expectedWaitMs } = room.room.state('k')
    expect(length).toBe(3)
    // The bucket refills two units in 12 minutes, and six more in 36.
    expect(expectedWaitMs / 60_000).toBeCloseTo(48, 0)
    expect(room.room.state()).toEqual({ length, expectedWaitMs: expect.closeTo(expectedWaitMs, -4) })
    expect(room.room.state('other')).toEqual({ length: 0, expectedWaitMs: 0 })
    room.room.close()
    await Promise.allSettled(waits)
    expect(room.room.state('k')).toEqual({ length: 0, expectedWaitMs: 0 })
  })
})

describe('thousands of waiting requests', () => {
  /** Returns the CPU time of this process since then, unaffected by other load. */
  function workedMs(since: NodeJS.CpuUsage): number {
    const { user, system } = process.cpuUsage(since)
    return (user + system) / 1000
  }

  it('wait with one signal, and are quickly aborted', async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 5)
    const abort = new AbortController()
    const used = process.cpuUsage()
    const waits = Array.from({ length: 10_000 }, () =>
      room.wait('k', { signal: abort.signal, maxWaitMs: 2 ** 31 - 1 }),
    )
    const settled = Promise.allSettled(waits)
    await turn()
    abort.abort()
    await settled
    expect(workedMs(used)).toBeLessThan(2000)
    expect(room.room.state().length).toBe(0)
    expect(room.asked).toHaveLength(2)
  })

  it('leave a queue in any order', async () => {
    const room = roomOn(memoryStore(), HOUR)
    await fill(room, 'k', 5)
    const aborts = Array.from({ length: 10_000 }, () => new AbortController())
    const waits = aborts.map(({ signal }) => room.wait('k', { signal, maxWaitMs: 2 ** 31 - 1 }))
    const settled = Promise.allSettled(waits)
    await turn()
    const used = process.cpuUsage()
    for (let i = 0; i < aborts.length; i++) aborts[(i * 7919) % aborts.length]!.abort()
    await settled
    expect(workedMs(used)).toBeLessThan(2000)
    expect(room.room.state().length).toBe(0)
  })

  it('leave the last tenth of the room to other keys', async () => {
    const room = roomOn(memoryStore(), HOUR, 40)
    for (const key of ['k', 'a', 'b']) await fill(room, key, 5)
    const waits: Promise<unknown>[] = []
    const full = async (key: string) => {
      const wait = room.wait(key, { maxWaitMs: 2 ** 31 - 1 })
      waits.push(wait.catch(() => {}))
      return (await Promise.race([wait.catch((error) => error.reason), turn()])) === 'full'
    }
    for (let i = 0; i < 36; i++) expect(await full('k')).toBe(false)
    expect(await full('k')).toBe(true)
    for (const key of ['a', 'b', 'a', 'b']) expect(await full(key)).toBe(false)
    expect([await full('a'), await full('k'), await full('c')]).toEqual([true, true, true])
    expect(room.room.state().length).toBe(40)
    room.room.close()
    await Promise.all(waits)
  })

  it('wait for a key each', async () => {
    const room = roomOn(memoryStore(), [slidingWindow({ limit: 1, window: 300 })])
    const keys = Array.from({ length: 10_000 }, (_, i) => `k${i}`)
    await Promise.all(keys.map((key) => room.wait(key)))
    const waits = keys.map((key) => room.wait(key))
    await Promise.all(waits)
    expect(room.room.state().length).toBe(0)
  })
})
