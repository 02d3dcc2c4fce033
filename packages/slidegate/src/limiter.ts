import { type Decision, decisionOf, isCounted } from './decision.ts'
import {
  checkOptions,
  SlidegateError,
  StoreUnavailableError,
  type StoreUnavailableReason,
  show,
} from './errors.ts'
import type { Announcer, LimiterEvent, LimiterListener, Logger } from './events.ts'
import { guardedStore } from './guarded-store.ts'
import { storedKey } from './key.ts'
import { isDeclared, parseName } from './limits/declare.ts'
import type { Entry, Kind, Limit } from './limits/limit.ts'
import { type LimitSet, limitSet } from './limits/limit-set.ts'
import { NAMELESS, Names, type RequestNames } from './names.ts'
import { markOrigin, type Origin, originOf } from './origin.ts'
import { type Permit, Permits } from './permit.ts'
import type { OnStoreError } from './resilience/answers.ts'
import type { BreakerOptions } from './resilience/breaker.ts'
import { type Call, outcomesOf } from './stores/call.ts'
import type {
  ConsumeOp,
  ConsumeOutcome,
  ListOutcome,
  Named,
  Op,
  Outcome,
  Part,
  PeekOp,
  RefundOp,
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
  /**
   * What a request is told when the store gives no answer: `throw` a `StoreUnavailableError`, `deny`, `allow`, or `local`:
   * this process decides, by its share of the limits. `charge`, `refund` and `reset` fail in any case. Default: `throw`.
   */
  readonly onStoreError?: OnStoreError
  /**
   * How many processes share the limits, from 1 to 2^20: with `onStoreError: 'local'` each holds callers to `limit /
   * instances` units, rounded down, 1 at least. Default: 1.
   */
  readonly instances?: number
  /** When a store that fails is no longer asked for a moment. */
  readonly breaker?: BreakerOptions
  /** Where a line is written when the store goes down or comes back; `false` for nowhere. Default: `console`. */
  readonly logger?: Logger | false
}

export interface ConsumeOptions extends RequestNames {
  /** Units that the request takes, an integer from 1. Default: 1. */
  readonly cost?: number
}

/** What one limit keeps one by one. */
export interface LimitEntries {
  /** The limit's name. */
  readonly limit: string
  /** Those that count, oldest first. */
  readonly entries: readonly Entry[]
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
  charge(key: string, units: number, options?: Pick<ConsumeOptions, 'value'>): Promise<void>
  /**
   * For limiters with a `concurrency` limit: `consume`, and what it takes of that limit is held until it is released,
   * renewed meanwhile. Other limits are charged as ever, and a release gives nothing of them back.
   */
  acquire(key: string, options?: Pick<ConsumeOptions, 'cost' | 'value'>): Promise<Permit>
  /**
   * For audits: the requests, holders or values that count now, for each limit that keeps them one by one: sliding
   * windows with `log: 'zset'` or `'stream'`, `concurrency`, `distinct`.
   */
  list(key: string): Promise<readonly LimitEntries[]>
  /**
   * Returns units of an admitted request, exactly and at most once. Resolves to how many were, the least over
   * the enforced limits: fewer than asked where a log no longer holds them.
   *
   * Where the store gave no answer, what may have been returned is not returned again.
   *
   * `invalid_refund` for a denied, peeked or foreign decision, another key, or more units than were charged; also for
   * less than the whole where a limit keeps requests one by one.
   */
  refund(key: string, decision: Decision, units?: number): Promise<number>
  /** Forgets what the key has used. */
  reset(key: string): Promise<void>
  /** Calls the listener at each such event, at once: it should be quick. What it throws is logged, once. */
  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event>): this
  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event>): this
  /** Ends timers, so that permits are not renewed any more; every later call is refused with `closed`. Never closes the store or its client. */
  close(): void
}

/**
 * @throws {SlidegateError} `invalid_name`, `invalid_limit`, `duplicate_limit`, `invalid_option`
 */
export function createLimiter(options: LimiterOptions): Limiter {
  checkOptions(options, 'createLimiter')
  const set = parseLimits(parseName(options.name ?? 'default'), options.limits)
  const { store, announcer } = guardedStore(set.limiter, options)
  return new StoreLimiter(set, store, announcer)
}

/** Reasons for which an op has not left this process. */
const UNSENT: readonly StoreUnavailableReason[] = ['down', 'overload']

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
  /** What is returned of a request that was admitted before: whether shadow limits had room then, nobody knows. */
  readonly #enforcedLogs: readonly boolean[]
  /**
   * What `consumeSync` asks for, filled in anew each time: a store that answers at once keeps nothing of it,
   * and to allocate it would take longer than to answer it.
   */
  readonly #syncOps: readonly [SyncOp]
  readonly #names: Names
  readonly #permits: Permits
  #lastOp: { readonly key: string; readonly op: ConsumeOp } | undefined
  #lastDenied: { readonly outcome: ConsumeOutcome; readonly decision: Decision } | undefined
  readonly #announcer: Announcer
  #isClosed = false

  constructor(set: LimitSet, store: Store, announcer: Announcer) {
    this.name = set.limiter
    this.limits = set.limits
    this.#set = set
    this.#allLogs = set.logs.map(({ kind }) => isReturnable(kind))
    this.#enforcedLogs = set.logs.map(({ kind, shadow }) => isReturnable(kind) && !shadow)
    this.#names = new Names(set)
    this.#permits = new Permits(set, (op) => this.#apply(op))
    this.#syncOps = [{ type: 'consume', parts: [{ key: '', set }], cost: 1, count: 1, leaseMs: 0 }]
    this.#store = store
    this.#announcer = announcer
  }

  // Neither async nor in terms of other promises: at full load, promises are what a decision costs.
  consume(key: string, options?: ConsumeOptions): Promise<Decision> {
    try {
      const op = this.#consumeOp(key, options)
      const call = new ConsumeCall(this, op)
      this.#store.apply([op], call)
      return this.#announcer.isHeard('decision') ? this.#announced(key, call.promise()) : call.promise()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  consumeSync(key: string, options?: ConsumeOptions): Decision {
    const [op] = this.#syncOps
    op.cost = parseCost(options)
    const names = this.#names.of(options)
    if (names !== NAMELESS) Object.assign(op, names)
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
    const decision =
      outcome.admitted > 0 ? this.#admitted(op, outcome, 0) : decisionOf(this.limits, op, outcome, 0)
    if (this.#announcer.isHeard('decision')) this.#announcer.tell('decision', { key, decision })
    return decision
  }

  async peek(key: string, options?: ConsumeOptions): Promise<Decision> {
    const cost = parseCost(options)
    const names = this.#names.ofAsked(options)
    const op: PeekOp = { type: 'peek', parts: this.#parts(key), cost, count: 1, ...names }
    return decisionOf(this.limits, op, (await this.#apply(op)) as ConsumeOutcome, 0)
  }

  async charge(key: string, units: number, options?: Pick<ConsumeOptions, 'value'>): Promise<void> {
    const charged = parseUnits(units, 'invalid_cost')
    const names = this.#names.of({ value: options?.value })
    await this.#apply({ type: 'charge', parts: this.#parts(key), units: charged, ...names })
  }

  async acquire(key: string, options?: Pick<ConsumeOptions, 'cost' | 'value'>): Promise<Permit> {
    if (!this.#names.areHeld) {
      throw new SlidegateError(
        'invalid_option',
        `the limiter ${show(this.name)} has nothing to hold; give it a limit made with concurrency()`,
        key,
      )
    }
    const askedAtMs = performance.now()
    const decision = await this.consume(key, { cost: options?.cost, value: options?.value })
    return this.#permits.give(decision, askedAtMs)
  }

  async list(key: string): Promise<readonly LimitEntries[]> {
    if (!this.#names.areKept) {
      throw new SlidegateError(
        'invalid_option',
        `no limit of the limiter ${show(this.name)} keeps its requests one by one; one with log: 'zset' does`,
        key,
      )
    }
    const { lists } = (await this.#apply({ type: 'list', parts: this.#parts(key) })) as ListOutcome
    return this.#set.logs.flatMap(({ kind, serves }, i) => {
      if (kind.entries === undefined) return []
      const entries = lists[i]!.toSorted((a, b) => a.atMs - b.atMs || (a.name < b.name ? -1 : 1))
      return serves.map((limit) => ({ limit: this.limits[limit]!.name, entries }))
    })
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
    if (this.#names.areWhole && units !== origin.cost) {
      throw new SlidegateError(
        'invalid_refund',
        `${units} of ${origin.cost} units cannot be returned: a limit keeps requests one by one, and takes back the whole`,
        units,
      )
    }
    // Taken before asking: two refunds at once do not return a decision twice.
    const asked = Math.min(units, origin.left)
    if (asked === 0) return 0
    origin.left -= asked
    const { charged, atMs, source, names } = origin
    const op: RefundOp = { type: 'refund', parts, units: asked, atMs, charged, ...names }
    const { returned } = await this.#returned(source === 'fallback' ? { ...op, source } : op, origin)
    origin.left += asked - Math.max(...returned)
    const counting = returned.filter((_, i) => charged[i] && !this.#set.logs[i]!.shadow)
    return Math.min(...(counting.length > 0 ? counting : returned))
  }

  async #returned(op: RefundOp, origin: Origin): Promise<RefundOutcome> {
    try {
      return (await this.#apply(op)) as RefundOutcome
    } catch (error) {
      // What was certainly not done may be tried again; what perhaps was may not.
      if (error instanceof StoreUnavailableError && UNSENT.includes(error.reason)) origin.left += op.units
      throw error
    }
  }

  async reset(key: string): Promise<void> {
    await this.#apply({ type: 'reset', parts: this.#parts(key) })
  }

  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event>): this {
    this.#announcer.on(event, listener)
    return this
  }

  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event>): this {
    this.#announcer.off(event, listener)
    return this
  }

  close(): void {
    this.#isClosed = true
    this.#permits.close()
    // The timers of the failure policy. The store may have other users.
    if (this.#store.applySync === undefined) this.#store.close()
  }

  async #announced(key: string, promise: Promise<Decision>): Promise<Decision> {
    const decision = await promise
    this.#announcer.tell('decision', { key, decision })
    return decision
  }

  #consumeOp(key: string, options: ConsumeOptions | undefined): ConsumeOp {
    const cost = parseCost(options)
    const names = this.#names.of(options)
    // Whoever hammers a key asks the same again and again.
    const last = this.#lastOp
    if (last !== undefined && last.key === key && last.op.cost === cost && !this.#isClosed) return last.op
    const op: ConsumeOp = { type: 'consume', parts: this.#parts(key), cost, count: 1, leaseMs: 0 }
    if (names !== NAMELESS) return { ...op, ...names }
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
    const { cost, atMs, source } = decision
    const left = isCounted(source) ? cost : 0
    const charged = outcome.isRepeat ? this.#enforcedLogs : this.#chargedBy(decision, outcome.costs)
    const names = this.#names.areKept ? namesOf(op) : NAMELESS
    markOrigin(decision, { limiter: this, key: op.parts[0]!.key, names, cost, atMs, source, charged, left })
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
  #chargedBy(decision: Decision, costs: readonly number[] | undefined): readonly boolean[] {
    for (let i = 0; ; i++) {
      if (i === decision.limits.length) return this.#allLogs
      if (!decision.limits[i]!.allowed || costs?.[i] === 0) break
    }
    return this.#set.logs.map(({ kind, serves }) => {
      const i = serves[0]!
      return isReturnable(kind) && decision.limits[i]!.allowed && costs?.[i] !== 0
    })
  }
}

function namesOf({ requestId, mayRepeat, value }: Named): Named {
  return { requestId, mayRepeat, value }
}

/** What was seen is not taken back. */
function isReturnable(kind: Kind): boolean {
  return kind.entries?.are !== 'value'
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
        `limits holds ${show(limit)}; make limits with slidingWindow(), fixedWindow() and the like`,
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
