import type { Decision } from './decision.ts'
import type { Call } from './stores/call.ts'
import type { ConsumeOp, ConsumeOutcome, Outcome } from './stores/store.ts'

/** Makes decisions of what a store answers. */
export interface Decider {
  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision
}

/** The promise of a decision, as the store sees it. Where the store has answered at once, there is nothing to wait for. */
export class ConsumeCall implements Call {
  isSettled = false
  readonly #decider: Decider
  readonly #op: ConsumeOp
  #decision: Decision | undefined
  #error: unknown
  #resolve: ((decision: Decision) => void) | undefined
  #reject: ((error: unknown) => void) | undefined

  constructor(decider: Decider, op: ConsumeOp) {
    this.#decider = decider
    this.#op = op
  }

  promise(): Promise<Decision> {
    if (this.#decision !== undefined) return Promise.resolve(this.#decision)
    if (this.isSettled) return Promise.reject(this.#error)
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    this.isSettled = true
    this.#decision = this.#decider.decide(this.#op, outcomes[0] as ConsumeOutcome, position)
    this.#resolve?.(this.#decision)
  }

  reject(error: unknown): void {
    this.isSettled = true
    this.#error = error
    this.#reject?.(error)
  }
}
