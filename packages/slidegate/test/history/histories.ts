import fc from 'fast-check'
import { fixedWindow, type Limit, slidingWindow } from '../../src/index.ts'

/** One thing that happens to a key; `who` says under which of the two limiters of the same name. */
export type Event =
  | { readonly type: 'consume'; readonly who: number; readonly cost: number; readonly times: number }
  | { readonly type: 'peek'; readonly who: number; readonly cost: number }
  | { readonly type: 'charge'; readonly who: number; readonly units: number }
  | { readonly type: 'refund'; readonly which: number; readonly units: number }
  | { readonly type: 'reset'; readonly who: number }
  | { readonly type: 'wait'; readonly ms: number }
  /** Waits for one of the windows, and so to the very edge of what was charged last. */
  | { readonly type: 'waitWindow'; readonly who: number; readonly which: number; readonly offBy: number }

export interface History {
  /** The limits of each limiter, as they are declared. */
  readonly limiters: readonly (readonly Declaration[])[]
  readonly startMs: number
  readonly events: readonly Event[]
}

export interface Declaration {
  readonly kind: 'sliding' | 'fixed'
  readonly limit: number
  readonly window: number
  readonly precision: number | undefined
  readonly shadow: boolean
}

export function limitsOf(declarations: readonly Declaration[]): Limit[] {
  return declarations.map(({ kind, precision, ...rest }, i) => {
    const options = { ...rest, name: `limit${i}` }
    if (kind === 'fixed') return fixedWindow(options)
    return slidingWindow({ ...options, precision: precision && Math.min(precision, options.window) })
  })
}

/** How large the numbers of a history become. */
export interface Scale {
  readonly limit: number
  readonly windowMs: number
  readonly events: number
  /** Of ten waits, how many are as long as a window: the fewer, the longer the logs become. */
  readonly longWaits: number
  /** Whether all limits are sliding at the grain of 1 ms, enforced, and so share one log. */
  readonly oneLog: boolean
  /** Whether the clock is also set back. */
  readonly clockSteps: boolean
  /** Requests that may come one behind the other: so logs grow, and many records leave at once. */
  readonly burst?: number
}

const PRECISIONS = [undefined, undefined, undefined, 1, 2, 7, 10, 50]

/** Limits, mostly sliding, some coarse, some in shadow. */
function declarationsOf(scale: Scale): fc.Arbitrary<Declaration[]> {
  const one = fc.record<Declaration>({
    kind: scale.oneLog ? fc.constant('sliding') : fc.constantFrom('sliding', 'sliding', 'sliding', 'fixed'),
    limit: fc.integer({ min: 1, max: scale.limit }),
    window: fc.integer({ min: 10, max: scale.windowMs }),
    precision: scale.oneLog ? fc.constant(undefined) : fc.constantFrom(...PRECISIONS),
    shadow: scale.oneLog ? fc.constant(false) : fc.constantFrom(false, false, false, true),
  })
  return fc.array(one, { minLength: 1, maxLength: 3 })
}

function eventOf(scale: Scale): fc.Arbitrary<Event> {
  const { burst = 0 } = scale
  const who = fc.constantFrom(0, 0, 0, 1)
  const cost = fc.oneof(
    { weight: 3, arbitrary: fc.constant(1) },
    fc.integer({ min: 1, max: scale.limit + 1 }),
  )
  const consume = fc.record({
    type: fc.constant('consume' as const),
    who,
    cost,
    times: fc.constantFrom(1, 1, 1, 2, 5),
  })
  const short = { weight: 10 - scale.longWaits, arbitrary: fc.integer({ min: 0, max: 3 }) }
  const long = { weight: scale.longWaits, arbitrary: fc.integer({ min: 0, max: 2 * scale.windowMs }) }
  const back = { weight: scale.clockSteps ? 5 : 0, arbitrary: fc.oneof(...[1100, 200_000].map(upTo)) }
  const wait = fc.record({ type: fc.constant('wait' as const), ms: fc.oneof(short, long, back) })
  const waitWindow = fc.record({
    type: fc.constant('waitWindow' as const),
    who,
    which: fc.nat({ max: 2 }),
    offBy: fc.oneof(fc.constantFrom(-1, 0, 0, 1), fc.integer({ min: -burst, max: 0 })),
  })
  const others = fc.oneof(
    fc.record({ type: fc.constant('peek' as const), who, cost }),
    fc.record({ type: fc.constant('charge' as const), who, units: cost }),
    fc.record({ type: fc.constant('refund' as const), which: fc.nat(), units: cost }),
    fc.record({ type: fc.constant('reset' as const), who }),
  )
  return fc.oneof(
    { weight: 5, arbitrary: consume },
    { weight: 4, arbitrary: wait },
    { weight: scale.longWaits > 2 ? 1 : 0, arbitrary: waitWindow },
    { weight: 2, arbitrary: others },
  )
}

/** Requests in a row: some in the same millisecond, most each in its own. */
function burstOf(burst: number): fc.Arbitrary<Event[]> {
  const shape = {
    who: fc.constantFrom(0, 0, 0, 1),
    cost: fc.constantFrom(1, 1, 1, 2),
    requests: fc.integer({ min: 1, max: burst }),
    stepMs: fc.constantFrom(0, 1, 1, 1, 3),
  }
  return fc.record(shape).map(({ who, cost, requests, stepMs }) => {
    const one: Event[] = [
      { type: 'consume', who, cost, times: 1 },
      { type: 'wait', ms: stepMs },
    ]
    return Array.from({ length: requests }, () => one).flat()
  })
}

function upTo(backMs: number): fc.Arbitrary<number> {
  return fc.integer({ min: -backMs, max: -1 })
}

export function historyOf(scale: Scale): fc.Arbitrary<History> {
  const single = eventOf(scale).map((event) => [event])
  const some = scale.burst ? fc.oneof({ weight: 4, arbitrary: single }, burstOf(scale.burst)) : single
  return fc.record({
    limiters: fc.tuple(declarationsOf(scale), declarationsOf(scale)),
    startMs: fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 }),
    events: fc
      .array(some, { minLength: 1, maxLength: scale.events, size: 'max' })
      .map((events) => events.flat()),
  })
}
