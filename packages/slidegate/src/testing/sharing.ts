// Conformance cases about keys, limiters and limits that share a count.
import assert from 'node:assert/strict'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type Cases, denies, left, opensIn } from './conformance-case.ts'

/** Strings that a store might misinterpret. */
const AWKWARD_KEYS = [
  ...['a', 'A', ' a', 'a ', 'ab', 'a:b', 'a:w1', 'a:', ':a', ':', '{a}', '{}', '}{', '{', '}', '{a'],
  ...['*', '?', 'a*', '[a]', '\\', '"', "'", '%', '$&', '0', '00', '-1', 'null', 'undefined', 'NaN'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', 'length'],
  ...[' ', '\t', '\n', '\r\n', '\0', 'a\0', 'é', 'e\u0301', '\u{1F600}', '\uFEFF', '\u202E', '~', '~a'],
  ...['x'.repeat(127), 'x'.repeat(128), 'x'.repeat(129), 'x'.repeat(65_536), `${'x'.repeat(65_535)}y`],
]

export const sharing: Cases = {
  async 'every key has its own count'({ limiter }) {
    const limited = limiter([slidingWindow({ limit: 1, window: '10s' })])
    for (const key of AWKWARD_KEYS) await admits(limited, key)
    for (const key of AWKWARD_KEYS) await denies(limited, key)
    await limited.reset('a')
    assert.deepEqual(
      await Promise.all(AWKWARD_KEYS.map((key) => left(limited, key))),
      AWKWARD_KEYS.map((key) => (key === 'a' ? 1 : 0)),
    )
  },

  async 'every limiter name has its own counts'({ limiter }) {
    const limits = [slidingWindow({ limit: 1, window: '10s', name: '__proto__' })]
    const limiters = ['a', 'A', 'a.b', 'a-b', '__proto__', 'constructor'].map((name) => limiter(limits, name))
    for (const limited of limiters)
      for (const key of ['a', 'b', 'b:a', '__proto__']) await admits(limited, key)
    for (const limited of limiters)
      for (const key of ['a', 'b', 'b:a', '__proto__']) await denies(limited, key)
  },

  async "two windows on one key count each other's charges"({ clock, limiter }) {
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

  async 'a longer window starts with the charges that shorter windows kept'({ clock, limiter }) {
    const short = limiter([slidingWindow({ limit: 5, window: '1s' })])
    const long = limiter([slidingWindow({ limit: 5, window: '10s' })])
    await admits(short, 'k')
    clock.advance(999)
    await admits(short, 'k')
    clock.advance(1)
    assert.equal((await admits(long, 'k')).remaining, 3)
    // The longer window doesn't restore charges that had already left the shorter one.
    assert.equal(await left(long, 'k'), 3)
    clock.advance(9998)
    assert.equal(await left(long, 'k'), 3)
    clock.advance(1)
    assert.equal(await left(long, 'k'), 4)
  },

  async 'a longer window that has no charges yet counts only the charges that a shorter window kept'(scene) {
    const short = scene.limiter([slidingWindow({ limit: 2, window: '1s' })])
    const long = scene.limiter([slidingWindow({ limit: 2, window: '10s' })])
    await admits(short, 'k', 2)
    scene.clock.advance(500)
    const { retryAfterMs, resetAfterMs } = await denies(long, 'k')
    assert.deepEqual([retryAfterMs, resetAfterMs], [500, 500])
    await opensIn(scene, 500, long, 'k', 2)
    await opensIn(scene, 10_000, long, 'k', 2)
  },

  async 'charges that a longer window needs are kept, however busy the shorter window is'(scene) {
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
  },
}
