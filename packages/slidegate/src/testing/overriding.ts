import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import {
  admits,
  type ConformanceCase,
  conformanceCase,
  denies,
  left,
  type Scene,
} from './conformance-case.ts'

/** Limits that are set for single keys while all runs. */
export const overriding: readonly ConformanceCase[] = [
  conformanceCase(
    'an override is in force for its key, in every process, until it is deleted',
    async (scene) => {
      const limiter = overridable(scene)
      await admits(limiter, 'k', 2)
      await denies(limiter, 'k')
      assert.equal(await limiter.overrides.get('k'), undefined)
      const limits = [slidingWindow({ limit: 5, window: '10s', name: 'more' })]
      await limiter.overrides.set('k', limits)
      // What was used counts on.
      assert.equal((await admits(limiter, 'k')).remaining, 2)
      const other = overridable(scene)
      assert.deepEqual((await admits(other, 'k', 2)).limits[0]!.name, 'more')
      assert.deepEqual((await denies(other, 'k')).deniedBy, ['more'])
      await admits(other, 'other', 2)
      await denies(other, 'other')
      assert.equal((await limiter.overrides.get('k'))!.expiresInMs, 0)
      assert.equal(await limiter.overrides.delete('k'), true)
      assert.equal(await limiter.overrides.delete('k'), false)
      assert.deepEqual((await denies(limiter, 'k')).deniedBy, ['2-per-10s'])
      assert.deepEqual((await denies(overridable(scene), 'k')).deniedBy, ['2-per-10s'])
      scene.clock.advance(10_000)
      await admits(limiter, 'k', 2)
    },
  ),

  conformanceCase('overrides are listed with the keys that they were set for', async (scene) => {
    const limiter = overridable(scene)
    const keys = ['a', 'two words', 'é', '~', '', '__proto__', 'x'.repeat(300)].filter((key) => key !== '')
    for (const [i, key] of keys.entries()) {
      await limiter.overrides.set(key, [slidingWindow({ limit: 10 + i, window: '10s' })])
    }
    for (const by of [limiter, overridable(scene)]) {
      const listed = await by.overrides.list()
      assert.deepEqual(
        listed.map(({ key, limits, expiresInMs }) => [key, limits[0]!.limit, expiresInMs]).sort(byText),
        keys.map((key, i) => [key, 10 + i, 0]).sort(byText),
      )
      for (const [i, key] of keys.entries()) assert.equal(await left(by, key), 10 + i)
    }
    assert.deepEqual(await overridable(scene, 'other').overrides.list(), [])
  }),

  conformanceCase('an override may end by itself, and what was used under it counts on', async (scene) => {
    const limiter = overridable(scene)
    const raised = [slidingWindow({ limit: 9, window: '1h' })]
    await limiter.overrides.set('k', raised, { ttl: '1m' })
    const { expiresInMs } = (await overridable(scene).overrides.get('k'))!
    assert.ok(expiresInMs > 30_000 && expiresInMs <= 60_000, `${expiresInMs} ms`)
    scene.clock.advance(55_000)
    await admits(limiter, 'k', 5)
    scene.clock.advance(5000)
    const later = overridable(scene)
    assert.equal(await later.overrides.get('k'), undefined)
    assert.deepEqual(await later.overrides.list(), [])
    assert.deepEqual((await denies(later, 'k')).deniedBy, ['2-per-10s'])
  }),

  conformanceCase('the last override that was set is in force', async (scene) => {
    const limiter = overridable(scene)
    for (const limit of [5, 7, 3]) {
      await limiter.overrides.set('k', [slidingWindow({ limit, window: '10s' })])
      assert.equal(await left(limiter, 'k'), limit)
    }
    assert.equal((await limiter.overrides.list()).length, 1)
    assert.equal(await left(overridable(scene), 'k'), 3)
  }),

  conformanceCase('a reset forgets what was used, and no override', async (scene) => {
    const limiter = overridable(scene)
    await limiter.overrides.set('k', [slidingWindow({ limit: 5, window: '10s', precision: 10 })])
    await admits(limiter, 'k', 5)
    await limiter.reset('k')
    assert.equal(await left(limiter, 'k'), 5)
    assert.equal(await left(overridable(scene), 'k'), 5)
  }),

  conformanceCase('a key of a dimension has an override of its own', async (scene) => {
    const limits = () => [slidingWindow({ limit: 2, window: '10s' })]
    const create = () => scene.create({ dimensions: { user: limits(), ip: limits() }, overrides: true })
    const limiter = create()
    const raised = [slidingWindow({ limit: 5, window: '10s' })]
    await limiter.overrides.set({ user: 'a' }, raised)
    for (const by of [limiter, create()]) {
      assert.equal(await left(by, { user: 'a', ip: null }), 5)
      assert.equal(await left(by, { user: null, ip: 'a' }), 2)
      assert.deepEqual(
        (await by.overrides.list()).map(({ dimension, key }) => [dimension, key]),
        [['user', 'a']],
      )
    }
    await admits(limiter, { user: 'a', ip: 'x' }, 2)
    assert.deepEqual((await denies(limiter, { user: 'a', ip: 'x' })).deniedBy, ['ip.2-per-10s'])
    assert.equal((await admits(limiter, { user: 'a', ip: 'y' })).limits[0]!.name, 'user.5-per-10s')
    const { overrides } = await limiter.explain({ user: 'a', ip: 'x' })
    assert.deepEqual(
      overrides.map(({ dimension, key }) => [dimension, key]),
      [['user', 'a']],
    )
    assert.equal(await limiter.overrides.get({ ip: 'a' }), undefined)
    assert.equal(await limiter.overrides.delete({ user: 'a' }), true)
  }),

  conformanceCase(
    'a refund of a decision made under an override returns to where it was charged',
    async (scene) => {
      const limiter = overridable(scene)
      await limiter.overrides.set('k', [slidingWindow({ limit: 9, window: '10s' })])
      const decision = await admits(limiter, 'k', 5)
      await limiter.overrides.delete('k')
      await denies(limiter, 'k')
      assert.equal(await limiter.refund('k', decision), 5)
      await admits(limiter, 'k', 2)
      assert.equal(await limiter.refund('k', decision), 0)
    },
  ),
]

function overridable(scene: Scene, name = 'conformance'): Limiter {
  return scene.create({ name, limits: [slidingWindow({ limit: 2, window: '10s' })], overrides: true })
}

function byText(a: readonly unknown[], b: readonly unknown[]): number {
  return String(a[0]) < String(b[0]) ? -1 : 1
}
