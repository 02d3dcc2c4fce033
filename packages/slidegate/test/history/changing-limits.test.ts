// tier: integration
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLimiter, fixedWindow, type Limit, slidingWindow, tokenBucket } from '../../src/index.ts'
import { ManualClock } from '../../src/testing.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import type { StoreOf } from './play.ts'

// Two and three limits whose numbers change while they are used, swept over what was truly admitted: nobody is admitted
// above a limit in force, and nobody denied while all have room.

const { redis } = await useRedis()

const STORES = storesOn(redis)

/** The numbers of a limit at some time: of a bucket, `windowMs` is unused. */
interface Numbers {
  readonly limit: number
  readonly windowMs: number
  readonly refill: number
}

const INTERVAL_MS = 100

const MAKERS = {
  sliding: ({ limit, windowMs }: Numbers, name: string) => slidingWindow({ limit, window: windowMs, name }),
  coarse: ({ limit, windowMs }: Numbers, name: string) =>
    slidingWindow({ limit, window: windowMs, precision: 10, name }),
  zset: ({ limit }: Numbers, name: string) => slidingWindow({ limit, window: 200, log: 'zset', name }),
  fixed: ({ limit }: Numbers, name: string) => fixedWindow({ limit, window: 200, name }),
  bucket: ({ limit, refill }: Numbers, name: string) =>
    tokenBucket({ capacity: limit, refill, interval: INTERVAL_MS, name }),
}

type KindName = keyof typeof MAKERS

type Event =
  | { readonly type: 'consume'; readonly cost: number }
  | { readonly type: 'change'; readonly which: number; readonly to: Numbers }
  | { readonly type: 'wait'; readonly ms: number }

interface History {
  readonly kinds: readonly KindName[]
  readonly first: readonly Numbers[]
  readonly startMs: number
  readonly events: readonly Event[]
}

const numbers: fc.Arbitrary<Numbers> = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  windowMs: fc.integer({ min: 10, max: 300 }),
  refill: fc.integer({ min: 1, max: 12 }),
})

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constant('consume' as const), cost: fc.constantFrom(1, 1, 2, 5) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('change' as const), which: fc.nat({ max: 2 }), to: numbers }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('wait' as const),
      ms: fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: 300 })),
    }),
  },
)

const history: fc.Arbitrary<History> = fc.record({
  kinds: fc.array(fc.constantFrom(...(Object.keys(MAKERS) as KindName[])), { minLength: 2, maxLength: 3 }),
  first: fc.array(numbers, { minLength: 3, maxLength: 3 }),
  startMs: fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 }),
  events: fc.array(event, { minLength: 1, maxLength: 80, size: 'max' }),
})

/** Of a request: when it was made, what it cost, and the limits that it was held to. */
interface Asked {
  readonly atMs: number
  readonly cost: number
  readonly by: readonly Limit[]
  readonly allowed: boolean
}

let histories = 0

async function played({ kinds, first, startMs, events }: History, storeOf: StoreOf): Promise<Asked[]> {
  const clock = new ManualClock(startMs)
  let limits = kinds.map((kind, i) => MAKERS[kind](first[i]!, `limit${i}`))
  const limiter = createLimiter({
    name: 'changing',
    store: storeOf(clock),
    limits: () => limits,
    timeoutMs: 30_000,
  })
  const key = `key${histories++}`
  const all: Asked[] = []
  for (const event of events) {
    if (event.type === 'wait') clock.advance(event.ms)
    else if (event.type === 'change') {
      const which = event.which % kinds.length
      limits = limits.with(which, MAKERS[kinds[which]!](event.to, `limit${which}`))
    } else {
      const { allowed, atMs } = await limiter.consume(key, { cost: event.cost })
      all.push({ allowed, atMs, cost: event.cost, by: limits })
    }
  }
  limiter.close()
  return all
}

/** The least and the most that limit `i` may count of what was admitted before the request. */
function counted(kind: KindName, all: readonly Asked[], place: number, i: number): [number, number] {
  const { atMs, by } = all[place]!
  const { windowMs, precisionMs } = by[i]!
  const before = all.slice(0, place).filter(({ allowed }) => allowed)
  const sum = (isCounted: (charge: Asked) => boolean) =>
    before.filter(isCounted).reduce((units, { cost }) => units + cost, 0)
  if (kind === 'fixed') {
    const units = sum((charge) => Math.floor(charge.atMs / 200) === Math.floor(atMs / 200))
    return [units, units]
  }
  if (kind === 'bucket') {
    const tokens = debt(before, atMs, i, by[i]!)
    return [tokens, tokens]
  }
  // A record is kept for the window of its charge at least.
  const least = sum((charge) => atMs - charge.atMs < Math.min(windowMs, charge.by[i]!.windowMs))
  return [least, sum((charge) => atMs - charge.atMs < windowMs + precisionMs - 1)]
}

/** What a bucket lacks, in tokens: between two charges it fills at the refill of the later one. */
function debt(charges: readonly Asked[], atMs: number, i: number, now: Limit): number {
  let [parts, stampMs] = [0, 0]
  const fill = (untilMs: number, { rule }: Limit) => {
    parts = Math.max(0, parts - (untilMs - stampMs) * (rule as { readonly refill: number }).refill)
    stampMs = untilMs
  }
  for (const { atMs: chargedMs, cost, by } of charges) {
    fill(chargedMs, by[i]!)
    parts += cost * INTERVAL_MS
  }
  fill(atMs, now)
  return Math.ceil(parts / INTERVAL_MS)
}

describe.each(Object.entries(STORES))('limits whose numbers change, on %s', (_, storeOf) => {
  test('admit nobody above a limit in force, and deny nobody for whom all have room', async () => {
    let made = 0
    while (made < 2500) {
      const property = fc.asyncProperty(history, async (each) => {
        const all = await played(each, storeOf)
        made += all.length
        for (const [place, { allowed, cost, by }] of all.entries()) {
          const used = each.kinds.map((kind, i) => counted(kind, all, place, i))
          const over = used.findIndex(([least], i) => least + cost > by[i]!.limit)
          const full = used.findIndex(([, most], i) => most + cost > by[i]!.limit)
          if (allowed) expect(over, 'over a limit').toBe(-1)
          else expect(full, 'a needless denial').toBeGreaterThanOrEqual(0)
        }
      })
      await fc.assert(property, { numRuns: 10 })
    }
  })
})
