import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type ConformanceCase, conformanceCase, denies, left } from './conformance-case.ts'

/** What a decision says, and that it is so. */
export const answers: readonly ConformanceCase[] = [
  conformanceCase('a decision says all that it promises', async ({ clock, limiter }) => {
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
  }),

  conformanceCase(
    'the tightest limit gives what remains, the slowest the waits',
    async ({ clock, limiter }) => {
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
  ),

  conformanceCase('after retryAfterMs the same cost is admitted, 1 ms before it is denied', async (scene) => {
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
    assert.ok(new Set(opensAt.values()).size >= 4, 'costs should differ in their waits')
  }),

  conformanceCase('after resetAfterMs all quota is back, 1 ms before it is not', async (scene) => {
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
  }),

  conformanceCase('peek answers what consume would, before any charge', async ({ clock, limiter }) => {
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
  }),

  conformanceCase('peek writes nothing', async ({ clock, limiter }) => {
    const limited = limiter([slidingWindow({ limit: 1, window: '1s' })])
    for (let i = 0; i < 5; i++) assert.equal((await limited.peek('k')).allowed, true)
    await admits(limited, 'k')
    for (let i = 0; i < 5; i++) assert.equal((await limited.peek('k')).allowed, false)
    // Neither its charges nor, where time is set back, their times.
    clock.advance(-500_000)
    assert.equal((await limited.peek('k')).retryAfterMs, 1000)
    clock.advance(500_999)
    assert.equal((await limited.peek('k')).retryAfterMs, 1)
    clock.advance(1)
    assert.equal((await limited.peek('k')).allowed, true)
  }),
]
