// tier: system
import { describe, expect, it } from 'vitest'
import { addressKey } from '../../src/http/index.ts'
import { createLimiter, failurePolicy, slidingWindow, withDenyCache, withLeases } from '../../src/index.ts'
import type { ConsumeOutcome, Store } from '../../src/stores/store.ts'
import { bytesInUse } from '../faults/matrix/meter.ts'

// What this process keeps of keys while the store counts them: however many there are, it is no more than it may be.

const limits = [slidingWindow({ limit: 5, window: '1h' })]

/** A store that knows nobody, and so takes no memory itself. */
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

const FLOOD = 60_000

/** Bytes by which what is in use grows from one flood to the next. */
async function growthOf(flood: (from: number) => Promise<void>): Promise<number> {
  await flood(0)
  const before = bytesInUse()
  await flood(FLOOD)
  await flood(2 * FLOOD)
  return bytesInUse() - before
}

/** Less than what 120,000 keys would take. */
const FLAT = 3e6

async function consumeAll(store: Store, from: number): Promise<void> {
  const limiter = createLimiter({ limits, store })
  for (let i = from; i < from + FLOOD; i++) await limiter.consume(`a key of its own ${i}`)
  limiter.close()
}

describe('a flood of keys', () => {
  it('that are all denied takes no more and more memory in the deny cache', async () => {
    const store = withDenyCache(answering(0), { maxKeys: 1000 })
    expect(await growthOf((from) => consumeAll(store, from))).toBeLessThan(FLAT)
  })

  it('that are all admitted takes none for leases', async () => {
    const store = withLeases(answering(1), { maxKeys: 1000 })
    expect(await growthOf((from) => consumeAll(store, from))).toBeLessThan(FLAT)
    await store.close()
  })

  it('of addresses takes none for how they were read', async () => {
    const flood = async (from: number) => {
      for (let i = from; i < from + FLOOD; i++) addressKey(`2001:db8:${i.toString(16)}::1`)
    }
    expect(await growthOf(flood)).toBeLessThan(FLAT)
  })
})
