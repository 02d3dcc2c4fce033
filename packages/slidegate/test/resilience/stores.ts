import { failurePolicy } from '../../src/resilience/failure-policy.ts'
import type { Call, Op, Outcome, Store } from '../../src/stores/store.ts'

/** A store, and the ops that have reached it. */
export function recorded(store: Store): Store & { readonly ops: Op[] } {
  const reached: Op[] = []
  return {
    ops: reached,
    failurePolicy,
    apply(ops, call) {
      reached.push(...ops)
      store.apply(ops, call)
    },
    close: () => store.close(),
  }
}

export interface HeldStore extends Store {
  /** Whether answers wait. What is asked is carried out at once all the same. */
  isHolding: boolean
  /** Those whose answers wait. */
  readonly waiting: readonly Call[]
  /** Lets the answers through, in their order. */
  release(): void
}

/** A store that is far away: its answers take their time. */
export function held(store: Store): HeldStore {
  let answers: (() => void)[] = []
  let waiting: Call[] = []
  return {
    isHolding: false,
    get waiting() {
      return waiting
    },
    failurePolicy,
    apply(ops, call) {
      if (!this.isHolding) {
        store.apply(ops, call)
        return
      }
      waiting.push(call)
      store.apply(ops, {
        isSettled: false,
        resolve: (outcomes: readonly Outcome[], position) =>
          answers.push(() => call.resolve(outcomes, position)),
        reject: (error) => answers.push(() => call.reject(error)),
      })
    },
    release() {
      const due = answers
      answers = []
      waiting = []
      for (const answer of due) answer()
    },
    close: () => store.close(),
  }
}
