// A count per key over a sliding window, without a limit.
import { isCounted } from '../decision.ts'
import {
  checkInteger,
  checkOptions,
  type Names,
  SlidegateError,
  StoreUnavailableError,
  show,
} from '../errors.ts'
import { encodingBy } from '../key.ts'
import type { CommonOptions } from '../limiter.ts'
import { countBy, MAX_LIMIT, MAX_UNITS, parseName } from '../limits/declare.ts'
import { MAX_ENTRIES } from '../limits/entry-window.ts'
import { limitSet } from '../limits/limit-set.ts'
import { type SlidingWindowOptions, slidingWindow } from '../limits/sliding-window.ts'
import { guardStore } from '../resilience/guard.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { outcomesOf } from '../stores/call.ts'
import type { ConsumeOp, ConsumeOutcome, Op, Part, PeekOp, Store } from '../stores/store.ts'
import { RequestNamer } from './request.ts'

/** Options for `slidingCount`. */
export interface SlidingCountOptions
  extends Pick<CommonOptions, 'timeoutMs' | 'breaker' | 'logger' | 'hashKeys'> {
  /** How long a unit counts, from 10 ms to 366 days. */
  readonly period: Duration
  /** Namespace for the keys, as in `createLimiter`. Must be unique among counts and limiters. Default: `count`. */
  readonly name?: string
  /** The step by which the period slides. Default: 1 ms for periods up to 65 s, otherwise 1/65,536 of the period. */
  readonly precision?: Duration
  /**
   * How a key's log is stored. Default: `packed`.
   *
   * With `zset`, only the newest 10,000 units count. With `stream`, only the newest 10,000 additions count, and other
   * programs can read them. Both have a precision of 1 ms.
   */
  readonly log?: SlidingWindowOptions['log']
  /** Where the counts are stored. Don't pass a store from `withLeases`, which charges in advance. Default: a new memory store. */
  readonly store?: Store
}

/**
 * Counts units per key over a sliding period.
 *
 * Methods reject with a {@link SlidegateError} for invalid input, and with a `StoreUnavailableError` if the store doesn't answer.
 * A rejected `add` may have been counted anyway.
 */
export interface SlidingCount {
  readonly name: string
  readonly periodMs: number
  readonly precisionMs: number
  /**
   * Adds `n` units (default: 1), and resolves to the new count.
   *
   * `n` is an integer from 1 to 2^40, or to 10,000 with a `log` other than `packed`. For other values, rejects with
   * `invalid_cost`.
   */
  add(key: string, n?: number): Promise<number>
  /** Resolves to the number of units added within the last period. */
  get(key: string): Promise<number>
  /** Like `add`, but without a promise. Needs a store in this process. @throws {SlidegateError} `sync_unsupported` for other stores */
  addSync(key: string, n?: number): number
  /** Like `get`, but without a promise. Needs a store in this process. @throws {SlidegateError} `sync_unsupported` for other stores */
  getSync(key: string): number
  /** Deletes the count of a key. */
  reset(key: string): Promise<void>
  /** Stops timers, and rejects later calls with `closed`. Never closes the store or its client. */
  close(): void
}

const NAMES: Names<SlidingCountOptions> = {
  ...{ period: true, name: true, precision: true, log: true, store: true },
  ...{ timeoutMs: true, breaker: true, logger: true, hashKeys: true },
}

/**
 * Counts the units added to a key within the last `period`, by the store's clock.
 *
 * Exact to the precision: a unit counts for at least the period, and for less than one step of `precision` longer.
 *
 * ```ts
 * const failures = slidingCount({ name: 'failed-logins', period: '1h', store })
 * if ((await failures.add('ada@example.com')) > 5) await askForMore()
 * ```
 *
 * A key with more than 2^46 units drops the oldest ones. The result of `add` still includes the units that this call dropped.
 * A full memory store drops the least recently used keys.
 *
 * @throws {SlidegateError} `invalid_duration`, `invalid_precision`, `invalid_limit` (`log`), `invalid_name`, `invalid_option`
 */
export function slidingCount(options: SlidingCountOptions): SlidingCount {
  checkOptions(options, 'slidingCount', NAMES)
  const { period, precision, log = 'packed', store, timeoutMs, breaker, logger } = options
  const most = log === 'packed' ? MAX_LIMIT : MAX_ENTRIES
  const name = parseName(options.name ?? 'count')
  const window = parseWindow(period, 'the period')
  const limit = slidingWindow({ limit: most, window, log, ...(precision !== undefined && { precision }) })
  const set = limitSet(name, [countBy(limit)])
  const encoding = encodingBy(options)
  const namer = new RequestNamer(encoding)
  const guarded = guardStore(name, { store, timeoutMs, breaker, logger }).store
  let isClosed = false
  const partsOf = (key: string): readonly [Part] => {
    if (isClosed) throw new SlidegateError('closed', `the count ${show(name)} is closed`, name)
    return [{ key: encoding.key(key), set }]
  }
  const apply = async (op: Op) => (await outcomesOf(guarded, [op]))[0] as ConsumeOutcome
  const applySync = (op: Op) => {
    if (guarded.applySync !== undefined) return guarded.applySync([op])[0] as ConsumeOutcome
    const message = 'addSync and getSync need a store in this process, such as memoryStore'
    throw new SlidegateError('sync_unsupported', message, name)
  }
  const addition = (key: string, n: number): ConsumeOp => {
    checkInteger('n', n, 1, most, 'invalid_cost')
    const parts = partsOf(key)
    return { type: 'consume', parts, cost: n, count: 1, leaseMs: 0, ...namer.made(parts) }
  }
  const look = (key: string): PeekOp => ({ type: 'peek', parts: partsOf(key), cost: 1, count: 1 })
  const added = (key: string, outcome: ConsumeOutcome, n: number): number => {
    if (isCounted(outcome.source)) return countIn(outcome, n)
    throw new StoreUnavailableError('full', `the store has no room for ${show(key)}`)
  }
  return {
    name,
    periodMs: limit.windowMs,
    precisionMs: limit.precisionMs,
    add: async (key, n = 1) => added(key, await apply(addition(key, n)), n),
    get: async (key) => countIn(await apply(look(key)), 0),
    addSync: (key, n = 1) => added(key, applySync(addition(key, n)), n),
    getSync: (key) => countIn(applySync(look(key)), 0),
    async reset(key) {
      await apply({ type: 'reset', parts: partsOf(key) })
    },
    close() {
      isClosed = true
      guarded.close()
    },
  }
}

function countIn({ limits }: ConsumeOutcome, added: number): number {
  return Math.min(limits[0]! + added, MAX_UNITS)
}
