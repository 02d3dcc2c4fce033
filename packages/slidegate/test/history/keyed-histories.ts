import fc from 'fast-check'
import { type Declaration, type KindName, ruledBy } from './declarations.ts'
import { VALUED } from './kind-traits.ts'
import type { BanRule } from './models/ban.ts'
import { declarationsOf } from './random-limits.ts'
import type { Scale } from './scale.ts'

/** By dimension, which of its few keys a request has; `null` where it has none. */
export type KeyChoice = readonly (number | null)[]

export interface Asked {
  readonly key: KeyChoice
  readonly cost: number
  readonly value: number
}

/** One thing that happens; `who` says in which of the two processes. */
type KeyedEvent =
  | ({ readonly type: 'consume'; readonly who: number; readonly times: number } & Asked)
  | { readonly type: 'many'; readonly who: number; readonly requests: readonly Asked[] }
  | ({ readonly type: 'peek' | 'explain' | 'charge'; readonly who: number } & Asked)
  | { readonly type: 'refund'; readonly which: number; readonly units: number }
  | ({ readonly type: 'reserve'; readonly who: number } & Asked)
  /** Of one of the reservations so far, by itself or by its token. */
  | {
      readonly type: 'settle'
      readonly which: number
      readonly who: number | 'itself'
      /** How many units more than estimated. */
      readonly more: number
      readonly isCancelled: boolean
    }
  | { readonly type: 'reset' | 'unblock' | 'isBlocked'; readonly who: number; readonly key: KeyChoice }
  | { readonly type: 'block'; readonly who: number; readonly key: KeyChoice; readonly ms: number }
  /** From now on another of the sets of limits is in force for a key; where they are overrides, `undefined` deletes it. */
  | {
      readonly type: 'change'
      readonly dimension: number
      readonly key: number
      readonly set: number | undefined
    }
  | { readonly type: 'wait'; readonly ms: number }
  /** To the very edge of something that began now. */
  | { readonly type: 'waitFor'; readonly which: number; readonly offBy: number }

export type KeyedAsking = Exclude<KeyedEvent, { readonly type: 'wait' | 'waitFor' }>

export interface DimensionRules {
  /** The sets of limits, of which the first is in force until they change. */
  readonly sets: readonly (readonly Declaration[])[]
  /** `null`: only by hand. */
  readonly ban: BanRule | null | undefined
}

export interface KeyedHistory {
  /** Where there is one, it is not named, and keys are plain. */
  readonly dimensions: readonly DimensionRules[]
  /** Whether limits change by overrides, rather than by what a function tells. */
  readonly byOverrides: boolean
  readonly reservationTtlMs: number
  readonly startMs: number
  readonly events: readonly KeyedEvent[]
}

export interface KeyedScale extends Scale {
  /** How many dimensions there are. */
  readonly dimensions: readonly number[]
  /** How many sets of limits there are for a dimension. */
  readonly sets?: readonly number[]
  /** Times of bans are about as long as windows. */
  readonly bans?: boolean
  readonly reservations?: boolean
  readonly byOverrides?: boolean
  readonly processes?: 1 | 2
  /** Whether no request is made before the last one is answered. */
  readonly oneByOne?: boolean
  /** Whether keys are never reset. */
  readonly noResets?: boolean
  /** Whether later sets differ from the first only in numbers, so that they read the same logs. */
  readonly onlyNumbers?: boolean
  /** The kinds of the later sets, where they are others. */
  readonly laterKinds?: readonly KindName[]
}

const KEYS = 2

function banOf(scale: KeyedScale): fc.Arbitrary<BanRule | null | undefined> {
  if (scale.bans !== true) return fc.constant(undefined)
  const time = fc.integer({ min: 10, max: 2 * scale.windowMs })
  const rule = fc.record<BanRule>({
    after: fc.constantFrom(1, 2, 2, 3, 5),
    within: fc.oneof(time, fc.constant(scale.windowMs)),
    for: fc.array(time, { minLength: 1, maxLength: 3 }),
    forgetAfter: time,
  })
  return fc.oneof({ weight: 6, arbitrary: rule }, { weight: 1, arbitrary: fc.constantFrom(null, undefined) })
}

/** Values are counted of single keys. */
function rulesOf(all: KeyedScale, dimensions: number): fc.Arbitrary<DimensionRules> {
  const counted = (kinds: readonly KindName[]) =>
    kinds.filter((kind) => dimensions === 1 || !VALUED.includes(kind))
  const scale = {
    ...all,
    kinds: counted(all.kinds),
    ...(all.laterKinds && { laterKinds: counted(all.laterKinds) }),
  }
  const later = { ...scale, kinds: scale.laterKinds ?? scale.kinds }
  const sets = fc
    .tuple(fc.constantFrom(...(scale.sets ?? [1])), declarationsOf(scale))
    .chain(([count, first]) => {
      const other = scale.onlyNumbers ? withOtherNumbers(first, scale) : declarationsOf(later)
      const others = fc.array(other, { minLength: count - 1, maxLength: count - 1 })
      return others.map((all) => [first, ...all])
    })
  return fc.record({ sets, ban: banOf(scale) })
}

/** The same limits with other limits, windows of sliding ones, and refills. */
function withOtherNumbers(limits: readonly Declaration[], scale: KeyedScale): fc.Arbitrary<Declaration[]> {
  const limit = fc.integer({ min: 1, max: scale.limit })
  const others = limits.map((declared): fc.Arbitrary<Declaration> => {
    if (declared.kind === 'bucket') {
      return fc.record({ limit, refill: limit }).map((numbers) => ({ ...declared, ...numbers }))
    }
    if (declared.kind !== 'sliding') return limit.map((other) => ({ ...declared, limit: other }))
    const shortest = Math.max(declared.precision ?? 1, scale.shortestMs ?? 10)
    const window = fc.integer({ min: shortest, max: Math.max(shortest, scale.windowMs) })
    return fc.record({ limit, window }).map((numbers) => ({ ...declared, ...numbers }))
  })
  return fc.tuple(...others)
}

function eventOf(scale: KeyedScale, dimensions: readonly DimensionRules[]): fc.Arbitrary<KeyedEvent> {
  const count = dimensions.length
  const who = scale.processes === 1 ? fc.constant(0) : fc.constantFrom(0, 0, 1)
  const one = fc.constantFrom(0, 0, 1)
  const some = count === 1 ? one : fc.constantFrom(0, 0, 0, 1, 1, null)
  const key = fc
    .array(some, { minLength: count, maxLength: count })
    .filter((chosen) => chosen.some((each) => each !== null))
  const cost = fc.oneof(
    { weight: 3, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: scale.limit + 1 }) },
  )
  const asked = { key, cost, value: fc.nat({ max: scale.limit }) }
  const is = <Type extends KeyedEvent['type']>(type: Type) => fc.constant(type)
  const times = scale.oneByOne ? fc.constant(1) : fc.constantFrom(1, 1, 1, 1, 2, 5)
  const consume = fc.record({ type: is('consume'), who, times, ...asked })
  const requests = fc.array(fc.record(asked), { minLength: 1, maxLength: scale.oneByOne ? 1 : 5 })
  const edges = edgesOf(dimensions)
  const waits = fc.oneof(
    fc.record({
      type: is('wait'),
      ms: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.nat({ max: scale.windowMs })),
    }),
    fc.record({
      type: is('waitFor'),
      which: fc.nat({ max: edges.length - 1 }),
      offBy: fc.constantFrom(-1, 0, 0, 1),
    }),
  )
  const back = fc.record({ type: is('wait'), ms: fc.integer({ min: -2200, max: -1 }) })
  const others = fc.oneof(
    { weight: 3, arbitrary: fc.record({ type: is('peek'), who, ...asked }) },
    { weight: 3, arbitrary: fc.record({ type: is('explain'), who, ...asked }) },
    { weight: 1, arbitrary: fc.record({ type: is('charge'), who, ...asked }) },
    { weight: 2, arbitrary: fc.record({ type: is('refund'), which: fc.nat(), units: cost }) },
    { weight: scale.noResets ? 0 : 1, arbitrary: fc.record({ type: is('reset'), who, key }) },
  )
  const bans = fc.oneof(
    fc.record({ type: is('block'), who, key, ms: fc.integer({ min: 10, max: 2 * scale.windowMs }) }),
    fc.record({ type: fc.constantFrom('unblock' as const, 'isBlocked' as const), who, key }),
  )
  const settle = fc.record({
    type: is('settle'),
    // Mostly the last one.
    which: fc.oneof(fc.constant(-1), fc.nat()),
    who:
      scale.processes === 1
        ? fc.constantFrom(0, 'itself' as const)
        : fc.constantFrom(0, 1, 'itself' as const),
    more: fc.oneof(fc.constant(0), fc.integer({ min: -scale.limit, max: scale.limit })),
    isCancelled: fc.constantFrom(false, false, true),
  })
  const reserve = fc.record({ type: is('reserve'), who, ...asked, value: fc.constant(0) })
  const reservations = fc.oneof(reserve, settle, settle)
  const change = fc.nat({ max: count - 1 }).chain((dimension) =>
    fc.record({
      type: is('change'),
      dimension: fc.constant(dimension),
      key: fc.nat({ max: KEYS - 1 }),
      set: fc.constantFrom(
        ...dimensions[dimension]!.sets.keys(),
        ...(scale.byOverrides === true ? [undefined, undefined] : []),
      ),
    }),
  )
  return fc.oneof(
    { weight: 10, arbitrary: consume },
    { weight: 2, arbitrary: fc.record({ type: is('many'), who, requests }) },
    { weight: 6, arbitrary: waits },
    { weight: scale.clockSteps ? 2 : 0, arbitrary: back },
    { weight: 5, arbitrary: others },
    { weight: scale.bans ? 3 : 0, arbitrary: bans },
    { weight: scale.reservations ? 12 : 0, arbitrary: reservations },
    { weight: scale.sets ? (scale.byOverrides ? 8 : 3) : 0, arbitrary: change },
  )
}

/** Times at which something of a history may end that begins now. */
export function edgesOf(dimensions: readonly DimensionRules[]): number[] {
  return dimensions.flatMap(({ sets, ban }) => [
    ...sets.flatMap((set) => ruledBy(set).map(({ limit }) => limit.windowMs)),
    ...(ban ? [ban.within, ...ban.for, ban.forgetAfter, ban.for[0]! + ban.forgetAfter] : []),
  ])
}

export function keyedHistoryOf(scale: KeyedScale): fc.Arbitrary<KeyedHistory> {
  const dimensions = fc
    .constantFrom(...scale.dimensions)
    .chain((count) => fc.array(rulesOf(scale, count), { minLength: count, maxLength: count }))
  return dimensions.chain((dimensions) =>
    fc.record({
      dimensions: fc.constant(dimensions),
      byOverrides: fc.constant(scale.byOverrides === true),
      reservationTtlMs: fc.integer({ min: 10, max: 3 * scale.windowMs }),
      startMs: fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 }),
      events: fc.array(eventOf(scale, dimensions), { minLength: 1, maxLength: scale.events, size: 'max' }),
    }),
  )
}
