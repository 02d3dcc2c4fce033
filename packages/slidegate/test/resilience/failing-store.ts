import {
  failurePolicy,
  type Store,
  StoreUnavailableError,
  type StoreUnavailableReason,
} from '../../src/index.ts'
import type { Call, Op } from '../../src/stores/store.ts'

/** A way to fail, and the error reason that callers see. */
export interface Failure {
  readonly reason: StoreUnavailableReason
  fail(call: Call): void
}

export const FAILURES = {
  "doesn't answer": { reason: 'timeout', fail() {} },
  rejects: { reason: 'error', fail: (call) => call.reject(new Error('ECONNREFUSED')) },
  'rejects later': {
    reason: 'error',
    fail: (call) => queueMicrotask(() => call.reject(new Error('READONLY'))),
  },
  'rejects with a string': { reason: 'error', fail: (call) => call.reject('gone') },
  'rejects with undefined': { reason: 'error', fail: (call) => call.reject(undefined) },
  throws: {
    reason: 'error',
    fail() {
      throw new TypeError('thrown by the client')
    },
  },
  'is overloaded': {
    reason: 'overload',
    fail: (call) => call.reject(new StoreUnavailableError('overload', 'too many waiting')),
  },
  'holds damaged state': {
    reason: 'invalid_state',
    fail: (call) => call.reject(new StoreUnavailableError('invalid_state', 'damaged')),
  },
} satisfies Record<string, Failure>

export interface FailingStore extends Store {
  /** The current failure. The store works if this is `undefined`. */
  failure: Failure | undefined
  /** Ops that have reached the store. */
  readonly asked: readonly Op[]
  shardOf?(op: Op): number
  isOverloaded?(op: Op, sinceMs: number): boolean
}

/** Wraps a store so that it fails on demand. The store seems to be in another process. */
export function failing(store: Store, failure?: Failure): FailingStore {
  const asked: Op[] = []
  return {
    failure,
    asked,
    failurePolicy,
    apply(ops, call) {
      asked.push(...ops)
      if (this.failure !== undefined) this.failure.fail(call)
      else store.apply(ops, call)
    },
    close() {},
  }
}
