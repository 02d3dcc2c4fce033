import fc from 'fast-check'
import { expect } from 'vitest'
import { type Decision, type Limit, limitOf } from '../../src/index.ts'

// Two and three limits whose numbers change while they are used. No request is admitted above a limit in force, and none is
// denied while all limits have room.

/** The numbers of a limit at some time. Each kind takes those that it has. */
export interface Numbers {
  readonly limit: number
  readonly windowMs: number
  readonly refill: number
}

const INTERVAL_MS = 100
const FIXED_MS = 200

export const DECLARED = {
  sliding: ({ limit, windowMs }: Numbers) => ({ kind: 'slidingWindow' as const, limit, window: windowMs }),
  coarse: ({ limit, windowMs }: Numbers) => ({
    ...{ kind: 'slidingWindow' as const, limit, window: windowMs, precision: 10 },
  }),
  zset: ({ limit }: Numbers) => ({
    ...{ kind: 'slidingWindow' as const, limit, window: FIXED_MS, log: 'zset' as const },
  }),
  fixed: ({ limit }: Numbers) => ({ kind: 'fixedWindow' as const, limit, window: FIXED_MS }),
  bucket: ({ limit, refill }: Numbers) => ({
    ...{ kind: 'tokenBucket' as const, capacity: limit, refill, interval: INTERVAL_MS },
  }),
}

export type KindName = keyof typeof DECLARED

/** The options of limits of these kinds, with these numbers. */
export function declared(kinds: readonly KindName[], numbers: readonly Numbers[]) {
  return kinds.map((kind, i) => ({ ...DECLARED[kind](numbers[i]!), name: `limit${i}` }))
}

/** `set` picks one of two sets of limits. */
export type Event =
  | { readonly type: 'consume'; readonly cost: number; readonly set: number }
  | { readonly type: 'change'; readonly which: number; readonly to: Numbers; readonly set: number }
  | { readonly type: 'wait'; readonly ms: number }

export interface History {
  readonly kinds: readonly KindName[]
  /** The numbers of two sets. */
  readonly first: readonly (readonly Numbers[])[]
  readonly startMs: number
  readonly events: readonly Event[]
}

const numbers: fc.Arbitrary<Numbers> = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  windowMs: fc.integer({ min: 10, max: 300 }),
  refill: fc.integer({ min: 1, max: 12 }),
})

const is = <Type extends Event['type']>(type: Type) => fc.constant(type)
const set = fc.nat({ max: 1 })

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: is('consume'), cost: fc.constantFrom(1, 1, 2, 5), set }) },
  { weight: 2, arbitrary: fc.record({ type: is('change'), which: fc.nat({ max: 2 }), to: numbers, set }) },
  {
    weight: 3,
    arbitrary: fc.record({ type: is('wait'), ms: fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: 300 })) }),
  },
)

export const history: fc.Arbitrary<History> = fc.record({
  kinds: fc.array(fc.constantFrom(...(Object.keys(DECLARED) as KindName[])), { minLength: 2, maxLength: 3 }),
  first: fc.array(fc.array(numbers, { minLength: 3, maxLength: 3 }), { minLength: 2, maxLength: 2 }),
  startMs: fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 }),
  events: fc.array(event, { minLength: 1, maxLength: 80, size: 'max' }),
})

/** The limiter or service under test. */
export interface Player {
  readonly advance: (ms: number) => void
  readonly consume: (cost: number, set: number) => Promise<Decision>
  /** Puts both sets in force. */
  readonly change: (sets: readonly (readonly Numbers[])[]) => void
}

/** A request and its answer. */
interface Asked {
  readonly atMs: number
  readonly cost: number
  readonly by: readonly Limit[]
  readonly allowed: boolean
}

/** Plays a history and checks each decision. Returns the number of decisions. */
export async function sweep({ kinds, first, events }: History, player: Player): Promise<number> {
  let sets = first
  const all: Asked[] = []
  for (const event of events) {
    if (event.type === 'wait') player.advance(event.ms)
    else if (event.type === 'change') {
      sets = sets.with(event.set, sets[event.set]!.with(event.which, event.to))
      player.change(sets)
    } else {
      const { allowed, atMs } = await player.consume(event.cost, event.set)
      const by = declared(kinds, sets[event.set]!).map((options) => limitOf(options))
      all.push({ allowed, atMs, cost: event.cost, by })
    }
  }
  for (const [place, { allowed, cost, by }] of all.entries()) {
    const used = kinds.map((kind, i) => counted(kind, all, place, i))
    const over = used.findIndex(([least], i) => least + cost > by[i]!.limit)
    const full = used.findIndex(([, most], i) => most + cost > by[i]!.limit)
    if (allowed) expect(over, 'over a limit').toBe(-1)
    else expect(full, 'a needless denial').toBeGreaterThanOrEqual(0)
  }
  return all.length
}

/** Limit `i` may count from the first to the second number of units. */
function counted(kind: KindName, all: readonly Asked[], place: number, i: number): [number, number] {
  const { atMs, by } = all[place]!
  const { windowMs, precisionMs } = by[i]!
  const before = all.slice(0, place).filter(({ allowed }) => allowed)
  const sum = (isCounted: (charge: Asked) => boolean) =>
    before.filter(isCounted).reduce((units, { cost }) => units + cost, 0)
  if (kind === 'fixed') {
    const units = sum((charge) => Math.floor(charge.atMs / FIXED_MS) === Math.floor(atMs / FIXED_MS))
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

/** Tokens that a bucket lacks. Since a charge, the greater of its refill and the current refill counts. */
function debt(charges: readonly Asked[], atMs: number, i: number, now: Limit): number {
  let [parts, stampMs, last] = [0, 0, 0]
  const fill = (untilMs: number, { rule }: Limit) => {
    const { refill } = rule as { readonly refill: number }
    parts = Math.max(0, parts - (untilMs - stampMs) * Math.max(refill, last))
    stampMs = untilMs
    last = refill
  }
  for (const { atMs: chargedMs, cost, by } of charges) {
    fill(chargedMs, by[i]!)
    parts += cost * INTERVAL_MS
  }
  fill(atMs, now)
  return Math.ceil(parts / INTERVAL_MS)
}
