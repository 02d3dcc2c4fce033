// Conformance cases about sliding counters. A scene starts at the beginning of a 10 s window, and of all shorter windows
// whose length divides 10 s.
import assert from 'node:assert/strict'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { admits, type Cases, denies, left, opensIn } from './conformance-case.ts'

export const slidingCounters: Cases = {
  async 'the previous window of a sliding counter counts less and less'({ clock, limiter }) {
    const limited = limiter([slidingCounter({ limit: 10, window: '10s' })])
    clock.advance(4000)
    const { resetAfterMs, limits } = await admits(limited, 'k', 10)
    assert.deepEqual([resetAfterMs, limits[0]!.precisionMs], [16_000, 1])
    clock.advance(5999)
    assert.equal(await left(limited, 'k'), 0)
    // In the next window, the units count as ten in the first tenth (rounded up), as nine in the second, and so on.
    for (let tenths = 0; tenths < 10; tenths++) {
      clock.advance(1)
      assert.equal(await left(limited, 'k'), tenths)
      clock.advance(999)
      assert.equal(await left(limited, 'k'), tenths)
    }
    clock.advance(1)
    const { remaining, resetAfterMs: resetMs } = await limited.peek('k')
    assert.deepEqual([remaining, resetMs], [10, 0])
  },

  async 'a sliding counter reports when a cost fits, in this window or the next'(scene) {
    const limited = scene.limiter([slidingCounter({ limit: 10, window: '1s' })])
    // In the next window, these costs fit once the 7 units count as at most 6, 4, 1 and 0, respectively.
    for (const [cost, ms] of [
      [4, 143],
      [6, 429],
      [9, 858],
      [10, 1000],
    ] as const) {
      await limited.reset('k')
      scene.clock.set(Math.ceil(scene.clock.now() / 1000) * 1000 + 250)
      await admits(limited, 'k', 7)
      assert.equal((await denies(limited, 'k', cost)).retryAfterMs, 750 + ms)
      await opensIn(scene, 750 + ms, limited, 'k', cost)
    }
    assert.equal((await denies(limited, 'k', 11)).retryAfterMs, Number.POSITIVE_INFINITY)
  },

  async 'a sliding counter waits for the previous window, then for the current one'(scene) {
    const limited = scene.limiter([slidingCounter({ limit: 10, window: '1s' })])
    await admits(limited, 'k', 10)
    scene.clock.advance(1500)
    await admits(limited, 'k', 5)
    await opensIn(scene, 100, limited, 'k')
    // The current window has 6 units, and the previous window's units count as 4. A cost of 1 fits when these count as
    // 3, and a cost of 4 when they count as 0.
    assert.equal((await denies(limited, 'k')).retryAfterMs, 100)
    assert.equal((await denies(limited, 'k', 4)).retryAfterMs, 400)
    // A cost of 5 fits once the 6 units begin to count less.
    assert.equal((await denies(limited, 'k', 5)).retryAfterMs, 400 + 167)
    await opensIn(scene, 567, limited, 'k', 5)
  },

  async 'a sliding counter admits up to one unit less than twice its limit in a window'(scene) {
    const limited = scene.limiter([slidingCounter({ limit: 5, window: '10s' })])
    scene.clock.advance(9999)
    await admits(limited, 'k', 5)
    scene.clock.advance(9998)
    assert.equal((await denies(limited, 'k', 5)).remaining, 4)
    await admits(limited, 'k', 4)
    assert.equal((await denies(limited, 'k')).retryAfterMs, 3)
  },

  async 'sliding counters with the same window share their counts, and each denies by its own limit'(scene) {
    const both = scene.limiter([
      slidingCounter({ limit: 9, window: '1s', name: 'large' }),
      slidingCounter({ limit: 4, window: '1s', name: 'small' }),
    ])
    const other = scene.limiter([slidingCounter({ limit: 4, window: '2s' })])
    await admits(both, 'k', 3)
    assert.equal(await left(other, 'k'), 4)
    const { deniedBy, limits } = await denies(both, 'k', 2)
    assert.deepEqual(deniedBy, ['small'])
    assert.deepEqual(
      limits.map(({ remaining, retryAfterMs }) => [remaining, retryAfterMs]),
      [
        [6, 0],
        [1, 1334],
      ],
    )
    await opensIn(scene, 1334, both, 'k', 2)
  },

  async 'a sliding counter saturates at the highest count that its limit can distinguish'({ clock, create }) {
    let limit = 2 ** 40
    const limited = create({ limits: () => [slidingCounter({ limit, window: '10s' })] })
    const waitAt = async (size: number) => {
      limit = size
      return (await denies(limited, 'k')).retryAfterMs
    }
    await limited.charge('k', Number.MAX_SAFE_INTEGER)
    assert.deepEqual([await waitAt(2 ** 40), await waitAt(2 ** 38)], [15_120, 13_897])
    clock.advance(10_000)
    assert.deepEqual([await waitAt(2 ** 40), await waitAt(2 ** 38)], [5120, 3897])
    limit = 2 ** 40
    await limited.charge('k', 1)
    assert.deepEqual([await waitAt(2 ** 40), await waitAt(2 ** 38)], [5120, 3897])
  },

  async 'a sliding counter refunds units in the window in which they were charged'(scene) {
    const limited = scene.limiter([slidingCounter({ limit: 10, window: '1s' })])
    const first = await admits(limited, 'k', 4)
    scene.clock.advance(1000)
    const second = await admits(limited, 'k', 5)
    assert.equal(await limited.refund('k', second, 3), 3)
    scene.clock.advance(500)
    // This window has 2 units, and half of the previous window's 4 units count.
    assert.equal(await left(limited, 'k'), 6)
    assert.equal(await limited.refund('k', first), 4)
    assert.equal(await left(limited, 'k'), 8)
    assert.equal(await limited.refund('k', second), 2)
    const { remaining, resetAfterMs } = await limited.peek('k')
    assert.deepEqual([remaining, resetAfterMs], [10, 0])
  },

  async 'a refund to a sliding counter adds no quota beyond its charge'({ clock, limiter }) {
    const limited = limiter([slidingCounter({ limit: 3, window: '1s' })])
    const early = await admits(limited, 'k', 2)
    clock.advance(2000)
    await admits(limited, 'k', 3)
    assert.equal(await limited.refund('k', early), 0)
    assert.equal(await left(limited, 'k'), 0)
    await limited.reset('k')
    const forgotten = await admits(limited, 'k', 3)
    await limited.reset('k')
    assert.equal(await limited.refund('k', forgotten), 0)
    await admits(limited, 'k')
    assert.equal(await limited.refund('k', forgotten), 1)
    assert.equal(await left(limited, 'k'), 3)
  },

  async 'after the clock is set back slightly across a boundary, a sliding counter waits for the clock'(
    scene,
  ) {
    const { clock } = scene
    const limited = scene.limiter([slidingCounter({ limit: 3, window: '1s' })])
    const { atMs } = await admits(limited, 'k', 2)
    clock.advance(-500)
    assert.equal((await admits(limited, 'k')).atMs, atMs)
    const denied = await denies(limited, 'k')
    assert.deepEqual([denied.atMs, denied.retryAfterMs], [atMs, 1334])
    clock.set(atMs + 1333)
    await denies(limited, 'k')
    clock.advance(1)
    await admits(limited, 'k')
  },

  async 'after the clock is set back by more than 1 s, all units of a sliding counter count in the current window'(
    scene,
  ) {
    const { clock } = scene
    const limited = scene.limiter([slidingCounter({ limit: 6, window: '1s' })])
    await admits(limited, 'k', 4)
    clock.advance(1500)
    await admits(limited, 'k', 4)
    clock.advance(-3_600_000)
    for (let waitMs = 1500; waitMs > 500; waitMs -= 250) {
      const { atMs, retryAfterMs } = await denies(limited, 'k', 6)
      assert.deepEqual([atMs, retryAfterMs], [clock.now(), waitMs])
      clock.advance(250)
    }
    // Half of the 8 units count.
    assert.equal(await left(limited, 'k'), 2)
    await opensIn(scene, 500, limited, 'k', 6)
  },
}
