// tier: integration
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { createLimiter, failurePolicy, type Limiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const { redis } = await useRedis()

const TIMEOUT_MS = 40
const limits = [slidingWindow({ limit: 5, window: '366d' })]
const limiters = {
  memory: () => createLimiter({ limits, store: memoryStore() }),
  Redis: () => createLimiter({ limits, store: redisStore(redis), timeoutMs: TIMEOUT_MS }),
}

/** The async context of a request, which everything that it causes inherits. */
const context = new AsyncLocalStorage<object>()

/** Sends a request, and returns a weak reference to its context. Only leftovers of the request can hold it. */
async function ask(limiter: Limiter, key: string): Promise<WeakRef<object>> {
  const request = { key }
  await context.run(request, async () => {
    await limiter.consume(key).catch(() => undefined)
  })
  return new WeakRef(request)
}

async function heldOf(references: readonly WeakRef<object>[]): Promise<number> {
  // References are kept until the end of the turn in which they were created.
  for (let turn = 0; turn < 3; turn++) {
    await delay(1)
    collectGarbage()
  }
  return references.filter((reference) => reference.deref() !== undefined).length
}

describe.each(Object.entries(limiters))('a limiter on %s', (_, create) => {
  it('creates no timer in the context of a request', async () => {
    const limiter = create()
    let timers = 0
    const hook = createHook({
      init(_id, type) {
        if (type === 'Timeout' && context.getStore() !== undefined) timers++
      },
    })
    hook.enable()
    for (let i = 0; i < 50; i++) await ask(limiter, `k${i}`)
    // Checks again after every timer has fired.
    await delay(3 * TIMEOUT_MS)
    await ask(limiter, 'late')
    hook.disable()
    limiter.close()
    expect(timers).toBe(0)
  })

  it('retains no context of an answered request', async () => {
    const limiter = create()
    const references: WeakRef<object>[] = []
    for (let i = 0; i < 5; i++) {
      for (let j = 0; j < 10; j++) references.push(await ask(limiter, `key${j}`))
      // Waits long enough for all timers to fire, so that the next request finds none.
      await delay(3 * TIMEOUT_MS)
    }
    // A late reply keeps its request until it arrives.
    await expect.poll(() => heldOf(references)).toBe(0)
    limiter.close()
  })
})

it('a limiter under load retains no context of an answered request', async () => {
  const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  let isDone = false
  const first: WeakRef<object>[] = []
  const load = Array.from({ length: 500 }, async (_, i) => {
    first.push(await ask(limiter, `load${i}`))
    while (!isDone) await ask(limiter, `load${i}`)
  })
  await expect.poll(() => first.length).toBe(load.length)
  // Batches never pause, so a context passed from one to the next would never be released.
  await expect.poll(() => heldOf(first)).toBe(0)
  isDone = true
  await Promise.all(load)
  limiter.close()
})

it('the memory store creates no timer', async () => {
  const types: string[] = []
  const hook = createHook({ init: (_id, type) => void types.push(type) })
  const limiter = createLimiter({ limits })
  hook.enable()
  for (let i = 0; i < 1000; i++) limiter.consumeSync(`key${i}`)
  hook.disable()
  expect(types).toEqual([])
})

it.each(['throw', 'deny', 'allow', 'local'] as const)(
  "a request creates no timer and isn't retained while the store is down, with onStoreError: %s",
  async (onStoreError) => {
    const silent = { failurePolicy, apply() {}, close() {} }
    const limiter = createLimiter({
      ...{ limits, store: silent, timeoutMs: 5, onStoreError, logger: false },
      breaker: { minRequests: 3, maxBackoffMs: 10 },
    })
    const references: WeakRef<object>[] = []
    let timers = 0
    const hook = createHook({
      init(_id, type) {
        if (type === 'Timeout' && context.getStore() !== undefined) timers++
      },
    })
    hook.enable()
    for (let i = 0; i < 60; i++) {
      // Alternates between attempts and requests that aren't sent.
      references.push(await ask(limiter, `key${i}`), await ask(limiter, `key${i}`))
      if (i % 10 === 0) await delay(15)
    }
    hook.disable()
    expect(timers).toBe(0)
    expect(await heldOf(references)).toBe(0)
    limiter.close()
  },
)
