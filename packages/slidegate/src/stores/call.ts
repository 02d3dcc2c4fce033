import { limitsOf, roomsOf } from '../decision.ts'
import { type ConsumeOutcome, type Op, type Outcome, partsInForce, type Store } from './store.ts'

/**
 * One who waits for the outcomes of ops. Whoever comes first settles it: the store, or a deadline. After that
 * nobody waits any more, and what has not been sent by then need not be. What is decided all the same is told, by
 * `resolve`, to a call that is settled already: it may have been charged.
 */
export interface Call {
  readonly isSettled: boolean
  /**
   * The outcomes of its ops, in their order.
   *
   * @param position which of the requests that were decided together this one was, from 0: a store may join
   * equal ops of several calls into one with a count
   */
  resolve(outcomes: readonly Outcome[], position: number): void
  /** Nothing is known of any op of the call. */
  reject(error: unknown): void
}

/** A call as a promise. */
export function outcomesOf(store: Store, ops: readonly Op[]): Promise<readonly Outcome[]> {
  return new Promise((resolve, reject) => {
    const call = {
      isSettled: false,
      resolve(outcomes: readonly Outcome[], position: number) {
        if (call.isSettled) return
        call.isSettled = true
        resolve(position === 0 ? outcomes : [outcomeAt(ops[0]!, outcomes[0], position)])
      },
      reject(error: unknown) {
        call.isSettled = true
        reject(error)
      },
    }
    store.apply(ops, call)
  })
}

/** Asks for each op on its own; the call hears of them when the last is answered. */
export function applyEach(ops: readonly Op[], call: Call, apply: (op: Op, call: Call) => void): void {
  const outcomes: Outcome[] = ops.map(() => undefined)
  let left = ops.length
  ops.forEach((op, i) => {
    apply(op, {
      get isSettled() {
        return call.isSettled
      },
      resolve([outcome], position) {
        outcomes[i] = outcomeAt(op, outcome, position)
        left--
        if (left === 0) call.resolve(outcomes, 0)
      },
      reject: (error) => call.reject(error),
    })
  })
}

/** The outcome for one of the requests that were decided together, as if it had asked after those before it. */
export function outcomeAt(op: Op, outcome: Outcome, position: number): Outcome {
  if (op.type !== 'consume' || position === 0) return outcome
  const { admitted, limits: together, ...told } = outcome as ConsumeOutcome
  const limits = together.slice()
  const parts = partsInForce(op.parts, told.overrides)
  let rooms: readonly number[] | undefined
  limitsOf(parts).forEach(({ shadow }, i) => {
    if (shadow) rooms ??= roomsOf(parts, op.cost, together)
    limits[3 * i]! += op.cost * Math.min(position, admitted, shadow ? rooms![i]! : admitted)
  })
  return { ...told, admitted: Math.max(0, admitted - position), limits }
}
