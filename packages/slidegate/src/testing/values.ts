import assert from 'node:assert/strict'
import { distinct } from '../limits/distinct.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { type ConformanceCase, conformanceCase } from './conformance-case.ts'
import { entriesOf } from './entries.ts'

/** So many different values. */
export const values: readonly ConformanceCase[] = [
  conformanceCase('a value takes one unit, however often it comes, whatever it costs', async (scene) => {
    const limited = scene.limiter([distinct({ limit: 2, window: '10s' })])
    const told = []
    for (const [value, cost] of [
      ['a', 1],
      ['a', 5],
      ['b', 3],
      ['c', 1],
      ['b', 1],
    ] as const) {
      const { allowed, remaining } = await limited.consume('k', { value, cost })
      told.push([value, allowed, remaining])
    }
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
  }),

  conformanceCase('a value counts for a window from its last admission', async ({ clock, limiter }) => {
    const limited = limiter([
      distinct({ limit: 2, window: '10s', name: 'values' }),
      slidingWindow({ limit: 4, window: '1h', name: 'rate' }),
    ])
    const asks = (value: string) => limited.consume('k', { value })
    await asks('a')
    clock.advance(1000)
    await asks('b')
    clock.advance(4000)
    assert.equal((await asks('a')).allowed, true)
    assert.equal((await asks('c')).retryAfterMs, 6000)
    clock.advance(5999)
    assert.deepEqual((await asks('c')).deniedBy, ['values'])
    clock.advance(1)
    assert.equal((await asks('c')).allowed, true)
    // A denied request renews nothing.
    clock.advance(3999)
    assert.deepEqual((await asks('a')).deniedBy, ['rate'])
    clock.advance(1)
    const names = (await entriesOf(limited, 'k')).map(({ name, units }) => [name, units])
    assert.deepEqual(names, [['c', 1]])
  }),

  conformanceCase('values of requests that are returned were seen all the same', async ({ limiter }) => {
    const limited = limiter([
      distinct({ limit: 2, window: '10s', name: 'values' }),
      slidingWindow({ limit: 9, window: '10s', name: 'rate' }),
    ])
    const decision = await limited.consume('k', { value: 'a', cost: 3 })
    assert.equal(await limited.refund('k', decision), 3)
    const { limits } = await limited.peek('k', { value: 'b' })
    assert.deepEqual(
      limits.map(({ remaining }) => remaining),
      [1, 9],
    )
  }),

  conformanceCase('a value that is charged counts without being asked', async ({ clock, limiter }) => {
    const limited = limiter([distinct({ limit: 1, window: '10s' })])
    await limited.charge('k', 4, { value: 'a' })
    await limited.charge('k', 4, { value: 'b' })
    clock.advance(1000)
    await limited.charge('k', 4, { value: 'a' })
    assert.equal((await limited.consume('k', { value: 'c' })).retryAfterMs, 10_000)
    assert.equal((await limited.peek('k', { value: 'c' })).remaining, 0)
    assert.deepEqual(
      (await entriesOf(limited, 'k')).map(({ name, atMs }) => [name, atMs - clock.now()]),
      [
        ['b', -1000],
        ['a', 0],
      ],
    )
  }),
]
