// Conformance cases about unconditional charges, refunds and resets.
import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import {
  admits,
  type Cases,
  calendarWindow,
  denies,
  left,
  leftOfEach,
  opensIn,
  remainingOf,
} from './conformance-case.ts'

export const charges: Cases = {
  async 'a charge can exceed the limit and counts like an admitted request'(scene) {
    const limited = scene.limiter([slidingWindow({ limit: 5, window: '10s' })])
    await admits(limited, 'k', 3)
    scene.clock.advance(1000)
    await limited.charge('k', 4)
    assert.equal((await denies(limited, 'k')).remaining, 0)
    await opensIn(scene, 9000, limited, 'k')
    await denies(limited, 'k')
    await opensIn(scene, 1000, limited, 'k', 4)
  },

  async 'a charge counts toward every limit, even shadow limits'({ limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 9, window: '10s', name: 'sliding' }),
      slidingWindow({ limit: 9, window: '10s', precision: 10, name: 'coarse' }),
      fixedWindow({ limit: 9, window: '10s', name: 'fixed' }),
      slidingWindow({ limit: 3, window: '10s', name: 'shadow', shadow: true }),
    ])
    await limited.charge('k', 4)
    const peeked = await limited.peek('k')
    assert.deepEqual(remainingOf(peeked), [5, 5, 5, 0])
    assert.equal(peeked.limits[3]!.allowed, false)
  },

  async 'charges saturate, so no key is denied for longer than the window'(scene) {
    const { clock } = scene
    const limited = scene.limiter([
      slidingWindow({ limit: 2 ** 40, window: '10s' }),
      fixedWindow({ limit: 2 ** 40, window: '10s', name: 'fixed' }),
    ])
    for (let i = 0; i < 20; i++) {
      await limited.charge('k', Number.MAX_SAFE_INTEGER)
      clock.advance(1)
    }
    assert.equal((await denies(limited, 'k')).retryAfterMs, 9999)
    // Smaller charges made later are still counted separately.
    for (let i = 0; i < 3; i++) {
      await limited.charge('k', 1)
      clock.advance(1)
    }
    clock.advance(9995)
    await denies(limited, 'k')
    clock.advance(1)
    assert.equal((await admits(limited, 'k', 2 ** 40 - 3)).remaining, 0)
    await denies(limited, 'k')
  },

  async 'a refund returns exactly the units that were charged'(scene) {
    const limited = scene.limiter([slidingWindow({ limit: 6, window: '1s' })])
    await admits(limited, 'k', 2)
    scene.clock.advance(300)
    const second = await admits(limited, 'k', 2)
    scene.clock.advance(300)
    await admits(limited, 'k', 2)
    assert.equal(await limited.refund('k', second), 2)
    assert.equal(await left(limited, 'k'), 2)
    await admits(limited, 'k', 2)
    // The first charge leaves the window on time. The second charge was refunded, so it frees nothing later.
    await opensIn(scene, 400, limited, 'k', 2)
    await opensIn(scene, 600, limited, 'k', 3)
  },

  async 'charges after a refunded one still leave the window on time'({ clock, limiter }) {
    const limited = limiter([slidingWindow({ limit: 5, window: '1s' })])
    const decisions = []
    for (let i = 0; i < 5; i++) {
      decisions.push(await admits(limited, 'k'))
      clock.advance(100)
    }
    assert.equal(await limited.refund('k', decisions[1]!), 1)
    clock.advance(499)
    for (const remaining of [1, 2, 2, 3, 4]) {
      assert.equal(await left(limited, 'k'), remaining)
      clock.advance(100)
    }
    assert.equal(await left(limited, 'k'), 5)
  },

  async 'a decision is refunded at most once, in parts or as a whole'({ limiter }) {
    const limited = limiter([slidingWindow({ limit: 9, window: '10s' })])
    await admits(limited, 'k', 2)
    const decision = await admits(limited, 'k', 5)
    assert.equal(await limited.refund('k', decision, 2), 2)
    const rest = await Promise.all([limited.refund('k', decision), limited.refund('k', decision)])
    assert.deepEqual(rest, [3, 0])
    assert.equal(await limited.refund('k', decision), 0)
    assert.equal(await left(limited, 'k'), 7)
  },

  async 'a refund of an expired or reset charge adds no quota'({ clock, limiter }) {
    const limited = limiter([slidingWindow({ limit: 3, window: '1s' })])
    const expired = await admits(limited, 'k')
    clock.advance(1000)
    assert.equal(await limited.refund('k', expired), 0)
    const forgotten = await admits(limited, 'k', 3)
    await limited.reset('k')
    assert.equal(await limited.refund('k', forgotten), 0)
    assert.equal(await left(limited, 'k'), 3)
    clock.advance(1)
    await admits(limited, 'k', 2)
    assert.equal(await limited.refund('k', forgotten), 0)
    assert.equal(await left(limited, 'k'), 1)
    clock.advance(1000)
    assert.equal(await limited.refund('k', forgotten), 0)
    assert.equal(await left(limited, 'k'), 3)
  },

  async "a refund doesn't touch charges made after a reset"({ clock, limiter }) {
    const window = '10s'
    for (const limit of [
      slidingWindow({ limit: 5, window }),
      slidingWindow({ limit: 5, window, precision: '1s' }),
      fixedWindow({ limit: 5, window }),
      fixedWindow({ limit: 5, window, align: 'first-hit' }),
      await calendarWindow({ limit: 5, unit: 'month' }),
      slidingCounter({ limit: 5, window }),
      tokenBucket({ capacity: 5, refill: 1, interval: window }),
    ]) {
      const limited = limiter([limit])
      const before = await admits(limited, 'k', 2)
      await limited.reset('k')
      clock.advance(1)
      const after = await admits(limited, 'k', 3)
      assert.equal(await limited.refund('k', before), 0)
      assert.equal(await left(limited, 'k'), 2)
      assert.equal(await limited.refund('k', after), 3)
    }
  },

  async 'a refund adds no quota after the fixed window of its charge has ended'({ clock, limiter }) {
    for (const limit of [
      fixedWindow({ limit: 3, window: '1h' }),
      fixedWindow({ limit: 3, window: '1h', align: 'first-hit' }),
      await calendarWindow({ limit: 3, unit: 'hour' }),
    ]) {
      const limited = limiter([limit])
      const decision = await admits(limited, 'k', 2)
      clock.advance(3_600_000)
      assert.equal(await limited.refund('k', decision, 1), 0)
      await admits(limited, 'k', 2)
      assert.equal(await limited.refund('k', decision), 0)
      assert.equal(await left(limited, 'k'), 1)
    }
  },

  async 'a refund reports the lowest number of refunded units across all enforced limits'({
    clock,
    limiter,
  }) {
    const limited = limiter([
      slidingWindow({ limit: 5, window: '10s', name: 'sliding' }),
      fixedWindow({ limit: 5, window: '1s', name: 'fixed' }),
      slidingWindow({ limit: 1, window: '10s', name: 'shadow', shadow: true }),
    ])
    const early = await admits(limited, 'k', 2)
    assert.equal(await limited.refund('k', early, 1), 1)
    clock.advance(1000)
    assert.equal(await limited.refund('k', early, 1), 0)
    assert.deepEqual(await leftOfEach(limited, 'k'), [5, 5, 1])
  },

  async 'a reset clears all limits of its key, but not those of other keys'({ limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 2, window: '10s', name: 'sliding' }),
      fixedWindow({ limit: 2, window: '10s', name: 'fixed' }),
      slidingWindow({ limit: 2, window: '10s', name: 'shadow', shadow: true }),
    ])
    await admits(limited, 'k', 2)
    await admits(limited, 'other', 2)
    await limited.reset('k')
    await limited.reset('never used')
    const peeked = await limited.peek('k')
    assert.deepEqual([remainingOf(peeked), peeked.resetAfterMs], [[2, 2, 2], 0])
    await denies(limited, 'other')
  },
}
