// Conformance cases about store operations: batches, operations for several requests or keys, and leases.
import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import type { Limit } from '../limits/limit.ts'
import { type LimitSet, limitSet } from '../limits/limit-set.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import type { ConsumeOp, ConsumeOutcome } from '../stores/store.ts'
import { admits, type Cases, denies, left, opensIn, type Scene } from './conformance-case.ts'

export const operations: Cases = {
  async 'operations are decided in the order in which they are listed'({ apply, clock }) {
    const set = setOf([slidingWindow({ limit: 3, window: '10s' })])
    const parts = [{ key: 'k', set }]
    const one = consume(set, ['k'])
    const outcomes = await apply(
      one,
      { type: 'charge', parts, units: 1 },
      { type: 'peek', parts, cost: 2, count: 1 },
      one,
      one,
      { type: 'refund', parts, units: 2, atMs: clock.now(), charged: [true] },
      { type: 'peek', parts, cost: 2, count: 1 },
      { type: 'reset', parts },
      { type: 'peek', parts, cost: 3, count: 1 },
    )
    const results = outcomes.map((outcome) =>
      outcome !== undefined && 'admitted' in outcome ? usedOf(outcome) : outcome,
    )
    assert.deepEqual(results, [
      { admitted: 1, used: [0] },
      undefined,
      { admitted: 0, used: [2] },
      { admitted: 1, used: [2] },
      { admitted: 0, used: [3] },
      { returned: [2] },
      { admitted: 1, used: [1] },
      undefined,
      { admitted: 1, used: [0] },
    ])
  },

  async 'an operation with a count is decided like the same number of single requests'(scene) {
    const limits = [
      slidingWindow({ limit: 7, window: '1s', name: 'sliding' }),
      slidingWindow({ limit: 12, window: '5s', name: 'long' }),
      fixedWindow({ limit: 20, window: '10s', name: 'fixed' }),
      slidingWindow({ limit: 4, window: '1s', name: 'shadow', shadow: true }),
    ]
    const set = setOf(limits)
    const limited = scene.limiter(limits)
    for (const { count, cost, admitted } of [
      { count: 3, cost: 1, admitted: 3 },
      { count: 5, cost: 2, admitted: 2 },
      { count: 2, cost: 1, admitted: 0 },
      { count: 4, cost: 2, admitted: 1 },
      { count: 1, cost: 1, admitted: 1 },
      { count: 2, cost: 2, admitted: 1 },
    ]) {
      const together = await outcomeOf(scene.apply, { ...consume(set, ['together'], cost), count })
      const singly: ConsumeOutcome[] = []
      for (let i = 0; i < count; i++) {
        singly.push(await outcomeOf(scene.apply, consume(set, ['singly'], cost)))
      }
      assert.equal(together.admitted, admitted)
      assert.equal(singly.filter((outcome) => outcome.admitted === 1).length, admitted)
      assert.deepEqual(usedOf(together).used, usedOf(singly[0]!).used)
      // The waits are the same as after the last single request.
      assert.deepEqual(waitsOf(together), waitsOf(singly.at(-1)!))
      assert.deepEqual(await limited.peek('together'), await limited.peek('singly'))
      scene.clock.advance(450)
    }
  },

  async 'a request with several keys is charged to all of them or none'({ apply, limiter }) {
    const limits = [slidingWindow({ limit: 2, window: '10s' })]
    const set = setOf(limits)
    const limited = limiter(limits)
    await admits(limited, 'b')
    const both = await outcomeOf(apply, consume(set, ['a', 'b']))
    assert.deepEqual(usedOf(both), { admitted: 1, used: [0, 1] })
    const denied = await outcomeOf(apply, consume(set, ['a', 'b']))
    assert.deepEqual(usedOf(denied), { admitted: 0, used: [1, 2] })
    assert.equal(await left(limited, 'a'), 1)
    const some = await outcomeOf(apply, { ...consume(set, ['a', 'c']), count: 5 })
    assert.deepEqual(usedOf(some), { admitted: 1, used: [1, 0] })
    assert.deepEqual([await left(limited, 'a'), await left(limited, 'c')], [0, 1])
  },

  async 'leased units count for the length of the window plus the lease'(scene) {
    const limits = [slidingWindow({ limit: 2, window: '1s' })]
    const limited = scene.limiter(limits)
    await scene.apply({ ...consume(setOf(limits), ['k']), leaseMs: 500 })
    scene.clock.advance(300)
    // Units charged during the lease may count for as long as leased units, because the log can't distinguish them.
    assert.equal((await admits(limited, 'k')).resetAfterMs, 1200)
    assert.equal((await denies(limited, 'k')).retryAfterMs, 1200)
    await opensIn(scene, 1200, limited, 'k', 2)
    await opensIn(scene, 1000, limited, 'k', 2)
  },

  async 'the window returns to its own length when no lease is active'(scene) {
    const limits = [slidingWindow({ limit: 2, window: '1s' })]
    const limited = scene.limiter(limits)
    await scene.apply({ ...consume(setOf(limits), ['k']), leaseMs: 500 })
    scene.clock.advance(600)
    assert.equal((await admits(limited, 'k')).resetAfterMs, 1000)
    assert.equal((await denies(limited, 'k')).retryAfterMs, 900)
    await opensIn(scene, 900, limited, 'k')
    await opensIn(scene, 100, limited, 'k')
    await opensIn(scene, 900, limited, 'k')
  },

  async "setting the clock back doesn't extend a lease"(scene) {
    const limits = [slidingWindow({ limit: 5, window: '1s' })]
    const limited = scene.limiter(limits)
    await scene.apply({ ...consume(setOf(limits), ['k']), leaseMs: 500 })
    scene.clock.advance(-3_600_000)
    assert.equal((await admits(limited, 'k')).resetAfterMs, 1500)
    scene.clock.advance(600)
    assert.equal((await admits(limited, 'k')).resetAfterMs, 1000)
  },

  async 'of two overlapping leases, the one that ends later counts'(scene) {
    const limits = [slidingWindow({ limit: 3, window: '1s' })]
    const limited = scene.limiter(limits)
    const lease = { ...consume(setOf(limits), ['k']), leaseMs: 500 }
    await scene.apply(lease)
    scene.clock.advance(450)
    await scene.apply({ ...lease, leaseMs: 100 })
    // The first lease can be spent until 500 ms and the second until 550 ms, and the log can't distinguish them.
    assert.equal((await limited.peek('k', { cost: 2 })).retryAfterMs, 1050)
    await opensIn(scene, 1050, limited, 'k', 2)
    await opensIn(scene, 50, limited, 'k')
  },

  async 'every limiter on the key honors a lease'(scene) {
    const limits = [slidingWindow({ limit: 5, window: '1s' })]
    const short = scene.limiter([slidingWindow({ limit: 1, window: 500 })])
    const long = scene.limiter([slidingWindow({ limit: 2, window: '2s' })])
    await scene.apply({ ...consume(setOf(limits), ['k']), leaseMs: 400 })
    assert.equal((await short.peek('k')).resetAfterMs, 900)
    // The log keeps charges for the window of the leasing limiter plus the length of the lease.
    assert.equal((await long.peek('k')).resetAfterMs, 1400)
    scene.clock.advance(100)
    assert.equal((await admits(long, 'k')).resetAfterMs, 2300)
    await opensIn(scene, 800, short, 'k')
  },

  async 'a refund returns at most the units that were charged at that time'({ apply, clock }) {
    for (const limit of [
      slidingWindow({ limit: 9, window: '10s' }),
      fixedWindow({ limit: 9, window: '10s' }),
    ]) {
      const set = setOf([limit])
      const parts = [{ key: 'k', set }]
      await apply(consume(set, ['k'], 2))
      const refund = { type: 'refund', parts, units: 5, atMs: clock.now() } as const
      assert.deepEqual(await apply({ ...refund, charged: [false] }), [{ returned: [0] }])
      assert.deepEqual(await apply({ ...refund, charged: [true] }), [{ returned: [2] }])
      assert.deepEqual(await apply({ ...refund, charged: [true] }), [{ returned: [0] }])
    }
  },
}

/** Returns the limit set that a limiter with the default name would have. */
function setOf(limits: readonly Limit[]): LimitSet {
  return limitSet('conformance', limits)
}

function consume(set: LimitSet, keys: readonly string[], cost = 1): ConsumeOp {
  return { type: 'consume', parts: keys.map((key) => ({ key, set })), cost, count: 1, leaseMs: 0 }
}

async function outcomeOf(apply: Scene['apply'], op: ConsumeOp): Promise<ConsumeOutcome> {
  return (await apply(op))[0] as ConsumeOutcome
}

/** Returns the number of admitted requests, and each limit's usage before these requests. */
function usedOf({ admitted, limits }: ConsumeOutcome): { admitted: number; used: number[] } {
  return { admitted, used: limits.filter((_, place) => place % 3 === 0) }
}

function waitsOf({ limits }: ConsumeOutcome): number[] {
  return limits.filter((_, place) => place % 3 !== 0)
}
