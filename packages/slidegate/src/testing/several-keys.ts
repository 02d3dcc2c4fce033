// Conformance cases about requests with several keys, and calls with many requests.
import assert from 'node:assert/strict'
import type { Decision } from '../decision.ts'
import type { Keys } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import { admits, type Cases, denies, left, opensIn, type Scene } from './conformance-case.ts'

export const severalKeys: Cases = {
  async 'either all keys of a request are charged or none, whatever their limits are'(scene) {
    const limiter = scene.create({
      dimensions: {
        user: [slidingWindow({ limit: 4, window: '10s' })],
        ip: [fixedWindow({ limit: 5, window: '10s' })],
        route: [tokenBucket({ capacity: 6, refill: 6, interval: '10s' })],
      },
    })
    // All requests have the same time, so nothing expires, and the case can compute the remaining units itself.
    const room: Record<string, number> = {}
    for (let request = 0; request < 60; request++) {
      const key = { user: `u${request % 5}`, ip: `i${request % 7}`, route: `r${request % 4}` }
      const cost = 1 + (request % 3)
      const names = [key.user, key.ip, key.route]
      names.forEach((name, i) => {
        room[name] ??= 4 + i
      })
      const fits = names.every((name) => room[name]! >= cost)
      assert.equal((await limiter.consume(key, { cost })).allowed, fits, `request ${request}`)
      for (const name of fits ? names : []) room[name]! -= cost
    }
    for (const [name, units] of Object.entries(room)) {
      const key = { user: null, ip: null, route: null }
      const dimension = { u: 'user', i: 'ip', r: 'route' }[name[0]!]!
      assert.equal(await left(limiter, { ...key, [dimension]: name }), units, name)
    }
  },

  async 'limits are named after their dimensions and listed in the order of the dimensions'(scene) {
    const limiter = byUserAndAddress(scene, 3, 2)
    const decision = await admits(limiter, { user: 'a', ip: 'x' })
    assert.deepEqual(namesOf(decision), ['user.3-per-10s', 'ip.2-per-10s'])
    assert.deepEqual([decision.remaining, decision.limits.map(({ remaining }) => remaining)], [1, [2, 1]])
    // The order of the request's keys has no effect.
    await admits(limiter, { ip: 'x', user: 'b' })
    assert.deepEqual((await denies(limiter, { ip: 'x', user: 'a' })).deniedBy, ['ip.2-per-10s'])
    await admits(limiter, { user: 'a', ip: 'y' })
    assert.deepEqual((await denies(limiter, { user: 'a', ip: 'x' }, 2)).deniedBy, [
      'user.3-per-10s',
      'ip.2-per-10s',
    ])
  },

  async 'a key counts separately in each dimension and as a plain key'(scene) {
    const both = byUserAndAddress(scene, 1, 1)
    const alone = scene.limiter([slidingWindow({ limit: 1, window: '10s' })])
    const other = scene.create({
      name: 'other',
      dimensions: { user: [slidingWindow({ limit: 1, window: '10s' })] },
    })
    await admits(both, { user: 'a', ip: 'b' })
    await admits(both, { user: 'b', ip: 'a' })
    await admits(alone, 'a')
    await admits(alone, 'user:a')
    await admits(alone, 'user/a')
    await admits(other, { user: 'a' })
    await denies(both, { user: 'a', ip: 'c' })
    assert.equal(await left(both, { user: 'c', ip: null }), 1)
  },

  async "a null key isn't counted"(scene) {
    const limiter = byUserAndAddress(scene, 3, 1)
    const decision = await admits(limiter, { user: 'a', ip: null })
    assert.deepEqual(namesOf(decision), ['user.3-per-10s'])
    await admits(limiter, { user: 'a', ip: null }, 2)
    await admits(limiter, { user: null, ip: 'x' })
    await denies(limiter, { user: 'a', ip: 'y' })
    await denies(limiter, { user: 'b', ip: 'x' })
    await assert.rejects(limiter.consume({ user: null, ip: null }), { code: 'invalid_key' })
  },

  async 'a request with several keys is admitted as soon as the limits of all keys allow it'(scene) {
    const limiter = byUserAndAddress(scene, 1, 1)
    await admits(limiter, { user: 'a', ip: null })
    scene.clock.advance(3000)
    await admits(limiter, { user: null, ip: 'x' })
    scene.clock.advance(1000)
    assert.equal((await denies(limiter, { user: 'a', ip: 'x' })).retryAfterMs, 9000)
    await opensIn(scene, 9000, limiter, { user: 'a', ip: 'x' })
  },

  async 'simultaneous requests with several keys never exceed the limit of any key'(scene) {
    const limiter = byUserAndAddress(scene, 3, 4)
    const keys = Array.from({ length: 24 }, (_, i) => ({ user: `u${i % 4}`, ip: `i${i % 3}` }))
    const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
    for (const [dimension, limit] of [['user', 3] as const, ['ip', 4] as const]) {
      for (const name of new Set(keys.map((key) => key[dimension]))) {
        const admitted = decisions.filter(({ allowed }, i) => allowed && keys[i]![dimension] === name).length
        assert.ok(admitted <= limit, `${admitted} for ${name}`)
        const one = { user: null, ip: null, [dimension]: name }
        assert.equal(await left(limiter, one), limit - admitted)
      }
    }
  },

  async 'a refund returns units to all keys, once'(scene) {
    const limiter = byUserAndAddress(scene, 5, 4)
    const key = { user: 'a', ip: 'x' }
    const decision = await admits(limiter, key, 3)
    assert.equal(await limiter.refund(key, decision, 2), 2)
    assert.deepEqual(await leftOfBoth(limiter), [4, 3])
    assert.equal(await limiter.refund(key, decision), 1)
    assert.equal(await limiter.refund(key, decision), 0)
    assert.deepEqual(await leftOfBoth(limiter), [5, 4])
    const { code } = await limiter.refund({ user: 'a', ip: 'y' }, decision).catch((error) => error)
    assert.equal(code, 'invalid_refund')
  },

  async 'an unconditional charge applies to all keys'(scene) {
    const limiter = byUserAndAddress(scene, 5, 4)
    await limiter.charge({ user: 'a', ip: 'x' }, 3)
    assert.deepEqual(await leftOfBoth(limiter), [2, 1])
  },

  async 'a reset clears only the given keys'(scene) {
    const limiter = byUserAndAddress(scene, 5, 4)
    await admits(limiter, { user: 'a', ip: 'x' }, 4)
    await limiter.reset({ ip: 'x' })
    assert.deepEqual(await leftOfBoth(limiter), [1, 4])
    await limiter.reset({ user: 'a', ip: 'x' })
    assert.deepEqual(await leftOfBoth(limiter), [5, 4])
  },

  async 'a function can return the limits for each key'(scene) {
    const plans = {
      free: [slidingWindow({ limit: 1, window: '10s' })],
      paid: [slidingWindow({ limit: 3, window: '10s' })],
    }
    const limiter = scene.create({
      dimensions: {
        user: (_, request) => plans[(request as { plan: 'free' | 'paid' }).plan],
        ip: [fixedWindow({ limit: 9, window: '10s' })],
      },
    })
    const consume = async (user: string, plan: string) => {
      const decision = await limiter.consume({ user, ip: 'x' }, { request: { plan } })
      return [decision.allowed, decision.limits[0]!.name]
    }
    assert.deepEqual(await consume('a', 'free'), [true, 'user.1-per-10s'])
    assert.deepEqual(await consume('a', 'free'), [false, 'user.1-per-10s'])
    // Earlier usage still counts.
    assert.deepEqual(await consume('a', 'paid'), [true, 'user.3-per-10s'])
    assert.deepEqual(await consume('a', 'paid'), [true, 'user.3-per-10s'])
    assert.deepEqual(await consume('a', 'paid'), [false, 'user.3-per-10s'])
    assert.equal(await left(limiter, { user: null, ip: 'x' }), 6)
  },

  async 'entries are listed for the given keys'(scene) {
    const limits = () => [slidingWindow({ limit: 5, window: '10s', log: 'zset' })]
    const limiter = scene.create({ dimensions: { user: limits(), ip: limits() } })
    await admits(limiter, { user: 'a', ip: 'x' }, 2)
    await admits(limiter, { user: 'a', ip: 'y' })
    const unitsOf = async (key: Partial<Keys<'user' | 'ip'>>) =>
      (await limiter.list(key)).map(({ limit, entries }) => [limit, entries.map(({ units }) => units)])
    assert.deepEqual(await unitsOf({ user: 'a' }), [['user.5-per-10s', [2, 1]]])
    assert.deepEqual(await unitsOf({ user: 'a', ip: 'x' }), [
      ['user.5-per-10s', [2, 1]],
      ['ip.5-per-10s', [2]],
    ])
  },

  async 'consumeMany decides each request separately, in order'(scene) {
    const limiter = scene.limiter([slidingWindow({ limit: 3, window: '10s' })])
    const costs = [2, 2, 1, 1, 3, 1]
    const requests = costs.map((cost, i) => ({ key: i === 4 ? 'other' : 'k', cost }))
    const decisions = await limiter.consumeMany(requests)
    assert.deepEqual(
      decisions.map(({ allowed, cost, remaining }) => [allowed, cost, remaining]),
      [
        [true, 2, 1],
        [false, 2, 1],
        [true, 1, 0],
        [false, 1, 0],
        [true, 3, 0],
        [false, 1, 0],
      ],
    )
    assert.equal(await limiter.refund('k', decisions[0]!), 2)
    assert.equal(await left(limiter, 'k'), 2)
    assert.deepEqual(await limiter.consumeMany([]), [])
  },
}

type ByUserAndAddress = Limiter<Keys<'user' | 'ip'>>

function byUserAndAddress(scene: Scene, perUser: number, perAddress: number): ByUserAndAddress {
  return scene.create({
    dimensions: {
      user: [slidingWindow({ limit: perUser, window: '10s' })],
      ip: [slidingWindow({ limit: perAddress, window: '10s' })],
    },
  })
}

async function leftOfBoth(limiter: ByUserAndAddress): Promise<number[]> {
  return [await left(limiter, { user: 'a', ip: null }), await left(limiter, { user: null, ip: 'x' })]
}

function namesOf({ limits }: Decision): string[] {
  return limits.map(({ name }) => name)
}
