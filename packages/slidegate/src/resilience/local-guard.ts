// The failure policy of a store in this process: it answers at once, so it needs no deadline and no breaker.

import { StoreUnavailableError } from '../errors.ts'
import type { Announcer } from '../events.ts'
import { PassingCall } from '../stores/call.ts'
import type { Call, Op, Outcome, Store } from '../stores/store.ts'
import type { Fallback } from './fallback.ts'

/** A store in this process. */
export type LocalStore = Store & Required<Pick<Store, 'applySync'>>

export function guardLocal(store: LocalStore, fallback: Fallback, announcer: Announcer): LocalStore {
  const answer: Answer = (ops, error) => {
    if (!(error instanceof StoreUnavailableError)) throw error
    const named = announcer.named(error)
    announcer.storeFailed(named)
    const answers = fallback.answer(ops, performance.now(), 0, false)
    if (answers === undefined) throw named
    return answers
  }
  return {
    apply(ops, call) {
      if (fallback.settles(ops[0]!, call)) return
      // Not by `applySync`: its answer is only good until the next call.
      store.apply(ops, new LocalCall(call, ops, answer))
    },
    applySync(ops) {
      try {
        return store.applySync(ops)
      } catch (error) {
        return answer(ops, error)
      }
    },
    // What can fail needs an op.
    fastPath: store.fastPath?.bind(store),
    close() {},
  }
}

/** Answers ops when the store has failed, or throws if they fail, too. */
type Answer = (ops: readonly Op[], error: unknown) => readonly Outcome[]

class LocalCall extends PassingCall {
  readonly #ops: readonly Op[]
  readonly #answer: Answer

  constructor(call: Call, ops: readonly Op[], answer: Answer) {
    super(call)
    this.#ops = ops
    this.#answer = answer
  }

  override reject(error: unknown): void {
    try {
      this.call.resolve(this.#answer(this.#ops, error), 0)
    } catch (failure) {
      this.call.reject(failure)
    }
  }
}
