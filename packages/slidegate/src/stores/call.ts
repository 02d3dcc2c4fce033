// Ways to call a store: with a promise, one op at a time, or through a wrapper.

import type * as all from '../ops/all.ts'
import { outcomeAt } from './outcome.ts'
import type { Call, Op, Outcome, Store } from './store.ts'

export function outcomesOf(store: Store, ops: readonly Op[]): Promise<readonly Outcome[]> {
  return new Promise((resolve, reject) => {
    const call = {
      isSettled: false,
      resolve(outcomes: readonly Outcome[], position: number) {
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

export type Ask = <Asked extends Op>(op: Asked) => Promise<OutcomeOf<Asked>>

export type OutcomeOf<Asked extends Op> = ReturnType<(typeof all)[Asked['type']]['apply']>

/** Applies ops separately. Resolves the call when all have outcomes. */
export function applyEach(ops: readonly Op[], call: Call, apply: (op: Op, call: Call) => void): void {
  const outcomes: Outcome[] = ops.map(() => undefined)
  let left = ops.length
  ops.forEach((op, i) => {
    const resolve: Call['resolve'] = ([outcome], position) => {
      outcomes[i] = outcomeAt(op, outcome, position)
      left--
      if (left === 0) call.resolve(outcomes, 0)
    }
    apply(
      op,
      intercepted(call, resolve, (error) => call.reject(error)),
    )
  })
}

/** Applies ops. If the store throws, rejects the call. */
export function send(store: Store, ops: readonly Op[], call: Call): void {
  try {
    store.apply(ops, call)
  } catch (error) {
    call.reject(error)
  }
}

/** Returns the call with different callbacks. */
export function intercepted(call: Call, resolve: Call['resolve'], reject: Call['reject']): Call {
  return {
    get isSettled() {
      return call.isSettled
    },
    resolve,
    reject,
  }
}

/** A call that passes everything on to another call. Store wrappers override methods to intercept results. */
export class PassingCall implements Call {
  protected readonly call: Call

  constructor(call: Call) {
    this.call = call
  }

  get isSettled(): boolean {
    return this.call.isSettled
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    this.call.resolve(outcomes, position)
  }

  reject(error: unknown): void {
    this.call.reject(error)
  }
}
