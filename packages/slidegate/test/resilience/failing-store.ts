import {
  failurePolicy,
  type Store,
  StoreUnavailableError,
  type StoreUnavailableReason,
} from '../../src/index.ts'
import type { Call, Op } from '../../src/stores/store.ts'

/** A way to fail, and the reason that callers are given for it. */
export interface Failure {
  readonly reason: StoreUnavailableReason
  fail(call: Call): void
}

export const FAILURES = {
  'says nothing': { reason: 'timeout', fail() {} },
  rejects: { reason: 'error', fail: (call) => call.reject(new Error('ECONNREFUSED')) },
  'rejects later': {
    reason: 'error',
    fail: (call) => queueMicrotask(() => call.reject(new Error('READONLY'))),
  },
  'rejects with a text': { reason: 'error', fail: (call) => call.reject('gone') },
  'rejects with nothing': { reason: 'error', fail: (call) => call.reject(undefined) },
  throws: {
    reason: 'error',
    fail() {
      throw new TypeError('thrown by the client')
    },
  },
  'is overloaded': {
    reason: 'overload',
    fail: (call) => call.reject(new StoreUnavailableError('overload', 'too many wait')),
  },
  'holds damaged state': {
    reason: 'invalid_state',
    fail: (call) => call.reject(new StoreUnavailableError('invalid_state', 'damaged')),
  },
} satisfies Record<string, Failure>

export interface FailingStore extends Store {
  /** How it fails; with nothing it does not. */
  failure: Failure | undefined
  /** What has reached it. */
  readonly asked: readonly Op[]
  shardOf?(op: Op): number
  isOverloaded?(op: Op, sinceMs: number): boolean
}

/** Another store, that is not in this process as it seems, until it fails. */
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
