// Conformance cases about decisions: admission, cost, and the fields of a decision.
import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import { admits, type Cases, denies, KINDS, left, leftOfEach, opensIn } from './conformance-case.ts'

export const decisions: Cases = {
  async 'a limit admits exactly the units it allows'({ limiter }) {
    const limited = limiter([slidingWindow({ limit: 5, window: '10s' })])
    for (const remaining of [4, 3, 2, 1, 0]) {
      assert.equal((await admits(limited, 'k')).remaining, remaining)
    }
    await denies(limited, 'k')
  },

  async 'the window slides: each charge leaves at its own time'(scene) {
    const limited = scene.limiter([slidingWindow({ limit: 3, window: '1s' })])
    await admits(limited, 'k')
    scene.clock.advance(300)
    await admits(limited, 'k')
    scene.clock.advance(300)
    await admits(limited, 'k')
    await opensIn(scene, 400, limited, 'k')
    await opensIn(scene, 300, limited, 'k')
    await opensIn(scene, 300, limited, 'k')
    await opensIn(scene, 400, limited, 'k')
  },

  async 'no window exceeds its limit, and every request that fits is admitted'(scene) {
    const rules = [
      { limit: 7, window: 1000 },
      { limit: 12, window: 3000 },
    ]
    const limited = scene.limiter(rules.map((rule) => slidingWindow(rule)))
    const admitted: { atMs: number; cost: number }[] = []
    const random = pseudoRandom()
    for (let request = 0; request < 400; request++) {
      scene.clock.advance(random(250))
      const cost = 1 + random(3)
      const nowMs = scene.clock.now()
      const used = (window: number) =>
        admitted.reduce((sum, event) => sum + (nowMs - event.atMs < window ? event.cost : 0), 0)
      const fits = rules.every(({ limit, window }) => used(window) + cost <= limit)
      const { allowed, atMs } = await limited.consume('k', { cost })
      assert.deepEqual({ request, allowed, atMs }, { request, allowed: fits, atMs: nowMs })
      if (allowed) admitted.push({ atMs, cost })
    }
    assert.ok(admitted.length > 100 && admitted.length < 300)
  },

  async 'a denial charges nothing'({ limiter }) {
    for (const [key, limitOf] of Object.entries(KINDS)) {
      const limited = limiter([limitOf(10)])
      await admits(limited, key, 8)
      for (let i = 0; i < 5; i++) assert.equal((await denies(limited, key, 8)).remaining, 2)
      assert.equal((await admits(limited, key, 2)).remaining, 0)
    }
  },

  async "denied requests don't delay the next admission"(scene) {
    const limited = scene.limiter([
      slidingWindow({ limit: 2, window: '1s' }),
      fixedWindow({ limit: 3, window: '1s', name: 'fixed' }),
    ])
    await admits(limited, 'k', 2)
    for (let atMs = 0; atMs < 1000; atMs += 50) {
      assert.equal((await denies(limited, 'k', 2)).retryAfterMs, 1000 - atMs)
      scene.clock.advance(50)
    }
    await admits(limited, 'k', 2)
  },

  async 'a cost above a limit is denied forever and charges nothing'({ limiter }) {
    const small = slidingWindow({ limit: 5, window: '10s', name: 'small' })
    const fixed = fixedWindow({ limit: 6, window: '10s', name: 'fixed' })
    const large = slidingWindow({ limit: 100, window: '10s', name: 'large' })
    for (const [i, limits] of [[small], [fixed, small], [small, fixed, large]].entries()) {
      const limited = limiter(limits)
      const key = `${i}`
      await admits(limited, key, 2)
      const decision = await denies(limited, key, 6)
      assert.equal(decision.retryAfterMs, Number.POSITIVE_INFINITY)
      assert.ok(decision.deniedBy.includes('small'))
      const { deniedBy } = await denies(limited, key, Number.MAX_SAFE_INTEGER)
      assert.deepEqual(
        deniedBy,
        limits.map(({ name }) => name),
      )
      assert.equal((await admits(limited, key, 3)).remaining, 0)
    }
  },

  async 'a request is charged to all of its limits or none'({ clock, limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 2, window: '1s', name: 'second' }),
      fixedWindow({ limit: 6, window: '10s', name: 'fixed' }),
      slidingWindow({ limit: 4, window: '10s', precision: 100, name: 'coarse' }),
      slidingCounter({ limit: 5, window: '10s', name: 'counter' }),
      tokenBucket({ capacity: 5, refill: 1, interval: '10s', name: 'bucket' }),
    ])
    await admits(limited, 'k', 2)
    for (let i = 0; i < 10; i++) assert.deepEqual((await denies(limited, 'k')).deniedBy, ['second'])
    assert.deepEqual(await leftOfEach(limited, 'k'), [0, 4, 2, 3, 3])
    clock.advance(1000)
    await admits(limited, 'k')
    assert.deepEqual((await denies(limited, 'k', 2)).deniedBy, ['second', 'coarse'])
    await admits(limited, 'k')
    clock.advance(1000)
    assert.deepEqual((await denies(limited, 'k')).deniedBy, ['coarse'])
    assert.deepEqual(await leftOfEach(limited, 'k'), [2, 2, 0, 1, 1])
  },

  async 'simultaneous requests are admitted in order'({ limiter }) {
    const limited = limiter([slidingWindow({ limit: 4, window: '10s' })])
    const decisions = await Promise.all(Array.from({ length: 7 }, () => limited.consume('k')))
    assert.deepEqual(
      decisions.map((decision) => decision.allowed),
      [true, true, true, true, false, false, false],
    )
    assert.deepEqual(
      decisions.map((decision) => decision.remaining),
      [3, 2, 1, 0, 0, 0, 0],
    )
    assert.equal(await left(limited, 'k'), 0)
  },

  async 'a decision has all documented fields'({ clock, limiter }) {
    const limited = limiter([slidingWindow({ limit: 10, window: '1s' })])
    const startMs = clock.now()
    for (let i = 0; i < 9; i++) {
      await admits(limited, 'k')
      clock.advance(50)
    }
    const window = { name: '10-per-1s', limit: 10, windowMs: 1000, precisionMs: 1, shadow: false }
    assert.deepEqual(await limited.consume('k'), {
      allowed: true,
      cost: 1,
      remaining: 0,
      retryAfterMs: 0,
      resetAfterMs: 1000,
      deniedBy: [],
      limits: [{ ...window, allowed: true, remaining: 0, retryAfterMs: 0, resetAfterMs: 1000 }],
      source: 'store',
      atMs: startMs + 450,
    })
    clock.advance(50)
    assert.deepEqual(await limited.consume('k'), {
      allowed: false,
      cost: 1,
      remaining: 0,
      retryAfterMs: 500,
      resetAfterMs: 950,
      deniedBy: ['10-per-1s'],
      limits: [{ ...window, allowed: false, remaining: 0, retryAfterMs: 500, resetAfterMs: 950 }],
      source: 'store',
      atMs: startMs + 500,
    })
  },

  async 'remaining comes from the tightest limit, and the waits from the slowest'({ clock, limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 3, window: '1s', name: 'second' }),
      slidingWindow({ limit: 4, window: '5s', name: 'five' }),
      fixedWindow({ limit: 9, window: '10s', name: 'fixed' }),
    ])
    await admits(limited, 'k', 3)
    clock.advance(200)
    const denied = await denies(limited, 'k', 2)
    assert.deepEqual(denied.deniedBy, ['second', 'five'])
    assert.deepEqual(
      denied.limits.map(({ remaining, retryAfterMs, resetAfterMs }) => [
        remaining,
        retryAfterMs,
        resetAfterMs,
      ]),
      [
        [0, 800, 800],
        [1, 4800, 4800],
        [6, 0, 9800],
      ],
    )
    const { remaining, retryAfterMs, resetAfterMs } = denied
    assert.deepEqual([remaining, retryAfterMs, resetAfterMs], [0, 4800, 9800])
  },

  async 'the same cost is admitted after retryAfterMs and denied 1 ms earlier'(scene) {
    const { clock } = scene
    const limited = scene.limiter([
      slidingWindow({ limit: 6, window: '1s', name: 'second' }),
      slidingWindow({ limit: 9, window: '5s', name: 'five' }),
      slidingWindow({ limit: 8, window: '3s', precision: 100, name: 'coarse' }),
      fixedWindow({ limit: 30, window: '2s', name: 'fixed' }),
    ])
    const costs = [1, 2, 3, 4, 5, 6]
    for (const [afterMs, units] of [
      [0, 2],
      [130, 1],
      [257, 3],
    ] as const) {
      clock.advance(afterMs)
      for (const cost of costs) await admits(limited, `${cost}`, units)
    }
    clock.advance(300)
    const opensAt = new Map<number, number>()
    for (const cost of costs) {
      const { atMs, retryAfterMs } = await denies(limited, `${cost}`, cost)
      opensAt.set(cost, atMs + retryAfterMs)
    }
    for (const [cost, atMs] of [...opensAt].sort(([, a], [, b]) => a - b)) {
      clock.set(atMs - 1)
      assert.equal((await denies(limited, `${cost}`, cost)).retryAfterMs, 1)
      clock.set(atMs)
      await admits(limited, `${cost}`, cost)
    }
    assert.ok(new Set(opensAt.values()).size >= 4, 'different costs should have different waits')
  },

  async 'the full quota is available after resetAfterMs and not 1 ms earlier'(scene) {
    const { clock } = scene
    const limited = scene.limiter([
      slidingWindow({ limit: 5, window: '1s', name: 'second' }),
      slidingWindow({ limit: 5, window: '3s', precision: 100, name: 'coarse' }),
    ])
    assert.equal((await limited.peek('k')).resetAfterMs, 0)
    await admits(limited, 'k')
    clock.advance(730)
    const { resetAfterMs } = await admits(limited, 'k')
    clock.advance(resetAfterMs - 1)
    assert.equal(await left(limited, 'k'), 4)
    clock.advance(1)
    assert.equal(await left(limited, 'k'), 5)
  },

  async 'peek reports what consume would decide'({ clock, limiter }) {
    const limited = limiter([
      slidingWindow({ limit: 3, window: '1s', name: 'second' }),
      fixedWindow({ limit: 20, window: '10s', name: 'fixed' }),
      slidingWindow({ limit: 1, window: '10s', name: 'shadow', shadow: true }),
    ])
    for (const cost of [1, 2, 2, 1, 9]) {
      const peeked = await limited.peek('k', { cost })
      const { allowed, retryAfterMs, deniedBy, atMs, limits } = await limited.consume('k', { cost })
      assert.deepEqual(
        { ...peeked, remaining: 0, resetAfterMs: 0, limits: [] },
        {
          allowed,
          cost,
          retryAfterMs,
          deniedBy,
          atMs,
          ...{ remaining: 0, resetAfterMs: 0, limits: [] },
          source: 'store',
        },
      )
      assert.deepEqual(
        peeked.limits.map((limit) => [limit.allowed, limit.retryAfterMs]),
        limits.map((limit) => [limit.allowed, limit.retryAfterMs]),
      )
      clock.advance(100)
    }
    const { remaining, resetAfterMs } = await limited.peek('k')
    assert.deepEqual([remaining, resetAfterMs], [0, 9500])
  },

  async 'peek writes nothing'({ clock, limiter }) {
    const limited = limiter([slidingWindow({ limit: 1, window: '1s' })])
    for (let i = 0; i < 5; i++) assert.equal((await limited.peek('k')).allowed, true)
    await admits(limited, 'k')
    for (let i = 0; i < 5; i++) assert.equal((await limited.peek('k')).allowed, false)
    // A peek writes no charges. After the clock is set back, it writes no new times, either.
    clock.advance(-500_000)
    assert.equal((await limited.peek('k')).retryAfterMs, 1000)
    clock.advance(500_999)
    assert.equal((await limited.peek('k')).retryAfterMs, 1)
    clock.advance(1)
    assert.equal((await limited.peek('k')).allowed, true)
  },
}

/** Returns a function that returns integers below a bound, the same in every run. */
function pseudoRandom(): (bound: number) => number {
  let state = 1
  return (bound) => {
    state = (state * 48_271) % 2_147_483_647
    return state % bound
  }
}
