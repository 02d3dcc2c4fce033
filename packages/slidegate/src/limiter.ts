import { type Decision, decisionOf } from './decision.ts'
import { checkOptions, SlidegateError, show } from './errors.ts'
import { storedKey } from './key.ts'
import { isDeclared, parseName } from './limits/declare.ts'
import type { Limit } from './limits/limit.ts'
import { type LimitSet, limitSet } from './limits/limit-set.ts'
import { markOrigin, originOf } from './origin.ts'
import { withDeadline } from './resilience/deadline.ts'
import { type Call, outcomesOf } from './stores/call.ts'
import { memoryStore } from './stores/memory.ts'
import type {
  ConsumeOp,
  ConsumeOutcome,
  Op,
  Outcome,
  Part,
  PeekOp,
  RefundOutcome,
  Store,
} from './stores/store.ts'

export interface LimiterOptions {
  /** Namespace of the keys and label of the metrics: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: `default`. */
  readonly name?: string
  /** What each key is held to, all of it: at least one limit. */
  readonly limits: readonly Limit[]
  /** Where the state lives. Default: a memory store of its own. */
  readonly store?: Store
  /** Milliseconds, from 1 to 2^31 - 1, after which a call to the store is given up. Default: 50. */
  readonly timeoutMs?: number
}

export interface ConsumeOptions {
  /** Units that the request takes, an integer from 1. Default: 1. */
  readonly cost?: number
}

/**
 * Holds keys to limits. All methods reject with a {@link SlidegateError} for bad input, and with a
 * `StoreUnavailableError` where the store gave no answer; being denied is a value.
 */
export interface Limiter {
  readonly name: string
  readonly limits: readonly Limit[]
  /** Charges the request to all limits if all have room, else to none. */
  consume(key: string, options?: ConsumeOptions): Promise<Decision>
  /** The same at once; throws. Only on a store in this process, else `sync_unsupported`. */
  consumeSync(key: string, options?: ConsumeOptions): Decision
  /** What `consume` would answer; `remaining` and `resetAfterMs` are those before any charge. Writes nothing. */
  peek(key: string, options?: ConsumeOptions): Promise<Decision>
  /**
   * Charges every limit of the key, shadow ones too, without asking: for what has already happened. May pass
   * the limits. `units` is an integer from 1, of which 2^46 are counted at most.
   */
  charge(key: string, units: number): Promise<void>
  /**
   * Returns units of an admitted request, exactly and at most once. Resolves to how many were, the least over
   * the enforced limits: fewer than asked where a log no longer holds them.
   *
   * `invalid_refund` for a denied, peeked or foreign decision, another key, or more units than were charged.
   */
  refund(key: string, decision: Decision, units?: number): Promise<number>
  /** Forgets what the key has used. */
  reset(key: string): Promise<void>
  /** Ends timers; every later call is refused with `closed`. Never closes the store or its client. */
  close(): void
}

/**
 * @throws {SlidegateError} `invalid_name`, `invalid_limit`, `duplicate_limit`, `invalid_option`
 */
export function createLimiter(options: LimiterOptions): Limiter {
  checkOptions(options, 'createLimiter')
  const { store = memoryStore(), timeoutMs = 50 } = options
  const set = parseLimits(parseName(options.name ?? 'default'), options.limits)
  if (typeof store !== 'object' || typeof store?.apply !== 'function') {
    throw new SlidegateError(
      'invalid_option',
      `the store is ${show(store)}; use memoryStore() or redisStore(client)`,
      store,
    )
  }
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs >= 2 ** 31) {
    throw new SlidegateError(
      'invalid_option',
      `timeoutMs is ${show(timeoutMs)}; it must be an integer from 1 to 2^31 - 1`,
      timeoutMs,
    )
  }
  return new StoreLimiter(set, store, timeoutMs)
}

interface SyncOp extends ConsumeOp {
  readonly parts: readonly [{ key: string; readonly set: LimitSet }]
  cost: number
}

class StoreLimiter implements Limiter {
  readonly name: string
  readonly limits: readonly Limit[]
  readonly #set: LimitSet
  readonly #store: Store
  readonly #allLogs: readonly boolean[]
  /**
   * What `consumeSync` asks for, filled in anew each time: a store that answers at once keeps nothing of it,
   * and to allocate it would take longer than to answer it.
   */
  readonly #syncOps: readonly [SyncOp]
  #lastOp: { readonly key: string; readonly op: ConsumeOp } | undefined
  #lastDenied: { readonly outcome: ConsumeOutcome; readonly decision: Decision } | undefined
  #isClosed = false

  constructor(set: LimitSet, store: Store, timeoutMs: number) {
    this.name = set.limiter
    this.limits = set.limits
    this.#set = set
    this.#allLogs = set.logs.map(() => true)
    this.#syncOps = [{ type: 'consume', parts: [{ key: '', set }], cost: 1, count: 1, leaseMs: 0 }]
    // What answers at once needs no deadline.
    this.#store = store.applySync === undefined ? withDeadline(store, timeoutMs) : store
  }

  // Neither async nor in terms of other promises: at full load, promises are what a decision costs.
  consume(key: string, options?: ConsumeOptions): Promise<Decision> {
    try {
      const op = this.#consumeOp(key, options)
      const call = new ConsumeCall(this, op)
      this.#store.apply([op], call)
      return call.promise()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  consumeSync(key: string, options?: ConsumeOptions): Decision {
    const [op] = this.#syncOps
    op.cost = parseCost(options)
    this.#checkOpen()
    op.parts[0].key = storedKey(key)
    if (this.#store.applySync === undefined) {
      throw new SlidegateError(
        'sync_unsupported',
        'consumeSync needs a store in this process; use consume',
        key,
      )
    }
    const outcome = this.#store.applySync(this.#syncOps)[0] as ConsumeOutcome
    return outcome.admitted > 0 ? this.#admitted(op, outcome, 0) : decisionOf(this.limits, op, outcome, 0)
  }

  async peek(key: string, options?: ConsumeOptions): Promise<Decision> {
    const op: PeekOp = { type: 'peek', parts: this.#parts(key), cost: parseCost(options), count: 1 }
    return decisionOf(this.limits, op, (await this.#apply(op)) as ConsumeOutcome, 0)
  }

  async charge(key: string, units: number): Promise<void> {
    await this.#apply({ type: 'charge', parts: this.#parts(key), units: parseUnits(units, 'invalid_cost') })
  }

  async refund(key: string, decision: Decision, units: number = decision?.cost): Promise<number> {
    const parts = this.#parts(key)
    const origin = originOf(decision)
    if (origin === undefined || origin.limiter !== this) {
      const what =
        decision?.allowed === false ? 'a denied decision, which charged nothing' : 'not one of this limiter'
      throw new SlidegateError(
        'invalid_refund',
        `the decision is ${what}; it must be one that consume() allowed`,
        decision,
      )
    }
    if (origin.key !== parts[0]!.key) {
      throw new SlidegateError(
        'invalid_refund',
        `the decision was made for another key than ${show(key)}`,
        key,
      )
    }
    if (parseUnits(units, 'invalid_refund') > origin.cost) {
      throw new SlidegateError(
        'invalid_refund',
        `${units} units are more than the ${origin.cost} that were charged`,
        units,
      )
    }
    // Taken before asking: two refunds at once do not return a decision twice.
    const asked = Math.min(units, origin.left)
    if (asked === 0) return 0
    origin.left -= asked
    const { charged, atMs } = origin
    const { returned } = (await this.#apply({
      type: 'refund',
      parts,
      units: asked,
      atMs,
      charged,
    })) as RefundOutcome
    origin.left += asked - Math.max(...returned)
    const counting = returned.filter((_, i) => charged[i] && !this.#set.logs[i]!.shadow)
    return Math.min(...(counting.length > 0 ? counting : returned))
  }

  async reset(key: string): Promise<void> {
    await this.#apply({ type: 'reset', parts: this.#parts(key) })
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#store.applySync === undefined) this.#store.close()
  }

  #consumeOp(key: string, options: ConsumeOptions | undefined): ConsumeOp {
    const cost = parseCost(options)
    // Whoever hammers a key asks the same again and again.
    const last = this.#lastOp
    if (last !== undefined && last.key === key && last.op.cost === cost && !this.#isClosed) return last.op
    const op: ConsumeOp = { type: 'consume', parts: this.#parts(key), cost, count: 1, leaseMs: 0 }
    this.#lastOp = { key, op }
    return op
  }

  #parts(key: string): readonly [Part] {
    this.#checkOpen()
    return [{ key: storedKey(key), set: this.#set }]
  }

  #checkOpen(): void {
    if (this.#isClosed)
      throw new SlidegateError('closed', `the limiter ${show(this.name)} is closed`, this.name)
  }

  async #apply(op: Op): Promise<Outcome> {
    return (await outcomesOf(this.#store, [op]))[0]
  }

  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision {
    return position < outcome.admitted ? this.#admitted(op, outcome, position) : this.#denied(op, outcome)
  }

  #admitted(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision {
    const decision = decisionOf(this.limits, op, outcome, position)
    const { cost, atMs } = decision
    const left = outcome.source === 'store' || outcome.source === 'lease' ? cost : 0
    const charged = this.#chargedBy(decision)
    markOrigin(decision, { limiter: this, key: op.parts[0]!.key, cost, atMs, charged, left })
    return decision
  }

  /** Of requests that were decided together, all that were denied are told the same. */
  #denied(op: ConsumeOp, outcome: ConsumeOutcome): Decision {
    if (outcome !== this.#lastDenied?.outcome) {
      this.#lastDenied = { outcome, decision: decisionOf(this.limits, op, outcome, outcome.admitted) }
    }
    return { ...this.#lastDenied.decision }
  }

  /** Which logs an admitted request was charged to: all, but for those of shadow limits that had no room. */
  #chargedBy(decision: Decision): readonly boolean[] {
    for (let i = 0; ; i++) {
      if (i === decision.limits.length) return this.#allLogs
      if (!decision.limits[i]!.allowed) break
    }
    return this.#set.logs.map(({ serves }) => decision.limits[serves[0]!]!.allowed)
  }
}

/** The promise of a decision, as the store sees it. Where the store has answered at once, there is nothing to wait for. */
class ConsumeCall implements Call {
  isSettled = false
  readonly #limiter: StoreLimiter
  readonly #op: ConsumeOp
  #decision: Decision | undefined
  #error: unknown
  #resolve: ((decision: Decision) => void) | undefined
  #reject: ((error: unknown) => void) | undefined

  constructor(limiter: StoreLimiter, op: ConsumeOp) {
    this.#limiter = limiter
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
    this.#decision = this.#limiter.decide(this.#op, outcomes[0] as ConsumeOutcome, position)
    this.#resolve?.(this.#decision)
  }

  reject(error: unknown): void {
    this.isSettled = true
    this.#error = error
    this.#reject?.(error)
  }
}

function parseLimits(name: string, limits: unknown): LimitSet {
  if (!Array.isArray(limits) || limits.length === 0) {
    throw new SlidegateError(
      'invalid_limit',
      `limits is ${show(limits)}; it must be an array with at least one limit`,
      limits,
    )
  }
  for (const limit of limits) {
    if (!isDeclared(limit)) {
      throw new SlidegateError(
        'invalid_limit',
        `limits holds ${show(limit)}; make limits with slidingWindow() or fixedWindow()`,
        limit,
      )
    }
  }
  return limitSet(name, [...limits])
}

function parseCost(options: ConsumeOptions | undefined): number {
  if (options === undefined) return 1
  if (typeof options !== 'object' || options === null) {
    throw new SlidegateError('invalid_cost', `the options are ${show(options)}; write { cost: 1 }`, options)
  }
  return options.cost === undefined ? 1 : parseUnits(options.cost, 'invalid_cost')
}

function parseUnits(units: unknown, code: 'invalid_cost' | 'invalid_refund'): number {
  if (!Number.isSafeInteger(units) || (units as number) < 1) {
    throw new SlidegateError(code, `the units are ${show(units)}; they must be an integer from 1`, units)
  }
  return units as number
}
