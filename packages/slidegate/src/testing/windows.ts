// Conformance cases about precision, fixed windows and shadow limits.
import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type Cases, denies, left, opensIn } from './conformance-case.ts'

export const windows: Cases = {
  async 'at a coarse precision, a charge counts until its whole step has left the window'(scene) {
    const limited = scene.limiter([slidingWindow({ limit: 1, window: '1s', precision: 100 })])
    for (const inGrainMs of [0, 30, 99]) {
      scene.clock.set(Math.ceil(scene.clock.now() / 100) * 100 + inGrainMs)
      const decision = await admits(limited, 'k')
      assert.equal(decision.resetAfterMs, 1099 - inGrainMs)
      assert.equal(decision.limits[0]!.precisionMs, 100)
      await opensIn(scene, 1099 - inGrainMs, limited, 'k')
      await limited.reset('k')
    }
  },

  async 'charges in the same step leave the window together'(scene) {
    const limited = scene.limiter([slidingWindow({ limit: 3, window: '1s', precision: 100 })])
    await admits(limited, 'k')
    scene.clock.advance(99)
    await admits(limited, 'k')
    scene.clock.advance(1)
    await admits(limited, 'k')
    await opensIn(scene, 999, limited, 'k', 2)
    await opensIn(scene, 100, limited, 'k', 1)
  },

  async "a window that isn't a multiple of its precision is enforced, too"(scene) {
    const limited = scene.limiter([slidingWindow({ limit: 1, window: 250, precision: 100 })])
    await admits(limited, 'k')
    await opensIn(scene, 349, limited, 'k')
  },

  async 'limits with different precisions keep separate counts of the same charges'(scene) {
    const limited = scene.limiter([
      slidingWindow({ limit: 2, window: '1s', name: 'fine' }),
      slidingWindow({ limit: 2, window: '1s', precision: 50, name: 'coarse' }),
    ])
    scene.clock.advance(20)
    await admits(limited, 'k', 2)
    const { limits } = await denies(limited, 'k')
    assert.deepEqual(
      limits.map(({ retryAfterMs }) => retryAfterMs),
      [1000, 1029],
    )
    await opensIn(scene, 1029, limited, 'k', 2)
  },

  async 'the longest possible window is exact'(scene) {
    const year = 366 * 86_400_000
    const limited = scene.limiter([slidingWindow({ limit: 1, window: '366d' })])
    assert.equal((await admits(limited, 'k')).resetAfterMs, year)
    await opensIn(scene, year, limited, 'k')
  },

  async 'fixed windows start at multiples of their length since the epoch'({ clock, limiter }) {
    const limited = limiter([fixedWindow({ limit: 2, window: '10s' })])
    clock.advance(7000)
    const { resetAfterMs, limits } = await admits(limited, 'k')
    assert.deepEqual([resetAfterMs, limits[0]!.precisionMs], [3000, 10_000])
    clock.advance(1000)
    await admits(limited, 'k')
    assert.equal((await denies(limited, 'k')).retryAfterMs, 2000)
    clock.advance(1999)
    await denies(limited, 'k')
    clock.advance(1)
    assert.equal((await admits(limited, 'k', 2)).resetAfterMs, 10_000)
    await denies(limited, 'k')
  },

  async 'a fixed window admits at most twice its limit around a boundary'(scene) {
    const limited = scene.limiter([fixedWindow({ limit: 3, window: '10s' })])
    scene.clock.advance(9999)
    await admits(limited, 'k', 3)
    await denies(limited, 'k')
    scene.clock.advance(1)
    await admits(limited, 'k', 3)
    await denies(limited, 'k')
    scene.clock.advance(9999)
    await denies(limited, 'k')
  },

  async 'a shadow limit reports its own decision but never denies'({ limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 4, window: '10s', name: 'enforced' }),
      slidingWindow({ limit: 1, window: '20s', name: 'shadow', shadow: true }),
    ])
    assert.equal((await admits(limited, 'k')).limits[1]!.allowed, true)
    const second = await admits(limited, 'k')
    assert.deepEqual(
      [second.remaining, second.retryAfterMs, second.resetAfterMs, second.deniedBy],
      [2, 0, 10_000, []],
    )
    const { allowed, remaining, retryAfterMs, shadow } = second.limits[1]!
    assert.deepEqual([allowed, remaining, retryAfterMs, shadow], [false, 0, 20_000, true])
  },

  async 'a shadow limit keeps its own history'(scene) {
    const limited = scene.limiter([
      slidingWindow({ limit: 3, window: '1s', name: 'enforced' }),
      slidingWindow({ limit: 2, window: '1s', name: 'shadow', shadow: true }),
    ])
    const inShadow = async () => (await limited.peek('k')).limits[1]!.remaining
    await admits(limited, 'k')
    scene.clock.advance(500)
    // A request that doesn't fit isn't charged to the shadow limit.
    assert.equal((await admits(limited, 'k', 2)).limits[1]!.allowed, false)
    assert.equal(await inShadow(), 1)
    // A request that an enforced limit denies isn't charged to the shadow limit, either.
    await denies(limited, 'k')
    assert.equal(await inShadow(), 1)
    scene.clock.advance(500)
    assert.equal(await inShadow(), 2)
    assert.equal(await left(limited, 'k'), 1)
  },

  async 'shadow limits with the same window count separately'({ limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 2, window: '10s', name: 'two', shadow: true }),
      slidingWindow({ limit: 1, window: '10s', name: 'one', shadow: true }),
      fixedWindow({ limit: 3, window: '10s', name: 'three', shadow: true }),
    ])
    for (const allowed of [
      [true, true, true],
      [true, false, true],
      [false, false, true],
      [false, false, false],
    ]) {
      const { limits } = await admits(limited, 'k')
      assert.deepEqual(
        limits.map((limit) => limit.allowed),
        allowed,
      )
    }
  },

  async 'a limiter with only shadow limits allows every request immediately'({ limiter }) {
    const limited = limiter([slidingWindow({ limit: 1, window: '10s', shadow: true })])
    for (let i = 0; i < 3; i++) {
      const { remaining, resetAfterMs, retryAfterMs } = await admits(limited, 'k', 2)
      assert.deepEqual([remaining, resetAfterMs, retryAfterMs], [Number.POSITIVE_INFINITY, 0, 0])
    }
  },
}
