// Conformance cases about waiting requests. Waits end with a reset or a short window, to keep the cases fast.
import assert from 'node:assert/strict'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type Cases, left } from './conformance-case.ts'

export const waiting: Cases = {
  async 'waiters are admitted by priority, then in order of arrival'(scene) {
    const limiter = scene.limiter([slidingWindow({ limit: 2, window: '1d' })])
    await admits(limiter, 'k', 2)
    const admitted: string[] = []
    const waits = Object.entries({ a: 0, b: 0, c: 5, d: -1 }).map(async ([name, priority]) => {
      const decision = await limiter.wait('k', { cost: 2, priority, maxWaitMs: 2 ** 31 - 1 })
      admitted.push(name)
      return decision
    })
    assert.equal(limiter.waiting('k').length, 4)
    for (const decision of waits.keys()) {
      await limiter.reset('k')
      await until(() => admitted.length > decision)
    }
    assert.deepEqual(admitted, ['c', 'a', 'b', 'd'])
    for (const { allowed, cost, remaining } of await Promise.all(waits)) {
      assert.deepEqual([allowed, cost, remaining], [true, 2, 0])
    }
    assert.deepEqual([limiter.waiting('k').length, await left(limiter, 'k')], [0, 0])
  },

  async 'a waiter is admitted immediately if its limits allow it, otherwise as soon as they do'(scene) {
    const limiter = scene.limiter([slidingWindow({ limit: 3, window: 20 })])
    assert.equal((await limiter.wait('k', { cost: 2 })).remaining, 1)
    const wait = limiter.wait('k', { cost: 3 })
    scene.clock.advance(20)
    assert.equal((await wait).atMs, scene.clock.now())
    assert.equal(await left(limiter, 'k'), 0)
  },

  async "a wait that can't succeed in time is rejected immediately and charges nothing"(scene) {
    const limiter = scene.limiter([slidingWindow({ limit: 3, window: '1h' })])
    await admits(limiter, 'k', 2)
    await assert.rejects(limiter.wait('k', { cost: 4 }), { code: 'wait_rejected', reason: 'impossible' })
    await assert.rejects(limiter.wait('k', { cost: 2, maxWaitMs: 1000 }), { reason: 'timeout' })
    await assert.rejects(limiter.wait('k', { cost: 2, maxWaitMs: 0 }), { reason: 'timeout' })
    const abort = new AbortController()
    const wait = limiter.wait('k', { cost: 2, maxWaitMs: 2 ** 31 - 1, signal: abort.signal })
    abort.abort('gone')
    await assert.rejects(wait, { reason: 'aborted', cause: 'gone' })
    assert.deepEqual([await left(limiter, 'k'), limiter.waiting().length], [1, 0])
    await admits(limiter, 'k')
  },

  async 'a request with several keys waits until the limits of all keys allow it'(scene) {
    const limits = () => [slidingWindow({ limit: 1, window: '1d' })]
    const limiter = scene.create({ dimensions: { user: limits(), ip: limits() } })
    const key = { user: 'a', ip: 'x' }
    await admits(limiter, { user: 'a', ip: 'y' })
    let isAdmitted = false
    const wait = limiter.wait(key, { maxWaitMs: 2 ** 31 - 1 }).then((admitted) => {
      isAdmitted = true
      return admitted
    })
    // A waiter holds no units of the other key while it waits.
    await until(() => limiter.waiting(key).expectedWaitMs > 0)
    assert.equal(isAdmitted, false)
    await limiter.reset(key)
    assert.equal((await wait).limits.length, 2)
    assert.deepEqual(
      [await left(limiter, { user: 'a', ip: null }), await left(limiter, { user: null, ip: 'x' })],
      [0, 0],
    )
  },

  async "schedule runs a task when it is admitted and rejects with the task's error"(scene) {
    const limiter = scene.limiter([slidingWindow({ limit: 1, window: '1h' })])
    assert.equal(await limiter.schedule('k', async ({ remaining }) => remaining), 0)
    const failure = new Error('by the task')
    const failing = () => {
      throw failure
    }
    await assert.rejects(limiter.schedule('other', failing), failure)
    const late = limiter.schedule('k', () => assert.fail('the task was not admitted'), { maxWaitMs: 0 })
    await assert.rejects(late, { reason: 'timeout' })
  },
}

/** Polls, because the condition depends on a round trip to the store. */
async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 3000; i++) {
    if (isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  assert.fail("the condition didn't become true in time")
}
