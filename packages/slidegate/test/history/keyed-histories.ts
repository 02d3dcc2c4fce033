import fc from 'fast-check'
import { type Declaration, type KindName, ruledBy } from './declarations.ts'
import { VALUED } from './kind-traits.ts'
import type { BanRule } from './models/ban.ts'
import type { Change, NumbersByName, OwnNumbers } from './models/override.ts'
import { declarationsOf } from './random-limits.ts'
import type { Scale } from './scale.ts'

/** The index of a request's key per dimension, or `null` if it has none. */
export type KeyChoice = readonly (number | null)[]

export interface RequestSpec {
  readonly key: KeyChoice
  readonly cost: number
  readonly value: number
}

/** An event. `who` is the index of one of the two processes. */
type KeyedEvent =
  | ({ readonly type: 'consume'; readonly who: number; readonly times: number } & RequestSpec)
  | { readonly type: 'many'; readonly who: number; readonly requests: readonly RequestSpec[] }
  | ({ readonly type: 'peek' | 'explain' | 'charge'; readonly who: number } & RequestSpec)
  | { readonly type: 'refund'; readonly which: number; readonly units: number }
  | ({ readonly type: 'reserve'; readonly who: number } & RequestSpec)
  /** Settles one of the reservations so far, by its object or by its token. */
  | {
      readonly type: 'settle'
      readonly which: number
      readonly who: number | 'itself'
      /** Units above the estimate. */
      readonly more: number
      readonly isCancelled: boolean
    }
  | { readonly type: 'reset' | 'unblock' | 'isBlocked'; readonly who: number; readonly key: KeyChoice }
  | { readonly type: 'block'; readonly who: number; readonly key: KeyChoice; readonly ms: number }
  /** Gives a key another set of limits. */
  | { readonly type: 'change'; readonly dimension: number; readonly key: number; readonly set: number }
  | {
      readonly type: 'override'
      readonly who: number
      readonly dimension: number
      readonly key: number
      readonly change: Change
      readonly ttlMs: number | undefined
    }
  | {
      readonly type: 'getOverride' | 'deleteOverride'
      readonly who: number
      readonly dimension: number
      readonly key: number
    }
  | { readonly type: 'listOverrides'; readonly who: number }
  | { readonly type: 'wait'; readonly ms: number }
  /** Waits for the length of something that starts now, to around its end. */
  | { readonly type: 'waitFor'; readonly which: number; readonly offBy: number }

export type KeyedAsking = Exclude<KeyedEvent, { readonly type: 'wait' | 'waitFor' }>

export interface DimensionRules {
  /** The sets of limits. The first is in force until they change. */
  readonly sets: readonly (readonly Declaration[])[]
  readonly ban: BanRule | undefined
}

export interface KeyedHistory {
  /** A single dimension has no name, and its keys are plain strings. */
  readonly dimensions: readonly DimensionRules[]
  /** TTLs of overrides and blocks. If left out, the history has neither. */
  readonly ttlsMs: readonly number[] | undefined
  readonly reservationTtlMs: number
  readonly startMs: number
  readonly events: readonly KeyedEvent[]
}

export interface KeyedScale extends Scale {
  /** Possible numbers of dimensions. */
  readonly dimensions: readonly number[]
  /** Possible numbers of limit sets per dimension. */
  readonly sets?: readonly number[]
  /** Whether there are bans, whose times are about as long as windows. */
  readonly bans?: boolean
  readonly reservations?: boolean
  readonly overrides?: boolean
  readonly processes?: 1 | 2
  /** Whether each request waits for the answer to the one before. */
  readonly oneByOne?: boolean
  /** Whether keys are never reset. */
  readonly noResets?: boolean
  /** Whether later sets differ only in numbers, so that they read the same logs. */
  readonly onlyNumbers?: boolean
  /** Kinds of the later sets, if they differ. */
  readonly laterKinds?: readonly KindName[]
}

const KEYS = 2

function banOf(scale: KeyedScale): fc.Arbitrary<BanRule | undefined> {
  if (scale.bans !== true) return fc.constant(undefined)
  const time = fc.integer({ min: 10, max: 2 * scale.windowMs })
  const rule = fc.record<BanRule>({
    after: fc.constantFrom(1, 2, 2, 3, 5),
    within: fc.oneof(time, fc.constant(scale.windowMs)),
    for: fc.array(time, { minLength: 1, maxLength: 3 }),
    forgetAfter: time,
  })
  return fc.oneof({ weight: 6, arbitrary: rule }, { weight: 1, arbitrary: fc.constant(undefined) })
}

/** Generates the rules of each dimension. Distinct values are only supported for single keys. */
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

/** Generates the same limits with different numbers: limits, refills, and the lengths of sliding windows. */
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

/** Numbers for any of the limits, mostly valid for their kind. Another set may have other kinds, which ignore them. */
function numbersOf(limits: readonly Declaration[], scale: KeyedScale): fc.Arbitrary<NumbersByName> {
  const limit = fc.integer({ min: 1, max: scale.limit })
  const own = limits.map((declared): fc.Arbitrary<OwnNumbers> => {
    if (declared.kind === 'bucket') {
      return fc.oneof(fc.record({ capacity: limit, refill: limit }), fc.record({ refill: limit }))
    }
    if (declared.kind !== 'sliding') return fc.record({ limit })
    const shortest = Math.max(declared.precision ?? 1, scale.shortestMs ?? 10)
    const window = fc.integer({ min: shortest, max: Math.max(shortest, scale.windowMs) })
    return fc.oneof(fc.record({ limit, window }), fc.record({ limit }), fc.record({ window }))
  })
  const byName = fc.subarray([...own.keys()], { minLength: 1 }).chain((places) => {
    const numbers = places.map((i) => own[i]!.map((each) => [`limit${i}`, each] as const))
    return fc.tuple(...numbers).map((all): NumbersByName => Object.fromEntries(all))
  })
  const ofOnly = own[0]!.map((each): NumbersByName => ({ '': each }))
  return fc.oneof({ weight: 5, arbitrary: byName }, { weight: 1, arbitrary: ofOnly })
}

function overrideOf(
  scale: KeyedScale,
  dimensions: readonly DimensionRules[],
  ttlsMs: readonly number[],
): fc.Arbitrary<KeyedEvent> {
  const who = fc.nat({ max: 1 })
  const is = <Type extends KeyedEvent['type']>(type: Type) => fc.constant(type)
  return fc.nat({ max: dimensions.length - 1 }).chain((dimension) => {
    const of = { who, dimension: fc.constant(dimension), key: fc.nat({ max: KEYS - 1 }) }
    const numbers = fc.constantFrom(...dimensions[dimension]!.sets).chain((set) => numbersOf(set, scale))
    const change = fc.oneof(
      { weight: 5, arbitrary: numbers },
      { weight: 2, arbitrary: fc.constantFrom<Change>('exempt', 'exempt', 'block') },
    )
    const ttlMs = fc.constantFrom(undefined, ...ttlsMs)
    const type = fc.constantFrom('getOverride' as const, 'deleteOverride' as const)
    return fc.oneof(
      { weight: 4, arbitrary: fc.record({ type: is('override'), ...of, change, ttlMs }) },
      { weight: 2, arbitrary: fc.record({ type, ...of }) },
      { weight: 1, arbitrary: fc.record({ type: is('listOverrides'), who }) },
    )
  })
}

function eventOf(
  scale: KeyedScale,
  dimensions: readonly DimensionRules[],
  ttlsMs: readonly number[],
): fc.Arbitrary<KeyedEvent> {
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
  const spec = { key, cost, value: fc.nat({ max: scale.limit }) }
  const is = <Type extends KeyedEvent['type']>(type: Type) => fc.constant(type)
  const times = scale.oneByOne ? fc.constant(1) : fc.constantFrom(1, 1, 1, 1, 2, 5)
  const consume = fc.record({ type: is('consume'), who, times, ...spec })
  const requests = fc.array(fc.record(spec), { minLength: 1, maxLength: scale.oneByOne ? 1 : 5 })
  const edges = edgesOf(dimensions, ttlsMs)
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
    { weight: 3, arbitrary: fc.record({ type: is('peek'), who, ...spec }) },
    { weight: 3, arbitrary: fc.record({ type: is('explain'), who, ...spec }) },
    { weight: 1, arbitrary: fc.record({ type: is('charge'), who, ...spec }) },
    { weight: 2, arbitrary: fc.record({ type: is('refund'), which: fc.nat(), units: cost }) },
    { weight: scale.noResets ? 0 : 1, arbitrary: fc.record({ type: is('reset'), who, key }) },
  )
  const bans = fc.oneof(
    fc.record({ type: is('block'), who, key, ms: fc.constantFrom(...ttlsMs, 2 * scale.windowMs) }),
    fc.record({ type: fc.constantFrom('unblock' as const, 'isBlocked' as const), who, key }),
  )
  const settle = fc.record({
    type: is('settle'),
    // Mostly the last reservation.
    which: fc.oneof(fc.constant(-1), fc.nat()),
    who:
      scale.processes === 1
        ? fc.constantFrom(0, 'itself' as const)
        : fc.constantFrom(0, 1, 'itself' as const),
    more: fc.oneof(fc.constant(0), fc.integer({ min: -scale.limit, max: scale.limit })),
    isCancelled: fc.constantFrom(false, false, true),
  })
  const reserve = fc.record({ type: is('reserve'), who, ...spec, value: fc.constant(0) })
  const reservations = fc.oneof(reserve, settle, settle)
  const change = fc.nat({ max: count - 1 }).chain((dimension) =>
    fc.record({
      type: is('change'),
      dimension: fc.constant(dimension),
      key: fc.nat({ max: KEYS - 1 }),
      set: fc.nat({ max: dimensions[dimension]!.sets.length - 1 }),
    }),
  )
  return fc.oneof(
    { weight: 10, arbitrary: consume },
    { weight: 2, arbitrary: fc.record({ type: is('many'), who, requests }) },
    { weight: 6, arbitrary: waits },
    { weight: scale.clockSteps ? 2 : 0, arbitrary: back },
    { weight: 5, arbitrary: others },
    { weight: scale.bans || scale.overrides ? 3 : 0, arbitrary: bans },
    { weight: scale.reservations ? 12 : 0, arbitrary: reservations },
    { weight: scale.sets ? 3 : 0, arbitrary: change },
    { weight: scale.overrides ? 8 : 0, arbitrary: overrideOf(scale, dimensions, ttlsMs) },
  )
}

/** Returns the lengths of everything in a history that could start now. */
export function edgesOf(dimensions: readonly DimensionRules[], ttlsMs: readonly number[] = []): number[] {
  const edges = dimensions.flatMap(({ sets, ban }) => [
    ...sets.flatMap((set) => ruledBy(set).map(({ limit }) => limit.windowMs)),
    ...(ban ? [ban.within, ...ban.for, ban.forgetAfter, ban.for[0]! + ban.forgetAfter] : []),
  ])
  return [...edges, ...ttlsMs]
}

export function keyedHistoryOf(scale: KeyedScale): fc.Arbitrary<KeyedHistory> {
  const dimensions = fc
    .constantFrom(...scale.dimensions)
    .chain((count) => fc.array(rulesOf(scale, count), { minLength: count, maxLength: count }))
  const ttl = fc.integer({ min: 10, max: 2 * scale.windowMs })
  const ttls = scale.overrides ? fc.tuple(ttl, ttl) : fc.constant(undefined)
  return fc.tuple(dimensions, ttls).chain(([dimensions, ttlsMs]) =>
    fc.record({
      dimensions: fc.constant(dimensions),
      ttlsMs: fc.constant(ttlsMs),
      reservationTtlMs: fc.integer({ min: 10, max: 3 * scale.windowMs }),
      startMs: fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 }),
      events: fc.array(eventOf(scale, dimensions, ttlsMs ?? []), {
        minLength: 1,
        maxLength: scale.events,
        size: 'max',
      }),
    }),
  )
}
