// tier: system
import { describe, expect, it } from 'vitest'
import { addressKey } from '../../src/http/index.ts'
import { createLimiter, failurePolicy, slidingWindow, withDenyCache, withLeases } from '../../src/index.ts'
import type { ConsumeOutcome, Store } from '../../src/stores/store.ts'
import { bytesInUse } from '../faults/matrix/meter.ts'

// As long as the store counts, the memory of this process must stay bounded, however many keys there are.

const limits = [slidingWindow({ limit: 5, window: '1h' })]

/** Creates a store without state, so it needs no memory. */
function answering(admitted: number): Store {
  const used = 5 - 5 * admitted
  const outcome: ConsumeOutcome = {
    source: 'store',
    atMs: 0,
    admitted,
    limits: [used, 3_600_000, 3_600_000],
    waitMs: 0,
  }
  return { failurePolicy, apply: (_ops, call) => call.resolve([outcome], 0), close() {} }
}

const FLOOD = 30_000

/** Returns the growth of memory in use from one flood to the next, in bytes. */
async function growthOf(flood: (from: number) => Promise<void>): Promise<number> {
  await flood(0)
  const before = bytesInUse()
  await flood(FLOOD)
  await flood(2 * FLOOD)
  return bytesInUse() - before
}

/** Less than what 60,000 keys would need. */
const FLAT = 1.5e6

async function consumeAll(store: Store, from: number): Promise<void> {
  const limiter = createLimiter({ limits, store })
  for (let i = from; i < from + FLOOD; i++) await limiter.consume(`a key of its own ${i}`)
  limiter.close()
}

describe('a flood of keys', () => {
  it("doesn't grow the deny cache if all are denied", async () => {
    const store = withDenyCache(answering(0), { maxKeys: 1000 })
    expect(await growthOf((from) => consumeAll(store, from))).toBeLessThan(FLAT)
  })

  it("doesn't grow the leases if all are admitted", async () => {
    const store = withLeases(answering(1), { maxKeys: 1000 })
    expect(await growthOf((from) => consumeAll(store, from))).toBeLessThan(FLAT)
    await store.close()
  })

  it("doesn't grow the address parser", async () => {
    const flood = async (from: number) => {
      for (let i = from; i < from + FLOOD; i++) addressKey(`2001:db8:${i.toString(16)}::1`)
    }
    expect(await growthOf(flood)).toBeLessThan(FLAT)
  })
})
