// Conformance cases about bans: all requests for a key are denied for some time.
import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import type { BanOptions } from '../limits/ban.ts'
import { distinct } from '../limits/distinct.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type Cases, denies, left, type Scene } from './conformance-case.ts'

const BAN: BanOptions = { after: 3, within: '10s', for: ['20s', '60s'], forgetAfter: '30s' }

export const bans: Cases = {
  async 'repeated denials cause a ban, which the last denial reports'(scene) {
    const limiter = banning(scene)
    await admits(limiter, 'k')
    for (let i = 1; i < 3; i++) {
      const { blockedMs, retryAfterMs } = await denies(limiter, 'k')
      assert.deepEqual([blockedMs, retryAfterMs], [undefined, 1000])
    }
    const denial = await denies(limiter, 'k')
    assert.deepEqual(denial.deniedBy, ['1-per-1s'])
    assert.deepEqual([denial.blockedMs, denial.retryAfterMs, denial.resetAfterMs], [20_000, 20_000, 20_000])
    assert.deepEqual([denial.limits[0]!.retryAfterMs, denial.limits[0]!.remaining], [1000, 0])
    assert.equal(await limiter.isBlocked('k'), true)
    assert.equal(await limiter.isBlocked('other'), false)
    await admits(limiter, 'other')
  },

  async 'a banned key is denied until the ban ends'(scene) {
    const limiter = banning(scene)
    await causeBan(limiter)
    for (const [afterMs, blockedMs] of [
      [0, 20_000],
      [5000, 15_000],
      [14_999, 1],
    ] as const) {
      scene.clock.advance(afterMs)
      for (const denial of [await denies(limiter, 'k'), await limiter.peek('k')]) {
        const { allowed, blockedMs: reportedMs, retryAfterMs, resetAfterMs, remaining, deniedBy } = denial
        // The window is full for the first second of the ban.
        const waitMs = Math.max(0, blockedMs - 19_000)
        assert.deepEqual(
          { allowed, reportedMs, retryAfterMs, resetAfterMs, remaining, deniedBy },
          {
            allowed: false,
            reportedMs: blockedMs,
            retryAfterMs: blockedMs,
            resetAfterMs: blockedMs,
            remaining: 0,
            deniedBy: waitMs > 0 ? ['ban', '1-per-1s'] : ['ban'],
          },
        )
        const [limit] = denial.limits
        assert.deepEqual(
          [limit!.allowed, limit!.remaining, limit!.retryAfterMs, limit!.resetAfterMs],
          [waitMs === 0, waitMs > 0 ? 0 : 1, waitMs, waitMs],
        )
      }
    }
    scene.clock.advance(1)
    assert.equal(await limiter.isBlocked('k'), false)
    assert.equal((await admits(limiter, 'k')).blockedMs, undefined)
  },

  async 'a blocked key also waits for its limits if they are still full after the block'(scene) {
    const limiter = scene.create({
      limits: [slidingWindow({ limit: 2, window: '1h' }), fixedWindow({ limit: 50, window: '1h' })],
      overrides: true,
    })
    await admits(limiter, 'k', 2)
    await limiter.block('k', '10s')
    const { retryAfterMs: explainedMs, deniedBy: explained } = await limiter.explain('k')
    const denial = await denies(limiter, 'k')
    assert.deepEqual([denial.blockedMs, denial.retryAfterMs, denial.remaining], [10_000, 3_600_000, 0])
    assert.deepEqual(denial.deniedBy, ['block', '2-per-1h'])
    assert.deepEqual([explainedMs, explained], [denial.retryAfterMs, denial.deniedBy])
    assert.deepEqual(
      denial.limits.map(({ allowed, remaining, retryAfterMs }) => [allowed, remaining, retryAfterMs]),
      [
        [false, 0, 3_600_000],
        [true, 48, 0],
      ],
    )
    assert.equal((await denies(limiter, 'k', 3)).retryAfterMs, Number.POSITIVE_INFINITY)
  },

  async "denials for a banned key don't count and don't extend the ban"(scene) {
    const limiter = banning(scene)
    await causeBan(limiter)
    for (let i = 0; i < 40; i++) {
      assert.equal((await denies(limiter, 'k')).blockedMs, 20_000 - 500 * i)
      scene.clock.advance(500)
    }
    await admits(limiter, 'k')
    assert.deepEqual(await banOf(limiter), { level: 1, denials: 0, blockedMs: 0 })
  },

  async 'only recent denials count toward a ban; peeks and shadow limits never do'(scene) {
    const limiter = scene.create({
      limits: [
        slidingWindow({ limit: 1, window: '10s' }),
        fixedWindow({ limit: 1, window: '1h', name: 'tried', shadow: true }),
      ],
      ban: { after: 3, within: '5s', for: '1m' },
    })
    await admits(limiter, 'k')
    for (let i = 0; i < 10; i++) assert.equal((await limiter.peek('k')).allowed, false)
    await denies(limiter, 'k')
    scene.clock.advance(2500)
    await denies(limiter, 'k')
    scene.clock.advance(2500)
    // The first denial is no longer recent enough to count toward a ban.
    assert.equal((await denies(limiter, 'k')).blockedMs, undefined)
    scene.clock.advance(2499)
    assert.equal((await denies(limiter, 'k')).blockedMs, 60_000)
    scene.clock.advance(60_000)
    // All of these requests exceed the shadow limit.
    for (let i = 0; i < 5; i++) {
      await admits(limiter, 'k')
      scene.clock.advance(10_000)
    }
  },

  async 'a key that keeps sending new values is banned'(scene) {
    const limits = [distinct({ limit: 1, window: '1h' })]
    const limiter = scene.create({ limits, ban: { after: 2, within: '10s', for: '1m' } })
    const deniedByFor = async (value: string) => (await limiter.consume('k', { value })).deniedBy
    assert.deepEqual(
      [await deniedByFor('a'), await deniedByFor('b'), await deniedByFor('a')],
      [[], ['1-per-1h'], []],
    )
    await deniedByFor('c')
    assert.deepEqual(await deniedByFor('a'), ['ban'])
  },

  async 'each ban lasts longer than the one before, up to the last step'(scene) {
    const limiter = banning(scene)
    for (const blockedMs of [20_000, 60_000, 60_000, 60_000]) {
      assert.equal(await causeBan(limiter), blockedMs)
      scene.clock.advance(blockedMs)
    }
  },

  async 'earlier bans are forgotten some time after the last one ended'(scene) {
    const limiter = banning(scene)
    await causeBan(limiter)
    scene.clock.advance(20_000 + 29_999)
    assert.equal(await causeBan(limiter), 60_000)
    scene.clock.advance(60_000 + 30_000)
    assert.equal(await causeBan(limiter), 20_000)
  },

  async 'requests that are denied in one batch count separately'(scene) {
    const limiter = banning(scene)
    const decisions = await Promise.all(Array.from({ length: 6 }, () => limiter.consume('k')))
    assert.deepEqual(
      decisions.map(({ allowed }) => allowed),
      [true, false, false, false, false, false],
    )
    assert.equal(decisions.at(-1)!.blockedMs, 20_000)
    assert.deepEqual(await banOf(limiter), {
      level: 1,
      denials: 0,
      blockedMs: 20_000,
      sinceMs: scene.clock.now(),
    })
  },

  async 'unblocking a key clears its denials and earlier bans'(scene) {
    const limiter = banning(scene)
    await causeBan(limiter)
    await limiter.unblock('k')
    assert.deepEqual(await banOf(limiter), { level: 0, denials: 0, blockedMs: 0 })
    scene.clock.advance(1000)
    await admits(limiter, 'k')
    await denies(limiter, 'k')
    await denies(limiter, 'k')
    await limiter.unblock('k')
    assert.equal((await denies(limiter, 'k')).blockedMs, undefined)
    scene.clock.advance(10_000)
    assert.equal(await causeBan(limiter), 20_000)
  },

  async 'blocking a key manually keeps its denials and earlier bans'(scene) {
    const limiter = banning(scene)
    await causeBan(limiter)
    await limiter.block('k', '30s')
    scene.clock.advance(30_000)
    assert.equal(await causeBan(limiter), 60_000)
  },

  async 'a ban applies to every limiter with the same name, and a reset clears it'(scene) {
    const limiter = banning(scene)
    const other = scene.create({ limits: [slidingWindow({ limit: 100, window: '1h' })], ban: BAN })
    const apart = scene.create({
      name: 'apart',
      limits: [slidingWindow({ limit: 1, window: '1s' })],
      ban: BAN,
    })
    await causeBan(limiter)
    assert.equal((await denies(other, 'k')).blockedMs, 20_000)
    await admits(apart, 'k')
    await other.reset('k')
    assert.equal(await limiter.isBlocked('k'), false)
    assert.deepEqual(await banOf(limiter), { level: 0, denials: 0, blockedMs: 0 })
    await admits(other, 'k')
  },

  async 'a blocked key can still get refunds'(scene) {
    const limiter = scene.create({ limits: [slidingWindow({ limit: 2, window: '1m' })], overrides: true })
    const decision = await admits(limiter, 'k', 2)
    await limiter.block('k', '1s')
    assert.equal(await limiter.refund('k', decision, 1), 1)
    await limiter.charge('k', 1)
    assert.equal(await limiter.refund('k', decision, 1), 1)
    await limiter.unblock('k')
    assert.equal(await left(limiter, 'k'), 1)
  },

  async 'only the keys whose limits denied the request are banned'(scene) {
    const limiter = scene.create({
      dimensions: {
        user: [slidingWindow({ limit: 1, window: '1s' })],
        ip: [slidingWindow({ limit: 100, window: '1s' })],
      },
      ban: { user: BAN, ip: BAN },
      overrides: true,
    })
    const key = { user: 'a', ip: 'x' }
    await admits(limiter, key)
    await denies(limiter, key)
    await denies(limiter, key)
    assert.equal((await denies(limiter, key)).blockedMs, 20_000)
    assert.deepEqual(
      [await limiter.isBlocked({ user: 'a' }), await limiter.isBlocked({ ip: 'x' })],
      [true, false],
    )
    assert.equal(await limiter.isBlocked(key), true)
    await admits(limiter, { user: 'b', ip: 'x' })
    const before = await left(limiter, { user: null, ip: 'x' })
    for (let i = 0; i < 5; i++) {
      const denial = await denies(limiter, key)
      assert.deepEqual([denial.blockedMs, denial.deniedBy], [20_000, ['user.ban', 'user.1-per-1s']])
      const [user, address] = denial.limits.map(({ allowed, remaining }) => [allowed, remaining])
      assert.deepEqual(user, [false, 0])
      assert.deepEqual(address, [true, 98])
    }
    assert.equal(await left(limiter, { user: null, ip: 'x' }), before)
    await limiter.block({ ip: 'x' }, '1m')
    const other = await denies(limiter, { user: 'c', ip: 'x' })
    assert.deepEqual([other.blockedMs, other.deniedBy], [60_000, ['ip.block']])
    assert.deepEqual(
      other.limits.map(({ allowed, remaining }) => [allowed, remaining]),
      [
        [true, 1],
        [true, 98],
      ],
    )
    // Whichever ends later, the ban or the block, determines the wait.
    const both = await denies(limiter, key)
    assert.equal(both.blockedMs, 60_000)
    assert.deepEqual(both.deniedBy, ['user.ban', 'ip.block', 'user.1-per-1s'])
    await limiter.unblock({ user: 'a', ip: 'x' })
    assert.equal(await limiter.isBlocked(key), false)
  },

  async "setting the clock back doesn't extend a ban"(scene) {
    const limiter = banning(scene)
    await causeBan(limiter)
    scene.clock.advance(-3_600_000)
    const { blockedMs = 0, retryAfterMs } = await denies(limiter, 'k')
    assert.ok(blockedMs > 0 && blockedMs <= 20_000, `blocked for ${blockedMs} ms`)
    assert.equal(retryAfterMs, blockedMs)
    scene.clock.advance(blockedMs)
    assert.equal(await limiter.isBlocked('k'), false)
    await admits(limiter, 'k')
  },
}

function banning(scene: Scene): Limiter {
  return scene.create({ limits: [slidingWindow({ limit: 1, window: '1s' })], ban: BAN, overrides: true })
}

/** Causes a ban and returns its length in milliseconds. */
async function causeBan(limiter: Limiter): Promise<number | undefined> {
  await admits(limiter, 'k')
  await denies(limiter, 'k')
  await denies(limiter, 'k')
  return (await denies(limiter, 'k')).blockedMs
}

async function banOf(limiter: Limiter): Promise<unknown> {
  return (await limiter.explain('k')).bans[0]
}
