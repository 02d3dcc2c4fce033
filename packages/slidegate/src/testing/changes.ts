import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import type { Limit } from '../limits/limit.ts'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import { admits, type ConformanceCase, conformanceCase, denies, left } from './conformance-case.ts'

/** Changes for which the log gets another name, and so has to be told of. Four units of ten are used under the first. */
const CHANGES: readonly (readonly [string, Limit, Limit])[] = [
  [
    'a finer precision',
    slidingWindow({ limit: 10, window: '10s', precision: 100 }),
    slidingWindow({ limit: 10, window: '10s' }),
  ],
  [
    'a coarser precision',
    slidingWindow({ limit: 10, window: '10s' }),
    slidingWindow({ limit: 10, window: '10s', precision: 100 }),
  ],
  [
    'a longer window of a sorted set',
    slidingWindow({ limit: 10, window: '10s', log: 'zset' }),
    slidingWindow({ limit: 10, window: '20s', log: 'zset' }),
  ],
  [
    'a shorter window of a sorted set',
    slidingWindow({ limit: 10, window: '20s', log: 'zset' }),
    slidingWindow({ limit: 10, window: '10s', log: 'zset' }),
  ],
  [
    'a longer window of a stream',
    slidingWindow({ limit: 10, window: '10s', log: 'stream' }),
    slidingWindow({ limit: 10, window: '20s', log: 'stream' }),
  ],
  [
    'another rate of a bucket',
    tokenBucket({ capacity: 10, refill: 1, interval: '10s' }),
    tokenBucket({ capacity: 10, refill: 2, interval: '10s' }),
  ],
  [
    'another length of a fixed window',
    fixedWindow({ limit: 10, window: '10s' }),
    fixedWindow({ limit: 10, window: '30s' }),
  ],
  [
    'another alignment',
    fixedWindow({ limit: 10, window: '10s' }),
    fixedWindow({ limit: 10, window: '10s', align: 'first-hit' }),
  ],
  [
    'another window of a counter',
    slidingCounter({ limit: 10, window: '10s' }),
    slidingCounter({ limit: 10, window: '20s' }),
  ],
  [
    'a sliding window after a fixed one',
    fixedWindow({ limit: 10, window: '10s' }),
    slidingWindow({ limit: 10, window: '10s' }),
  ],
  [
    'a bucket after a sliding window',
    slidingWindow({ limit: 10, window: '10s' }),
    tokenBucket({ capacity: 10, refill: 10, interval: '10s' }),
  ],
  [
    'a packed window after a sorted set',
    slidingWindow({ limit: 10, window: '10s', log: 'zset' }),
    slidingWindow({ limit: 10, window: '10s' }),
  ],
]

/** What becomes of what a key has used when its limits change. */
export const changes: readonly ConformanceCase[] = [
  ...CHANGES.flatMap(([what, then, now]) => [
    conformanceCase(`${what}: what was used before counts on, if it is told of`, async (scene) => {
      const before = scene.limiter([then])
      const after = scene.create({ limits: [now], formerly: [[then]] })
      await admits(before, 'k', 4)
      assert.equal(await left(after, 'k'), 6)
      await denies(after, 'k', 7)
      assert.equal((await admits(after, 'k', 6)).remaining, 0)
      await denies(after, 'k')
      await denies(after, 'k')
      // Of what came after, those who do not know of the change see nothing.
      assert.equal(await left(before, 'k'), 6)
      assert.equal(await left(after, 'other'), 10)
    }),

    conformanceCase(
      `${what}: no wait is too short, none is for ever, and all is free in the end`,
      async (scene) => {
        const before = scene.limiter([then])
        const after = scene.create({ limits: [now], formerly: [[then]] })
        await admits(before, 'k', 4)
        scene.clock.advance(1500)
        await admits(after, 'k', 6)
        for (const cost of [1, 3, 10]) {
          let waits = 0
          for (let denied = await after.peek('k', { cost }); !denied.allowed; waits++) {
            assert.ok(denied.retryAfterMs > 0 && denied.retryAfterMs <= 200_000, `${denied.retryAfterMs} ms`)
            assert.ok(denied.resetAfterMs >= denied.retryAfterMs)
            scene.clock.advance(denied.retryAfterMs - 1)
            assert.equal((await after.peek('k', { cost })).allowed, false)
            scene.clock.advance(1)
            denied = await after.peek('k', { cost })
          }
          assert.ok(waits <= 1, 'it was to be admitted when it was told')
        }
        assert.equal((await admits(after, 'k', 10)).remaining, 0)
      },
    ),

    conformanceCase(
      `${what}: what was admitted before can be returned after, to where it was charged`,
      async (scene) => {
        let limits = [then]
        const limiter = scene.create({ limits: () => limits, formerly: [[then]] })
        const decision = await admits(limiter, 'k', 4)
        limits = [now]
        await admits(limiter, 'k', 2)
        assert.equal(await limiter.refund('k', decision), 4)
        assert.equal(await limiter.refund('k', decision), 0)
        assert.equal(await left(limiter, 'k'), 8)
        limits = [then]
        assert.equal(await left(limiter, 'k'), 10)
      },
    ),

    conformanceCase(`${what}: a reset forgets what was used before, too`, async (scene) => {
      const before = scene.limiter([then])
      const after = scene.create({ limits: [now], formerly: [[then]] })
      await admits(before, 'k', 4)
      await admits(after, 'k', 4)
      await after.reset('k')
      assert.deepEqual([await left(before, 'k'), await left(after, 'k')], [10, 10])
    }),
  ]),

  conformanceCase('a number that changes needs no telling, for whatever kind', async (scene) => {
    const makes: readonly ((limit: number) => Limit)[] = [
      (limit) => slidingWindow({ limit, window: '10s' }),
      (limit) => slidingWindow({ limit, window: '10s', log: 'zset' }),
      (limit) => slidingWindow({ limit, window: '10s', log: 'stream' }),
      (limit) => fixedWindow({ limit, window: '10s' }),
      (limit) => fixedWindow({ limit, window: '10s', align: 'first-hit' }),
      (limit) => slidingCounter({ limit, window: '10s' }),
      (limit) => tokenBucket({ capacity: limit, refill: 3, interval: '10s' }),
    ]
    for (const [i, make] of makes.entries()) {
      let plan = [make(4)]
      const limiter = scene.create({ limits: () => plan })
      const key = `${i}`
      await admits(limiter, key, 4)
      await denies(limiter, key)
      plan = [make(6)]
      assert.equal((await admits(limiter, key)).remaining, 1, key)
      plan = [make(3)]
      assert.equal((await denies(limiter, key)).remaining, 0)
      plan = [make(6)]
      assert.equal(await left(limiter, key), 1)
    }
  }),

  conformanceCase('sets of several changes are all told of', async (scene) => {
    const [first, second, third] = [100, 1000, 10].map((precision) =>
      slidingWindow({ limit: 10, window: '10s', precision }),
    ) as [Limit, Limit, Limit]
    await admits(scene.limiter([first]), 'k', 2)
    await admits(scene.create({ limits: [second], formerly: [[first]] }), 'k', 3)
    const last = scene.create({ limits: [third], formerly: [[second], [first]] })
    assert.equal(await left(last, 'k'), 5)
    await admits(last, 'k', 5)
    await denies(last, 'k')
  }),

  conformanceCase(
    'one of two limits that goes takes nothing with it, one that comes begins with what is known',
    async (scene) => {
      const short = slidingWindow({ limit: 5, window: '1s', name: 'short' })
      const long = fixedWindow({ limit: 10, window: '10s', name: 'long' })
      await admits(scene.limiter([short]), 'k', 4)
      const both = scene.create({ limits: [short, long], formerly: [[short]] })
      // What the shorter one holds is charged still, so that it is not counted for the other, too.
      assert.equal((await both.peek('k')).limits[0]!.remaining, 1)
      await admits(both, 'k')
      await denies(both, 'k')
      const last = scene.create({ limits: [long], formerly: [[short, long]] })
      assert.equal((await denies(last, 'k', 10)).remaining, 9)
    },
  ),

  conformanceCase('a dimension can be told of changes on its own', async (scene) => {
    const [then, now] = [
      slidingWindow({ limit: 3, window: '10s', precision: 10 }),
      slidingWindow({ limit: 3, window: '10s' }),
    ]
    const dimensions = { user: [then], ip: [then] }
    const before = scene.create({ dimensions })
    await admits(before, { user: 'a', ip: 'x' }, 2)
    const after = scene.create({ dimensions: { user: [now], ip: [now] }, formerly: { user: [[then]] } })
    assert.equal(await left(after, { user: 'a', ip: null }), 1)
    assert.equal(await left(after, { user: null, ip: 'x' }), 3)
    await denies(after, { user: 'a', ip: 'x' }, 2)
  }),

  conformanceCase('a refund on a key that has expired, or that is empty, mints nothing', async (scene) => {
    let limits = [slidingWindow({ limit: 5, window: '1s', precision: 10 })]
    const formerly = [limits]
    const limiter: Limiter = scene.create({ limits: () => limits, formerly })
    const decision = await admits(limiter, 'k', 3)
    limits = [slidingWindow({ limit: 5, window: '1s' })]
    await limiter.reset('k')
    assert.equal(await limiter.refund('k', decision), 0)
    assert.equal(await left(limiter, 'k'), 5)
    const late = await admits(limiter, 'k', 3)
    scene.clock.advance(1000)
    assert.equal(await limiter.refund('k', late), 0)
    await admits(limiter, 'k', 5)
    await denies(limiter, 'k')
  }),
]
