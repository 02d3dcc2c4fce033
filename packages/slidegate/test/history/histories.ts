import fc from 'fast-check'
import type { Declaration, KindName } from './declarations.ts'
import { declarationsOf } from './random-limits.ts'
import type { Scale } from './scale.ts'

/** An event of one key. `who` is the index of one of two limiters with the same name. */
export type Event =
  | ({
      readonly type: 'consume'
      readonly who: number
      readonly cost: number
      readonly times: number
    } & Names)
  | ({ readonly type: 'peek'; readonly who: number; readonly cost: number } & Names)
  | { readonly type: 'acquire'; readonly who: number; readonly cost: number; readonly value: number }
  /** Changes one of the permits so far. */
  | { readonly type: 'extend' | 'release'; readonly which: number }
  | { readonly type: 'charge'; readonly who: number; readonly units: number; readonly value: number }
  | { readonly type: 'refund'; readonly which: number; readonly units: number }
  | { readonly type: 'reset' | 'list'; readonly who: number }
  | { readonly type: 'wait'; readonly ms: number }
  /** Waits for about one window, to around the moment when the latest charge expires. */
  | { readonly type: 'waitWindow'; readonly who: number; readonly which: number; readonly offBy: number }

/** The id or value of a request, for limits that use one. */
interface Names {
  /** One of a few ids, so that requests are repeated. If left out, the limiter creates one. */
  readonly id: number | undefined
  readonly value: number
}

export interface History {
  /** The declared limits of each limiter. */
  readonly limiters: readonly (readonly Declaration[])[]
  readonly startMs: number
  readonly events: readonly Event[]
}

/** Times around daylight saving changes in these zones, within some hours. */
const CHANGES = [
  '2024-03-31T01:00Z',
  '2024-10-27T01:00Z',
  '2024-03-10T07:00Z',
  '2024-11-03T06:00Z',
  '2024-04-06T15:00Z',
  '2024-10-05T15:30Z',
  '2024-04-07T03:00Z',
  '2024-09-08T04:00Z',
  '2011-12-30T10:00Z',
  '2024-12-31T23:00Z',
]

function eventOf(scale: Scale): fc.Arbitrary<Event> {
  const { burst = 0 } = scale
  const has = (...kinds: KindName[]) => kinds.some((kind) => scale.kinds.includes(kind))
  const who = fc.constantFrom(0, 0, 0, 1)
  const cost = fc.oneof(
    { weight: 3, arbitrary: fc.constant(1) },
    fc.integer({ min: 1, max: scale.limit + 1 }),
  )
  const id = has('zset', 'stream', 'concurrency')
    ? fc.constantFrom(undefined, 0, 1, 2)
    : fc.constant(undefined)
  const value = has('distinct') ? fc.nat({ max: scale.limit }) : fc.constant(0)
  const consume = fc.record({
    type: fc.constant('consume' as const),
    who,
    cost,
    times: fc.constantFrom(1, 1, 1, 2, 5),
    id,
    value,
  })
  const charged = scale.charge ? fc.oneof(cost, fc.constantFrom(scale.charge, 2 ** 46)) : cost
  const hour = 3_600_000
  const longest = has('calendar') ? 40 * hour : 2 * scale.windowMs
  const short = { weight: 10 - scale.longWaits, arbitrary: fc.integer({ min: 0, max: 3 }) }
  const long = { weight: scale.longWaits, arbitrary: fc.integer({ min: 0, max: longest }) }
  const back = { weight: scale.clockSteps ? 5 : 0, arbitrary: fc.oneof(...[1100, 200_000].map(upTo)) }
  const whole = { weight: has('calendar') ? 3 : 0, arbitrary: fc.constantFrom(hour, hour - 1, hour / 2) }
  const wait = fc.record({ type: fc.constant('wait' as const), ms: fc.oneof(short, long, back, whole) })
  const waitWindow = fc.record({
    type: fc.constant('waitWindow' as const),
    who,
    which: fc.nat({ max: 2 }),
    offBy: fc.oneof(fc.constantFrom(-1, 0, 0, 1), fc.integer({ min: -burst, max: 0 })),
  })
  const others = fc.oneof(
    fc.record({ type: fc.constant('peek' as const), who, cost, id, value }),
    fc.record({ type: fc.constant('charge' as const), who, units: charged, value }),
    fc.record({ type: fc.constant('refund' as const), which: fc.nat(), units: cost }),
    fc.record({ type: fc.constant('reset' as const), who }),
    ...(has('zset', 'stream', 'concurrency', 'distinct')
      ? [fc.record({ type: fc.constant('list' as const), who })]
      : []),
  )
  const hold = fc.oneof(
    { weight: 3, arbitrary: fc.record({ type: fc.constant('acquire' as const), who, cost, value }) },
    fc.record({ type: fc.constantFrom('extend' as const, 'release' as const), which: fc.nat() }),
  )
  return fc.oneof(
    { weight: 5, arbitrary: consume },
    { weight: 4, arbitrary: wait },
    { weight: scale.longWaits > 2 ? 1 : 0, arbitrary: waitWindow },
    { weight: 2, arbitrary: others },
    { weight: has('concurrency') ? 6 : 0, arbitrary: hold },
  )
}

/** Generates a series of requests: some in the same millisecond, most in different ones. */
function burstOf(burst: number): fc.Arbitrary<Event[]> {
  const shape = {
    who: fc.constantFrom(0, 0, 0, 1),
    cost: fc.constantFrom(1, 1, 1, 2),
    requests: fc.integer({ min: 1, max: burst }),
    stepMs: fc.constantFrom(0, 1, 1, 1, 3),
    value: fc.nat({ max: burst }),
  }
  return fc.record(shape).map(({ who, cost, requests, stepMs, value }) =>
    Array.from({ length: requests }, (_, i): Event[] => [
      { type: 'consume', who, cost, times: 1, id: undefined, value: value + i },
      { type: 'wait', ms: stepMs },
    ]).flat(),
  )
}

function upTo(backMs: number): fc.Arbitrary<number> {
  return fc.integer({ min: -backMs, max: -1 })
}

function startOf(scale: Scale): fc.Arbitrary<number> {
  const anyTime = fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 })
  if (!scale.kinds.includes('calendar')) return anyTime
  const change = fc.constantFrom(...CHANGES.map((time) => Date.parse(time)))
  const nearby = fc.integer({ min: -100_000_000, max: 10_000_000 })
  return fc.oneof({ weight: 3, arbitrary: fc.tuple(change, nearby).map(([at, off]) => at + off) }, anyTime)
}

export function historyOf(scale: Scale): fc.Arbitrary<History> {
  const single = eventOf(scale).map((event) => [event])
  const some = scale.burst ? fc.oneof({ weight: 4, arbitrary: single }, burstOf(scale.burst)) : single
  return fc.record({
    limiters: fc.tuple(declarationsOf(scale), declarationsOf(scale)),
    startMs: startOf(scale),
    events: fc
      .array(some, { minLength: 1, maxLength: scale.events, size: 'max' })
      .map((events) => events.flat()),
  })
}
