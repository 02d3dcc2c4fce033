// Conformance cases about requests that are repeated with the same id.
import assert from 'node:assert/strict'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type Cases, leftOfEach, remainingOf } from './conformance-case.ts'
import { entriesOf } from './entries.ts'

export const repeats: Cases = {
  async 'a repeated request gets the first decision and is charged once'(scene) {
    const limited = scene.limiter([
      slidingWindow({ limit: 3, window: '10s', log: 'zset', name: 'ids' }),
      slidingWindow({ limit: 9, window: '1m', name: 'sum' }),
      slidingWindow({ limit: 9, window: '1m', log: 'stream', name: 'stream' }),
    ])
    const first = await limited.consume('k', { requestId: 'a', cost: 2 })
    scene.clock.advance(4000)
    const again = await limited.consume('k', { requestId: 'a', cost: 2 })
    assert.deepEqual(again, first)
    const peeked = await limited.peek('k', { requestId: 'a', cost: 2 })
    assert.deepEqual([peeked.allowed, peeked.atMs], [true, first.atMs])
    assert.deepEqual(await leftOfEach(limited, 'k'), [1, 7, 7])
    // The repeated request is allowed, even though a new one would be denied by now.
    await admits(limited, 'k')
    assert.equal((await limited.consume('k', { requestId: 'a', cost: 2 })).allowed, true)
    // With another key, it is a different request.
    assert.equal((await limited.consume('other', { requestId: 'a', cost: 2 })).atMs, scene.clock.now())
    scene.clock.advance(5999)
    assert.equal((await limited.consume('k', { requestId: 'a', cost: 2 })).atMs, first.atMs)
    scene.clock.advance(1)
    const later = await limited.consume('k', { requestId: 'a', cost: 2 })
    assert.deepEqual([later.allowed, later.atMs], [true, scene.clock.now()])
    assert.deepEqual(remainingOf(later), [0, 4, 4])
  },

  async 'a denied request can be retried with the same id'(scene) {
    const limited = scene.limiter([slidingWindow({ limit: 1, window: '10s', log: 'zset' })])
    await admits(limited, 'k')
    assert.equal((await limited.consume('k', { requestId: 'a' })).allowed, false)
    scene.clock.advance(10_000)
    const decision = await limited.consume('k', { requestId: 'a' })
    assert.deepEqual([decision.allowed, decision.atMs], [true, scene.clock.now()])
  },

  async 'a repeated request is refunded once'({ clock, limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 5, window: '10s', log: 'zset' }),
      slidingWindow({ limit: 9, window: '10s', name: 'sum' }),
    ])
    const first = await limited.consume('k', { requestId: 'a', cost: 2 })
    clock.advance(1000)
    const again = await limited.consume('k', { requestId: 'a', cost: 2 })
    await admits(limited, 'k')
    assert.equal(await limited.refund('k', again), 2)
    assert.equal(await limited.refund('k', first), 0)
    assert.deepEqual(await leftOfEach(limited, 'k'), [4, 8])
    // After the refund, a request with this id is new.
    assert.equal((await limited.consume('k', { requestId: 'a' })).atMs, clock.now())
  },

  async 'a request repeated at a lower cost reports the units that were charged'(scene) {
    const limited = scene.limiter([
      slidingWindow({ limit: 9, window: '10s', log: 'zset' }),
      slidingWindow({ limit: 9, window: '10s', name: 'sum' }),
    ])
    for (const cost of [1, 2, 3, 6, 9]) {
      const key = `k${cost}`
      const first = await limited.consume(key, { requestId: 'a', cost })
      const again = await limited.consume(key, { requestId: 'a' })
      assert.deepEqual(again, first)
      assert.equal((await limited.peek(key, { requestId: 'a' })).cost, cost)
      // Either decision refunds all units.
      assert.equal(await limited.refund(key, again), cost)
      assert.equal((await limited.peek(key)).remaining, 9)
    }
  },

  async 'a request repeated at a higher cost is rejected and charges nothing'(scene) {
    const limited = scene.limiter([
      slidingWindow({ limit: 5, window: '10s', log: 'zset' }),
      slidingWindow({ limit: 9, window: '10s', name: 'sum' }),
    ])
    await limited.consume('k', { requestId: 'a', cost: 2 })
    // Costs within the remaining units, beyond them, and above the limit.
    for (const cost of [3, 4, 6]) {
      const greedy = { requestId: 'a', cost }
      const refused = { name: 'SlidegateError', code: 'reused_request_id', value: cost }
      await assert.rejects(limited.consume('k', greedy), refused)
      await assert.rejects(limited.peek('k', greedy), refused)
      await assert.rejects(limited.consumeMany([{ key: 'k' }, { key: 'k', ...greedy }]), refused)
    }
    assert.deepEqual(await leftOfEach(limited, 'k'), [3, 7])
    // Other requests in the same batch are decided.
    const [greedy, other] = await Promise.allSettled([
      limited.consume('k', { requestId: 'a', cost: 3 }),
      limited.consume('k', { requestId: 'b', cost: 3 }),
    ])
    assert.deepEqual([greedy.status, other.status], ['rejected', 'fulfilled'])
    assert.deepEqual((await entriesOf(limited, 'k')).map(({ name }) => name).sort(), ['a', 'b'])
  },

  async 'simultaneous requests with the same id count as one'({ limiter }) {
    const limited = limiter([slidingWindow({ limit: 2, window: '10s', log: 'zset' })])
    const decisions = await Promise.all(
      ['a', 'a', 'b', 'a', 'c'].map((requestId) => limited.consume('k', { requestId })),
    )
    assert.deepEqual(
      decisions.map(({ allowed }) => allowed),
      [true, true, true, true, false],
    )
    assert.deepEqual((await entriesOf(limited, 'k')).map(({ name }) => name).sort(), ['a', 'b'])
  },
}
