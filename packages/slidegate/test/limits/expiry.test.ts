import { describe, expect, it } from 'vitest'
import { createLimiter, memoryStore } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { SAMPLES } from '../support/kinds.ts'

// A full memory store drops who has expired before anybody else, without counting it as evicted: a key has expired when
// all of its limit is free again, and not before.

describe.each(Object.entries(SAMPLES))('%s', (_, { make, options }) => {
  /** Two keys fill the table, the second one later; and a third one comes so long after all of the first is free. */
  function evictedFor(lateMs: number): number {
    const clock = new ManualClock()
    const store = memoryStore({ clock: clock.now, maxKeys: 2 })
    const limiter = createLimiter({ limits: [make({ limit: 7 })], store })
    const ask = (key: string, n: number) => limiter.consumeSync(key, options?.(n))
    ask('first', 1)
    clock.advance(1)
    const { resetAfterMs } = ask('first', 2)
    ask('second', 1)
    clock.advance(2)
    ask('second', 2)
    clock.advance(resetAfterMs - 2 + lateMs)
    ask('third', 1)
    return store.stats().evicted
  }

  it('makes room when all of it is free', () => {
    expect(evictedFor(0)).toBe(0)
  })

  it('and not a millisecond before', () => {
    expect(evictedFor(-1)).toBe(1)
  })
})
