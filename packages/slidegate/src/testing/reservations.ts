// Conformance cases about reservations, which charge an estimate and are settled when the cost is known.
import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import { concurrency } from '../limits/concurrency.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import { admits, type Cases, denies, left, leftOfEach, type Scene, SUMS } from './conformance-case.ts'

const GONE = { code: 'invalid_reservation' }

export const reservations: Cases = {
  async 'settling refunds the difference if the estimate was too high, and charges it if too low'(scene) {
    const limiter = hourly(scene)
    for (const [actual, settlement, remaining] of [
      [3, { returned: 7, added: 0 }, 97],
      [10, { returned: 0, added: 0 }, 90],
      [25, { returned: 0, added: 15 }, 75],
      [0, { returned: 10, added: 0 }, 100],
    ] as const) {
      const key = `${actual}`
      const reservation = await limiter.reserve(key, 10)
      assert.deepEqual([reservation.allowed, reservation.decision.remaining], [true, 90])
      assert.equal(await left(limiter, key), 90)
      assert.deepEqual(await reservation.settle(actual), settlement)
      assert.equal(await left(limiter, key), remaining)
    }
  },

  async 'a charge beyond the estimate can exceed the limit'(scene) {
    const limiter = hourly(scene)
    const reservation = await limiter.reserve('k', 60)
    assert.deepEqual(await reservation.settle(150), { returned: 0, added: 90 })
    assert.equal(await left(limiter, 'k'), 0)
    await denies(limiter, 'k')
  },

  async 'a reservation obeys the limits, and a denied one charges nothing'(scene) {
    const limiter = hourly(scene)
    await limiter.reserve('k', 70)
    const denied = await limiter.reserve('k', 31)
    assert.deepEqual([denied.allowed, denied.token, denied.decision.remaining], [false, '', 30])
    await assert.rejects(denied.settle(1), GONE)
    await assert.rejects(denied.cancel(), GONE)
    assert.equal(await left(limiter, 'k'), 30)
  },

  async 'a canceled reservation is fully refunded'(scene) {
    const limiter = hourly(scene)
    const reservation = await limiter.reserve('k', 70)
    assert.deepEqual(await reservation.cancel(), { returned: 70, added: 0 })
    assert.equal(await left(limiter, 'k'), 100)
    const { token } = await limiter.reserve('k', 70)
    assert.deepEqual(await limiter.cancel(token), { returned: 70, added: 0 })
    assert.equal(await left(limiter, 'k'), 100)
  },

  async 'a reservation is settled once, by any limiter'(scene) {
    const [limiter, other] = [hourly(scene), hourly(scene)]
    const ends: readonly ((limiter: Limiter, token: string) => Promise<unknown>)[] = [
      (by, token) => by.settle(token, 3),
      (by, token) => by.settle(token, 30),
      (by, token) => by.cancel(token),
    ]
    await admits(limiter, 'k', 20)
    for (const [i, end] of ends.entries()) {
      const reservation = await limiter.reserve('k', 10)
      await end(i % 2 === 0 ? other : limiter, reservation.token)
      const remaining = await left(limiter, 'k')
      for (const again of ends) {
        await assert.rejects(again(limiter, reservation.token), GONE)
        await assert.rejects(again(other, reservation.token), GONE)
      }
      await assert.rejects(reservation.settle(3), GONE)
      await assert.rejects(reservation.cancel(), GONE)
      assert.equal(await left(limiter, 'k'), remaining)
      await limiter.reset('k')
      await admits(limiter, 'k', 20)
    }
  },

  async 'only one of several simultaneous settlements succeeds'(scene) {
    const limiter = hourly(scene)
    const reservation = await limiter.reserve('k', 10)
    const settled = await Promise.allSettled([
      ...[1, 2, 3].map((actual) => limiter.settle(reservation.token, actual)),
      reservation.settle(4),
      reservation.cancel(),
    ])
    const done = settled.filter(({ status }) => status === 'fulfilled')
    assert.equal(done.length, 1)
    const { returned } = (done[0] as PromiseFulfilledResult<{ returned: number }>).value
    assert.equal(await left(limiter, 'k'), 90 + returned)
  },

  async 'a settlement refunds its own charge, whatever was charged before and after'(scene) {
    const coarse = slidingWindow({ limit: 100, window: '10s', precision: 100 })
    for (const limit of [coarse, ...Object.values(SUMS).map((limitOf) => limitOf(100))]) {
      const limiter = scene.create({ limits: [limit] })
      await admits(limiter, 'k', 7)
      scene.clock.advance(100)
      const reservation = await limiter.reserve('k', 50)
      scene.clock.advance(100)
      await admits(limiter, 'k', 11)
      assert.deepEqual(await reservation.settle(20), { returned: 30, added: 0 }, limit.name)
      assert.equal(await left(limiter, 'k'), 100 - 7 - 20 - 11, limit.name)
      await limiter.reset('k')
    }
  },

  async 'all limits are settled, and the lowest refund is reported'(scene) {
    const limiter = scene.create({
      limits: [
        slidingWindow({ limit: 100, window: '1s', name: 'short' }),
        fixedWindow({ limit: 200, window: '1h', name: 'long' }),
        slidingWindow({ limit: 5, window: '1h', name: 'tried', shadow: true }),
      ],
    })
    const reservation = await limiter.reserve('k', 50)
    assert.deepEqual(await leftOfEach(limiter, 'k'), [50, 150, 5])
    scene.clock.advance(1000)
    // The charge has left the short window.
    assert.deepEqual(await reservation.settle(20), { returned: 0, added: 0 })
    assert.deepEqual(await leftOfEach(limiter, 'k'), [100, 180, 5])
  },

  async "a charge that has left its window isn't refunded and adds no quota"(scene) {
    const limiter = scene.create({ limits: [slidingWindow({ limit: 10, window: '1s' })] })
    const reservation = await limiter.reserve('k', 10)
    scene.clock.advance(1000)
    await admits(limiter, 'k', 6)
    assert.deepEqual(await reservation.cancel(), { returned: 0, added: 0 })
    assert.equal(await left(limiter, 'k'), 4)
    const { token } = await limiter.reserve('empty', 10)
    scene.clock.advance(60_000)
    assert.deepEqual(await limiter.settle(token, 2), { returned: 0, added: 0 })
    await admits(limiter, 'empty', 10)
    await denies(limiter, 'empty')
  },

  async "after a reset, a reservation can't be settled and adds no quota"(scene) {
    const limiter = hourly(scene)
    const reservation = await limiter.reserve('k', 60)
    await limiter.reset('k')
    await assert.rejects(limiter.settle(reservation.token, 90), GONE)
    await assert.rejects(reservation.cancel(), GONE)
    await admits(limiter, 'k', 100)
    await denies(limiter, 'k')
  },

  async 'a reservation can be settled only within its ttl'(scene) {
    const limits = [slidingWindow({ limit: 100, window: '1h' })]
    const limiter = scene.create({ limits, reservationTtl: '1m' })
    const [early, late] = [await limiter.reserve('k', 10), await limiter.reserve('k', 10)]
    scene.clock.advance(59_999)
    assert.deepEqual(await early.cancel(), { returned: 10, added: 0 })
    scene.clock.advance(1)
    await assert.rejects(late.cancel(), GONE)
    await assert.rejects(limiter.settle(late.token, 20), GONE)
    assert.equal(await left(limiter, 'k'), 90)
  },

  async 'a token that was tampered with or comes from another limiter settles nothing'(scene) {
    const limiter = hourly(scene)
    const foreign = scene.create({ name: 'foreign', limits: [slidingWindow({ limit: 100, window: '1h' })] })
    await admits(limiter, 'k', 40)
    const { token } = await limiter.reserve('k', 10)
    await assert.rejects(foreign.settle(token, 1), GONE)
    await assert.rejects(limiter.cancel((await foreign.reserve('k', 10)).token), GONE)
    const words: unknown[] = JSON.parse(Buffer.from(token, 'base64url').toString())
    const name = String(words[4])
    const forged = (changed: Readonly<Record<number, unknown>>) =>
      Buffer.from(JSON.stringify(Object.assign([...words], changed))).toString('base64url')
    for (const changed of [
      { 2: 'other' },
      { 3: 50 },
      { 3: 1 },
      { 4: `x${name}` },
      { 3: 50, 4: name.replace(/10$/, '50') },
      { 3: 0, 4: '10' },
    ]) {
      await assert.rejects(limiter.settle(forged(changed), 0), GONE)
    }
    // A token with forged logs refunds nothing.
    await limiter.settle(forged({ 5: [['w1', 'r3600000', 'b', 'x']] }), 0)
    assert.equal(await left(limiter, 'k'), 60)
    await assert.rejects(limiter.cancel(token), GONE)
  },

  async 'a reservation with several keys is settled for all of them'(scene) {
    const limiter = scene.create({
      dimensions: {
        user: [slidingWindow({ limit: 100, window: '1h' })],
        org: [tokenBucket({ capacity: 150, refill: 1, interval: '1h' })],
      },
      overrides: true,
    })
    const key = { user: 'a', org: 'b' }
    const both = async () => [
      await left(limiter, { user: 'a', org: null }),
      await left(limiter, { user: null, org: 'b' }),
    ]
    const first = await limiter.reserve(key, 60)
    assert.deepEqual(await both(), [40, 90])
    assert.deepEqual(await first.settle(10), { returned: 50, added: 0 })
    assert.deepEqual(await both(), [90, 140])
    const second = await limiter.reserve(key, 60)
    assert.deepEqual(await limiter.settle(second.token, 70), { returned: 0, added: 10 })
    assert.deepEqual(await both(), [20, 70])
    assert.equal((await limiter.reserve(key, 21)).allowed, false)
    assert.deepEqual(await both(), [20, 70])
    const alone = await limiter.reserve({ user: null, org: 'b' }, 70)
    assert.deepEqual(await limiter.cancel(alone.token), { returned: 70, added: 0 })
    assert.deepEqual(await both(), [20, 70])
  },

  async "a reservation with a key that was reset isn't settled, even if the clock was set back"(scene) {
    const limits = () => [slidingWindow({ limit: 100, window: '10s' })]
    const limiter = scene.create({ dimensions: { user: limits(), ip: limits() } })
    const { token } = await limiter.reserve({ user: 'u', ip: 'i' }, 1)
    await limiter.reset({ user: 'u' })
    scene.clock.advance(5000)
    await limiter.consume({ user: null, ip: 'i' })
    scene.clock.advance(-2000)
    await assert.rejects(limiter.settle(token, 0), { code: 'invalid_reservation' })
    scene.clock.advance(10)
    // The charge that was ahead of the clock counts as if made now.
    assert.equal((await limiter.explain({ ip: 'i' })).limits[0]!.resetAfterMs, 9990)
  },

  async 'a reservation made before the limits changed is settled under the current limits'(scene) {
    const before = scene.create({ limits: [slidingWindow({ limit: 90, window: '30m' })] })
    const after = scene.create({ limits: [slidingWindow({ limit: 100, window: '1h' })] })
    const [high, low] = [await before.reserve('k', 40), await before.reserve('k', 10)]
    assert.equal(await left(after, 'k'), 50)
    assert.deepEqual(await after.settle(high.token, 15), { returned: 25, added: 0 })
    assert.equal(await left(after, 'k'), 75)
    assert.deepEqual(await after.settle(low.token, 30), { returned: 0, added: 20 })
    assert.equal(await left(after, 'k'), 55)
    await assert.rejects(before.settle(high.token, 1), GONE)
  },

  async 'a charge beyond the estimate is stored as an entry if the limits now store entries'(scene) {
    const then = slidingWindow({ limit: 100, window: '1h' })
    for (const [log, added] of [
      ['zset', 3],
      ['stream', 3],
    ] as const) {
      const now = slidingWindow({ limit: 100, window: '1h', log })
      let limits = [then]
      const limiter = scene.create({ name: log, limits: () => limits })
      const reserved = [await limiter.reserve('k', 2), await limiter.reserve('k', 2)]
      limits = [now]
      // Settles by token, like a process that knows only the current limits.
      for (const reservation of reserved) {
        assert.deepEqual(await limiter.settle(reservation.token, 2 + added), { returned: 0, added })
      }
      assert.equal(await left(limiter, 'k'), 100 - 2 * added, log)
      const [{ entries } = { entries: [] }] = await limiter.list('k')
      assert.deepEqual(
        entries.map(({ units }) => units),
        [added, added],
      )
    }
  },

  async 'a settlement holds no slot'(scene) {
    const then = slidingWindow({ limit: 100, window: '1h' })
    const now = concurrency({ limit: 2, ttl: '1h' })
    let limits = [then]
    const limiter = scene.create({ limits: () => limits })
    const reservation = await limiter.reserve('k', 2)
    limits = [now]
    await limiter.settle(reservation.token, 9)
    assert.deepEqual(await limiter.list('k'), [{ limit: now.name, entries: [] }])
  },

  async "limits that store each request separately don't support reservations"(scene) {
    const limiter = scene.limiter([slidingWindow({ limit: 9, window: '1h', log: 'zset' })])
    await assert.rejects(limiter.reserve('k', 2), { code: 'invalid_option' })
    assert.equal(await left(limiter, 'k'), 9)
  },
}

function hourly(scene: Scene): Limiter {
  return scene.limiter([slidingWindow({ limit: 100, window: '1h' })])
}
