import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type ConformanceCase, conformanceCase, denies, left, opensIn } from './conformance-case.ts'

/** Texts that a store might mistake for something else. */
const AWKWARD_KEYS = [
  ...['a', 'A', ' a', 'a ', 'ab', 'a:b', 'a:w1', 'a:', ':a', ':', '{a}', '{}', '}{', '{', '}', '{a'],
  ...['*', '?', 'a*', '[a]', '\\', '"', "'", '%', '$&', '0', '00', '-1', 'null', 'undefined', 'NaN'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', 'length'],
  ...[' ', '\t', '\n', '\r\n', '\0', 'a\0', 'é', 'e\u0301', '\u{1F600}', '\uFEFF', '\u202E', '~', '~a'],
  ...['x'.repeat(127), 'x'.repeat(128), 'x'.repeat(129), 'x'.repeat(65_536), `${'x'.repeat(65_535)}y`],
]

/** Who shares a count with whom. */
export const sharing: readonly ConformanceCase[] = [
  conformanceCase('every key has a count of its own', async ({ limiter }) => {
    const limited = limiter([slidingWindow({ limit: 1, window: '10s' })])
    for (const key of AWKWARD_KEYS) await admits(limited, key)
    for (const key of AWKWARD_KEYS) await denies(limited, key)
    await limited.reset('a')
    assert.deepEqual(
      await Promise.all(AWKWARD_KEYS.map((key) => left(limited, key))),
      AWKWARD_KEYS.map((key) => (key === 'a' ? 1 : 0)),
    )
  }),

  conformanceCase('every name of a limiter has counts of its own', async ({ limiter }) => {
    const limits = [slidingWindow({ limit: 1, window: '10s', name: '__proto__' })]
    const limiters = ['a', 'A', 'a.b', 'a-b', '__proto__', 'constructor'].map((name) => limiter(limits, name))
    for (const limited of limiters)
      for (const key of ['a', 'b', 'b:a', '__proto__']) await admits(limited, key)
    for (const limited of limiters)
      for (const key of ['a', 'b', 'b:a', '__proto__']) await denies(limited, key)
  }),

  conformanceCase('two limiters of one name hold a key to both of their limits', async (scene) => {
    const limits = [slidingWindow({ limit: 2, window: '1s' })]
    const one = scene.limiter(limits)
    const other = scene.limiter(limits)
    await admits(one, 'k')
    await admits(other, 'k')
    await denies(one, 'k')
    await denies(other, 'k')
    await opensIn(scene, 1000, one, 'k')
    assert.equal(await left(other, 'k'), 1)
  }),

  conformanceCase(
    'two windows on one key each count what the other has charged',
    async ({ clock, limiter }) => {
      const short = limiter([slidingWindow({ limit: 2, window: '1s' })])
      const long = limiter([slidingWindow({ limit: 3, window: '10s' })])
      await admits(short, 'k')
      clock.advance(500)
      assert.equal((await admits(long, 'k')).remaining, 1)
      clock.advance(500)
      assert.equal((await admits(short, 'k')).remaining, 0)
      assert.equal((await denies(long, 'k')).retryAfterMs, 9000)
      clock.advance(1000)
      assert.equal(await left(short, 'k'), 2)
      clock.advance(7999)
      await denies(long, 'k')
      clock.advance(1)
      assert.equal((await admits(long, 'k')).remaining, 0)
    },
  ),

  conformanceCase(
    'a longer window begins with what the shorter ones have kept',
    async ({ clock, limiter }) => {
      const short = limiter([slidingWindow({ limit: 5, window: '1s' })])
      const long = limiter([slidingWindow({ limit: 5, window: '10s' })])
      await admits(short, 'k')
      clock.advance(999)
      await admits(short, 'k')
      clock.advance(1)
      assert.equal((await admits(long, 'k')).remaining, 3)
      // What was gone before is not called back by the longer window.
      assert.equal(await left(long, 'k'), 3)
      clock.advance(9998)
      assert.equal(await left(long, 'k'), 3)
      clock.advance(1)
      assert.equal(await left(long, 'k'), 4)
    },
  ),

  conformanceCase('until it charges, a longer window waits only for what is kept', async (scene) => {
    const short = scene.limiter([slidingWindow({ limit: 2, window: '1s' })])
    const long = scene.limiter([slidingWindow({ limit: 2, window: '10s' })])
    await admits(short, 'k', 2)
    scene.clock.advance(500)
    const { retryAfterMs, resetAfterMs } = await denies(long, 'k')
    assert.deepEqual([retryAfterMs, resetAfterMs], [500, 500])
    await opensIn(scene, 500, long, 'k', 2)
    await opensIn(scene, 10_000, long, 'k', 2)
  }),

  conformanceCase('what a longer window needs is kept, however busy the shorter one is', async (scene) => {
    const short = scene.limiter([slidingWindow({ limit: 30, window: '1s' })])
    const long = scene.limiter([slidingWindow({ limit: 200, window: '10s' })])
    await admits(long, 'k')
    for (let i = 0; i < 90; i++) {
      scene.clock.advance(50)
      await admits(short, 'k')
    }
    assert.equal(await left(long, 'k'), 200 - 91)
    scene.clock.advance(5500)
    assert.equal(await left(long, 'k'), 200 - 90)
    scene.clock.advance(50)
    assert.equal(await left(long, 'k'), 200 - 89)
  }),

  conformanceCase(
    'a limit lowered on a live key counts what is there already',
    async ({ clock, limiter }) => {
      const before = limiter([slidingWindow({ limit: 5, window: '10s' })])
      const after = limiter([slidingWindow({ limit: 2, window: '10s' })])
      await admits(before, 'k', 2)
      clock.advance(1000)
      await admits(before, 'k', 2)
      const denied = await denies(after, 'k')
      assert.deepEqual([denied.remaining, denied.retryAfterMs], [0, 10_000])
      clock.advance(9999)
      await denies(after, 'k')
      clock.advance(1)
      await admits(after, 'k', 2)
    },
  ),

  conformanceCase('a limit raised on a live key admits the difference', async ({ limiter }) => {
    const before = limiter([slidingWindow({ limit: 2, window: '10s' })])
    const after = limiter([slidingWindow({ limit: 5, window: '10s' })])
    await admits(before, 'k', 2)
    await denies(before, 'k')
    await admits(after, 'k', 3)
    await denies(after, 'k')
  }),

  conformanceCase('another kind or precision on a live key begins empty', async ({ limiter }) => {
    const sliding = limiter([slidingWindow({ limit: 2, window: '10s' })])
    await admits(sliding, 'k', 2)
    for (const limit of [
      slidingWindow({ limit: 2, window: '10s', precision: 10 }),
      fixedWindow({ limit: 2, window: '10s' }),
    ]) {
      const changed = limiter([limit])
      await admits(changed, 'k', 2)
      await denies(changed, 'k')
    }
    await denies(sliding, 'k')
    const all = limiter([
      slidingWindow({ limit: 3, window: '10s' }),
      fixedWindow({ limit: 4, window: '10s' }),
    ])
    assert.equal(await left(all, 'k'), 1)
  }),
]
