// Conformance cases about usage after a key's limits change.
import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import type { Limit } from '../limits/limit.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import {
  admits,
  type Cases,
  casesOfEach,
  denies,
  KINDS,
  left,
  leftOfEach,
  remainingOf,
  type Scene,
} from './conformance-case.ts'

/** Changes after which a limit starts with a new log. */
const NEW_LOG_CHANGES: readonly (readonly [string, Limit, Limit])[] = [
  [
    'a finer precision',
    slidingWindow({ limit: 10, window: '10s', precision: 100 }),
    slidingWindow({ limit: 10, window: '10s' }),
  ],
  [
    'a different window length in a sorted set',
    slidingWindow({ limit: 10, window: '10s', log: 'zset' }),
    slidingWindow({ limit: 10, window: '20s', log: 'zset' }),
  ],
  [
    'a different bucket interval',
    tokenBucket({ capacity: 10, refill: 1, interval: '10s' }),
    tokenBucket({ capacity: 10, refill: 1, interval: '20s' }),
  ],
  [
    'a different fixed window length',
    fixedWindow({ limit: 10, window: '10s' }),
    fixedWindow({ limit: 10, window: '30s' }),
  ],
  [
    'a different kind of limit',
    slidingWindow({ limit: 10, window: '10s' }),
    tokenBucket({ capacity: 10, refill: 10, interval: '10s' }),
  ],
  [
    'a shadow limit that becomes enforced',
    slidingWindow({ limit: 10, window: '10s', shadow: true }),
    slidingWindow({ limit: 10, window: '10s' }),
  ],
]

export const changes: Cases = {
  ...casesOfEach(Object.entries(KINDS), ([what, make]) => ({
    async [`${what}: usage still counts when the limit changes`](scene) {
      const { limiter, change } = changing(scene, make(4))
      await admits(limiter, 'k', 4)
      await denies(limiter, 'k')
      change(make(6))
      assert.equal((await admits(limiter, 'k')).remaining, 1)
      change(make(3))
      assert.equal((await denies(limiter, 'k')).remaining, 0)
      change(make(6))
      assert.equal(await left(limiter, 'k'), 1)
    },

    async [`${what}: a charge can be refunded after the limit changes`](scene) {
      const { limiter, change } = changing(scene, make(10))
      const decision = await admits(limiter, 'k', 4)
      change(make(8))
      await admits(limiter, 'k', 2)
      assert.equal(await limiter.refund('k', decision), 4)
      assert.equal(await limiter.refund('k', decision), 0)
      assert.equal(await left(limiter, 'k'), 6)
    },
  })),

  async 'a sliding window counts charges made with a different window length'(scene) {
    const { limiter, change } = changing(scene, slidingWindow({ limit: 5, window: '10s' }))
    await admits(limiter, 'k', 2)
    scene.clock.advance(6000)
    await admits(limiter, 'k', 3)
    change(slidingWindow({ limit: 5, window: '5s' }))
    assert.equal((await denies(limiter, 'k', 3)).retryAfterMs, 5000)
    await admits(limiter, 'k', 2)
    change(slidingWindow({ limit: 20, window: '1m' }))
    // The charge counts if it is still stored. It may have been deleted while the window was shorter.
    assert.ok((await limiter.peek('k')).remaining <= 15)
    scene.clock.advance(60_000)
    assert.equal(await left(limiter, 'k'), 20)
  },

  async 'a bucket keeps its debt when its refill changes'(scene) {
    const bucket = (refill: number) => tokenBucket({ capacity: 10, refill, interval: '10s' })
    const { limiter, change } = changing(scene, bucket(10))
    await admits(limiter, 'k', 10)
    change(bucket(100))
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 100)
    scene.clock.advance(500)
    assert.equal(await left(limiter, 'k'), 5)
    await admits(limiter, 'k', 5)
    // A lower refill takes effect at the next charge.
    change(bucket(1))
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 100)
    scene.clock.advance(100)
    await admits(limiter, 'k')
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 10000)
  },

  async 'a bucket keeps its debt when a limiter with other limits reads it'(scene) {
    const bucket = (refill: number) => [tokenBucket({ capacity: 10, refill, interval: '1h' })]
    const slow = scene.limiter(bucket(1))
    const fast = scene.limiter(bucket(1_000_000))
    await admits(slow, 'k', 10)
    scene.clock.advance(7_200_000)
    assert.equal(await left(fast, 'k'), 10)
    await admits(scene.limiter([fixedWindow({ limit: 5, window: '1d' })]), 'k')
    assert.equal(await left(slow, 'k'), 2)
  },

  async "units that a bucket refilled at another rate aren't refunded again"(scene) {
    const bucket = (refill: number) => tokenBucket({ capacity: 100, refill, interval: '1s' })
    const { limiter, change } = changing(scene, bucket(100))
    const reserved = await limiter.reserve('k', 50)
    scene.clock.advance(400)
    const later = await limiter.reserve('k', 40)
    change(bucket(1))
    assert.deepEqual(await limiter.cancel(reserved.token), { returned: 0, added: 0 })
    assert.equal(await left(limiter, 'k'), 50)
    scene.clock.advance(1)
    const decision = await admits(limiter, 'k', 10)
    assert.deepEqual(await limiter.cancel(later.token), { returned: 0, added: 0 })
    assert.equal(await limiter.refund('k', decision), 10)
  },

  async 'buckets with the same interval refill at their own rates'(scene) {
    const limits = [
      tokenBucket({ capacity: 10, refill: 1, interval: '1s', name: 'slow' }),
      tokenBucket({ capacity: 4, refill: 4, interval: '1s', name: 'fast' }),
    ]
    const limiter = scene.limiter(limits)
    await admits(limiter, 'k', 4)
    assert.deepEqual((await denies(limiter, 'k')).deniedBy, ['fast'])
    scene.clock.advance(1000)
    assert.deepEqual(await leftOfEach(limiter, 'k'), [7, 4])
  },

  ...casesOfEach(NEW_LOG_CHANGES, ([what, then, now]) => ({
    async [`${what}: the limit starts with an empty log, and other limits keep theirs`](scene) {
      const other = fixedWindow({ limit: 20, window: '1h', name: 'other' })
      const { limiter, change } = changing(scene, then, other)
      await admits(limiter, 'k', 4)
      change(now, other)
      assert.deepEqual(remainingOf(await admits(limiter, 'k', 10)), [0, 6])
      await denies(limiter, 'k')
      change(then, other)
      assert.deepEqual(await leftOfEach(limiter, 'k'), [6, 6])
    },

    async [`${what}: a refund of an earlier charge adds no quota`](scene) {
      const { limiter, change } = changing(scene, then)
      const decision = await admits(limiter, 'k', 4)
      change(now)
      await admits(limiter, 'k', 2)
      await limiter.refund('k', decision)
      assert.ok((await limiter.peek('k')).remaining <= 8)
    },
  })),
}

/** A limiter whose limits can be replaced. */
function changing(
  scene: Scene,
  ...first: readonly Limit[]
): { readonly limiter: Limiter; readonly change: (...next: readonly Limit[]) => void } {
  let limits = first
  const limiter = scene.create({ limits: () => limits })
  return {
    limiter,
    change: (...next) => {
      limits = next
    },
  }
}
