// A count per key over a sliding window, without a limit.
import { isCounted } from '../decision.ts'
import { checkOptions, type Names, SlidegateError, StoreUnavailableError, show } from '../errors.ts'
import type { Logger } from '../events.ts'
import { type Spelling, spellingBy } from '../key.ts'
import { countBy, MAX_LIMIT, MAX_UNITS, parseName } from '../limits/declare.ts'
import { type LimitSet, limitSet } from '../limits/limit-set.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import type { BreakerOptions } from '../resilience/breaker.ts'
import { withFailurePolicy } from '../resilience/failure-policy.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { outcomesOf } from '../stores/call.ts'
import type { ConsumeOutcome, Op, Outcome, Part, Store } from '../stores/store.ts'

/** Options of `slidingCount`. */
export interface SlidingCountOptions {
  /** How long a unit counts, from 10 ms to 366 days. */
  readonly period: Duration
  /** Namespace of the keys, as in `createLimiter`. Give each count and limiter its own. Default: `count`. */
  readonly name?: string
  /** The step in which the period slides. Default: 1 ms for periods up to 65 s, else coarser, for up to 65,536 records per key. */
  readonly precision?: Duration
  /** Where the counts live. Not one by `withLeases`, which charges in advance. Default: a memory store of its own. */
  readonly store?: Store
  /** Timeout of a call to the store in milliseconds, from 1 to 2^31 - 1. Default: 50. */
  readonly timeoutMs?: number
  /** When the circuit breaker opens. */
  readonly breaker?: BreakerOptions
  /** Where a line is written when the store goes down or comes back; `false` for nowhere. Default: `console`. */
  readonly logger?: Logger | false
  /** A secret for stored keys, as in `createLimiter`. */
  readonly hashKeys?: string | Uint8Array
}

/**
 * Counts per key over a sliding period. Methods reject with a {@link SlidegateError} for bad input, and with a
 * `StoreUnavailableError` if the store gives no answer. An addition may have counted then.
 */
export interface SlidingCount {
  readonly name: string
  readonly periodMs: number
  readonly precisionMs: number
  /** Adds `n` units, an integer from 1 to 2^40 (default: 1), else `invalid_cost`. Resolves to the count with them. */
  add(key: string, n?: number): Promise<number>
  /** Resolves to the units of the last period. */
  get(key: string): Promise<number>
  /** Forgets the units of a key. */
  reset(key: string): Promise<void>
  /** Ends timers, and rejects later calls with `closed`. Never closes the store or its client. */
  close(): void
}

const NAMES: Names<SlidingCountOptions> = {
  ...{ period: true, name: true, precision: true, store: true },
  ...{ timeoutMs: true, breaker: true, logger: true, hashKeys: true },
}

/**
 * Counts the units added to a key within the last `period`, by the store's clock. Exact to the precision: a unit counts for the
 * period, and for less than a grain longer.
 *
 * ```ts
 * const failures = slidingCount({ name: 'failed-logins', period: '1h', store })
 * if ((await failures.add('ada@example.com')) > 5) await askForMore()
 * ```
 *
 * A key counts to 2^46; more pushes out the oldest. A full memory store forgets the least recently used keys.
 *
 * @throws {SlidegateError} `invalid_window`, `invalid_precision`, `invalid_name`, `invalid_option`
 */
export function slidingCount(options: SlidingCountOptions): SlidingCount {
  checkOptions(options, 'slidingCount', NAMES)
  const { period, precision, store, timeoutMs, breaker, logger } = options
  const name = parseName(options.name ?? 'count')
  const window = parseWindow(period, 'the period')
  const limit = slidingWindow({ limit: MAX_LIMIT, window, ...(precision !== undefined && { precision }) })
  const set = limitSet(name, [countBy(limit)])
  return new StoreCount(
    set,
    spellingBy(options),
    withFailurePolicy(name, { store, timeoutMs, breaker, logger }).store,
  )
}

class StoreCount implements SlidingCount {
  readonly name: string
  readonly periodMs: number
  readonly precisionMs: number
  readonly #set: LimitSet
  readonly #spelling: Spelling
  readonly #store: Store
  #isClosed = false

  constructor(set: LimitSet, spelling: Spelling, store: Store) {
    const { windowMs, precisionMs } = set.limits[0]!
    this.name = set.limiter
    this.periodMs = windowMs
    this.precisionMs = precisionMs
    this.#set = set
    this.#spelling = spelling
    this.#store = store
  }

  async add(key: string, n = 1): Promise<number> {
    const cost = parseUnits(n)
    const op: Op = { type: 'consume', parts: this.#parts(key), cost, count: 1, leaseMs: 0 }
    const outcome = (await this.#apply(op)) as ConsumeOutcome
    if (!isCounted(outcome.source)) {
      throw new StoreUnavailableError('full', `the store has no room for ${show(key)}`)
    }
    return countIn(outcome, cost)
  }

  async get(key: string): Promise<number> {
    const op: Op = { type: 'peek', parts: this.#parts(key), cost: 1, count: 1 }
    return countIn((await this.#apply(op)) as ConsumeOutcome, 0)
  }

  async reset(key: string): Promise<void> {
    await this.#apply({ type: 'reset', parts: this.#parts(key) })
  }

  close(): void {
    this.#isClosed = true
    // Ends the timers of the failure policy. A store in this process may have other users.
    if (this.#store.applySync === undefined) this.#store.close()
  }

  #parts(key: string): readonly [Part] {
    if (this.#isClosed)
      throw new SlidegateError('closed', `the count ${show(this.name)} is closed`, this.name)
    return [{ key: this.#spelling.key(key), set: this.#set }]
  }

  async #apply(op: Op): Promise<Outcome> {
    return (await outcomesOf(this.#store, [op]))[0]
  }
}

/** The units before the op and those that it has added, up to what a log can hold. */
function countIn({ limits }: ConsumeOutcome, added: number): number {
  return Math.min(limits[0]! + added, MAX_UNITS)
}

function parseUnits(n: unknown): number {
  if (!Number.isSafeInteger(n) || (n as number) < 1 || (n as number) > MAX_LIMIT) {
    throw new SlidegateError('invalid_cost', `n is ${show(n)}; it must be an integer from 1 to 2^40`, n)
  }
  return n as number
}
