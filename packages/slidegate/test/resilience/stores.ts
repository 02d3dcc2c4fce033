import { failurePolicy } from '../../src/resilience/failure-policy.ts'
import type { Call, Op, Outcome, Store } from '../../src/stores/store.ts'

/** Wraps a store, and records the ops that reach it. */
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
  /** Whether answers are held back. Ops are executed immediately in any case. */
  isHolding: boolean
  /** Calls whose answers are held back. */
  readonly waiting: readonly Call[]
  /** Passes on all held answers, in order. */
  release(): void
}

/** Wraps a store so that answers can be held back, as if it were remote. */
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
