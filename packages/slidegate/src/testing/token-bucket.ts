// Conformance cases about token buckets.
import assert from 'node:assert/strict'
import { tokenBucket } from '../limits/token-bucket.ts'
import { admits, type Cases, denies, left, opensIn } from './conformance-case.ts'

/** Refills one token per 100 ms. */
const TENTHS = { refill: 10, interval: '1s' } as const

export const tokenBuckets: Cases = {
  async 'a token bucket starts full, and its tokens are refilled one by one'(scene) {
    const limited = scene.limiter([tokenBucket({ capacity: 3, ...TENTHS })])
    const { remaining, resetAfterMs, limits } = await admits(limited, 'k', 2)
    assert.deepEqual([remaining, resetAfterMs], [1, 200])
    assert.deepEqual([limits[0]!.limit, limits[0]!.windowMs, limits[0]!.precisionMs], [3, 300, 1])
    await admits(limited, 'k')
    for (let i = 0; i < 5; i++) {
      assert.equal((await denies(limited, 'k')).retryAfterMs, 100)
      await opensIn(scene, 100, limited, 'k')
    }
    scene.clock.advance(299)
    assert.equal(await left(limited, 'k'), 2)
    scene.clock.advance(1)
    assert.equal((await admits(limited, 'k', 3)).remaining, 0)
  },

  async "a token bucket loses no fractions if a token doesn't take a whole number of milliseconds"(scene) {
    const limited = scene.limiter([tokenBucket({ capacity: 3, refill: 3, interval: '1s' })])
    await admits(limited, 'k', 3)
    // Tokens are refilled after 333 1/3, 666 2/3 and 1000 ms, and so on.
    for (const ms of [334, 333, 333, 334, 333, 333]) {
      assert.equal((await denies(limited, 'k')).retryAfterMs, ms)
      await opensIn(scene, ms, limited, 'k')
    }
    assert.equal((await denies(limited, 'k', 3)).resetAfterMs, 1000)
  },

  async 'a token bucket reports exactly, to the millisecond, when a cost fits'(scene) {
    const limited = scene.limiter([tokenBucket({ capacity: 10, refill: 7, interval: '1s' })])
    for (const cost of [1, 2, 3, 7, 10]) {
      await limited.reset('k')
      await admits(limited, 'k', 10)
      const { retryAfterMs } = await denies(limited, 'k', cost)
      assert.equal(retryAfterMs, Math.ceil((cost * 1000) / 7))
      await opensIn(scene, retryAfterMs, limited, 'k', cost)
    }
    assert.equal((await denies(limited, 'k', 11)).retryAfterMs, Number.POSITIVE_INFINITY)
  },

  async 'a charge can put a token bucket in debt until it is refilled'(scene) {
    const limited = scene.limiter([tokenBucket({ capacity: 4, ...TENTHS })])
    await limited.charge('k', 9)
    const { remaining, retryAfterMs, resetAfterMs } = await denies(limited, 'k')
    assert.deepEqual([remaining, retryAfterMs, resetAfterMs], [0, 600, 900])
    await opensIn(scene, 600, limited, 'k')
    await denies(limited, 'k')
  },

  async 'the debt of a token bucket is capped at 366 days, even after its refill changes'(scene) {
    let refill = 10
    const limited = scene.create({ limits: () => [tokenBucket({ capacity: 4, refill, interval: '1s' })] })
    await limited.charge('k', Number.MAX_SAFE_INTEGER)
    refill = 1
    assert.equal((await denies(limited, 'k')).resetAfterMs, 366 * 86_400_000)
    refill = 10
    assert.equal((await denies(limited, 'k')).resetAfterMs, 366 * 86_400_000)
    // The largest bucket, with 2^52 fractions of tokens.
    const greatest = scene.limiter([tokenBucket({ capacity: 2 ** 40, refill: 2 ** 40, interval: 4096 })])
    await greatest.charge('great', Number.MAX_SAFE_INTEGER)
    assert.equal((await denies(greatest, 'great')).resetAfterMs, 4096)
  },

  async "a refund to a token bucket returns only tokens that haven't refilled yet"(scene) {
    const limited = scene.limiter([tokenBucket({ capacity: 10, ...TENTHS })])
    await admits(limited, 'k', 2)
    const decision = await admits(limited, 'k', 8)
    // This refills 2 1/2 tokens.
    scene.clock.advance(250)
    assert.equal(await left(limited, 'k'), 2)
    assert.equal(await limited.refund('k', decision), 6)
    assert.equal((await limited.peek('k')).resetAfterMs, 200)
    assert.equal(await left(limited, 'k'), 8)
    assert.equal(await limited.refund('k', decision), 0)
  },

  async 'a refund to a token bucket adds no quota beyond its charge'({ clock, limiter }) {
    const limited = limiter([tokenBucket({ capacity: 3, ...TENTHS })])
    const early = await admits(limited, 'k', 2)
    clock.advance(200)
    assert.equal(await limited.refund('k', early), 0)
    await admits(limited, 'k', 3)
    assert.equal(await limited.refund('k', early), 0)
    assert.equal(await left(limited, 'k'), 0)
    await limited.reset('k')
    const forgotten = await admits(limited, 'k', 3)
    await limited.reset('k')
    assert.equal(await limited.refund('k', forgotten), 0)
    clock.advance(1)
    await admits(limited, 'k')
    assert.equal(await limited.refund('k', forgotten), 0)
    assert.equal(await left(limited, 'k'), 2)
  },

  async 'a token bucket refunds a charge that was followed by a much larger one'({ clock, limiter }) {
    const limited = limiter([tokenBucket({ capacity: 1000, refill: 1, interval: '1s' })])
    const decision = await admits(limited, 'k', 9)
    clock.advance(1)
    await admits(limited, 'k', 900)
    assert.equal(await limited.refund('k', decision), 9)
  },

  async 'a token bucket that has been full since the charge refunds nothing after the clock was set back'({
    clock,
    limiter,
  }) {
    const limited = limiter([tokenBucket({ capacity: 10, ...TENTHS })])
    const decision = await admits(limited, 'k', 5)
    clock.advance(-3_600_000)
    await admits(limited, 'k')
    clock.advance(3_600_010)
    await admits(limited, 'k', 5)
    assert.equal(await limited.refund('k', decision), 0)
    assert.equal(await left(limited, 'k'), 5)
  },

  async 'after the clock is set back slightly, a token bucket waits for the clock'({ clock, limiter }) {
    const limited = limiter([tokenBucket({ capacity: 2, ...TENTHS })])
    const { atMs } = await admits(limited, 'k')
    clock.advance(-500)
    assert.equal((await admits(limited, 'k')).atMs, atMs)
    const denied = await denies(limited, 'k')
    assert.deepEqual([denied.atMs, denied.retryAfterMs], [atMs, 100])
    clock.set(atMs + 99)
    await denies(limited, 'k')
    clock.advance(1)
    await admits(limited, 'k')
  },

  async 'after the clock is set back by more than 1 s, the debt of a token bucket counts as if charged now'(
    scene,
  ) {
    const { clock } = scene
    const limited = scene.limiter([tokenBucket({ capacity: 3, ...TENTHS })])
    const decision = await admits(limited, 'k', 3)
    clock.advance(-3_600_000)
    for (let waitMs = 100; waitMs > 0; waitMs -= 25) {
      const { atMs, retryAfterMs } = await denies(limited, 'k')
      assert.deepEqual([atMs, retryAfterMs], [clock.now(), waitMs])
      clock.advance(25)
    }
    await admits(limited, 'k')
    // It is unknown how much of that charge has been refilled.
    assert.equal(await limited.refund('k', decision), 0)
  },

  async 'if a refund is the first call after the clock is set back by more than 1 s, the remaining debt counts as if charged now'({
    clock,
    limiter,
  }) {
    const limited = limiter([tokenBucket({ capacity: 10, ...TENTHS })])
    const decision = await admits(limited, 'k', 6)
    clock.advance(-3_600_000)
    assert.equal(await limited.refund('k', decision, 2), 2)
    clock.advance(200)
    assert.equal((await admits(limited, 'k')).remaining, 5)
    clock.advance(200)
    assert.equal(await left(limited, 'k'), 7)
  },
}
