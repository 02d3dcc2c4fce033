// The server side of `serviceStore`: runs the ops of a request body on a store.

import { checkOptions, checkThat, checkTimeout, invalidOption } from '../../errors.ts'
import type { Entry } from '../../limits/limit.ts'
import { guardStore } from '../../resilience/guard.ts'
import { outcomesOf } from '../call.ts'
import type { ListOutcome, Op, Outcome, Store } from '../store.ts'
import { answerOf, readBody, type StoreResponse } from './bodies.ts'
import { type Authorize, KnownSets, limiterOf } from './sets.ts'

/** Options of {@link serveStore}. */
export interface ServeStoreOptions {
  /**
   * Timeout for the store in milliseconds, from 1 to 2^31 - 1. Default: 40.
   *
   * Set it lower than the callers' timeout. All ops in a body are then answered in time, even if part of the store is
   * down.
   */
  readonly timeoutMs?: number
}

/**
 * Answers the parsed body of a request with an outcome or an error per op.
 *
 * Rejects with a `SlidegateError` if the body is invalid. `authorize` is called with each limiter's name, without a dimension. If
 * it throws for every name, the call rejects with the first error.
 */
export type ServedStore = (body: unknown, authorize: Authorize) => Promise<StoreResponse>

/**
 * Lets callers with `serviceStore` use their own limiters on this store.
 *
 * ```ts
 * const serve = serveStore(memoryStore())
 * const answer = await serve(await request.json(), (limiter) => mustBeAllowed(request, limiter))
 * ```
 *
 * @param store a store, or a function that returns a limiter's store by name. Each name must always get the same one
 * @throws {SlidegateError} `invalid_option`
 */
export function serveStore(
  store: Store | ((limiter: string) => Store),
  options: ServeStoreOptions = {},
): ServedStore {
  checkOptions(options, 'serveStore', { timeoutMs: true })
  const { timeoutMs = 40 } = options
  checkTimeout(timeoutMs)
  const sets = new KnownSets()
  const guarded = new WeakMap<Store, Store>()
  const guardedOf = (own: Store): Store => {
    const known = guarded.get(own) ?? guard(own, timeoutMs)
    guarded.set(own, known)
    return known
  }
  const storeOf = typeof store === 'function' ? store : () => store
  if (typeof store !== 'function') guardedOf(store)
  const resultOf = async (op: Op) => {
    try {
      const [own, ...others] = new Set(op.parts.map(({ set }) => storeOf(limiterOf(set.limiter))))
      if (others.length > 0) throw invalidOption(`all limiters in the op ${op.type} must be on one store`)
      return await outcomeOf(guardedOf(own!), op)
    } catch (error) {
      return error as Error
    }
  }
  return async (body, authorize) => {
    const ops = readBody(body, sets, authorize)
    // Applies ops separately. The store may batch them itself.
    return answerOf(await Promise.all(ops.map((op) => (op instanceof Error ? op : resultOf(op)))))
  }
}

/** Adds a deadline to a store. Late charges are refunded. */
function guard(store: Store, timeoutMs: number): Store {
  checkThat(typeof store?.apply === 'function', 'the store', store, 'a store, or a function that returns one')
  return guardStore('client', { store, timeoutMs, logger: false }).store
}

/** If an op's lists already have this many entries, its next key is rejected. No log has more entries. */
const MAX_LISTED = 10_000

async function outcomeOf(store: Store, op: Op): Promise<Outcome> {
  if (op.type !== 'list') return (await outcomesOf(store, [op]))[0]
  const lists: (readonly Entry[])[] = []
  // Parts are listed one after another, because each list may be long.
  for (const part of op.parts) {
    const entries = lists.reduce((sum, list) => sum + list.length, 0)
    if (entries >= MAX_LISTED) {
      throw invalidOption(`the list already has ${entries} entries; request fewer keys at a time`)
    }
    const [outcome] = await outcomesOf(store, [{ ...op, parts: [part] }])
    lists.push(...(outcome as ListOutcome).lists)
  }
  return { lists }
}
