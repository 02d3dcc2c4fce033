import {
  banOf,
  type ConsumeOp,
  type ConsumeOutcome,
  type Op,
  type Outcome,
  type PeekOp,
  partsInForce,
} from '../stores/store.ts'
import { zerosFor } from '../stores/unseen.ts'
import { LocalShare, type LocalStore } from './local-share.ts'

/**
 * What a request is told when the store gives no answer:
 * - `throw`: a `StoreUnavailableError`
 * - `deny`: it is denied, with the source `failClosed`
 * - `allow`: it is allowed, uncounted, with the source `failOpen`
 * - `local`: this process decides, by an equal share of the limits, with the source `fallback`
 *
 * Where so much was asked for a key at once that it waited for itself while the store was answering, all but `throw` deny it.
 */
export type OnStoreError = 'throw' | 'deny' | 'allow' | 'local'

/** A denial lasts at least so long, so that nobody asks again in a loop. */
export const MIN_WAIT_MS: number = 100

/** What requests are told without the store. */
export class Answers {
  readonly #told: OnStoreError
  readonly #local: LocalShare

  constructor(told: OnStoreError, instances: number, createLocalStore: () => LocalStore) {
    this.#told = told
    this.#local = new LocalShare(instances, createLocalStore)
  }

  /**
   * Nothing where it should fail: whoever charges, returns or resets has to know that it was not done.
   *
   * @param pauseMs after which the store may be asked again
   * @param isCrowd whether what was asked for their own keys was too much: nobody passes by that
   * @param seen tells what was in force lately
   */
  to(
    ops: readonly Op[],
    pauseMs: number,
    isCrowd = false,
    seen: (op: Op) => ConsumeOutcome['overrides'] = () => undefined,
  ): readonly Outcome[] | undefined {
    if (this.#told === 'throw') return undefined
    const told = isCrowd ? 'deny' : this.#told
    const answers: Outcome[] = []
    for (const op of ops) {
      if (op.type === 'charge' && this.#told === 'local') this.#local.charge(op)
      if (op.type !== 'consume' && op.type !== 'peek') return undefined
      answers.push(this.#answer(op, told, pauseMs, seen(op)))
    }
    return answers
  }

  #answer(
    op: ConsumeOp | PeekOp,
    told: Exclude<OnStoreError, 'throw'>,
    pauseMs: number,
    overrides: ConsumeOutcome['overrides'],
  ): ConsumeOutcome {
    const parts = partsInForce(op.parts, overrides)
    const ban = banOf(
      parts.map(() => 0),
      overrides,
    )
    const answer =
      told === 'local' && ban === undefined
        ? this.#local.decide({ ...op, parts }, pauseMs)
        : unseen(op, ban === undefined && told === 'allow' ? 'allow' : 'deny', pauseMs)
    return overrides === undefined ? answer : { ...answer, overrides, ...(ban && { ban }) }
  }

  /** What was decided in this process is returned here, which is all, and forgotten here, which is not. */
  settle(op: Op): Outcome {
    if ('source' in op && op.source === 'fallback') return this.#local.apply(op)
    if (op.type === 'reset' && this.#local.isInUse) this.#local.apply(op)
    return undefined
  }
}

/** What is said of a request of which nothing is known. */
function unseen(
  { parts, count }: ConsumeOp | PeekOp,
  told: 'deny' | 'allow',
  pauseMs: number,
): ConsumeOutcome {
  const limits = zerosFor(parts)
  const atMs = Date.now()
  return told === 'allow'
    ? { source: 'failOpen', atMs, admitted: count, limits, waitMs: 0 }
    : { source: 'failClosed', atMs, admitted: 0, limits, waitMs: pauseMs }
}
