// tier: integration
import { AsyncLocalStorage } from 'node:async_hooks'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  concurrency,
  createLimiter,
  failurePolicy,
  type Limit,
  type Limiter,
  memoryStore,
  type Permit,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'

const { server, redis } = await useRedis()
const limiters: Limiter[] = []
let runs = 0

/** Long enough that nothing is renewed or times out during a test. */
const TTL_MS = 3_600_000

afterAll(() => {
  for (const limiter of limiters) limiter.close()
})

const stores = {
  memory: (clock: ManualClock) => memoryStore({ clock: clock.now }),
  Redis: (clock: ManualClock) =>
    redisStore(redis, { clock: clock.now, prefix: `slidegate:permits${runs++}` }),
}

describe.each(Object.entries(stores))('permits on %s', (_, storeOf) => {
  function setUp(limit = 2, more: readonly Limit[] = []) {
    const clock = new ManualClock()
    const limits = [concurrency({ limit, ttl: TTL_MS }), ...more]
    const limiter = createLimiter({ limits, store: storeOf(clock), timeoutMs: 30_000 })
    limiters.push(limiter)
    return { clock, limiter }
  }

  it('belong to a scheduled task until it ends, even with an error', async () => {
    const { limiter } = setUp()
    let running = 0
    const most: number[] = []
    const task = async (n: number) => {
      most.push(++running)
      await delay(5)
      running--
      if (n === 3) throw new Error('the task failed')
      return n
    }
    const tasks = Array.from({ length: 6 }, (_, n) => limiter.schedule('k', () => task(n)))
    const ended = await Promise.allSettled(tasks)
    expect(ended.map(({ status }) => status === 'fulfilled')).toEqual([true, true, true, false, true, true])
    expect(Math.max(...most)).toBe(2)
    expect((await limiter.peek('k')).remaining).toBe(2)
  })

  it('count even if a shadow limit had no room', async () => {
    const { limiter } = setUp(2, [concurrency({ limit: 1, ttl: TTL_MS, name: 'tried', shadow: true })])
    await limiter.acquire('k')
    const second = await limiter.acquire('k')
    expect(await second.extend()).toBe(true)
    expect(await second.release()).toBe(true)
    expect(await second.release()).toBe(false)
  })

  it('stay expired when the newest is released', async () => {
    const { clock, limiter } = setUp(300)
    await limiter.acquire('k', { cost: 250 })
    clock.advance(200)
    await limiter.acquire('k')
    clock.advance(TTL_MS - 100)
    const newest = await limiter.acquire('k')
    await newest.release()
    clock.advance(-200)
    expect((await limiter.peek('k')).remaining).toBe(299)
  })

  it('appear in lists only if still held after the clock is set back by more than 1 s', async () => {
    const { clock, limiter } = setUp(300)
    await limiter.acquire('k', { cost: 250 })
    clock.advance(TTL_MS)
    await limiter.acquire('k')
    clock.advance(-5000)
    const [{ entries } = { entries: [] }] = await limiter.list('k')
    expect(entries.map(({ units, atMs }) => [units, atMs - clock.now()])).toEqual([[1, 0]])
  })

  it('end with their block, even with an error', async () => {
    const { limiter } = setUp(1)
    const run = async () => {
      await using permit = await limiter.acquire('k')
      expect(permit.allowed).toBe(true)
      throw new Error('the work failed')
    }
    await expect(run()).rejects.toThrow('the work failed')
    expect((await limiter.peek('k')).remaining).toBe(1)
  })
})

describe.concurrent('permits with the real clock', () => {
  it("get renewed by a timer that doesn't retain a request", async () => {
    const context = new AsyncLocalStorage<string>()
    const memory = memoryStore()
    const seen: unknown[] = []
    const limiter = createLimiter({
      limits: [concurrency({ limit: 1, ttl: 1200 })],
      store: {
        failurePolicy,
        apply(ops, call) {
          if (ops[0]!.type === 'extend') seen.push(context.getStore())
          memory.apply(ops, call)
        },
        close() {},
      },
    })
    limiters.push(limiter)
    const acquire = () => context.run('request', () => limiter.acquire('k'))
    let permit = await acquire()
    while (seen.length < 2) {
      await delay(20)
      // If the machine stalled for the ttl, the permit is lost.
      if (!permit.allowed || permit.signal.aborted) permit = await acquire()
    }
    expect(seen).toEqual(seen.map(() => undefined))
  })

  it("aren't renewed by a closed limiter", async () => {
    // The store's clock is set manually, while renewals use the real one.
    const clock = new ManualClock()
    const store = () => redisStore(redis, { clock: clock.now, prefix: 'slidegate:closed' })
    const options = { limits: [concurrency({ limit: 1, ttl: 100 })], timeoutMs: 30_000 }
    const dying = createLimiter({ ...options, store: store() })
    const other = createLimiter({ ...options, store: store() })
    limiters.push(other)
    expect((await dying.acquire('k')).allowed).toBe(true)
    dying.close()
    clock.advance(99)
    await delay(150)
    expect((await other.acquire('k')).allowed).toBe(false)
    clock.advance(1)
    expect((await other.acquire('k')).allowed).toBe(true)
  })

  it('expire after their process was killed', async ({ onTestFinished }) => {
    const [ttl, prefix] = [9000, 'slidegate:killed']
    const program = `
      import { Redis } from 'ioredis'
      import { concurrency, createLimiter } from 'slidegate'
      import { redisStore } from 'slidegate/redis'
      const store = redisStore(new Redis(${server.port}), { prefix: '${prefix}' })
      const limits = [concurrency({ limit: 1, ttl: ${ttl} })]
      const permit = await createLimiter({ limits, store, timeoutMs: 30_000 }).acquire('k')
      process.send(permit.allowed)
      setInterval(() => {}, 1000)
    `
    const path = new URL(`killed-${process.pid}.js`, import.meta.url)
    await writeFile(path, program)
    onTestFinished(() => rm(path))
    const child = fork(path, { execArgv: [] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [allowed] = await once(child, 'message')
    expect(allowed).toBe(true)
    const limits = [concurrency({ limit: 1, ttl })]
    const limiterOn = (clock?: () => number) => {
      const store = redisStore(redis, { prefix, ...(clock && { clock }) })
      const limiter = createLimiter({ limits, store, timeoutMs: 30_000 })
      limiters.push(limiter)
      return limiter
    }
    const heldSinceMs = async () => {
      const [key = ''] = await redis.keys(`${prefix}:*:k${ttl}`)
      return Number((await redis.zrange(key, 0, -1, 'WITHSCORES'))[1])
    }
    const firstMs = await heldSinceMs()
    await until('a second renewal', async () => (await heldSinceMs()) > firstMs + ttl / 2)
    expect((await limiterOn().acquire('k')).allowed).toBe(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect((await limiterOn().peek('k')).retryAfterMs).toBeLessThanOrEqual(ttl)
    // Behaves as if the ttl had passed.
    expect((await limiterOn(() => Date.now() + ttl).acquire('k')).allowed).toBe(true)
  })

  it('allow a release after their limiter was closed', async () => {
    const store = redisStore(redis, { prefix: 'slidegate:after-close' })
    const options = { limits: [concurrency({ limit: 2, ttl: '1h' })], store, timeoutMs: 30_000 }
    const closing = createLimiter(options)
    const other = createLimiter(options)
    limiters.push(other)
    const permit = await closing.acquire('k')
    const late = closing.acquire('k')
    closing.close()
    expect(await permit.release()).toBe(true)
    expect(await (await late).release()).toBe(true)
    expect((await other.peek('k')).remaining).toBe(2)
  })

  it("expire if the store doesn't answer for a ttl", async () => {
    let isDown = false
    const memory = memoryStore()
    const limiter = createLimiter({
      limits: [concurrency({ limit: 1, ttl: 90 })],
      store: {
        failurePolicy,
        apply(ops, call) {
          if (isDown) call.reject(new Error('down'))
          else memory.apply(ops, call)
        },
        close() {},
      },
      timeoutMs: 30_000,
      logger: false,
    })
    limiters.push(limiter)
    const permit = await limiter.acquire('k')
    isDown = true
    await new Promise((resolve) => permit.signal.addEventListener('abort', resolve))
    expect(await permit.release()).toBe(false)
  })
})

it('permits are renewed as long as the process runs', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const clock = () => performance.now() + 1_700_000_000_000
  const limiter = createLimiter({
    limits: [concurrency({ limit: 1, ttl: 1200 })],
    store: redisStore(redis, { clock, prefix: 'slidegate:renewed' }),
    timeoutMs: 30_000,
  })
  limiters.push(limiter)
  const permit = await limiter.acquire('k')
  for (let i = 0; i < 12; i++) {
    await vi.advanceTimersByTimeAsync(300)
    expect((await limiter.acquire('k')).allowed).toBe(false)
  }
  expect(permit.signal.aborted).toBe(false)
  expect(await permit.release()).toBe(true)
  expect((await limiter.acquire('k')).allowed).toBe(true)
})

it('many permits are renewed a few at a time, and survive a short outage', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let isDown = false
  let asked = 0
  let most = 0
  const memory = memoryStore({ clock: () => performance.now() + 1_700_000_000_000 })
  const limiter = createLimiter({
    limits: [concurrency({ limit: 1000, ttl: 3000 })],
    store: {
      failurePolicy,
      apply(ops, call) {
        most = Math.max(most, ++asked)
        setTimeout(() => {
          asked--
          if (isDown) call.reject(new Error('down'))
          else memory.apply(ops, call)
        }, 1)
      },
      close() {},
    },
    timeoutMs: 30_000,
    logger: false,
  })
  limiters.push(limiter)
  const permits: Permit[] = []
  for (let i = 0; i < 200; i++) {
    const acquired = limiter.acquire('k')
    await vi.advanceTimersByTimeAsync(1)
    permits.push(await acquired)
  }
  most = 0
  await vi.advanceTimersByTimeAsync(700)
  isDown = true
  await vi.advanceTimersByTimeAsync(700)
  isDown = false
  await vi.advanceTimersByTimeAsync(2500)
  expect(permits.filter(({ signal }) => signal.aborted)).toEqual([])
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(64)
})

it('the signal of a lost permit is aborted as soon as another caller can hold its units', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let isDown = false
  const memory = memoryStore({ clock: () => performance.now() + 1_700_000_000_000 })
  const limiter = createLimiter({
    limits: [concurrency({ limit: 1, ttl: 1000 })],
    store: {
      failurePolicy,
      apply(ops, call) {
        if (isDown) call.reject(new Error('down'))
        else memory.apply(ops, call)
      },
      close() {},
    },
    logger: false,
  })
  limiters.push(limiter)
  const permit = await limiter.acquire('k')
  isDown = true
  await vi.advanceTimersByTimeAsync(999)
  expect(permit.signal.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(2)
  expect(permit.signal.aborted).toBe(true)
})

it('a permit granted by the fallback is released there', async () => {
  const limiter = createLimiter({
    limits: [concurrency({ limit: 4, ttl: '1h' })],
    store: { failurePolicy, apply: (_, call) => call.reject(new Error('down')), close() {} },
    onStoreError: 'local',
    instances: 2,
    logger: false,
  })
  limiters.push(limiter)
  const permits = [await limiter.acquire('k'), await limiter.acquire('k')]
  expect(permits.map(({ decision }) => [decision.allowed, decision.source])).toEqual([
    [true, 'fallback'],
    [true, 'fallback'],
  ])
  expect((await limiter.acquire('k')).allowed).toBe(false)
  expect(await permits[0]!.extend()).toBe(true)
  expect(await permits[0]!.release()).toBe(true)
  expect((await limiter.acquire('k')).allowed).toBe(true)
})

it.each([undefined, new Error('the work failed')])(
  'if the store is silent at the end of a block, the error of the block is thrown: %s',
  async (thrown) => {
    let isDown = false
    const memory = memoryStore()
    const limiter = createLimiter({
      limits: [concurrency({ limit: 1, ttl: '10s' })],
      store: {
        failurePolicy,
        apply: (ops, call) => (isDown ? call.reject(new Error('down')) : memory.apply(ops, call)),
        close() {},
      },
      logger: false,
    })
    limiters.push(limiter)
    const run = async () => {
      await using permit = await limiter.acquire('k')
      expect(permit.allowed).toBe(true)
      isDown = true
      if (thrown) throw thrown
    }
    if (thrown) await expect(run()).rejects.toBe(thrown)
    else await run()
  },
)

it('a request that was admitted without being counted holds no slot', async () => {
  const limiter = createLimiter({
    limits: [concurrency({ limit: 1, ttl: '10s' })],
    store: { failurePolicy, apply: (_, call) => call.reject(new Error('down')), close() {} },
    onStoreError: 'allow',
    logger: false,
  })
  limiters.push(limiter)
  const permit = await limiter.acquire('k')
  expect(permit.decision).toMatchObject({ allowed: true, source: 'failOpen' })
  expect(await permit.extend()).toBe(false)
  expect(await permit.release()).toBe(false)
  expect(permit.signal.aborted).toBe(false)
})

it('acquire rejects if the limiter has no concurrency limit', async () => {
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1s' })] })
  await expect(limiter.acquire('k')).rejects.toMatchObject({ code: 'invalid_option' })
})
