// The service's side of `serviceStore`: answers bodies from its own store.

import { checkOptions, invalidOption, show } from '../../errors.ts'
import type { Entry } from '../../limits/limit.ts'
import { acrossDomains } from '../../resilience/cluster/across-domains.ts'
import { withFailurePolicy } from '../../resilience/failure-policy.ts'
import { checkTimeout } from '../../resilience/options.ts'
import { outcomesOf } from '../call.ts'
import type { ListOp, ListOutcome, Op, Outcome, Store } from '../store.ts'
import { answerOf, readBody, type StoreAnswer } from './bodies.ts'
import { type Authorize, KnownSets, limiterOf } from './sets.ts'

/** For how long the store is waited for. */
export interface ServeStoreOptions {
  /**
   * Milliseconds, from 1 to 2^31 - 1, after which the store is given up: fewer than those for which its callers wait, so that
   * all that travels together is answered in time where a part of the store is silent. Default: 40.
   */
  readonly timeoutMs?: number
}

/**
 * Answers the body of a request, parsed, with what is to be sent back as JSON. What cannot be decided, or is not in order,
 * is told op by op.
 *
 * Rejects with a `SlidegateError` for what is no body, and with what `authorize` throws where that leaves nothing: it is given
 * the name of each limiter, without any dimension.
 */
export type ServedStore = (body: unknown, authorize: Authorize) => Promise<StoreAnswer>

/**
 * The other end of `serviceStore`: callers bring limiters of their own to this store.
 *
 * ```ts
 * const serve = serveStore(memoryStore())
 * const answer = await serve(await request.json(), (limiter) => mustBeAllowed(request, limiter))
 * ```
 *
 * @param store or a function that returns the store of a limiter: always the same one for the same name
 * @throws {SlidegateError} `invalid_option`
 */
export function serveStore(
  store: Store | ((limiter: string) => Store),
  options: ServeStoreOptions = {},
): ServedStore {
  checkOptions(options, 'serveStore', { timeoutMs: true })
  const { timeoutMs = 40 } = options
  const sets = new KnownSets()
  const storeOf =
    typeof store === 'function' ? guardedByLimiter(store, timeoutMs) : guardedAlways(store, timeoutMs)
  const resultOf = async (op: Op) => {
    try {
      return await outcomeOf(storeOf(op), op)
    } catch (error) {
      return error as Error
    }
  }
  return async (body, authorize) => {
    const ops = readBody(body, sets, authorize)
    // Each on its own: those of all bodies travel together where the store lets them.
    return answerOf(await Promise.all(ops.map((op) => (op instanceof Error ? op : resultOf(op)))))
  }
}

function guardedAlways(store: Store, timeoutMs: number): (op: Op) => Store {
  const guarded = guard(store, timeoutMs)
  return () => guarded
}

function guardedByLimiter(storeOf: (limiter: string) => Store, timeoutMs: number): (op: Op) => Store {
  checkTimeout(timeoutMs)
  const guarded = new WeakMap<Store, Store>()
  return ({ type, parts }) => {
    const [store, ...others] = new Set(parts.map(({ set }) => storeOf(limiterOf(set.limiter))))
    if (others.length > 0) throw invalidOption(`a ${type} needs limiters of one store`)
    let known = guarded.get(store!)
    if (known === undefined) {
      known = guard(store!, timeoutMs)
      guarded.set(store!, known)
    }
    return known
  }
}

/** The store with a deadline. It returns what is charged too late. */
function guard(store: Store, timeoutMs: number): Store {
  if (typeof store?.apply !== 'function') {
    throw invalidOption(
      `the store is ${show(store)}; it must be a store, or a function that returns one`,
      store,
    )
  }
  const guarded = withFailurePolicy('client', { store, timeoutMs, logger: false }).store
  return store.domainOf === undefined ? guarded : acrossDomains(guarded, store.domainOf.bind(store))
}

/** Entries of parts after which no other part is listed. One log holds no more. */
const MAX_LISTED = 10_000

/** A list one part after the other: each may be long. */
async function listOf(store: Store, op: ListOp): Promise<ListOutcome> {
  const lists: (readonly Entry[])[] = []
  for (const part of op.parts) {
    const entries = lists.reduce((sum, list) => sum + list.length, 0)
    if (entries >= MAX_LISTED) {
      throw invalidOption(`the list has ${entries} entries already; ask for fewer keys at a time`)
    }
    const [outcome] = await outcomesOf(store, [{ ...op, parts: [part] }])
    lists.push(...(outcome as ListOutcome).lists)
  }
  return { lists }
}

async function outcomeOf(store: Store, op: Op): Promise<Outcome> {
  return op.type === 'list' ? listOf(store, op) : (await outcomesOf(store, [op]))[0]
}
