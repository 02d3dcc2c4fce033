// Limits on distinct values.
import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import { distinct } from '../limits/distinct.ts'
import type { Cases } from './conformance-case.ts'
import { entriesOf } from './entries.ts'

export const values: Cases = {
  async 'a value takes one unit, however often it comes'(scene) {
    const limited = scene.limiter([distinct({ limit: 2, window: '10s' })])
    const told = await toldOfEach(limited)
    assert.deepEqual(told, [
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

  async 'a value counts for a window from its last admission'({ clock, limiter }) {
    const limited = limiter([distinct({ limit: 2, window: '10s' })])
    const asks = (value: string) => limited.consume('k', { value })
    await asks('a')
    clock.advance(1000)
    await asks('b')
    clock.advance(4000)
    assert.equal((await asks('a')).allowed, true)
    assert.equal((await asks('c')).retryAfterMs, 6000)
    clock.advance(5999)
    assert.equal((await asks('c')).allowed, false)
    clock.advance(1)
    assert.equal((await asks('c')).allowed, true)
    clock.advance(3999)
    // A denied value renews nothing.
    assert.equal((await asks('b')).allowed, false)
    clock.advance(1)
    const names = (await entriesOf(limited, 'k')).map(({ name, units }) => [name, units])
    assert.deepEqual(names, [['c', 1]])
  },

  async 'a value that is returned was seen all the same'({ limiter }) {
    const limited = limiter([distinct({ limit: 2, window: '10s' })])
    const decision = await limited.consume('k', { value: 'a' })
    assert.equal(await limited.refund('k', decision), 0)
    assert.equal((await limited.peek('k', { value: 'b' })).remaining, 1)
  },

  async 'a shadow limit of values denies nobody, and counts up to its limit'({ limiter }) {
    const limited = limiter([distinct({ limit: 1, window: '10s', shadow: true })])
    const told = []
    for (const value of ['a', 'b', 'a']) {
      const { allowed, limits } = await limited.consume('k', { value })
      told.push([allowed, limits[0]!.allowed])
    }
    assert.deepEqual(told, [
      [true, true],
      [true, false],
      [true, true],
    ])
    assert.deepEqual(
      (await entriesOf(limited, 'k')).map(({ name }) => name),
      ['a'],
    )
  },

  async 'a value that is charged counts without being asked'({ clock, limiter }) {
    const limited = limiter([distinct({ limit: 1, window: '10s' })])
    await limited.charge('k', 1, { value: 'a' })
    await limited.charge('k', 1, { value: 'b' })
    clock.advance(1000)
    await limited.charge('k', 1, { value: 'a' })
    assert.equal((await limited.consume('k', { value: 'c' })).retryAfterMs, 10_000)
    assert.equal((await limited.peek('k', { value: 'c' })).remaining, 0)
    // One that counts has its place, though there are more than the limit.
    assert.equal((await limited.peek('k', { value: 'b' })).allowed, true)
    assert.deepEqual(
      (await entriesOf(limited, 'k')).map(({ name, atMs }) => [name, atMs - clock.now()]),
      [
        ['b', -1000],
        ['a', 0],
      ],
    )
  },

  async 'an approximate limit denies known values too while it is reached'(scene) {
    const limited = scene.limiter([distinct({ limit: 2, window: '10s', approximate: true })])
    const told = await toldOfEach(limited)
    // A known value may leave one unit less than there is.
    assert.deepEqual(told, [
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

  async 'an approximate limit counts a value to the end of a tenth'({ clock, limiter }) {
    const limited = limiter([distinct({ limit: 2, window: '10s', approximate: true })])
    clock.advance(1000 - (clock.now() % 1000) + 700)
    await limited.consume('k', { value: 'a' })
    clock.advance(2000)
    await limited.consume('k', { value: 'b' })
    // The tenth of `a` began 2.7 s ago.
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

/** The answers to two values, and to a third one while the limit is 2. */
async function toldOfEach(limited: Limiter): Promise<unknown[]> {
  const told = []
  for (const value of ['a', 'a', 'b', 'c', 'b']) {
    const { allowed, remaining } = await limited.consume('k', { value })
    told.push([value, allowed, remaining])
  }
  return told
}
