// Conformance cases about explain().
import assert from 'node:assert/strict'
import { concurrency } from '../limits/concurrency.ts'
import { distinct } from '../limits/distinct.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import { admits, type Cases, denies } from './conformance-case.ts'

export const explaining: Cases = {
  async 'explain reports the usage, when it started and when units become free'(scene) {
    const limiter = scene.limiter([slidingWindow({ limit: 20, window: '10s' })])
    const startMs = scene.clock.now()
    await admits(limiter, 'k', 5)
    scene.clock.advance(1000)
    await admits(limiter, 'k', 5)
    scene.clock.advance(2000)
    const window = { name: '20-per-10s', limit: 20, windowMs: 10_000, precisionMs: 1, shadow: false }
    assert.deepEqual(await limiter.explain('k', { cost: 12 }), {
      atMs: startMs + 3000,
      allowed: false,
      cost: 12,
      deniedBy: ['20-per-10s'],
      retryAfterMs: 7000,
      blockedMs: 0,
      limits: [
        {
          ...window,
          allowed: false,
          remaining: 10,
          retryAfterMs: 7000,
          resetAfterMs: 8000,
          used: 10,
          oldestAtMs: startMs,
          frees: [
            { afterMs: 7000, units: 5 },
            { afterMs: 8000, units: 10 },
          ],
        },
      ],
      bans: [],
      overrides: [],
    })
    const unknown = await limiter.explain('unknown')
    assert.deepEqual([unknown.allowed, unknown.retryAfterMs], [true, 0])
    assert.deepEqual(unknown.limits, [
      { ...window, allowed: true, remaining: 20, retryAfterMs: 0, resetAfterMs: 0, used: 0, frees: [] },
    ])
  },

  async 'explain reports the same as peek for each limit, and its predictions come true'(scene) {
    const limits = [
      slidingWindow({ limit: 30, window: '10s' }),
      slidingWindow({ limit: 30, window: '10s', precision: 500, name: 'coarse' }),
      slidingWindow({ limit: 30, window: '10s', log: 'zset', name: 'zset' }),
      slidingWindow({ limit: 30, window: '10s', log: 'stream', name: 'stream' }),
      fixedWindow({ limit: 30, window: '10s', name: 'fixed' }),
      fixedWindow({ limit: 30, window: '10s', align: 'first-hit', name: 'hit' }),
      slidingCounter({ limit: 30, window: '10s', name: 'counter' }),
      tokenBucket({ capacity: 30, refill: 3, interval: '1s', name: 'bucket' }),
      concurrency({ limit: 30, ttl: '10s', name: 'held' }),
    ]
    const limiter = scene.limiter(limits)
    for (const cost of [7, 1, 1, 4]) {
      await admits(limiter, 'k', cost)
      scene.clock.advance(170)
    }
    const explained = await limiter.explain('k', { cost: 25 })
    const peeked = await limiter.peek('k', { cost: 25 })
    assert.deepEqual(
      explained.limits.map(({ used, frees, oldestAtMs, ...verdict }) => verdict),
      peeked.limits,
    )
    assert.deepEqual(
      [explained.allowed, explained.retryAfterMs, explained.deniedBy],
      [false, peeked.retryAfterMs, peeked.deniedBy],
    )
    const steps = explained.limits.flatMap(({ frees }, limit) => frees.map((step) => ({ ...step, limit })))
    const startMs = scene.clock.now()
    for (const { afterMs, units, limit } of steps.sort((a, b) => a.afterMs - b.afterMs)) {
      const { used, name } = explained.limits[limit]!
      scene.clock.set(startMs + afterMs - 1)
      assert.ok((await limiter.explain('k')).limits[limit]!.used > used - units, `${name} before ${afterMs}`)
      scene.clock.set(startMs + afterMs)
      assert.ok((await limiter.explain('k')).limits[limit]!.used <= used - units, `${name} at ${afterMs}`)
    }
    for (const { used, frees } of explained.limits) {
      assert.ok(frees.length >= 1 && frees.length <= 11)
      assert.equal(frees.at(-1)!.units, used)
    }
  },

  async 'explain with charges lists the charges that count, if the kind of limit stores them'(scene) {
    const limiter = scene.limiter([
      slidingWindow({ limit: 30, window: '10s' }),
      slidingWindow({ limit: 30, window: '5s', name: 'shorter' }),
      slidingWindow({ limit: 30, window: '10s', precision: 500, name: 'coarse' }),
      slidingWindow({ limit: 30, window: '10s', log: 'zset', name: 'zset' }),
      slidingWindow({ limit: 30, window: '10s', log: 'stream', name: 'stream' }),
      concurrency({ limit: 30, ttl: '10s', name: 'held' }),
      fixedWindow({ limit: 30, window: '10s', name: 'fixed' }),
      slidingCounter({ limit: 30, window: '10s', name: 'counter' }),
      tokenBucket({ capacity: 30, refill: 3, interval: '1s', name: 'bucket' }),
    ])
    scene.clock.set(Math.ceil(scene.clock.now() / 500) * 500)
    const startMs = scene.clock.now()
    const chargesOfEach = async () => {
      const { limits } = await limiter.explain('k', { charges: true })
      return limits.map(({ charges, olderUnits = 0, used }) => {
        const units = charges?.reduce((sum, each) => sum + each.units, olderUnits)
        assert.ok(charges === undefined || units === used)
        return charges?.map(({ atMs, units }) => [atMs - startMs, units])
      })
    }
    const none = [undefined, undefined, undefined]
    assert.deepEqual(await chargesOfEach(), [...Array<number[]>(6).fill([]), ...none])
    for (const [atMs, cost] of [
      [0, 7],
      [0, 1],
      [170, 1],
      [6000, 4],
      [6400, 2],
    ] as const) {
      scene.clock.set(startMs + atMs)
      await admits(limiter, 'k', cost)
    }
    scene.clock.set(startMs + 7000)
    const each = [
      [0, 8],
      [170, 1],
      [6000, 4],
      [6400, 2],
    ]
    const coarse = [
      [0, 9],
      [6000, 6],
    ]
    assert.deepEqual(await chargesOfEach(), [each, each.slice(2), coarse, each, each, each, ...none])
    // The first charges have left all windows except the coarse one, where they stay until their whole step has left.
    scene.clock.set(startMs + 10_000)
    assert.deepEqual(await chargesOfEach(), [
      ...[each.slice(1), each.slice(2), coarse, each.slice(1), each.slice(1), each.slice(1)],
      ...none,
    ])
    // After the clock was set back, all charges count as if made now.
    scene.clock.set(startMs - 5000)
    assert.deepEqual(await chargesOfEach(), [...Array<number[][]>(6).fill([[-5000, 15]]), ...none])
    const plain = (await limiter.explain('k')).limits
    assert.ok(plain.every((limit) => !('charges' in limit || 'declared' in limit)))
  },

  async 'explain lists the latest of many charges and adds up the older ones'(scene) {
    const limiter = scene.limiter([
      slidingWindow({ limit: 2000, window: '1m' }),
      slidingWindow({ limit: 2000, window: '1m', log: 'zset', name: 'zset' }),
      slidingWindow({ limit: 2000, window: '1m', log: 'stream', name: 'stream' }),
    ])
    const startMs = scene.clock.now()
    for (let i = 0; i < 550; i++) {
      scene.clock.advance(1)
      await admits(limiter, 'k', 2)
    }
    const { limits } = await limiter.explain('k', { charges: true })
    const results = limits.map(({ charges = [], olderUnits }) => {
      return [charges.length, charges[0]!.atMs - startMs, olderUnits, charges.at(-1)!.atMs - startMs]
    })
    assert.deepEqual(results, [
      [512, 39, 76, 550],
      // A sorted set has an entry per unit.
      [256, 295, 588, 550],
      [512, 39, 76, 550],
    ])
  },

  async 'explain lists fewer charges per limit if there are many limits'(scene) {
    const limits = Array.from({ length: 64 }, (_, i) => slidingWindow({ limit: 99, window: 10_000 + i }))
    const limiter = scene.limiter(limits)
    for (let i = 0; i < 40; i++) {
      scene.clock.advance(1)
      await admits(limiter, 'k')
    }
    const explained = await limiter.explain('k', { charges: true })
    for (const { charges = [], olderUnits, declared } of explained.limits) {
      assert.deepEqual([charges.length, olderUnits, declared?.kind], [32, 8, 'slidingWindow'])
    }
  },

  async "explain charges nothing and doesn't count toward a ban"(scene) {
    const limits = [slidingWindow({ limit: 1, window: '10s' })]
    const limiter = scene.create({ limits, ban: { after: 2, within: '10s', for: '1m' } })
    await admits(limiter, 'k')
    for (let i = 0; i < 5; i++) {
      const { allowed, bans, deniedBy } = await limiter.explain('k')
      assert.deepEqual([allowed, deniedBy.length], [false, 1])
      assert.deepEqual(bans, [{ blockedMs: 0, level: 0, denials: 0 }])
    }
    await limiter.explain('other')
    assert.equal((await limiter.peek('other')).remaining, 1)
  },

  async 'explain reports whether a distinct limit would admit a new value'(scene) {
    const limiter = scene.limiter([distinct({ limit: 2, window: '10s' })])
    const results = []
    for (const value of ['a', 'a', 'b']) {
      await limiter.consume('k', { value })
      const { allowed, limits } = await limiter.explain('k')
      results.push([allowed, limits[0]!.used])
    }
    assert.deepEqual(results, [
      [true, 1],
      [true, 1],
      [false, 2],
    ])
  },

  async 'explain reports a ban, and the state that the limits would have without it'(scene) {
    const limits = [slidingWindow({ limit: 1, window: '1s' })]
    const limiter = scene.create({ limits, ban: { after: 2, within: '10s', for: ['10s', '20s'] } })
    await admits(limiter, 'k')
    await denies(limiter, 'k')
    assert.deepEqual((await limiter.explain('k')).bans, [{ blockedMs: 0, level: 0, denials: 1 }])
    await denies(limiter, 'k')
    scene.clock.advance(4000)
    const { allowed, blockedMs, retryAfterMs, bans, limits: explained } = await limiter.explain('k')
    assert.deepEqual([allowed, blockedMs, retryAfterMs], [false, 6000, 6000])
    assert.deepEqual(bans, [{ blockedMs: 6000, sinceMs: scene.clock.now() - 4000, level: 1, denials: 0 }])
    assert.deepEqual([explained[0]!.used, explained[0]!.remaining], [0, 1])
    scene.clock.advance(6000)
    assert.deepEqual((await limiter.explain('k')).bans, [{ blockedMs: 0, level: 1, denials: 0 }])
    scene.clock.advance(20_000)
    assert.deepEqual((await limiter.explain('k')).bans, [{ blockedMs: 0, level: 0, denials: 0 }])
  },

  async 'explain reports each of several keys, or only the given ones'(scene) {
    const limiter = scene.create({
      dimensions: {
        user: [slidingWindow({ limit: 5, window: '10s' })],
        ip: [fixedWindow({ limit: 9, window: '10s' })],
      },
      overrides: true,
    })
    await admits(limiter, { user: 'a', ip: 'x' }, 4)
    await limiter.block({ ip: 'x' }, '5s')
    const both = await limiter.explain({ user: 'a', ip: 'x' }, { charges: true })
    assert.deepEqual(
      both.limits.map(({ name, used, charges, declared }) => [name, used, charges, declared?.name]),
      [
        ['user.5-per-10s', 4, [{ atMs: both.atMs, units: 4 }], '5-per-10s'],
        ['ip.9-per-10s', 4, undefined, '9-per-10s'],
      ],
    )
    assert.deepEqual([both.bans, both.overrides], [[], [{ key: 'x', dimension: 'ip', blockedMs: 5000 }]])
    assert.deepEqual([both.allowed, both.blockedMs], [false, 5000])
    const user = await limiter.explain({ user: 'a' }, { cost: 2 })
    assert.deepEqual(
      [user.allowed, user.deniedBy, user.retryAfterMs, user.bans],
      [false, ['user.5-per-10s'], 10_000, []],
    )
  },
}
