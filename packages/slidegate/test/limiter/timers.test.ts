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

/** What a request carries with it through everything that it causes. */
const context = new AsyncLocalStorage<object>()

/** A request, answered or not, with a context that nothing but what it has left behind can still hold. */
async function ask(limiter: Limiter, key: string): Promise<WeakRef<object>> {
  const request = { key }
  await context.run(request, async () => {
    await limiter.consume(key).catch(() => undefined)
  })
  return new WeakRef(request)
}

async function heldOf(references: readonly WeakRef<object>[]): Promise<number> {
  // References are kept to the end of the turn in which they were made.
  for (let turn = 0; turn < 3; turn++) {
    await delay(1)
    collectGarbage()
  }
  return references.filter((reference) => reference.deref() !== undefined).length
}

describe.each(Object.entries(limiters))('on %s', (_, create) => {
  it('a limiter makes no timer on behalf of a request, which would keep its context', async () => {
    const limiter = create()
    let timers = 0
    const hook = createHook({
      init(_id, type) {
        if (type === 'Timeout' && context.getStore() !== undefined) timers++
      },
    })
    hook.enable()
    for (let i = 0; i < 50; i++) await ask(limiter, `k${i}`)
    // After every timer has run out, too.
    await delay(3 * TIMEOUT_MS)
    await ask(limiter, 'late')
    hook.disable()
    limiter.close()
    expect(timers).toBe(0)
  })

  it('a limiter keeps no context of an answered request', async () => {
    const limiter = create()
    const references: WeakRef<object>[] = []
    for (let i = 0; i < 5; i++) {
      for (let j = 0; j < 10; j++) references.push(await ask(limiter, `key${j}`))
      // Long enough for all timers to run out: the next request finds none.
      await delay(3 * TIMEOUT_MS)
    }
    // A reply that is late keeps its request until it comes.
    await expect.poll(() => heldOf(references)).toBe(0)
    limiter.close()
  })
})

it('a limiter under load keeps no context of an answered request, though one batch sends the next', async () => {
  const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  let isDone = false
  const first: WeakRef<object>[] = []
  const load = Array.from({ length: 500 }, async (_, i) => {
    first.push(await ask(limiter, `load${i}`))
    while (!isDone) await ask(limiter, `load${i}`)
  })
  await expect.poll(() => first.length).toBe(load.length)
  // Batches never pause, so a context that one passes on would be kept for ever.
  await expect.poll(() => heldOf(first)).toBe(0)
  isDone = true
  await Promise.all(load)
  limiter.close()
})

it('the memory store makes no timer at all', async () => {
  const types: string[] = []
  const hook = createHook({ init: (_id, type) => void types.push(type) })
  const limiter = createLimiter({ limits })
  hook.enable()
  for (let i = 0; i < 1000; i++) limiter.consumeSync(`key${i}`)
  hook.disable()
  expect(types).toEqual([])
})

it.each(['throw', 'deny', 'allow', 'local'] as const)(
  'a request makes no timer and is not kept while the store is down: onStoreError is %s',
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
      // By turns those that are sent to find out, and those that are not sent at all.
      references.push(await ask(limiter, `key${i}`), await ask(limiter, `key${i}`))
      if (i % 10 === 0) await delay(15)
    }
    hook.disable()
    expect(timers).toBe(0)
    expect(await heldOf(references)).toBe(0)
    limiter.close()
  },
)
