import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import type { Limit } from '../limits/limit.ts'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import {
  admits,
  type ConformanceCase,
  conformanceCase,
  denies,
  left,
  type Scene,
} from './conformance-case.ts'

/** Makes a limit of this size, by a kind and its form. */
const SIZED: Readonly<Record<string, (limit: number) => Limit>> = {
  'sliding window': (limit) => slidingWindow({ limit, window: '10s' }),
  'sliding window of a sorted set': (limit) => slidingWindow({ limit, window: '10s', log: 'zset' }),
  'sliding window of a stream': (limit) => slidingWindow({ limit, window: '10s', log: 'stream' }),
  'fixed window': (limit) => fixedWindow({ limit, window: '10s' }),
  'fixed window from the first hit': (limit) => fixedWindow({ limit, window: '10s', align: 'first-hit' }),
  'sliding counter': (limit) => slidingCounter({ limit, window: '10s' }),
  'token bucket': (limit) => tokenBucket({ capacity: limit, refill: 3, interval: '10s' }),
}

/** Changes for which a limit needs another log. */
const AFRESH: readonly (readonly [string, Limit, Limit])[] = [
  [
    'a finer precision',
    slidingWindow({ limit: 10, window: '10s', precision: 100 }),
    slidingWindow({ limit: 10, window: '10s' }),
  ],
  [
    'another window of a sorted set',
    slidingWindow({ limit: 10, window: '10s', log: 'zset' }),
    slidingWindow({ limit: 10, window: '20s', log: 'zset' }),
  ],
  [
    'another interval of a bucket',
    tokenBucket({ capacity: 10, refill: 1, interval: '10s' }),
    tokenBucket({ capacity: 10, refill: 1, interval: '20s' }),
  ],
  [
    'another length of a fixed window',
    fixedWindow({ limit: 10, window: '10s' }),
    fixedWindow({ limit: 10, window: '30s' }),
  ],
  [
    'another kind',
    slidingWindow({ limit: 10, window: '10s' }),
    tokenBucket({ capacity: 10, refill: 10, interval: '10s' }),
  ],
  [
    'an end of the shadow',
    slidingWindow({ limit: 10, window: '10s', shadow: true }),
    slidingWindow({ limit: 10, window: '10s' }),
  ],
]

/** What becomes of what a key has used when its limits change. */
export const changes: readonly ConformanceCase[] = [
  ...Object.entries(SIZED).flatMap(([what, make]) => [
    conformanceCase(`${what}: what was used counts when the limit changes`, async (scene) => {
      const { limiter, change } = changing(scene, make(4))
      await admits(limiter, 'k', 4)
      await denies(limiter, 'k')
      change(make(6))
      assert.equal((await admits(limiter, 'k')).remaining, 1)
      change(make(3))
      assert.equal((await denies(limiter, 'k')).remaining, 0)
      change(make(6))
      assert.equal(await left(limiter, 'k'), 1)
    }),

    conformanceCase(
      `${what}: what was charged before can be returned after the limit changed`,
      async (scene) => {
        const { limiter, change } = changing(scene, make(10))
        const decision = await admits(limiter, 'k', 4)
        change(make(8))
        await admits(limiter, 'k', 2)
        assert.equal(await limiter.refund('k', decision), 4)
        assert.equal(await limiter.refund('k', decision), 0)
        assert.equal(await left(limiter, 'k'), 6)
      },
    ),
  ]),

  conformanceCase('a sliding window counts what was charged under another length', async (scene) => {
    const { limiter, change } = changing(scene, slidingWindow({ limit: 5, window: '10s' }))
    await admits(limiter, 'k', 2)
    scene.clock.advance(6000)
    await admits(limiter, 'k', 3)
    change(slidingWindow({ limit: 5, window: '5s' }))
    assert.equal((await denies(limiter, 'k', 3)).retryAfterMs, 5000)
    await admits(limiter, 'k', 2)
    change(slidingWindow({ limit: 20, window: '1m' }))
    // A record that is still there counts. How long a shorter window keeps one is not promised.
    assert.ok((await limiter.peek('k')).remaining <= 15)
    scene.clock.advance(60_000)
    assert.equal(await left(limiter, 'k'), 20)
  }),

  conformanceCase('a bucket keeps its debt when its refill changes', async (scene) => {
    const bucket = (refill: number) => tokenBucket({ capacity: 10, refill, interval: '10s' })
    const { limiter, change } = changing(scene, bucket(10))
    await admits(limiter, 'k', 10)
    change(bucket(100))
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 100)
    scene.clock.advance(500)
    assert.equal(await left(limiter, 'k'), 5)
    await admits(limiter, 'k', 5)
    // A lower one counts from the next charge on.
    change(bucket(1))
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 100)
    scene.clock.advance(100)
    await admits(limiter, 'k')
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 10_000)
  }),

  conformanceCase('a bucket keeps its debt when it is read under other limits', async (scene) => {
    const bucket = (refill: number) => [tokenBucket({ capacity: 10, refill, interval: '1h' })]
    const slow = scene.limiter(bucket(1))
    const fast = scene.limiter(bucket(1_000_000))
    await admits(slow, 'k', 10)
    scene.clock.advance(7_200_000)
    assert.equal(await left(fast, 'k'), 10)
    await admits(scene.limiter([fixedWindow({ limit: 5, window: '1d' })]), 'k')
    assert.equal(await left(slow, 'k'), 2)
  }),

  conformanceCase('what came back to a bucket at another refill is not returned again', async (scene) => {
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
  }),

  conformanceCase('buckets of one interval fill at rates of their own', async (scene) => {
    const limits = [
      tokenBucket({ capacity: 10, refill: 1, interval: '1s', name: 'slow' }),
      tokenBucket({ capacity: 4, refill: 4, interval: '1s', name: 'fast' }),
    ]
    const limiter = scene.limiter(limits)
    await admits(limiter, 'k', 4)
    assert.deepEqual((await denies(limiter, 'k')).deniedBy, ['fast'])
    scene.clock.advance(1000)
    const { limits: told } = await limiter.peek('k')
    assert.deepEqual(
      told.map(({ remaining }) => remaining),
      [7, 4],
    )
  }),

  ...AFRESH.flatMap(([what, then, now]) => [
    conformanceCase(`${what}: the limit begins with an empty log, and others go on`, async (scene) => {
      const other = fixedWindow({ limit: 20, window: '1h', name: 'other' })
      const { limiter, change } = changing(scene, then, other)
      await admits(limiter, 'k', 4)
      change(now, other)
      const { limits } = await admits(limiter, 'k', 10)
      assert.deepEqual(
        limits.map(({ remaining }) => remaining),
        [0, 6],
      )
      await denies(limiter, 'k')
      change(then, other)
      assert.deepEqual(
        (await limiter.peek('k')).limits.map(({ remaining }) => remaining),
        [6, 6],
      )
    }),

    conformanceCase(`${what}: a refund of what was charged before mints nothing`, async (scene) => {
      const { limiter, change } = changing(scene, then)
      const decision = await admits(limiter, 'k', 4)
      change(now)
      await admits(limiter, 'k', 2)
      await limiter.refund('k', decision)
      assert.ok((await limiter.peek('k')).remaining <= 8)
    }),
  ]),

  conformanceCase(
    'a window that comes beside another on the same log counts what that has kept',
    async (scene) => {
      const short = slidingWindow({ limit: 5, window: '1s', name: 'short' })
      const long = slidingWindow({ limit: 10, window: '10s', name: 'long' })
      const { limiter, change } = changing(scene, short)
      await admits(limiter, 'k', 4)
      change(short, long)
      assert.deepEqual(
        (await limiter.peek('k')).limits.map(({ remaining }) => remaining),
        [1, 6],
      )
      change(long)
      assert.equal(await left(limiter, 'k'), 6)
    },
  ),

  conformanceCase('each dimension keeps what its keys have used', async (scene) => {
    let user = slidingWindow({ limit: 3, window: '10s' })
    const ip = slidingWindow({ limit: 3, window: '10s' })
    const limiter = scene.create({ dimensions: { user: () => [user], ip: [ip] } })
    await admits(limiter, { user: 'a', ip: 'x' }, 2)
    user = slidingWindow({ limit: 4, window: '10s' })
    assert.equal(await left(limiter, { user: 'a', ip: null }), 2)
    assert.equal(await left(limiter, { user: null, ip: 'x' }), 1)
    await denies(limiter, { user: 'a', ip: 'x' }, 2)
  }),
]

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
