import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type OnStoreError,
  SlidegateError,
  slidingWindow,
} from '../../src/index.ts'
import { errorOf } from '../input/refusal.ts'
import { FAILURES, type FailingStore, failing } from '../resilience/failing-store.ts'

const limits = [slidingWindow({ limit: 2, window: '1h', name: 'two' })]

/** Collects the lines that a logger gets. */
function lines(): { readonly lines: string[]; warn(line: string): void } {
  const written: string[] = []
  return { lines: written, warn: (line) => void written.push(line) }
}

let store: FailingStore
beforeEach(() => {
  store = failing(memoryStore())
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

function create(options: Partial<LimiterOptions> = {}): Limiter {
  return createLimiter({ name: 'api', limits, store, logger: false, breaker: { minRequests: 3 }, ...options })
}

describe('the decision event', () => {
  const asking = {
    consume: (limiter: Limiter) => limiter.consume('user:1'),
    consumeSync: async (limiter: Limiter) => limiter.consumeSync('user:1'),
  }

  it.each(Object.entries(asking))("reports each %s with the caller's decision", async (_, ask) => {
    const limiter = createLimiter({ limits, onStoreError: 'deny' })
    const told: { key: string; decision: Decision }[] = []
    limiter.on('decision', (event) => told.push(event))
    const decisions = [await ask(limiter), await ask(limiter), await ask(limiter)]
    expect(told.map(({ key }) => key)).toEqual(['user:1', 'user:1', 'user:1'])
    told.forEach(({ decision }, i) => {
      expect(decision).toBe(decisions[i])
    })
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false])
    await limiter.peek('user:1')
    await limiter.charge('user:1', 1)
    expect(told.length).toBe(3)
    // The decision can still be refunded after the event.
    expect(await limiter.refund('user:1', told[0]!.decision)).toBe(1)
  })

  it.each<[OnStoreError, string[]]>([
    ['throw', []],
    ['deny', ['failClosed']],
    ['allow', ['failOpen']],
    ['local', ['fallback']],
  ])('reports each request while the store is down, with onStoreError: %s', async (onStoreError, sources) => {
    const limiter = create({ onStoreError })
    const told: string[] = []
    limiter.on('decision', ({ decision }) => told.push(decision.source))
    store.failure = FAILURES.rejects
    await limiter.consume('k').catch(() => undefined)
    expect(told).toEqual(sources)
  })
})

describe('the storeError, storeDown and storeUp events', () => {
  it('report each unanswered request, the start of an outage and its end', async () => {
    vi.useFakeTimers()
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const limiter = create({ onStoreError: 'deny' })
    const told: unknown[] = []
    limiter
      .on('storeError', ({ error }) => told.push(error.message))
      .on('storeDown', ({ error }) => told.push(['down', error.message]))
      .on('storeUp', ({ downMs, requests }) => told.push(['up', Math.round(downMs), requests]))
    store.failure = FAILURES.rejects
    for (let i = 0; i < 10; i++) await limiter.consume('k')
    const message = 'limiter "api": the store failed: ECONNREFUSED'
    expect(told).toEqual([message, message, ['down', message], message])
    await vi.advanceTimersByTimeAsync(100)
    store.failure = undefined
    await limiter.consume('k')
    expect(told.at(-1)).toEqual(['up', 100, 8])
  })
})

describe('a listener', () => {
  it("isn't called after it was removed, but others are", async () => {
    const limiter = createLimiter({ limits })
    const told: string[] = []
    const one = () => told.push('one')
    const other = () => told.push('other')
    expect(limiter.on('decision', one).on('decision', other).off('decision', one)).toBe(limiter)
    limiter.consumeSync('k')
    limiter
      .off('decision', other)
      .off('decision', other)
      .off('storeUp', other as () => void)
    limiter.consumeSync('k')
    expect(told).toEqual(['other'])
  })

  it.each<[string, () => unknown, RegExp]>([
    ['an error', () => Promise.reject(new Error('mine')), /mine/],
    ['a text', () => Promise.reject('mine'), /mine/],
    ['nothing', () => Promise.reject(undefined), /undefined/],
    ['a symbol', () => Promise.reject(Symbol('mine')), /mine/],
    ['an object without a prototype', () => Promise.reject(Object.create(null)), /object/],
  ])('never affects requests by failing with %s, which is logged', async (_, reject, what) => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    onTestFinished(() => void process.off('unhandledRejection', unhandled))
    const reason = await Promise.resolve(reject()).catch((error: unknown) => error)
    const throws = () => {
      throw reason
    }
    for (const listener of [throws, async () => throws()]) {
      const logger = lines()
      const limiter = create({ onStoreError: 'deny', logger, breaker: { minRequests: 1 }, name: 'mine-own' })
      const heard: string[] = []
      for (const event of ['decision', 'storeError', 'storeDown'] as const) {
        limiter.on(event, listener)
        limiter.on(event, () => heard.push(event))
      }
      expect((await limiter.consume('k')).source).toBe('store')
      store.failure = FAILURES.rejects
      expect((await limiter.consume('k')).source).toBe('failClosed')
      store.failure = undefined
      await nextTurn()
      expect(heard.sort()).toEqual(['decision', 'decision', 'storeDown', 'storeError'])
      const failures = logger.lines.filter((line) => line.includes('a listener of'))
      expect(failures.length).toBe(1)
      for (const line of failures) {
        expect(line).toMatch(/^slidegate: limiter "mine-own": a listener of "\w+" failed: /)
        expect(line).toMatch(what)
      }
    }
    await nextTurn()
    expect(unhandled).not.toHaveBeenCalled()
  })

  it('works if it synchronously uses the limiter for another key', async () => {
    const limiter = create({ store: memoryStore() })
    const told: [unknown, number][] = []
    limiter.on('decision', ({ key, decision }) => {
      told.push([key, decision.remaining])
      if (key === 'user:1') limiter.consumeSync('user:2')
    })
    const [first, second] = await limiter.consumeMany([{ key: 'user:1' }, { key: 'user:1' }])
    expect([first!.remaining, second!.remaining]).toEqual([1, 0])
    expect(await limiter.refund('user:1', first!)).toBe(1)
    expect((await limiter.consume('user:3')).remaining).toBe(1)
    expect(told).toEqual([
      ['user:1', 1],
      ['user:2', 1],
      ['user:1', 0],
      ['user:2', 0],
      ['user:3', 1],
    ])
  })

  it('works if it uses the limiter, removes itself, or closes the limiter', async () => {
    const limiter = create({ onStoreError: 'deny', breaker: { minRequests: 1 } })
    const once = vi.fn(() => {
      limiter.off('storeError', once)
      limiter.consume('k').catch(() => undefined)
    })
    limiter.on('storeError', once).on('storeDown', () => limiter.close())
    store.failure = FAILURES.rejects
    expect((await limiter.consume('k')).source).toBe('failClosed')
    expect(once).toHaveBeenCalledTimes(1)
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'closed' })
  })
})

describe('the log', () => {
  const MEANWHILE = {
    throw: 'requests fail',
    deny: 'requests are denied',
    allow: 'requests are allowed without being counted',
    local: 'requests are decided in this process',
  }

  it.each(Object.entries(MEANWHILE))(
    'gets one line when the store goes down and one when it comes back, with onStoreError: %s',
    async (policy, what) => {
      vi.useFakeTimers()
      const logger = lines()
      const limiter = create({ onStoreError: policy as OnStoreError, logger })
      await limiter.consume('k')
      store.failure = FAILURES.rejects
      for (let i = 0; i < 50; i++) {
        await limiter.consume('k').catch(() => undefined)
        await vi.advanceTimersByTimeAsync(10)
      }
      expect(logger.lines).toEqual([
        `slidegate: limiter "api": the store is down (the store failed: ECONNREFUSED); ${what} until it answers`,
      ])
      await vi.advanceTimersByTimeAsync(500)
      store.failure = undefined
      for (let i = 0; i < 5; i++) await limiter.consume('k')
      expect(logger.lines.length).toBe(2)
      expect(logger.lines[1]).toMatch(
        /^slidegate: limiter "api": the store is up again after \d+ ms; 49 requests were decided without it$/,
      )
    },
  )

  it('gets one line per outage and recovery of a store that 200 limiters share', async () => {
    vi.useFakeTimers()
    const logger = lines()
    const limiters = Array.from({ length: 200 }, (_, i) =>
      create({ name: `limiter-${i}`, logger, onStoreError: 'allow' }),
    )
    const askAll = async (times: number) => {
      for (let i = 0; i < times; i++) {
        await Promise.all(limiters.map((limiter) => limiter.consume('k')))
        await vi.advanceTimersByTimeAsync(10)
      }
    }
    store.failure = FAILURES.rejects
    await askAll(20)
    expect(logger.lines.length).toBe(1)
    expect(logger.lines[0]).toContain('the store is down')
    await vi.advanceTimersByTimeAsync(1000)
    store.failure = undefined
    await askAll(5)
    expect(logger.lines.length).toBe(2)
    expect(logger.lines[1]).toContain('the store is up again')
    // Another logger gets its own line.
    const other = lines()
    const late = create({ name: 'late', logger: other })
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) await late.consume('k').catch(() => undefined)
    expect(other.lines.length).toBe(1)
  })

  it('gets at most one line per second for a flapping store, and the last line is true', async () => {
    vi.useFakeTimers()
    const logger = lines()
    const limiter = create({ logger, onStoreError: 'allow', breaker: { minRequests: 1, maxBackoffMs: 10 } })
    for (let i = 0; i < 60_000; i += 20) {
      store.failure = i % 200 < 100 ? FAILURES.rejects : undefined
      await limiter.consume('k')
      await vi.advanceTimersByTimeAsync(20)
    }
    expect(logger.lines.length).toBeGreaterThan(20)
    expect(logger.lines.length).toBeLessThanOrEqual(70)
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) await limiter.consume('k')
    await vi.advanceTimersByTimeAsync(10_000)
    expect(logger.lines.at(-1)).toContain('the store is down')
  })

  it('gets no line for an occasional failure', async () => {
    const logger = lines()
    const limiter = create({ logger, breaker: {} })
    for (let i = 0; i < 40; i++) {
      store.failure = i % 10 === 9 ? FAILURES.rejects : undefined
      await limiter.consume('k').catch(() => undefined)
    }
    expect(logger.lines).toEqual([])
  })

  /** Makes the store fail for three requests. */
  async function goDown(limiter: Limiter): Promise<void> {
    store.failure = FAILURES.rejects
    for (let i = 0; i < 3; i++) await limiter.consume('k').catch(() => undefined)
  }

  it('goes to the console by default', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    await goDown(createLimiter({ limits, store, breaker: { minRequests: 3 } }))
    expect(warn).toHaveBeenCalledTimes(1)
  })

  it('stays silent with logger: false', async () => {
    const methods = (['log', 'warn', 'error', 'info', 'debug'] as const).map((name) =>
      vi.spyOn(console, name).mockImplementation(() => {}),
    )
    await goDown(create({ logger: false }))
    for (const method of methods) expect(method).not.toHaveBeenCalled()
  })

  it('calls warn as a method of the logger', async () => {
    class Pino {
      readonly #written: string[] = []
      warn(line: string): void {
        this.#written.push(line)
      }
      get written(): readonly string[] {
        return this.#written
      }
    }
    const logger = new Pino()
    await goDown(create({ logger }))
    expect(logger.written.length).toBe(1)
  })

  it('never rejects a request by failing', async () => {
    const logger = {
      warn() {
        throw new Error('the disk is full')
      },
    }
    const limiter = create({ logger, onStoreError: 'allow' })
    limiter.on('decision', () => {
      throw new Error('mine')
    })
    await goDown(limiter)
    expect((await limiter.consume('k')).source).toBe('failOpen')
  })
})

describe('on and off reject', () => {
  const listener = () => {}
  it.each<[string, unknown, unknown]>([
    ['an unknown event', 'denied', listener],
    ['an event with the name of an inherited property', 'constructor', listener],
    ['an object as event', Object.create(null), listener],
    ['a symbol as event', Symbol('decision'), listener],
    ['no event', undefined, listener],
    ['no listener', 'decision', undefined],
    ['an object as listener', 'decision', {}],
  ])('%s', async (_, event, given) => {
    const limiter = create().on('decision', listener)
    for (const name of ['on', 'off'] as const) {
      const error = await errorOf(() => limiter[name](event as 'decision', given as typeof listener))
      expect(error).toBeInstanceOf(SlidegateError)
      expect(error).toMatchObject({ code: 'invalid_option' })
    }
  })
})
