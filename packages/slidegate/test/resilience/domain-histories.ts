import fc from 'fast-check'
import { concurrency, fixedWindow, type Limit, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type LimitSet, limitSet } from '../../src/limits/limit-set.ts'
import { refundsOf } from '../../src/resilience/refunds.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { ConsumeOp, ConsumeOutcome, Op, Outcome, Part, Store } from '../../src/stores/store.ts'

// Histories of ops for several keys each, to be played on one server and on several.

/** One key of each dimension, some of them left out. */
type Keys = readonly number[]

export type Event =
  | {
      readonly type: 'consume' | 'peek' | 'explain'
      readonly keys: Keys
      readonly cost: number
    }
  | { readonly type: 'charge'; readonly keys: Keys; readonly cost: number }
  | { readonly type: 'reset' | 'list'; readonly keys: Keys }
  | { readonly type: 'refund' | 'release' | 'extend'; readonly which: number }
  | { readonly type: 'advance'; readonly ms: number }

/** Of what three dimensions are held to. */
export const SETS: readonly (readonly (readonly Limit[])[])[] = [
  [
    [slidingWindow({ limit: 4, window: 1000 })],
    [slidingWindow({ limit: 6, window: 800 })],
    [slidingWindow({ limit: 9, window: 1200 })],
  ],
  [
    [slidingWindow({ limit: 3, window: 300 }), slidingWindow({ limit: 7, window: 2000 })],
    [tokenBucket({ capacity: 6, refill: 5, interval: 1000 })],
    [
      fixedWindow({ limit: 8, window: 700 }),
      slidingWindow({ limit: 5, window: 900, shadow: true, name: 'tried' }),
    ],
  ],
  [
    [slidingWindow({ limit: 4, window: 1000, log: 'zset' })],
    [concurrency({ limit: 5, ttl: 900 })],
    [slidingWindow({ limit: 9, window: 1000, log: 'stream' })],
  ],
  [
    [slidingWindow({ limit: 5, window: 1000 })],
    [fixedWindow({ limit: 2, window: 600 }), slidingWindow({ limit: 8, window: 1000, precision: 50 })],
    [tokenBucket({ capacity: 7, refill: 3, interval: 500, name: 'bucket' })],
  ],
]

const keys = fc
  .tuple(fc.integer({ min: -1, max: 2 }), fc.integer({ min: -1, max: 1 }), fc.integer({ min: -1, max: 0 }))
  .filter((keys) => keys.some((key) => key >= 0))
const cost = fc.constantFrom(1, 1, 1, 2, 3, 12)
const which = fc.nat(1000)

export const EVENTS: fc.Arbitrary<Event[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.record({ type: fc.constant('consume' as const), keys, cost }) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constantFrom('peek' as const, 'explain' as const), keys, cost }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('charge' as const), keys, cost }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('reset' as const, 'list' as const), keys }) },
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constantFrom('refund' as const, 'release' as const, 'extend' as const),
        which,
      }),
    },
    { weight: 4, arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.nat(500) }) },
  ),
  { minLength: 1, maxLength: 40 },
)

/** Plays events on a store. */
export class OpPlayer {
  readonly #store: Store
  readonly #sets: readonly LimitSet[]
  readonly #admissions: { readonly op: ConsumeOp; readonly outcome: ConsumeOutcome }[] = []
  #made = 0

  constructor(store: Store, name: string, limits: readonly (readonly Limit[])[]) {
    this.#store = store
    this.#sets = limits.map((limits, i) => limitSet(`${name}/d${i}`, limits))
  }

  /** The parts of an event, and what it was answered. */
  async play(
    event: Exclude<Event, { type: 'advance' }>,
  ): Promise<{ parts: readonly Part[]; outcomes: readonly Outcome[] }> {
    const ops = this.#opsOf(event)
    const outcomes: Outcome[] = []
    for (const op of ops) {
      const [outcome] = await outcomesOf(this.#store, [op])
      outcomes.push(outcome)
      if (op.type === 'consume' && (outcome as ConsumeOutcome).admitted > 0) {
        this.#admissions.push({ op, outcome: outcome as ConsumeOutcome })
      }
    }
    return { parts: ops[0]?.parts ?? [], outcomes }
  }

  #opsOf(event: Exclude<Event, { type: 'advance' }>): Op[] {
    switch (event.type) {
      case 'reset':
      case 'list':
        return [{ type: event.type, parts: this.#partsOf(event.keys) }]
      case 'refund': {
        const admission = this.#admissions.at(event.which % this.#admissions.length)
        return admission === undefined ? [] : refundsOf(admission.op, admission.outcome, 0, 1)
      }
      case 'extend':
      case 'release': {
        const admission = this.#admissions.at(event.which % this.#admissions.length)
        if (admission === undefined) return []
        const { parts, requestId, cost } = admission.op
        return [{ type: event.type, parts, requestId: requestId!, units: cost }]
      }
    }
    const parts = this.#partsOf(event.keys)
    const names = { requestId: `r${this.#made++}` }
    if (event.type === 'charge') return [{ type: 'charge', parts, units: event.cost, ...names }]
    const asked = { parts, cost: event.cost, count: 1, ...names } as const
    return event.type === 'consume'
      ? [{ type: 'consume', leaseMs: 0, ...asked }]
      : [{ type: event.type, ...asked }]
  }

  #partsOf(keys: Keys): Part[] {
    return keys.flatMap((key, i) => (key < 0 ? [] : [{ key: `k${i}-${key}`, set: this.#sets[i]! }]))
  }
}
