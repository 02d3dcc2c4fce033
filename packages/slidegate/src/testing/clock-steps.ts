// Conformance cases about steps in the store's clock.
import assert from 'node:assert/strict'
import { concurrency } from '../limits/concurrency.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type Cases, denies } from './conformance-case.ts'

export const clockSteps: Cases = {
  async 'a clock can start at 0'({ clock, limiter }) {
    clock.set(0)
    const limited = limiter([slidingWindow({ limit: 2, window: '1s' })])
    const first = await admits(limited, 'k')
    assert.deepEqual([first.atMs, first.resetAfterMs], [0, 1000])
    clock.advance(999)
    await admits(limited, 'k')
    assert.equal((await denies(limited, 'k')).retryAfterMs, 1)
    clock.advance(1)
    await admits(limited, 'k')
  },

  async "after the clock is set back slightly, time doesn't advance until the clock catches up"({
    clock,
    limiter,
  }) {
    const limited = limiter([slidingWindow({ limit: 3, window: '10s' })])
    const { atMs } = await admits(limited, 'k')
    clock.advance(-1000)
    assert.equal((await admits(limited, 'k')).atMs, atMs)
    clock.advance(400)
    assert.equal((await admits(limited, 'k')).atMs, atMs)
    const denied = await denies(limited, 'k')
    assert.deepEqual([denied.atMs, denied.retryAfterMs], [atMs, 10_000])
    clock.set(atMs + 9999)
    await denies(limited, 'k')
    clock.advance(1)
    assert.equal((await admits(limited, 'k', 3)).atMs, atMs + 10_000)
  },

  async 'after the clock is set back slightly, keys in one batch are still counted separately'(scene) {
    const { clock } = scene
    const limited = scene.limiter([
      slidingWindow({ limit: 12, window: 150 }),
      slidingWindow({ limit: 60, window: '10s' }),
    ])
    const costs = { one: 1, two: 2, full: 2, other: 1 }
    for (let i = 0; i < 10; i++) {
      clock.advance(30)
      for (const [key, cost] of Object.entries(costs)) await limited.consume(key, { cost })
    }
    await limited.charge('full', 2)
    clock.advance(-100)
    const decisions = await Promise.all(Object.keys(costs).map((key) => limited.consume(key)))
    assert.deepEqual(
      decisions.map(({ allowed, remaining, retryAfterMs }) => [allowed, remaining, retryAfterMs]),
      [
        [true, 6, 0],
        [true, 1, 0],
        [false, 0, 30],
        [true, 6, 0],
      ],
    )
  },

  async "a limit isn't affected if another limit is further ahead of the clock"({ clock, limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 9, window: '10s', name: 'window' }),
      concurrency({ limit: 9, ttl: '10s', name: 'held' }),
    ])
    const startMs = clock.now()
    clock.advance(900)
    const permit = await limited.acquire('k')
    clock.advance(900)
    assert.equal(await permit.extend(), true)
    clock.set(startMs)
    // The window is 900 ms ahead of the clock. The permit is 1800 ms ahead.
    assert.equal((await limited.peek('k')).atMs, startMs + 900)
  },

  async 'after the clock is set back by more than 1 s, all charges count as if made now, so no window exceeds its limit'({
    clock,
    limiter,
  }) {
    const limited = limiter([slidingWindow({ limit: 3, window: '10s' })])
    await admits(limited, 'k')
    clock.advance(4000)
    await admits(limited, 'k')
    clock.advance(-1001)
    const third = await admits(limited, 'k')
    assert.deepEqual([third.atMs, third.remaining], [clock.now(), 0])
    clock.advance(9999)
    assert.equal((await denies(limited, 'k')).retryAfterMs, 1)
    clock.advance(1)
    await admits(limited, 'k', 3)
  },

  async 'after the clock is set back by more than 1 s, no key is denied for longer than the window'(scene) {
    const { clock } = scene
    const limited = scene.limiter([
      slidingWindow({ limit: 2, window: '1s', name: 'second' }),
      slidingWindow({ limit: 4, window: '10s', name: 'ten' }),
      slidingWindow({ limit: 4, window: '10s', precision: 100, name: 'coarse' }),
      fixedWindow({ limit: 4, window: '10s', name: 'fixed' }),
    ])
    await admits(limited, 'k', 2)
    clock.advance(1000)
    await admits(limited, 'k', 2)
    clock.advance(-3_600_000)
    const denied = await denies(limited, 'k')
    assert.equal(denied.atMs, clock.now())
    assert.deepEqual(
      denied.limits.map(({ retryAfterMs }) => retryAfterMs),
      [1000, 10_000, 10_099, 9000],
    )
    clock.advance(10_098)
    assert.deepEqual((await denies(limited, 'k')).deniedBy, ['coarse'])
    clock.advance(1)
    assert.equal((await admits(limited, 'k', 2)).remaining, 0)
  },

  async "a denial after the clock is set back by more than 1 s also updates stored times, so the wait doesn't restart"(
    scene,
  ) {
    const { clock } = scene
    const limited = scene.limiter([slidingWindow({ limit: 1, window: '10s' })])
    await admits(limited, 'k')
    clock.advance(-60_000)
    for (let waitMs = 10_000; waitMs > 0; waitMs -= 2500) {
      assert.equal((await denies(limited, 'k')).retryAfterMs, waitMs)
      clock.advance(2500)
    }
    await admits(limited, 'k')
  },

  async 'a renewal after the clock is set back by more than 1 s also updates stored times, so the slot lasts for its ttl'({
    clock,
    create,
  }) {
    const held = concurrency({ limit: 1, ttl: '1s' })
    const limiters = [
      create({ name: 'window', limits: [held, slidingWindow({ limit: 9, window: '10s' })] }),
      create({ name: 'ban', limits: [held], ban: { after: 1, within: '10s', for: '10s' } }),
    ]
    for (const limiter of limiters) {
      const permit = await limiter.acquire('k')
      // A ban has its own timestamp.
      await denies(limiter, 'k')
      clock.advance(-1001)
      assert.equal(await permit.extend(), true)
      clock.advance(1)
      const { atMs, limits, blockedMs } = await denies(limiter, 'k')
      assert.deepEqual([atMs, limits[0]!.retryAfterMs], [clock.now(), 999], limiter.name)
      assert.equal(blockedMs, limiter.name === 'ban' ? 9999 : undefined)
    }
  },
}
