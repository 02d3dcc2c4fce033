// Conformance cases about concurrency limits.
import assert from 'node:assert/strict'
import type { Permit } from '../limiter/permit.ts'
import type { Limiter } from '../limiter.ts'
import { concurrency } from '../limits/concurrency.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { type Cases, left } from './conformance-case.ts'
import { entriesOf } from './entries.ts'

async function acquires(limiter: Limiter, key: string, cost = 1): Promise<Permit> {
  const permit = await limiter.acquire(key, { cost })
  assert.equal(permit.allowed, true, `a cost of ${cost} for the key ${key} should be admitted`)
  return permit
}

async function isFull(limiter: Limiter, key: string, cost = 1): Promise<number> {
  const permit = await limiter.acquire(key, { cost })
  assert.equal(permit.allowed, false, `a cost of ${cost} for the key ${key} should be denied`)
  return permit.decision.retryAfterMs
}

export const holders: Cases = {
  async "a released slot is free immediately and can't be released twice"({ limiter }) {
    const limited = limiter([concurrency({ limit: 3, ttl: '10s' })])
    const two = await acquires(limited, 'k', 2)
    const one = await acquires(limited, 'k')
    await isFull(limited, 'k')
    await acquires(limited, 'other', 3)
    assert.equal(await two.release(), true)
    assert.equal(await two.release(), false)
    assert.equal(await left(limited, 'k'), 2)
    await acquires(limited, 'k', 2)
    await isFull(limited, 'k')
    assert.equal(await one.release(), true)
    assert.equal(await left(limited, 'k'), 1)
  },

  async 'any limiter can renew and release a slot by its request id'({ clock, limiter }) {
    const limits = [concurrency({ limit: 3, ttl: '10s' })]
    const [limited, elsewhere] = [limiter(limits), limiter(limits)]
    assert.equal((await limited.consume('k', { requestId: 'job-1', cost: 2 })).allowed, true)
    assert.equal((await limited.consume('k', { requestId: 'job-2' })).allowed, true)
    await isFull(elsewhere, 'k')
    clock.advance(6000)
    assert.equal(await elsewhere.extend('k', 'job-1'), false, 'not at another cost')
    assert.equal(await elsewhere.extend('k', 'job-1', { cost: 2 }), true)
    clock.advance(6000)
    assert.equal(await left(limited, 'k'), 1, 'job-2 has expired')
    assert.equal(await elsewhere.extend('k', 'job-2'), false)
    assert.equal(await elsewhere.release('k', 'job-2'), false)
    assert.equal(await elsewhere.release('k', 'job-1'), false, 'not at another cost')
    assert.equal(await elsewhere.release('other', 'job-1', { cost: 2 }), false)
    assert.equal(await elsewhere.release('k', 'job-1', { cost: 2 }), true)
    assert.equal(await elsewhere.release('k', 'job-1', { cost: 2 }), false)
    assert.equal(await left(limited, 'k'), 3)
  },

  async "a slot that isn't released or renewed is free after its ttl"({ clock, limiter }) {
    const limited = limiter([concurrency({ limit: 2, ttl: '10s' })])
    await acquires(limited, 'k')
    clock.advance(4000)
    await acquires(limited, 'k')
    assert.deepEqual([await isFull(limited, 'k'), await isFull(limited, 'k', 2)], [6000, 10_000])
    clock.advance(5999)
    await isFull(limited, 'k')
    clock.advance(1)
    await acquires(limited, 'k')
    await isFull(limited, 'k')
  },

  async "a late release doesn't free another holder's slot"({ clock, limiter }) {
    const limited = limiter([concurrency({ limit: 1, ttl: '10s' })])
    const late = await acquires(limited, 'k')
    clock.advance(10_000)
    await acquires(limited, 'k')
    assert.equal(await late.release(), false)
    await isFull(limited, 'k')
  },

  async 'a renewed slot is held for one ttl from the renewal'({ clock, limiter }) {
    const limited = limiter([concurrency({ limit: 3, ttl: '10s' })])
    const renewed = await acquires(limited, 'k', 2)
    const forgotten = await acquires(limited, 'k')
    for (let i = 0; i < 3; i++) {
      clock.advance(6000)
      assert.equal(await renewed.extend(), true)
    }
    assert.equal(await forgotten.extend(), false)
    assert.equal(await left(limited, 'k'), 1)
    assert.equal(await isFull(limited, 'k', 2), 10_000)
    clock.advance(9999)
    await isFull(limited, 'k', 2)
    clock.advance(1)
    assert.equal(await renewed.extend(), false)
    await acquires(limited, 'k', 3)
  },

  async "a release frees the slot but doesn't refund other limits"({ limiter }) {
    const limited = limiter([
      concurrency({ limit: 2, ttl: '10s', name: 'held' }),
      slidingWindow({ limit: 3, window: '1m', name: 'rate' }),
    ])
    for (let i = 0; i < 3; i++) assert.equal(await (await acquires(limited, 'k')).release(), true)
    const { deniedBy, limits } = (await limited.acquire('k')).decision
    assert.deepEqual([deniedBy, limits[0]!.remaining], [['rate'], 2])
    assert.deepEqual(await entriesOf(limited, 'k'), [])
  },

  async 'a denied request holds no slot'({ limiter }) {
    const limited = limiter([concurrency({ limit: 1, ttl: '10s' })])
    const held = await acquires(limited, 'k')
    const denied = await limited.acquire('k')
    assert.deepEqual([denied.allowed, await denied.extend(), await denied.release()], [false, false, false])
    await isFull(limited, 'k')
    assert.equal((await entriesOf(limited, 'k')).length, 1)
    assert.equal(await held.release(), true)
  },

  async 'a slot can be consumed only with an id, which is needed to release it'({ limiter }) {
    const limited = limiter([concurrency({ limit: 2, ttl: '10s' })])
    await assert.rejects(limited.consume('k'), { code: 'invalid_request_id' })
    await assert.rejects(limited.consumeMany([{ key: 'k' }]), { code: 'invalid_request_id' })
    assert.equal(await left(limited, 'k'), 2)
  },

  async 'a consumed slot is held until it is refunded'({ clock, limiter }) {
    const limited = limiter([concurrency({ limit: 2, ttl: '10s' })])
    const decision = await limited.consume('k', { requestId: 'job-1', cost: 2 })
    clock.advance(1000)
    await isFull(limited, 'k')
    assert.equal(await limited.refund('k', decision), 2)
    assert.equal(await left(limited, 'k'), 2)
    assert.equal(await limited.refund('k', decision), 0)
  },

  async 'the list shows holders with the time of their last renewal'(scene) {
    const { clock } = scene
    const limited = scene.limiter([concurrency({ limit: 5, ttl: '10s' })])
    const first = await acquires(limited, 'k', 2)
    clock.advance(1000)
    await acquires(limited, 'k', 3)
    clock.advance(1000)
    assert.equal(await first.extend(), true)
    const shown = await entriesOf(limited, 'k')
    assert.deepEqual(
      shown.map(({ units, atMs }) => [units, atMs - clock.now()]),
      [
        [3, -1000],
        [2, 0],
      ],
    )
  },

  async 'after the clock is set back by more than 1 s, slots are held for one more ttl'({ clock, limiter }) {
    const limited = limiter([concurrency({ limit: 2, ttl: '10s' })])
    const held = await acquires(limited, 'k')
    await acquires(limited, 'k')
    clock.advance(-3_600_000)
    assert.equal(await isFull(limited, 'k'), 10_000)
    assert.equal(await held.release(), true)
    clock.advance(9999)
    await acquires(limited, 'k')
    assert.equal(await isFull(limited, 'k'), 1)
  },
}
