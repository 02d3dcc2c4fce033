// Conformance cases about limits on distinct values.
import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import { distinct } from '../limits/distinct.ts'
import type { Cases } from './conformance-case.ts'
import { entriesOf } from './entries.ts'

export const values: Cases = {
  async 'a value takes one unit, however often it is sent'(scene) {
    const limited = scene.limiter([distinct({ limit: 2, window: '10s' })])
    const results = await decideEach(limited)
    assert.deepEqual(results, [
      ['a', true, 1],
      ['a', true, 1],
      ['b', true, 0],
      ['c', false, 0],
      ['b', true, 0],
    ])
    assert.equal((await limited.peek('k', { value: 'a' })).allowed, true)
    assert.equal((await limited.peek('k', { value: 'c' })).retryAfterMs, 10_000)
    assert.equal((await limited.consume('other', { value: 'c' })).allowed, true)
  },

  async 'a value counts for one window after its last admission'({ clock, limiter }) {
    const limited = limiter([distinct({ limit: 2, window: '10s' })])
    const consume = (value: string) => limited.consume('k', { value })
    await consume('a')
    clock.advance(1000)
    await consume('b')
    clock.advance(4000)
    assert.equal((await consume('a')).allowed, true)
    assert.equal((await consume('c')).retryAfterMs, 6000)
    clock.advance(5999)
    assert.equal((await consume('c')).allowed, false)
    clock.advance(1)
    assert.equal((await consume('c')).allowed, true)
    clock.advance(3999)
    // A denied value isn't renewed.
    assert.equal((await consume('b')).allowed, false)
    clock.advance(1)
    const names = (await entriesOf(limited, 'k')).map(({ name, units }) => [name, units])
    assert.deepEqual(names, [['c', 1]])
  },

  async "a refund doesn't remove a value"({ limiter }) {
    const limited = limiter([distinct({ limit: 2, window: '10s' })])
    const decision = await limited.consume('k', { value: 'a' })
    assert.equal(await limited.refund('k', decision), 0)
    assert.equal((await limited.peek('k', { value: 'b' })).remaining, 1)
  },

  async 'a shadow limit on values never denies, and stores values only up to its limit'({ limiter }) {
    const limited = limiter([distinct({ limit: 1, window: '10s', shadow: true })])
    const results = []
    for (const value of ['a', 'b', 'a']) {
      const { allowed, limits } = await limited.consume('k', { value })
      results.push([allowed, limits[0]!.allowed])
    }
    assert.deepEqual(results, [
      [true, true],
      [true, false],
      [true, true],
    ])
    assert.deepEqual(
      (await entriesOf(limited, 'k')).map(({ name }) => name),
      ['a'],
    )
  },

  async 'a charged value counts even beyond the limit'({ clock, limiter }) {
    const limited = limiter([distinct({ limit: 1, window: '10s' })])
    await limited.charge('k', 1, { value: 'a' })
    await limited.charge('k', 1, { value: 'b' })
    clock.advance(1000)
    await limited.charge('k', 1, { value: 'a' })
    assert.equal((await limited.consume('k', { value: 'c' })).retryAfterMs, 10_000)
    assert.equal((await limited.peek('k', { value: 'c' })).remaining, 0)
    // A value that already counts is allowed, even if there are more values than the limit.
    assert.equal((await limited.peek('k', { value: 'b' })).allowed, true)
    assert.deepEqual(
      (await entriesOf(limited, 'k')).map(({ name, atMs }) => [name, atMs - clock.now()]),
      [
        ['b', -1000],
        ['a', 0],
      ],
    )
  },

  async 'an approximate limit that is full also denies known values'(scene) {
    const limited = scene.limiter([distinct({ limit: 2, window: '10s', approximate: true })])
    const results = await decideEach(limited)
    // For a known value, the remaining units may be one too low.
    assert.deepEqual(results, [
      ['a', true, 1],
      ['a', true, 0],
      ['b', true, 0],
      ['c', false, 0],
      ['b', false, 0],
    ])
    assert.equal((await limited.peek('other', { value: 'c' })).remaining, 2)
    await limited.reset('k')
    assert.equal((await limited.peek('k', { value: 'c' })).remaining, 2)
  },

  async 'an approximate limit counts a value until its whole step has left the window'({ clock, limiter }) {
    const limited = limiter([distinct({ limit: 2, window: '10s', approximate: true })])
    clock.advance(1000 - (clock.now() % 1000) + 700)
    await limited.consume('k', { value: 'a' })
    clock.advance(2000)
    await limited.consume('k', { value: 'b' })
    // The tenth of the window that contains `a` began 2.7 s ago.
    assert.equal((await limited.consume('k', { value: 'c' })).retryAfterMs, 8300)
    clock.advance(8299)
    assert.equal((await limited.consume('k', { value: 'c' })).allowed, false)
    clock.advance(1)
    assert.equal((await limited.peek('k', { value: 'c' })).resetAfterMs, 2000)
    const decision = await limited.consume('k', { value: 'c' })
    assert.deepEqual([decision.allowed, decision.remaining], [true, 0])
    assert.equal(await limited.refund('k', decision), 0)
    assert.equal((await limited.consume('k', { value: 'c' })).allowed, false)
  },
}

/** Returns the decisions for three values, the third of which exceeds a limit of 2. */
async function decideEach(limited: Limiter): Promise<unknown[]> {
  const results = []
  for (const value of ['a', 'a', 'b', 'c', 'b']) {
    const { allowed, remaining } = await limited.consume('k', { value })
    results.push([value, allowed, remaining])
  }
  return results
}
