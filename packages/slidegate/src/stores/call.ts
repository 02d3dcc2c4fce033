import { outcomeAt } from './outcome.ts'
import type { Call, Op, Outcome, Store } from './store.ts'

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
