import type { Decision, Source } from '../decision.ts'
import type { Spelling } from '../key.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { Debit, Named, Part } from '../stores/store.ts'
import { NAMELESS } from './names.ts'

/** What a limiter remembers of a request that it admitted. A refund goes by this, not by what the caller holds. */
export interface Origin {
  readonly limiter: object
  /** The keys, and the limits that were in force then. */
  readonly parts: readonly Part[]
  /** What it is called in logs that keep entries. */
  readonly names: Named
  readonly cost: number
  readonly atMs: number
  readonly source: Source
  /** What each part was charged: see `ConsumeOutcome.debits`. */
  readonly debits?: readonly Debit[] | undefined
  /** Per log, over all parts in order: whether it was charged. */
  readonly charged: readonly boolean[]
  /** Units not yet returned. */
  left: number
  /** Of one that has waited: when the store was asked for it, by `performance.now()`, so before it was charged. */
  askedAtMs?: number
}

const CHARGED: readonly boolean[] = [true]

/** What the origins of a limiter's fast path have in common. */
export interface FastPathOrigin {
  readonly limiter: object
  readonly set: LimitSet
  readonly spelling: Spelling
}

/** An origin as the fast path keeps it. It becomes an {@link Origin} when it is first read, since few are. */
interface FastOrigin {
  readonly of: FastPathOrigin
  /** As it was given. */
  readonly key: unknown
  readonly cost: number
  readonly atMs: number
}

function originFrom({ of, key, cost, atMs }: FastOrigin): Origin {
  const { limiter, set, spelling } = of
  const parts = [{ key: spelling.key(key), set }]
  return { limiter, parts, names: NAMELESS, cost, atMs, source: 'store', charged: CHARGED, left: cost }
}

class Returned {
  constructor(decision: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the private field below is put on what this returns
    return decision
  }
}

// A private field on an object that stays plain data in every other respect: it goes wherever the decision
// goes, and nobody else can make one. A WeakMap would do the same, at many times the cost of the decision.
class Mark extends Returned {
  #origin: Origin | FastOrigin

  constructor(decision: Decision, origin: Origin | FastOrigin) {
    super(decision)
    this.#origin = origin
  }

  static of(decision: object): Origin | undefined {
    if (!(#origin in decision)) return undefined
    const origin = decision.#origin
    if (!('of' in origin)) return origin
    const made = originFrom(origin)
    decision.#origin = made
    return made
  }
}

export function markOrigin(decision: Decision, origin: Origin | FastOrigin): void {
  new Mark(decision, origin)
}

/** `undefined` for a denied or peeked decision, a copy, or anything else. */
export function originOf(decision: unknown): Origin | undefined {
  return typeof decision === 'object' && decision !== null ? Mark.of(decision) : undefined
}
