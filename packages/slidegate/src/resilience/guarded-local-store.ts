import { StoreUnavailableError } from '../errors.ts'
import type { Announcer } from '../events.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { Call, FastPath, Op, Outcome } from '../stores/store.ts'
import { Answers, MIN_WAIT_MS } from './answers.ts'
import type { FailurePolicy } from './failure-options.ts'
import type { LocalStore } from './local-share.ts'

/** One in this process: it answers at once, or not at all. */
export class GuardedLocalStore implements LocalStore {
  readonly #store: LocalStore
  readonly #answers: Answers
  readonly #announcer: Announcer

  constructor(store: LocalStore, policy: FailurePolicy) {
    const { onStoreError, instances, createLocalStore, announcer } = policy
    this.#store = store
    this.#announcer = announcer
    this.#answers = new Answers(onStoreError, instances, createLocalStore)
  }

  apply(ops: readonly Op[], call: Call): void {
    const settled = this.#answers.settle(ops[0]!)
    if (settled !== undefined) {
      call.resolve([settled], 0)
      return
    }
    // Not by `applySync`: what that answers is good until its next call only.
    this.#store.apply(ops, new LocalCall(this, ops, call))
  }

  applySync(ops: readonly Op[]): readonly Outcome[] {
    try {
      return this.#store.applySync(ops)
    } catch (error) {
      const named = this.named(error)
      const answers = this.answersTo(ops, named)
      if (answers === undefined) throw named
      return answers
    }
  }

  /** What can fail needs an op. */
  fastPath(set: LimitSet): FastPath | undefined {
    return this.#store.fastPath?.(set)
  }

  close(): void {}

  /** The same error with the name of the limiter. */
  named(error: unknown): unknown {
    return error instanceof StoreUnavailableError ? this.#announcer.named(error) : error
  }

  /** What requests are told where the store has failed; nothing where they fail, too. */
  answersTo(ops: readonly Op[], error: unknown): readonly Outcome[] | undefined {
    if (!(error instanceof StoreUnavailableError)) return undefined
    this.#announcer.storeFailed(error)
    const answers = this.#answers.to(ops, MIN_WAIT_MS)
    if (answers !== undefined) this.#announcer.tally.count(answers)
    return answers
  }
}

class LocalCall implements Call {
  readonly #store: GuardedLocalStore
  readonly #ops: readonly Op[]
  readonly #call: Call

  constructor(store: GuardedLocalStore, ops: readonly Op[], call: Call) {
    this.#store = store
    this.#ops = ops
    this.#call = call
  }

  get isSettled(): boolean {
    return this.#call.isSettled
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    this.#call.resolve(outcomes, position)
  }

  reject(error: unknown): void {
    const named = this.#store.named(error)
    const answers = this.#store.answersTo(this.#ops, named)
    if (answers === undefined) this.#call.reject(named)
    else this.#call.resolve(answers, 0)
  }
}
