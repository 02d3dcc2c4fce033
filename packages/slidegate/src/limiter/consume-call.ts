import type { Decision } from '../decision.ts'
import type { AnyKey } from '../key.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Outcome } from '../stores/store.ts'

/** Makes decisions of what a store answers, and is told of each before whoever waits for it. */
export interface Decider {
  /** @throws {SlidegateError} `reused_request_id` */
  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision
  decided(key: AnyKey, decision: Decision): void
}

const forget = (): void => {}

/** The functions that settle the newest promise. */
const kept: { resolve: (decision: Decision) => void; reject: (error: unknown) => void } = {
  resolve: forget,
  reject: forget,
}

/** The executor of all promises: a closure for each would be garbage. */
function keep(resolve: (decision: Decision) => void, reject: (error: unknown) => void): void {
  kept.resolve = resolve
  kept.reject = reject
}

/** A decision that is waited for, as the store sees it. Where the store has answered at once, there is nothing to wait for. */
export class ConsumeCall implements Call {
  isSettled = false
  /** `undefined` until it is settled, and where the store gave no answer. */
  decision: Decision | undefined
  /** Why there is no decision. */
  error: unknown
  readonly #decider: Decider
  readonly #key: AnyKey
  readonly #op: ConsumeOp
  #resolve: ((decision: Decision) => void) | undefined
  #reject: ((error: unknown) => void) | undefined

  constructor(decider: Decider, key: AnyKey, op: ConsumeOp) {
    this.#decider = decider
    this.#key = key
    this.#op = op
  }

  promise(): Promise<Decision> {
    if (this.decision !== undefined) return Promise.resolve(this.decision)
    if (this.isSettled) return Promise.reject(this.error)
    const promise = new Promise<Decision>(keep)
    this.#resolve = kept.resolve
    this.#reject = kept.reject
    kept.resolve = kept.reject = forget
    return promise
  }

  /** Calls back once it is settled: at once if it is. */
  whenSettled(settled: () => void): void {
    if (this.isSettled) {
      settled()
      return
    }
    this.#resolve = settled
    this.#reject = settled
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    let decision: Decision
    try {
      decision = this.#decider.decide(this.#op, outcomes[0] as ConsumeOutcome, position)
    } catch (error) {
      // Thrown from here, it would end the other calls of the batch.
      this.reject(error)
      return
    }
    this.isSettled = true
    this.decision = decision
    this.#decider.decided(this.#key, decision)
    this.#resolve?.(decision)
  }

  reject(error: unknown): void {
    this.isSettled = true
    this.error = error
    this.#reject?.(error)
  }
}

/** Resolves when all are settled, without a promise for each: at full load, promises are what decisions cost. */
export function allSettled(calls: readonly ConsumeCall[]): Promise<void> {
  return new Promise((resolve) => {
    let missing = calls.length
    if (missing === 0) resolve()
    const settled = (): void => {
      if (--missing === 0) resolve()
    }
    for (const call of calls) call.whenSettled(settled)
  })
}
