import { describe, expect, it } from 'vitest'
import { createLimiter, memoryStore } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { SAMPLES } from '../support/kinds.ts'

// A full memory store drops expired keys first, without counting them as evicted. A key expires when its limit is unused again,
// and not before.

describe.each(Object.entries(SAMPLES))('%s', (_, { make, options }) => {
  /** Fills the table with two keys. A third one arrives this long after the first becomes unused. */
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

  it('expires in memory when it is unused again', () => {
    expect(evictedFor(0)).toBe(0)
  })

  it("doesn't expire in memory a millisecond earlier", () => {
    expect(evictedFor(-1)).toBe(1)
  })
})
