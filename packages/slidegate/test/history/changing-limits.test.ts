// tier: integration
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLimiter, type Limit } from '../../src/index.ts'
import { ManualClock } from '../../src/testing.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Declaration, type KindName, ruledBy } from './declarations.ts'
import type { StoreOf } from './play.ts'
import { declarationsOf } from './random-limits.ts'

// What holds whenever the limit of a key is changed for another, whatever logs are read for it, by sweeping over what was
// truly admitted. What each log tells is exact where it keeps the times of charges (sliding windows of any precision or log):
// what was charged counts for the length of the window that asks, and no longer than it was kept for. It is an estimate
// on the safe side for as long as the former log holds it, where that keeps but a sum: a bucket's debt is paid at the
// old rate, and a fixed window's units count till that window's end.

const { redis } = await useRedis()

const STORES = storesOn(redis)

const WINDOWS: readonly KindName[] = ['sliding', 'sliding', 'zset', 'stream']
const SUMS: readonly KindName[] = [...WINDOWS, 'fixed', 'firstHit', 'counter', 'bucket']

type Event =
  | { readonly type: 'consume'; readonly cost: number }
  | { readonly type: 'change'; readonly to: number }
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'waitWindow'; readonly which: number; readonly offBy: number }

interface History {
  readonly limits: readonly Declaration[]
  readonly startMs: number
  readonly events: readonly Event[]
}

const LIMITS = 3

function historyOf(kinds: readonly KindName[]): fc.Arbitrary<History> {
  const which = fc.nat({ max: LIMITS - 1 })
  const is = <Type extends Event['type']>(type: Type) => fc.constant(type)
  const event: fc.Arbitrary<Event> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ type: is('consume'), cost: fc.constantFrom(1, 1, 2, 5) }) },
    { weight: 2, arbitrary: fc.record({ type: is('change'), to: which }) },
    {
      weight: 2,
      arbitrary: fc.record({ type: is('wait'), ms: fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: 300 })) }),
    },
    { weight: 1, arbitrary: fc.record({ type: is('waitWindow'), which, offBy: fc.constantFrom(-1, 0, 1) }) },
  )
  const scale = { limit: 12, windowMs: 300, events: 80, longWaits: 5, limits: 1, kinds }
  const enforced = declarationsOf(scale).map(([declared]) => ({ ...declared!, shadow: false }))
  return fc.record({
    limits: fc.array(enforced, { minLength: LIMITS, maxLength: LIMITS }),
    startMs: fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 }),
    events: fc.array(event, { minLength: 1, maxLength: 80, size: 'max' }),
  })
}

/** Of a request: when it was made, what it cost, and the limit that it was held to. */
interface Asked {
  readonly atMs: number
  readonly cost: number
  readonly by: Limit
  readonly allowed: boolean
}

let histories = 0

async function played({ limits, startMs, events }: History, storeOf: StoreOf): Promise<Asked[]> {
  const clock = new ManualClock(startMs)
  const sets = limits.map((declared) => ruledBy([declared]).map(({ limit }) => limit))
  let inForce = 0
  const limiter = createLimiter({
    name: 'changing',
    store: storeOf(clock),
    limits: () => sets[inForce]!,
    formerly: sets,
    timeoutMs: 30_000,
  })
  const key = `key${histories++}`
  const all: Asked[] = []
  for (const event of events) {
    if (event.type === 'wait') clock.advance(event.ms)
    else if (event.type === 'waitWindow') clock.advance(sets[event.which]![0]!.windowMs + event.offBy)
    else if (event.type === 'change') inForce = event.to
    else {
      const { allowed, atMs } = await limiter.consume(key, { cost: event.cost })
      all.push({ allowed, atMs, cost: event.cost, by: sets[inForce]![0]! })
    }
  }
  limiter.close()
  return all
}

/** Units that were admitted before the request and count by the time that is told for each. */
function counting(all: readonly Asked[], place: number, forMs: (charge: Asked) => number): number {
  const { atMs } = all[place]!
  const charges = all.slice(0, place).filter((each) => each.allowed && atMs - each.atMs < forMs(each))
  return charges.reduce((sum, { cost }) => sum + cost, 0)
}

describe.each(Object.entries(STORES))('a limit that is changed for another, on %s', (_, storeOf) => {
  const decisions = 1200

  async function sweep(
    kinds: readonly KindName[],
    check: (all: Asked[], place: number) => void,
  ): Promise<void> {
    let made = 0
    while (made < decisions) {
      const property = fc.asyncProperty(historyOf(kinds), async (history) => {
        const all = await played(history, storeOf)
        made += all.length
        for (const place of all.keys()) check(all, place)
      })
      await fc.assert(property, { numRuns: 5 })
    }
  }

  test('is never passed, by what was charged under any sliding window before', async () => {
    await sweep(WINDOWS, (all, place) => {
      const { allowed, cost, by } = all[place]!
      // For no longer than it was asked to be kept.
      const used = counting(all, place, (charge) => Math.min(by.windowMs, charge.by.windowMs))
      if (allowed) expect(used + cost).toBeLessThanOrEqual(by.limit)
    })
  })

  test('denies nobody whom it has room for: nothing is counted twice, or for longer than a window and a grain', async () => {
    await sweep(WINDOWS, (all, place) => {
      const { allowed, cost, by } = all[place]!
      const used = counting(all, place, (charge) => by.windowMs + charge.by.precisionMs)
      if (!allowed) expect(used + cost).toBeGreaterThan(by.limit)
    })
  })

  test('whatever its kind, denies nobody but for what some limit still holds, counted once', async () => {
    await sweep(SUMS, (all, place) => {
      const { allowed, cost, by } = all[place]!
      const longestMs = Math.max(...all.map((each) => 2 * (each.by.windowMs + each.by.precisionMs)))
      const used = counting(all, place, () => longestMs)
      if (!allowed) expect(used + cost).toBeGreaterThan(by.limit)
    })
  })
})
