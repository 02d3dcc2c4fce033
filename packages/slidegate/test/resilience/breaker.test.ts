import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLimiter, type Limiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { Breaker } from '../../src/resilience/breaker.ts'
import { FAILURES, type FailingStore, failing } from './failing-store.ts'
import { held } from './stores.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const USUAL = { failureRate: 0.5, minRequests: 5, maxBackoffMs: 500 }
const error = new Error('ECONNREFUSED')

/** Creates a breaker, its events, and a function that makes requests. */
function breakerWith(options = USUAL) {
  const emitted: string[] = []
  const listener = { opened: () => emitted.push('opened'), closed: () => emitted.push('closed') }
  const breaker = new Breaker(options, listener, 0)
  return {
    breaker,
    emitted,
    /** Returns whether the store was called. */
    ask(nowMs: number, fails: boolean): boolean {
      if (!breaker.admits(nowMs)) return false
      const isAttempt = breaker.outage !== 0
      if (fails) breaker.failed(nowMs, error, isAttempt)
      else breaker.succeeded(nowMs, isAttempt)
      return true
    },
  }
}

describe('a breaker opens', () => {
  it.each([
    [5, 0.5],
    [1, 0.5],
    [20, 1],
  ])('when all of %i requests have failed', (minRequests, failureRate) => {
    const { ask, emitted } = breakerWith({ ...USUAL, minRequests, failureRate })
    for (let i = 1; i < minRequests; i++) ask(i, true)
    expect(emitted).toEqual([])
    ask(minRequests, true)
    expect(emitted).toEqual(['opened'])
    expect(ask(minRequests + 1, false)).toBe(false)
  })

  it.each([
    ['at half of the requests', 0.5, [true, false, true, false, true, false], true],
    ['not at a third', 0.5, [false, false, true], false],
    ['at a third, if that is the failure rate', 0.3, [false, false, true], true],
    ['not at nine in ten, if the failure rate is 1', 1, [...Array(9).fill(true), false, true], false],
  ])('%s', (_, failureRate, pattern, opens) => {
    const minRequests = failureRate === 1 ? 20 : 5
    const { ask, emitted } = breakerWith({ ...USUAL, failureRate, minRequests })
    for (let i = 0; i < 120; i++) ask(2 * i, pattern[i % pattern.length]!)
    expect(emitted[0]).toBe(opens ? 'opened' : undefined)
  })

  it('even under low traffic: one request per second or per minute', () => {
    for (const everyMs of [1000, 60_000]) {
      const { ask, emitted } = breakerWith()
      for (let i = 0; i < 20; i++) ask(everyMs * i, false)
      const failures = [20, 21, 22, 23, 24, 25, 26, 27].findIndex((i) => {
        ask(everyMs * i, true)
        return emitted.length > 0
      })
      // Earlier successes don't count for long.
      expect(failures + 1).toBeGreaterThanOrEqual(5)
      expect(failures + 1).toBeLessThanOrEqual(7)
    }
  })

  it('not for single failures that are hours apart', () => {
    const { ask, emitted } = breakerWith()
    for (let hour = 0; hour < 50; hour++) {
      ask(hour * 3_600_000, true)
      for (let i = 0; i < 3; i++) ask(hour * 3_600_000 + i + 1, false)
    }
    expect(emitted).toEqual([])
  })

  it.each([
    ['the first failures ever', 0, 0],
    ['after an idle night', 0, 36_000_000],
    ['after a failure an hour ago', 1, 3_600_000],
  ])('not for one slow moment among thousands of successes: %s', (_, before, idleMs) => {
    const { ask, emitted } = breakerWith()
    for (let i = 0; i < before; i++) ask(i, true)
    // The store answers 5 times per millisecond.
    for (let i = 0; i < 5000; i++) ask(idleMs + 10 + i / 5, false)
    for (let i = 0; i < 500; i++) ask(idleMs + 1011, true)
    for (let i = 0; i < 100; i++) ask(idleMs + 1012, false)
    expect(emitted).toEqual([])
    // It opens if the failures last.
    for (let i = 0; i < 2500; i++) ask(idleMs + 1012 + i / 5, true)
    expect(emitted).toEqual(['opened'])
  })

  it('quickly, even after many successes long ago', () => {
    const { ask, emitted } = breakerWith()
    for (let i = 0; i < 4000; i++) ask(i / 20, false)
    for (let i = 0; i < 5; i++) ask(36_000_000 + i, true)
    expect(emitted).toEqual(['opened'])
  })

  it('by counting all results since it was created, and since it closed', () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const { ask, emitted } = breakerWith({ failureRate: 0.6, minRequests: 1000, maxBackoffMs: 100 })
    for (const beginMs of [0, 1_000_000]) {
      for (let i = 0; i < 1000; i++) ask(beginMs + i / 5, false)
      for (let i = 0; i < 1400; i++) ask(beginMs + 201, true)
      // With 1,000 successes, one of which ended the attempt, 1,400 failures are below the rate.
      expect(emitted.at(-1)).toBe(beginMs === 0 ? undefined : 'closed')
      for (let i = 0; i < 200; i++) ask(beginMs + 202, true)
      expect(emitted.at(-1)).toBe('opened')
    }
  })

  it('not for one slow moment right after it has closed', () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const { ask, emitted } = breakerWith()
    for (let i = 0; i < 5; i++) ask(i, true)
    expect(ask(1_000_000, false)).toBe(true)
    for (let i = 0; i < 1000; i++) ask(1_000_001 + i / 5, false)
    for (let i = 0; i < 300; i++) ask(1_000_300, true)
    expect(emitted).toEqual(['opened', 'closed'])
  })
})

describe('an open breaker', () => {
  it('admits one request after a pause, and doubles the pause while attempts fail', () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const { breaker, ask, emitted } = breakerWith({ ...USUAL, maxBackoffMs: 1000 })
    for (let i = 0; i < 5; i++) ask(0, true)
    let openedMs = 0
    for (const pauseMs of [100, 200, 400, 800, 1000, 1000, 1000]) {
      expect(breaker.pauseAt(openedMs)).toBe(pauseMs)
      expect(ask(openedMs + pauseMs - 1, true)).toBe(false)
      openedMs += pauseMs
      expect(ask(openedMs, true)).toBe(true)
    }
    expect(emitted).toEqual(['opened'])
  })

  it.each([
    [10, 10],
    [500, 100],
  ])('with pauses of at most %i ms starts with %i ms', (maxBackoffMs, firstMs) => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const { breaker, ask } = breakerWith({ ...USUAL, maxBackoffMs })
    for (let i = 0; i < 5; i++) ask(0, true)
    expect(breaker.pauseAt(0)).toBe(firstMs)
  })

  it('picks pauses at random between half and all of their length', () => {
    const pauses = Array.from({ length: 2000 }, () => {
      const { breaker, ask } = breakerWith()
      for (let i = 0; i < 5; i++) ask(0, true)
      return breaker.pauseAt(0)
    })
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(50)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(100)
    expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(40)
  })

  it('admits one request at a time, and another if that takes longer than the longest pause', () => {
    const { breaker, ask } = breakerWith()
    for (let i = 0; i < 5; i++) ask(0, true)
    const admitted = Array.from({ length: 100 }, (_, i) => breaker.admits(1000 + 5 * i))
    expect(admitted.filter(Boolean).length).toBe(1)
    expect(breaker.pauseAt(1400)).toBe(0)
    expect([1499, 1500, 1501, 1999, 2000].map((nowMs) => breaker.admits(nowMs))).toEqual([
      ...[false, true, false, false, true],
    ])
  })

  it('closes when an attempt succeeds, and starts over', () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const { breaker, ask, emitted } = breakerWith()
    for (let i = 0; i < 5; i++) ask(0, true)
    ask(100, true)
    ask(300, false)
    expect(emitted).toEqual(['opened', 'closed'])
    expect([1, 2, 3].map(() => breaker.admits(300))).toEqual([true, true, true])
    // Failures before the breaker closed are forgotten, and so is the length of the outage.
    for (const fails of [true, false, false, false, false]) ask(301, fails)
    expect(emitted).toEqual(['opened', 'closed'])
    for (let i = 0; i < 2; i++) ask(301, true)
    expect(emitted).toEqual(['opened', 'closed'])
    ask(302, true)
    expect(emitted).toEqual(['opened', 'closed', 'opened'])
    expect(breaker.pauseAt(302)).toBe(100)
  })

  it('ignores results of requests that were sent before it opened', () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const { breaker, ask, emitted } = breakerWith()
    for (let i = 0; i < 5; i++) ask(0, true)
    breaker.failed(50, error, false)
    breaker.succeeded(50, false)
    expect(breaker.pauseAt(50)).toBe(50)
    expect(breaker.admits(100)).toBe(true)
    // The probe is in flight: results of other calls must not end it or admit a second one.
    breaker.failed(110, error, false)
    breaker.succeeded(110, false)
    expect([breaker.admits(111), breaker.admits(599)]).toEqual([false, false])
    breaker.succeeded(120, true)
    expect(emitted).toEqual(['opened', 'closed'])
  })
})

describe("a limiter's breaker", () => {
  beforeEach(() => {
    vi.useFakeTimers()
    vi.spyOn(Math, 'random').mockReturnValue(1)
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const limits = [slidingWindow({ limit: 1000, window: '1h' })]
  let store: FailingStore
  let limiter: Limiter
  let events: unknown[]
  function create(over: FailingStore): void {
    store = over
    limiter = createLimiter({ limits, store, logger: false })
    events = []
    limiter.on('storeDown', ({ error }) => events.push(['down', error.reason]))
    limiter.on('storeUp', ({ downMs, requests }) => events.push(['up', downMs, requests]))
  }
  beforeEach(() => create(failing(memoryStore())))
  const reasonOf = (key: string) =>
    limiter.consume(key).then(
      ({ source }) => source,
      ({ reason }) => reason,
    )

  it('stops calling a failing store, retries now and then, and emits storeDown and storeUp once', async () => {
    store.failure = FAILURES.rejects
    const reasons: string[] = []
    for (let i = 0; i < 100; i++) {
      reasons.push(await reasonOf(`k${i}`))
      await vi.advanceTimersByTimeAsync(10)
    }
    // Five calls until the breaker opens, then one after 100, 300 and 700 ms each.
    expect(store.asked.length).toBe(8)
    expect(reasons.filter((reason) => reason === 'down').length).toBe(92)
    expect(events).toEqual([['down', 'error']])
    store.failure = undefined
    await vi.advanceTimersByTimeAsync(500)
    expect(await Promise.all(['a', 'b', 'c'].map(reasonOf))).toEqual(['store', 'store', 'store'])
    expect(events).toEqual([
      ['down', 'error'],
      ['up', 1460, 96],
    ])
  })

  it('rejects with the last error while it is open', async () => {
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) await reasonOf('k')
    await expect(limiter.consume('k')).rejects.toMatchObject({
      reason: 'down',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('sends one of many requests after the pause, and rejects the others immediately', async () => {
    store.failure = FAILURES["doesn't answer"]
    const first = Array.from({ length: 50 }, () => reasonOf('k'))
    await vi.advanceTimersByTimeAsync(60)
    await Promise.all(first)
    await vi.advanceTimersByTimeAsync(100)
    const attempts = Array.from({ length: 50 }, () => reasonOf('k'))
    expect(store.asked.length).toBe(51)
    expect(await Promise.all(attempts.slice(1))).toEqual(Array(49).fill('down'))
    await vi.advanceTimersByTimeAsync(60)
    expect(await attempts[0]).toBe('timeout')
    expect(events.length).toBe(1)
  })

  it('ignores an older failure while an attempt is in flight', async () => {
    const over = held(memoryStore())
    store = failing(over)
    limiter = createLimiter({ limits, store, logger: false, timeoutMs: 60_000 })
    events = []
    limiter.on('storeUp', () => events.push('up'))
    over.isHolding = true
    const early = [reasonOf('early'), reasonOf('as early')]
    const [first, second] = over.waiting
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) await reasonOf('k')
    store.failure = undefined
    await vi.advanceTimersByTimeAsync(100)
    const attempt = reasonOf('attempt')
    expect(over.waiting.length).toBe(3)
    first!.reject(new Error('ECONNRESET'))
    second!.resolve([{ source: 'store', atMs: 1, admitted: 1, limits: [0, 0, 0], waitMs: 0 }], 0)
    expect(await Promise.all(early)).toEqual(['error', 'store'])
    await vi.advanceTimersByTimeAsync(400)
    expect(await reasonOf('k')).toBe('down')
    expect([over.waiting.length, events]).toEqual([3, []])
    over.release()
    expect(await attempt).toBe('store')
    expect(events).toEqual(['up'])
  })

  it('counts an attempt that is answered too late as failed', async () => {
    const over = held(memoryStore())
    create(failing(over))
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) await reasonOf('k')
    store.failure = undefined
    over.isHolding = true
    await vi.advanceTimersByTimeAsync(100)
    const attempt = reasonOf('k')
    await vi.advanceTimersByTimeAsync(60)
    expect(await attempt).toBe('timeout')
    over.isHolding = false
    await vi.advanceTimersByTimeAsync(100)
    over.release()
    expect(await reasonOf('k')).toBe('down')
    // Now 200 ms have passed since the attempt timed out.
    await vi.advanceTimersByTimeAsync(100)
    expect(await reasonOf('k')).toBe('store')
    expect(events.length).toBe(2)
  })

  it('ignores a late answer to an attempt while another is in flight', async () => {
    const over = held(memoryStore())
    create(failing(over))
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) await reasonOf('k')
    store.failure = undefined
    over.isHolding = true
    await vi.advanceTimersByTimeAsync(100)
    const attempts = [reasonOf('k')]
    await vi.advanceTimersByTimeAsync(260)
    attempts.push(reasonOf('k'))
    const [first] = over.waiting
    expect(over.waiting.length).toBe(2)
    first!.resolve([{ source: 'store', atMs: 1, admitted: 0, limits: [0, 0, 0], waitMs: 0 }], 0)
    expect(await reasonOf('k')).toBe('down')
    await vi.advanceTimersByTimeAsync(60)
    expect(await Promise.all(attempts)).toEqual(['timeout', 'timeout'])
    expect(events.length).toBe(1)
  })

  it.each([
    ['holds damaged state', 'invalid_state'],
    ['is overloaded', 'overload'],
  ] as const)('handles an attempt on a store that %s', async (how, reason) => {
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) await reasonOf('k')
    await vi.advanceTimersByTimeAsync(100)
    store.failure = FAILURES[how]
    expect(await reasonOf('k')).toBe(reason)
    // A store that reports damaged state has responded.
    expect(events.length).toBe(reason === 'invalid_state' ? 2 : 1)
  })

  it('stays closed, however often damaged state is read', async () => {
    store.failure = FAILURES['holds damaged state']
    for (let i = 0; i < 200; i++) expect(await reasonOf('damaged')).toBe('invalid_state')
    store.failure = undefined
    expect(await reasonOf('other')).toBe('store')
    expect(events).toEqual([])
  })

  it('stays closed, however often callers pass invalid input', async () => {
    for (let i = 0; i < 200; i++) {
      await limiter.consume('').catch(() => undefined)
      await limiter.consume('k', { cost: -1 }).catch(() => undefined)
      await limiter.consume('k', { cost: 2 ** 50 })
    }
    expect(await reasonOf('other')).toBe('store')
    expect(events).toEqual([])
  })

  it('opens per shard, and the store is down while any shard is', async () => {
    const parts = [failing(memoryStore()), failing(memoryStore()), failing(memoryStore())]
    const partOf = (key: string) => Number(key.at(-1))
    create(failing(memoryStore()))
    store.shardOf = ({ parts: [part] }) => partOf(part!.key)
    store.apply = (ops, call) => parts[partOf(ops[0]!.parts[0]!.key)]!.apply(ops, call)
    parts[1]!.failure = FAILURES.rejects
    for (let i = 0; i < 20; i++) await reasonOf('k1')
    expect(parts[1]!.asked.length).toBe(5)
    expect(await Promise.all(['k0', 'k1', 'k2'].map(reasonOf))).toEqual(['store', 'down', 'store'])
    parts[2]!.failure = FAILURES.rejects
    for (let i = 0; i < 20; i++) await reasonOf('k2')
    expect(await Promise.all(['k0', 'k1', 'k2'].map(reasonOf))).toEqual(['store', 'down', 'down'])
    expect(events).toEqual([['down', 'error']])
    parts[1]!.failure = undefined
    await vi.advanceTimersByTimeAsync(100)
    expect(await Promise.all(['k0', 'k1'].map(reasonOf))).toEqual(['store', 'store'])
    expect(events).toEqual([['down', 'error']])
    parts[2]!.failure = undefined
    expect(await reasonOf('k2')).toBe('store')
    expect(events).toMatchObject([
      ['down', 'error'],
      ['up', expect.any(Number), expect.any(Number)],
    ])
  })
})
