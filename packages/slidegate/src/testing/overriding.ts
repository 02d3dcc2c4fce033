// Conformance cases about overriding and blocking keys.
import assert from 'node:assert/strict'
import type { Decision } from '../decision.ts'
import type { Override } from '../limiter/overrides.ts'
import type { Limiter } from '../limiter.ts'
import { concurrency } from '../limits/concurrency.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import type { Limit } from '../limits/limit.ts'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import { admits, type Cases, denies, left, leftOfEach, type Scene } from './conformance-case.ts'

export const overriding: Cases = {
  async 'an override applies to its key, in every process, until it is deleted'(scene) {
    const limiter = overridable(scene)
    const other = overridable(scene)
    await admits(limiter, 'k', 2)
    await denies(other, 'k')
    assert.equal(await limiter.overrides.get('k'), undefined)
    await limiter.overrides.set('k', { burst: { limit: 5 } })
    // Earlier usage still counts.
    const { limits, remaining } = await admits(other, 'k')
    assert.deepEqual([limits[0]!.limit, limits[0]!.windowMs, remaining], [5, 10_000, 2])
    await admits(limiter, 'k', 2)
    assert.deepEqual((await denies(other, 'k')).deniedBy, ['burst'])
    await admits(other, 'other', 2)
    await denies(other, 'other')
    // In a batch of requests for two keys, each key has its own numbers.
    const together = await Promise.all(['k', 'plain'].map((key) => other.peek(key, { cost: 3 })))
    assert.deepEqual(
      together.map(({ limits }) => [limits[0]!.limit, limits[0]!.retryAfterMs]),
      [
        [5, 10_000],
        [2, Number.POSITIVE_INFINITY],
      ],
    )
    assert.deepEqual(await other.overrides.get('k'), { key: 'k', limits: { burst: { limit: 5 } } })
    assert.equal(await other.overrides.delete('k'), true)
    assert.equal(await limiter.overrides.delete('k'), false)
    assert.deepEqual((await denies(limiter, 'k')).limits[0]!.limit, 2)
    scene.clock.advance(10_000)
    await admits(limiter, 'k', 2)
  },

  async 'overrides are listed with their keys'(scene) {
    const limiter = overridable(scene)
    const keys = ['a', '7', 'two words', 'é', '~', '__proto__', 'x'.repeat(300)]
    for (const [i, key] of keys.entries()) await limiter.overrides.set(key, { limit: 10 + i })
    for (const by of [limiter, overridable(scene)]) {
      const listed = await all(by)
      assert.deepEqual(
        listed.map(({ key, limits, expiresInMs }) => [key, limits!.burst!.limit, expiresInMs]).sort(byText),
        keys.map((key, i) => [key, 10 + i, undefined]).sort(byText),
      )
      for (const [i, key] of keys.entries()) assert.equal(await left(by, key), 10 + i)
    }
    assert.deepEqual(await all(overridable(scene, 'other')), [])
    for (const key of keys) assert.equal(await limiter.overrides.delete(key), true)
    assert.deepEqual(await all(limiter), [])
    await limiter.block('two words', '1m')
    assert.deepEqual(await all(limiter), [{ key: 'two words', blockedMs: 60_000 }])
  },

  async 'a long list contains every override exactly once'(scene) {
    const limiter = overridable(scene)
    const keys = Array.from({ length: 600 }, (_, i) => `key-${i}`)
    await Promise.all(keys.map((key, i) => limiter.overrides.set(key, { limit: 3 + i })))
    const listed = (await all(limiter)).map(({ key, limits }) => `${key} ${limits!.burst!.limit}`)
    assert.deepEqual(listed.sort(), keys.map((key, i) => `${key} ${3 + i}`).sort())
  },

  async 'an override can expire, and the usage until then still counts'(scene) {
    const limiter = overridable(scene)
    await limiter.overrides.set('k', { limit: 9, window: '1h' }, { ttl: '1m' })
    assert.equal((await overridable(scene).overrides.get('k'))!.expiresInMs, 60_000)
    scene.clock.advance(55_000)
    await admits(limiter, 'k', 5)
    scene.clock.advance(4999)
    assert.equal((await limiter.peek('k')).limits[0]!.limit, 9)
    scene.clock.advance(1)
    const later = overridable(scene)
    assert.equal(await later.overrides.get('k'), undefined)
    assert.deepEqual(await all(later), [])
    assert.deepEqual((await denies(later, 'k')).limits[0]!.limit, 2)
    scene.clock.advance(5000)
    await admits(later, 'k', 2)
  },

  async 'an override changes the numbers of every kind of limit and keeps the log'(scene) {
    const limits = () => [
      slidingWindow({ limit: 4, window: '10s', name: 'window' }),
      slidingWindow({ limit: 4, window: '20s', name: 'longer' }),
      slidingWindow({ limit: 4, window: '10s', name: 'zset', log: 'zset' }),
      slidingWindow({ limit: 4, window: '10s', name: 'stream', log: 'stream' }),
      fixedWindow({ limit: 4, window: '10s', name: 'fixed' }),
      slidingCounter({ limit: 4, window: '10s', name: 'counter' }),
      concurrency({ limit: 4, ttl: '10s', name: 'held' }),
    ]
    const limiter = scene.create({ limits: limits(), overrides: true })
    await admits(limiter, 'k', 3)
    const names = limits().map(({ name }) => name)
    const raised = Object.fromEntries(names.map((name, i) => [name, { limit: 5 + i }]))
    await limiter.overrides.set('k', raised)
    const peeked = await limiter.peek('k')
    assert.deepEqual(
      numbersOf(peeked),
      names.map((name, i) => [name, 5 + i, 2 + i]),
    )
    await admits(limiter, 'k', 2)
    assert.deepEqual((await denies(limiter, 'k')).deniedBy, ['window'])
    await limiter.overrides.set('k', { longer: { limit: 2 } })
    assert.deepEqual((await denies(limiter, 'k')).deniedBy, names)
    assert.equal((await limiter.peek('k')).limits[1]!.limit, 2)
  },

  async "an override changes a bucket's capacity and refill"(scene) {
    const limits = [tokenBucket({ capacity: 4, refill: 1, interval: '1s', name: 'bucket' })]
    const limiter = scene.create({ limits, overrides: true })
    await admits(limiter, 'k', 4)
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 1000)
    await limiter.overrides.set('k', { bucket: { capacity: 6, refill: 2 } })
    const raised = await admits(limiter, 'k', 2)
    assert.deepEqual([raised.limits[0]!.limit, raised.limits[0]!.windowMs, raised.remaining], [6, 3000, 0])
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 500)
    scene.clock.advance(500)
    await admits(limiter, 'k')
    await limiter.overrides.set('k', { refill: 4 })
    assert.deepEqual((await limiter.peek('k')).limits[0]!.limit, 4)
    await assert.rejects(limiter.overrides.set('k', { limit: 5 }), { code: 'invalid_limit' })
    await assert.rejects(limiter.overrides.set('k', { capacity: 2 ** 44 }), { code: 'invalid_limit' })
  },

  async 'an override makes a window longer or shorter'(scene) {
    const limiter = overridable(scene)
    await limiter.overrides.set('k', { window: '1m' })
    await admits(limiter, 'k', 2)
    scene.clock.advance(59_999)
    assert.equal((await denies(limiter, 'k')).retryAfterMs, 1)
    await limiter.overrides.set('k', { window: '5s', limit: 3 })
    await admits(limiter, 'k', 3)
    scene.clock.advance(4999)
    await denies(limiter, 'k')
    scene.clock.advance(1)
    await admits(limiter, 'k', 3)
    // All numbers apply, so none of them are reported as unused.
    assert.equal((await limiter.overrides.get('k'))!.unused, undefined)
  },

  async "an override's limit names are unused if the plan doesn't have them"(scene) {
    const plans: Record<string, readonly Limit[]> = {
      small: [slidingWindow({ limit: 2, window: '10s', name: 'minute' })],
      fixed: [fixedWindow({ limit: 2, window: '10s', name: 'minute' })],
      other: [slidingWindow({ limit: 2, window: '10s', name: 'hour' })],
    }
    const limits = (_key: string, plan: unknown) => plans[String(plan)]!
    const limiter = scene.create({ limits, overrides: true })
    await limiter.overrides.set('k', { minute: { limit: 5, window: '20s' } })
    const limitOf = async (request: string) => {
      const { limits } = await limiter.peek('k', { request })
      const { overrides } = await limiter.explain('k', { request })
      const got = await limiter.overrides.get('k', { request })
      assert.deepEqual(overrides, [got])
      return [limits[0]!.limit, limits[0]!.windowMs, got!.unused]
    }
    assert.deepEqual(await limitOf('small'), [5, 20_000, undefined])
    assert.deepEqual(await limitOf('fixed'), [2, 10_000, ['minute']])
    assert.deepEqual(await limitOf('other'), [2, 10_000, ['minute']])
    const allowed = async () => (await limiter.consume('k', { request: 'fixed' })).allowed
    assert.deepEqual([await allowed(), await allowed(), await allowed()], [true, true, false])
    // The plan depends on the request, but there is no request here.
    assert.equal((await limiter.overrides.get('k'))!.unused, undefined)
    const names = Array.from({ length: 200 }, (_, i) => [`${i}`.padStart(60, 'n'), { limit: 1 }])
    const many = limiter.overrides.set('k', Object.fromEntries(names))
    await assert.rejects(many, { code: 'invalid_limit', message: /characters; at most 8192 are allowed$/ })
  },

  async 'an invalid override is rejected with an error that says what to write'(scene) {
    const limiter = scene.create({
      limits: [
        slidingWindow({ limit: 2, window: '10s' }),
        fixedWindow({ limit: 3, window: '1h', name: 'hour' }),
      ],
      overrides: true,
    })
    const refused = (change: object, message: RegExp) =>
      assert.rejects(limiter.overrides.set('k', change as never), { code: 'invalid_limit', message })
    await refused({ '2-per-10s': { limit: 3 } }, /declare it with a name, such as name: 'minute'/)
    await refused({ limit: 3 }, /2 limits/)
    await refused({ day: { limit: 3 } }, /expected one of: 2-per-10s, hour/)
    await refused({ hour: { window: '2h' } }, /it can change limit$/)
    await refused({ hour: { limit: 0 } }, /integer from 1/)
    await refused({ hour: {} }, /it can change limit/)
    await refused({}, /it must be/)
    assert.deepEqual(await all(limiter), [])
    const unnamed = scene.create({
      name: 'u',
      limits: [slidingWindow({ limit: 2, window: '10s' })],
      overrides: true,
    })
    await unnamed.overrides.set('k', { limit: 7 })
    assert.deepEqual(await unnamed.overrides.get('k'), { key: 'k', limits: { '': { limit: 7 } } })
    assert.equal((await unnamed.peek('k')).limits[0]!.limit, 7)
    await admits(unnamed, 'k', 7)
  },

  async "the limits of an exempt key count but don't deny"(scene) {
    const limiter = scene.create({
      dimensions: {
        user: [
          slidingWindow({ limit: 2, window: '10s' }),
          slidingWindow({ limit: 3, window: '20s', name: 'slow' }),
        ],
        ip: [slidingWindow({ limit: 6, window: '10s' })],
      },
      overrides: true,
    })
    const key = { user: 'a', ip: 'x' }
    await admits(limiter, key)
    await limiter.overrides.set({ user: 'a' }, 'exempt', { ttl: '1m' })
    await admits(limiter, key)
    const passed = await admits(limiter, key)
    assert.deepEqual(
      passed.limits.map(({ name, shadow, allowed, remaining }) => [name, shadow, allowed, remaining]),
      [
        ['user.2-per-10s', true, false, 0],
        ['user.slow', true, true, 1],
        ['ip.6-per-10s', false, true, 3],
      ],
    )
    assert.equal(passed.remaining, 3)
    await admits(limiter, key, 3)
    assert.deepEqual((await denies(limiter, key)).deniedBy, ['ip.6-per-10s'])
    const { overrides } = await limiter.explain(key)
    assert.deepEqual(overrides, [{ key: 'a', dimension: 'user', exempt: true, expiresInMs: 60_000 }])
    // The limit counted only the requests that fit, like a shadow limit.
    await limiter.overrides.delete({ user: 'a' })
    assert.deepEqual(await leftOfEach(limiter, key), [0, 1, 0])
    // A request that wasn't charged has nothing to refund.
    assert.equal(await limiter.refund(key, passed), 1)
    assert.deepEqual(await leftOfEach(limiter, key), [0, 1, 1])
  },

  async "a block denies requests in its dimension, keeps the override's numbers, and expires"(scene) {
    const limits = () => [slidingWindow({ limit: 2, window: '10s', name: 'burst' })]
    const limiter = scene.create({ dimensions: { user: limits(), ip: limits() }, overrides: true })
    const key = { user: 'a', ip: 'x' }
    await limiter.overrides.set({ ip: 'x' }, { burst: { limit: 5 } })
    await limiter.overrides.set({ user: 'a' }, 'exempt')
    await limiter.block({ ip: 'x' }, '30s')
    const denied = await denies(limiter, key)
    assert.deepEqual([denied.deniedBy, denied.blockedMs, denied.retryAfterMs], [['ip.block'], 30_000, 30_000])
    assert.equal(await limiter.isBlocked({ ip: 'x' }), true)
    assert.equal(await limiter.isBlocked({ user: 'a' }), false)
    assert.deepEqual(await limiter.overrides.get({ ip: 'x' }), {
      ...{ key: 'x', dimension: 'ip', limits: { burst: { limit: 5 } }, blockedMs: 30_000 },
    })
    scene.clock.advance(29_999)
    assert.equal((await denies(limiter, key)).retryAfterMs, 1)
    scene.clock.advance(1)
    assert.equal((await admits(limiter, key)).limits[1]!.limit, 5)
    await limiter.overrides.set({ user: 'a' }, 'block')
    const forever = await denies(limiter, key)
    assert.deepEqual([forever.deniedBy, forever.retryAfterMs], [['user.block'], Number.POSITIVE_INFINITY])
    scene.clock.advance(400 * 86_400_000)
    await denies(limiter, key)
    await limiter.unblock({ user: 'a' })
    assert.equal((await admits(limiter, key)).limits[0]!.shadow, true)
  },

  async 'a reset clears the usage but no overrides'(scene) {
    const limiter = overridable(scene)
    await limiter.overrides.set('k', { limit: 5 })
    await admits(limiter, 'k', 5)
    await limiter.reset('k')
    assert.equal(await left(limiter, 'k'), 5)
    assert.equal(await left(overridable(scene), 'k'), 5)
  },

  async 'a limiter without the overrides option ignores overrides'(scene) {
    await overridable(scene).overrides.set('k', { limit: 5 })
    const limits = [slidingWindow({ limit: 2, window: '10s', name: 'burst' })]
    const limiter = scene.create({ limits })
    assert.equal(await left(limiter, 'k'), 2)
    assert.throws(() => limiter.overrides, { code: 'invalid_option' })
    await assert.rejects(limiter.block('k', '1m'), { code: 'invalid_option', message: /overrides: true/ })
    await assert.rejects(limiter.unblock('k'), { code: 'invalid_option' })
  },

  async 'unblocking a key also lifts its ban, and an exempt key is never banned'(scene) {
    const limits = [slidingWindow({ limit: 1, window: '10s', name: 'burst' })]
    const limiter = scene.create({ limits, overrides: true, ban: { after: 2, within: '1m', for: '5m' } })
    await admits(limiter, 'k')
    await denies(limiter, 'k')
    assert.equal((await denies(limiter, 'k')).blockedMs, 300_000)
    await limiter.block('k', '10m')
    assert.equal((await denies(limiter, 'k')).blockedMs, 600_000)
    await limiter.unblock('k')
    assert.equal(await limiter.isBlocked('k'), false)
    await limiter.overrides.set('k', 'exempt')
    for (let i = 0; i < 5; i++) await admits(limiter, 'k')
    assert.deepEqual((await limiter.explain('k')).bans, [{ level: 0, denials: 0, blockedMs: 0 }])
  },

  async 'a decision made under an override can be refunded after the override is deleted'(scene) {
    const limiter = overridable(scene)
    await limiter.overrides.set('k', { limit: 9 })
    const decision = await admits(limiter, 'k', 5)
    await limiter.overrides.delete('k')
    await denies(limiter, 'k')
    assert.equal(await limiter.refund('k', decision), 5)
    await admits(limiter, 'k', 2)
    assert.equal(await limiter.refund('k', decision), 0)
  },
}

function overridable(scene: Scene, name = 'conformance'): Limiter {
  const limits = [slidingWindow({ limit: 2, window: '10s', name: 'burst' })]
  return scene.create({ name, limits, overrides: true })
}

async function all(limiter: Limiter): Promise<Override[]> {
  const listed: Override[] = []
  for await (const override of limiter.overrides.list()) listed.push(override)
  return listed
}

function numbersOf({ limits }: Decision): unknown[] {
  return limits.map(({ name, limit, remaining }) => [name, limit, remaining])
}

function byText(a: readonly unknown[], b: readonly unknown[]): number {
  return String(a[0]) < String(b[0]) ? -1 : 1
}
