import { type Decision, isCounted } from '../decision.ts'
import { invalidOption, SlidegateError, show } from '../errors.ts'
import type { Announcer, LimiterEvent, LimiterListener } from '../events.ts'
import type { AnyKey, KeyOptions } from '../key.ts'
import type { BulkRequest, ConsumeOptions, ExplainOptions, LimitEntries, Limiter } from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import type { LimiterStats } from '../stats.ts'
import { outcomesOf } from '../stores/call.ts'
import {
  type ConsumeOp,
  type ConsumeOutcome,
  type ExplainOp,
  type ExplainOutcome,
  type FastPath,
  type HoldOp,
  type HoldOutcome,
  type ListOutcome,
  type Named,
  type Op,
  type Outcome,
  type OverrideOutcome,
  type Part,
  type PeekOp,
  partsInForce,
  type Store,
} from '../stores/store.ts'
import { chargedLogs } from './charged.ts'
import { allSettled, ConsumeCall } from './consume-call.ts'
import { decisionBy, decisionOf } from './decide.ts'
import { type KeyLimits, type OneKey, wordOf } from './dimensions.ts'
import { chargesAsked, type Explanation, explanationOf } from './explanation.ts'
import { areHeld, areKept, NAMELESS, Names, refuseValues } from './names.ts'
import { type FastPathOrigin, markOrigin, originOf } from './origin.ts'
import { type Change, type Overrides, overrideOf, overrideOp, StoredOverrides } from './overrides.ts'
import { type Permit, Permits } from './permit.ts'
import { returnable, returnTo } from './refund.ts'
import { type Reservation, Reservations, type Settlement } from './reservation.ts'
import { parseCost, parseUnits } from './units.ts'
import { LimiterAsker } from './waiting/asker.ts'
import { parseWaitOptions, type WaitOptions } from './waiting/wait-options.ts'
import { WaitingRoom, type WaitingState } from './waiting/waiting.ts'

/** Requests of one `consumeMany` at most. */
const MAX_BULK = 10_000

interface Settings {
  readonly overrides?: boolean
  readonly maxWaiting?: number
  readonly reservationTtl?: Duration
}

/** A limiter on a store, guarded by its failure policy. */
export class StoreLimiter implements Limiter<AnyKey> {
  readonly name: string
  readonly limits: readonly Limit[]
  readonly #keys: KeyLimits
  readonly #store: Store
  readonly #announcer: Announcer
  readonly #overrides: Overrides<Partial<AnyKey>> | undefined
  readonly #names: Names
  readonly #permits: Permits
  readonly #room: WaitingRoom
  readonly #reservations: Reservations
  /** The limits of all keys, where all have the same, and there are no other keys. */
  readonly #set: LimitSet | undefined
  #lastKey: string | undefined
  /** The last op that has no name of its own, as stores are given it. */
  #lastOps: readonly [ConsumeOp] | undefined
  readonly #fastPath: FastPath | undefined
  readonly #fastOrigin: FastPathOrigin | undefined
  #lastDenied: { readonly outcome: ConsumeOutcome; readonly decision: Decision } | undefined
  #isClosed = false

  /** @throws {SlidegateError} `invalid_window`, `invalid_option` */
  constructor(name: string, keys: KeyLimits, store: Store, announcer: Announcer, settings: Settings) {
    this.name = name
    this.limits = keys.limits
    this.#keys = keys
    this.#store = store
    this.#announcer = announcer
    this.#names = new Names(keys.spelling)
    this.#overrides = settings.overrides ? this.#storedOverrides() : undefined
    this.#permits = new Permits((op) => (op.type === 'release' ? this.#freeing(op) : this.#apply(op)))
    const { reservationTtl = '1h' } = settings
    this.#reservations = new Reservations(name, reservationTtl, (op) => {
      this.#checkOpen()
      return this.#freeing(op)
    })
    const asker = new LimiterAsker({
      names: this.#names,
      apply: (op) => this.#apply(op),
      decide: (op, outcome, position) => this.decide(op, outcome, position),
      giveBack: (decision) => this.#giveBack(decision),
    })
    this.#room = new WaitingRoom({
      asker,
      maxWaiting: settings.maxWaiting,
      counts: announcer.tally.waits,
    })
    this.#set = keys.set
    if (keys.set !== undefined) {
      this.#fastPath = store.fastPath?.(keys.set)
      this.#fastOrigin = { limiter: this, set: keys.set, spelling: keys.spelling }
    }
  }

  // Neither async nor in terms of other promises: at full load, promises are what a decision costs.
  consume(key: AnyKey, options?: ConsumeOptions): Promise<Decision> {
    try {
      const decision = this.#decideFast(key, options)
      if (decision !== undefined) return Promise.resolve(decision)
      return this.#send(key, this.#consumeOp(key, options)).promise()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #send(key: AnyKey, op: ConsumeOp): ConsumeCall {
    const call = new ConsumeCall(this, key, op)
    this.#store.apply(op === this.#lastOps?.[0] ? this.#lastOps : [op], call)
    return call
  }

  consumeSync(key: AnyKey, options?: ConsumeOptions): Decision {
    const fast = this.#decideFast(key, options)
    if (fast !== undefined) return fast
    const op = this.#consumeOp(key, options)
    if (this.#store.applySync === undefined) {
      throw new SlidegateError(
        'sync_unsupported',
        'consumeSync needs a store in this process; use consume',
        key,
      )
    }
    const outcome = this.#store.applySync([op])[0] as ConsumeOutcome
    const decision = outcome.admitted > 0 ? this.#admitted(op, outcome, 0) : decisionOf(op, outcome, 0)
    this.decided(key, decision)
    return decision
  }

  /** The usual request on a store in this process. Returns nothing if it needs an op. */
  #decideFast(key: AnyKey, options: ConsumeOptions | undefined): Decision | undefined {
    const isNamed =
      options !== undefined && (options?.requestId !== undefined || options?.value !== undefined)
    if (this.#fastPath === undefined || isNamed || this.#isClosed) return undefined
    const cost = parseCost(options)
    const of = this.#fastOrigin!
    const outcome = this.#fastPath(key, cost, of.spelling)
    if (outcome === undefined) return undefined
    const decision = decisionBy(of.set.limits, cost, outcome, 0, true)
    if (decision.allowed) markOrigin(decision, { of, key, cost, atMs: outcome.atMs })
    this.decided(key, decision)
    return decision
  }

  async consumeMany(requests: readonly BulkRequest<AnyKey>[]): Promise<readonly Decision[]> {
    if (!Array.isArray(requests) || requests.length > MAX_BULK) {
      const what = Array.isArray(requests) ? `${requests.length}` : show(requests)
      throw invalidOption(
        `the requests are ${what}; they must be an array of at most ${MAX_BULK} of { key, cost }`,
        requests,
      )
    }
    const ops = requests.map((request) => this.#consumeOp(request?.key, request))
    const calls = ops.map((op, i) => this.#send(requests[i]!.key, op))
    await allSettled(calls)
    const failed = calls.find(({ decision }) => decision === undefined)
    if (failed === undefined) return calls.map(({ decision }) => decision!)
    // Whoever has chosen an id asks again with it: what it was charged may be of an earlier request.
    const charged = calls.flatMap(({ decision }, i) => (ops[i]!.mayRepeat === true ? [] : (decision ?? [])))
    await Promise.allSettled(charged.map((decision) => this.#giveBack(decision)))
    throw failed.error
  }

  async peek(key: AnyKey, options?: ConsumeOptions): Promise<Decision> {
    const cost = parseCost(options)
    const parts = this.#parts(key, options)
    const op: PeekOp = { type: 'peek', parts, cost, count: 1, ...this.#names.asked(options, parts) }
    return decisionOf(op, (await this.#apply(op)) as ConsumeOutcome, 0)
  }

  async charge(
    key: AnyKey,
    units: number,
    options?: Pick<ConsumeOptions, 'value' | 'request'>,
  ): Promise<void> {
    const charged = parseUnits(units, 'invalid_cost')
    const parts = this.#parts(key, options)
    const names = this.#names.of({ value: options?.value, cost: charged }, parts)
    await this.#apply({ type: 'charge', parts, units: charged, ...names })
  }

  async acquire(key: AnyKey, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<Permit> {
    if (!areHeld(this.#parts(key, options))) throw this.#holdsNothing(key)
    const askedAtMs = performance.now()
    const { cost, request } = options ?? {}
    const decision = await this.consume(key, { cost, request })
    return this.#permits.give(decision, askedAtMs)
  }

  async release(key: AnyKey, requestId: string, options?: ConsumeOptions): Promise<boolean> {
    return this.#hold('release', key, requestId, options)
  }

  async extend(key: AnyKey, requestId: string, options?: ConsumeOptions): Promise<boolean> {
    return this.#hold('extend', key, requestId, options)
  }

  async #hold(
    type: HoldOp['type'],
    key: AnyKey,
    id: string,
    options: ConsumeOptions | undefined,
  ): Promise<boolean> {
    const units = parseCost(options)
    const parts = this.#parts(key, options)
    if (!areHeld(parts)) throw this.#holdsNothing(key)
    const requestId = this.#keys.spelling.text(id, 'requestId', 'invalid_request_id')
    const op: HoldOp = { type, parts, requestId, units }
    const { held } = (await (type === 'release' ? this.#freeing(op) : this.#apply(op))) as HoldOutcome
    return held
  }

  async wait(key: AnyKey, options?: WaitOptions): Promise<Decision> {
    const request = parseWaitOptions(options)
    const parts = () => {
      const found = this.#parts(key, options)
      refuseValues(found, 'wait')
      return found
    }
    const decision = await this.#room.wait(wordsOf(parts()), parts, request)
    this.decided(key, decision)
    return decision
  }

  async schedule<T>(
    key: AnyKey,
    task: (decision: Decision) => T | PromiseLike<T>,
    options?: WaitOptions,
  ): Promise<T> {
    if (typeof task !== 'function') {
      throw invalidOption(`the task is ${show(task)}; it must be a function`, task)
    }
    const decision = await this.wait(key, options)
    const origin = originOf(decision)
    if (origin === undefined || !areHeld(origin.parts)) return task(decision)
    const permit = this.#permits.give(decision, performance.now())
    try {
      // It may have been held for a moment already, unknown for how long.
      await permit.extend().catch(() => {})
      return await task(decision)
    } finally {
      await permit[Symbol.asyncDispose]()
    }
  }

  waiting(key?: AnyKey): WaitingState {
    this.#checkOpen()
    return this.#room.state(key === undefined ? undefined : this.#keys.wordsOf(key).join())
  }

  async list(key: Partial<AnyKey>, options?: KeyOptions): Promise<readonly LimitEntries[]> {
    const parts = this.#someParts(key, options)
    if (!areKept(parts)) {
      throw invalidOption(
        `no limit of the limiter ${show(this.name)} keeps its requests one by one; one with log: 'zset' does`,
        key,
      )
    }
    const { lists } = (await this.#apply({ type: 'list', parts })) as ListOutcome
    let place = 0
    return parts.flatMap(({ set }) =>
      set.logs.flatMap(({ kind, role, serves }) => {
        const listed = lists[place++]!
        if (role !== 'count' || kind.entries === undefined) return []
        const entries = listed.toSorted((a, b) => a.atMs - b.atMs || (a.name < b.name ? -1 : 1))
        return serves.map((limit) => ({ limit: set.limits[limit]!.name, entries }))
      }),
    )
  }

  async explain(key: Partial<AnyKey>, options?: ExplainOptions): Promise<Explanation> {
    const cost = parseCost(options)
    const parts = this.#someParts(key, options)
    const charges = chargesAsked(options, parts)
    const op: ExplainOp = { type: 'explain', parts, cost, count: 1, charges }
    const outcome = (await this.#apply(op)) as ExplainOutcome
    const overrides = this.#keys.givenBy(key).flatMap(({ dimension, given, key: stored }, part) => {
      const inForce = outcome.overrides?.[part]
      if (inForce === undefined) return []
      const { limits } = parts[part]!.set
      return [overrideOf(this.#keys.spelling.isSecret ? stored : given, dimension, inForce, limits)]
    })
    return { ...explanationOf(op, outcome, this.#keys.namesOf(parts)), overrides }
  }

  async refund(key: AnyKey, decision: Decision, units: number = decision?.cost): Promise<number> {
    this.#checkOpen()
    const origin = returnable(this, this.#keys.storedKeysOf(key), decision, units)
    return returnTo((op) => this.#freeing(op), origin, units)
  }

  async #giveBack(decision: Decision): Promise<void> {
    const origin = originOf(decision)
    if (origin !== undefined) await returnTo((op) => this.#freeing(op), origin, origin.cost)
  }

  async reserve(key: AnyKey, estimate: number, options?: KeyOptions): Promise<Reservation> {
    const op = this.#reservations.opFor(this.#parts(key, options), estimate)
    return this.#reservations.of(key, op, await this.#send(key, op).promise())
  }

  async settle(token: string, actual: number, options?: KeyOptions): Promise<Settlement> {
    const parts = this.#parts(this.#reservations.keyOf(token), options)
    refuseValues(parts, 'settle')
    return this.#reservations.settle(parts, token, actual)
  }

  cancel(token: string, options?: KeyOptions): Promise<Settlement> {
    return this.settle(token, 0, options)
  }

  async reset(key: Partial<AnyKey>, options?: KeyOptions): Promise<void> {
    this.#checkOpen()
    const parts = this.#reservations.partsWith(this.#keys.someOf(key, options?.request))
    await this.#freeing({ type: 'reset', parts })
  }

  async block(key: Partial<AnyKey>, duration: Duration): Promise<void> {
    const blockMs = parseWindow(duration, 'the duration')
    if (this.#overrides === undefined) throw this.#notOverridable()
    await this.#write(this.#blockable(key), { blockMs })
  }

  async unblock(key: Partial<AnyKey>): Promise<void> {
    await this.#write(this.#blockable(key), { blockMs: 0 })
  }

  async isBlocked(key: Partial<AnyKey>): Promise<boolean> {
    const parts = this.#blockable(key).map(({ dimension, key: stored }) => dimension.bareOf(stored)!)
    const op: ExplainOp = { type: 'explain', parts, cost: 1, count: 1 }
    return ((await this.#apply(op)) as ExplainOutcome).ban !== undefined
  }

  get overrides(): Overrides<Partial<AnyKey>> {
    if (this.#overrides === undefined) throw this.#notOverridable()
    return this.#overrides
  }

  #notOverridable(): SlidegateError {
    return invalidOption(
      `the limiter ${show(this.name)} takes no overrides and blocks; make it with overrides: true`,
      this.name,
    )
  }

  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, AnyKey>): this {
    this.#announcer.on(event, listener)
    return this
  }

  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, AnyKey>): this {
    this.#announcer.off(event, listener)
    return this
  }

  stats(): LimiterStats {
    return { ...this.#announcer.tally.stats(), permits: this.#permits.size }
  }

  close(): void {
    this.#isClosed = true
    this.#permits.close()
    this.#room.close()
    // The timers of the failure policy. The store may have other users.
    if (this.#store.applySync === undefined) this.#store.close()
  }

  #consumeOp(key: AnyKey, options: ConsumeOptions | undefined): ConsumeOp {
    const cost = parseCost(options)
    // Whoever hammers a key asks the same again and again.
    const last = this.#lastOps?.[0]
    const isUnnamed = options?.requestId === undefined && options?.value === undefined
    if (last?.cost === cost && this.#lastKey === key && isUnnamed && !this.#isClosed) return last
    const parts = this.#parts(key, options)
    const names = this.#names.of(options, parts)
    const op: ConsumeOp = { type: 'consume', parts, cost, count: 1, leaseMs: 0 }
    if (names !== NAMELESS) return { ...op, ...names }
    if (this.#set === undefined) return op
    this.#lastKey = key as string
    this.#lastOps = [op]
    return op
  }

  #parts(key: AnyKey, options: KeyOptions | undefined): readonly Part[] {
    this.#checkOpen()
    return this.#set === undefined
      ? this.#keys.partsOf(key, options?.request)
      : [{ key: this.#keys.spelling.key(key), set: this.#set }]
  }

  #someParts(key: Partial<AnyKey>, options: KeyOptions | undefined): readonly Part[] {
    this.#checkOpen()
    return this.#keys.someOf(key, options?.request)
  }

  #storedOverrides(): Overrides<Partial<AnyKey>> {
    const { dimensions, spelling } = this.#keys
    return new StoredOverrides({
      ...{ dimensions, spelling, oneOf: (key) => this.#one(key) },
      apply: async (op) => {
        this.#checkOpen()
        return this.#apply(op)
      },
      write: (keys, change) => this.#write(keys, change),
    })
  }

  async #write(keys: readonly OneKey[], change: Change): Promise<boolean> {
    const op = overrideOp(keys, this.#keys.spelling.isSecret, change)
    return ((await this.#freeing(op)) as OverrideOutcome).existed
  }

  /** The key of just one dimension. */
  #one(key: Partial<AnyKey>): OneKey {
    this.#checkOpen()
    const [one, other] = this.#keys.givenBy(key)
    if (other === undefined) return one!
    throw new SlidegateError('invalid_key', 'the key has several dimensions; an override is of one', key)
  }

  /** Those keys that can be blocked, one at least. */
  #blockable(key: Partial<AnyKey>): readonly OneKey[] {
    this.#checkOpen()
    const keys = this.#keys.givenBy(key).filter(({ dimension }) => dimension.bareOf('') !== undefined)
    if (keys.length > 0) return keys
    throw invalidOption(
      `the limiter ${show(this.name)} never blocks this key; make it with overrides: true, or set its ban option`,
      key,
    )
  }

  #holdsNothing(key: AnyKey): SlidegateError {
    return invalidOption(
      `the limiter ${show(this.name)} has nothing to hold; give it a concurrency() limit`,
      key,
    )
  }

  #checkOpen(): void {
    if (this.#isClosed)
      throw new SlidegateError('closed', `the limiter ${show(this.name)} is closed`, this.name)
  }

  async #apply(op: Op): Promise<Outcome> {
    return (await outcomesOf(this.#store, [op]))[0]
  }

  /** Something that may give those room who wait for these keys. */
  async #freeing(op: Op): Promise<Outcome> {
    const outcome = await this.#apply(op)
    this.#room.wake(wordsOf(op.parts))
    return outcome
  }

  decided(key: AnyKey, decision: Decision): void {
    // Where nobody listens, nothing is made to be told.
    if (this.#announcer.isHeard('decision')) this.#announcer.tell('decision', { key, decision })
  }

  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision {
    return position < outcome.admitted ? this.#admitted(op, outcome, position) : this.#denied(op, outcome)
  }

  #admitted(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision {
    const { parts } = op
    const decision = decisionOf(op, outcome, position)
    const { cost, atMs, source } = decision
    const { debits } = outcome
    const wasCounted =
      debits === undefined ? isCounted(source) : debits.some((each) => isCounted(each.source))
    const left = wasCounted ? cost : 0
    const charged = chargedLogs(partsInForce(parts, outcome.overrides), decision, outcome)
    const names = areKept(parts) ? namesOf(op) : NAMELESS
    const origin = { limiter: this, parts, names, cost, atMs, source, debits, charged, left }
    markOrigin(decision, origin)
    return decision
  }

  /** Of requests that were decided together, all that were denied are told the same. */
  #denied(op: ConsumeOp, outcome: ConsumeOutcome): Decision {
    if (outcome !== this.#lastDenied?.outcome) {
      this.#lastDenied = { outcome, decision: decisionOf(op, outcome, outcome.admitted) }
    }
    return { ...this.#lastDenied.decision }
  }
}

function namesOf({ requestId, mayRepeat }: Named): Named {
  return { requestId, mayRepeat }
}

function wordsOf(parts: readonly Part[]): readonly string[] {
  return parts.map(({ key, set }) => wordOf(set.limiter, key))
}
