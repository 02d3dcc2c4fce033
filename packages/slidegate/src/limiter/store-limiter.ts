// The limiter: each method checks its input, makes an op and sends it to the store.
import type { Decision } from '../decision.ts'
import { checkThat, invalidOption, isObject, show } from '../errors.ts'
import type { Announcer, LimiterEvent, LimiterListener, LimiterStats } from '../events.ts'
import type { AnyKey, KeyOptions } from '../key.ts'
import type {
  BulkRequest,
  CommonOptions,
  ConsumeOptions,
  ExplainOptions,
  LimitEntries,
  Limiter,
} from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import { kindOf } from '../ops/table.ts'
import type { Guarded } from '../resilience/guard.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { type Ask, type OutcomeOf, outcomesOf } from '../stores/call.ts'
import type { ConsumeOp, ExplainOp, HoldOp, Op, Part, PeekOp, Store } from '../stores/store.ts'
import { allSettled, Requests } from './consume.ts'
import { decisionOf } from './decide.ts'
import { type KeyLimits, wordOf } from './dimensions.ts'
import { chargesAsked, type Explanation, explanationOf } from './explanation.ts'
import { type Overrides, StoredOverrides } from './overrides.ts'
import { type Permit, Permits } from './permit.ts'
import { chargeOf, returnable, returnUnits } from './refund.ts'
import {
  areHeld,
  areKept,
  COST_NAMES,
  parseCost,
  parseUnits,
  REQUEST_NAMES,
  refuseValues,
} from './request.ts'
import { parseToken, type Reservation, Reservations, type Settlement } from './reservation.ts'
import type { Requester } from './waiting/queue.ts'
import { WaitingRoom, type WaitingState } from './waiting/room.ts'
import { parseWaitOptions, type WaitOptions } from './waiting/waiter.ts'

const MAX_BULK = 10_000

const BULK_NAMES = { ...REQUEST_NAMES, key: true } as const
const EXPLAIN_NAMES = { ...COST_NAMES, charges: true } as const

type CostOptions = Pick<ConsumeOptions, 'cost' | 'request'>

export class StoreLimiter implements Limiter<AnyKey> {
  readonly name: string
  readonly limits: readonly Limit[]
  readonly #keys: KeyLimits
  readonly #store: Store
  readonly #announcer: Announcer
  readonly #requests: Requests
  readonly #isOverridable: boolean
  readonly #overrides: StoredOverrides
  readonly #permits: Permits
  readonly #reservations: Reservations
  readonly #room: WaitingRoom

  constructor(name: string, keys: KeyLimits, { store, announcer }: Guarded, options: CommonOptions) {
    const { overrides = false, maxWaiting, reservationTtl = '1h' } = options
    const askWhileOpen: Ask = async (op) => {
      this.#requests.checkOpen()
      return this.#ask(op)
    }
    this.name = name
    this.limits = keys.sets.flatMap(({ limits }) => limits)
    this.#keys = keys
    this.#store = store
    this.#announcer = announcer
    this.#requests = new Requests(name, keys, store, announcer)
    this.#isOverridable = overrides
    this.#overrides = new StoredOverrides(name, keys, askWhileOpen)
    this.#permits = new Permits((op) => this.#ask(op))
    this.#reservations = new Reservations(name, reservationTtl, askWhileOpen)
    const requester: Requester = {
      ask: async (parts, cost, count) => {
        const names = this.#requests.namer.made(parts)
        const op: ConsumeOp = { type: 'consume', parts, cost, count, leaseMs: 0, isWaiting: true, ...names }
        return { op, outcome: await this.#ask(op) }
      },
      decide: (op, outcome, position) => this.#requests.decide(op, outcome, position),
      // If the refund fails, the charge still expires with the window.
      giveBack: (decision) => void this.#giveBack(decision).catch(() => {}),
    }
    this.#room = new WaitingRoom(requester, maxWaiting, announcer.counts)
  }

  consume(key: AnyKey, options?: ConsumeOptions): Promise<Decision> {
    return this.#requests.consume(key, options)
  }

  consumeSync(key: AnyKey, options?: ConsumeOptions): Decision {
    return this.#requests.consumeSync(key, options)
  }

  async consumeMany(requests: readonly BulkRequest<AnyKey>[]): Promise<readonly Decision[]> {
    const isBulk = Array.isArray(requests) && requests.length <= MAX_BULK
    checkThat(isBulk, 'requests', requests, `an array of at most ${MAX_BULK} objects like { key, cost }`)
    const ops = requests.map((request: BulkRequest<AnyKey>) => {
      checkThat(isObject(request), 'a request', request, 'an object like { key, cost }')
      return this.#requests.opFor(request.key, request, BULK_NAMES)
    })
    const calls = ops.map((op, i) => this.#requests.send(requests[i]!.key, op))
    await allSettled(calls)
    const failed = calls.find(({ decision }) => decision === undefined)
    if (failed === undefined) return calls.map(({ decision }) => decision!)
    // A request with the caller's own id can be repeated, so its charge may belong to an earlier request.
    const charged = calls.flatMap(({ decision, op }) => (op.mayRepeat === true ? [] : (decision ?? [])))
    await Promise.allSettled(charged.map((decision) => this.#giveBack(decision)))
    throw failed.error
  }

  async peek(key: AnyKey, options?: ConsumeOptions): Promise<Decision> {
    const cost = parseCost(options, REQUEST_NAMES)
    const parts = this.#requests.partsOf(key, options)
    const names = this.#requests.namer.given(options, parts)
    const op: PeekOp = { type: 'peek', parts, cost, count: 1, ...names }
    return decisionOf(op, await this.#ask(op), 0)
  }

  async charge(
    key: AnyKey,
    units: number,
    options?: Pick<ConsumeOptions, 'value' | 'request'>,
  ): Promise<void> {
    const charged = parseUnits(units, 'invalid_cost')
    const parts = this.#requests.partsOf(key, options)
    const names = this.#requests.namer.forCharge({ value: options?.value, cost: charged }, parts)
    await this.#ask({ type: 'charge', parts, units: charged, ...names })
  }

  async acquire(key: AnyKey, options?: CostOptions): Promise<Permit> {
    const cost = parseCost(options, COST_NAMES)
    const parts = this.#heldParts(key, options)
    const askedAtMs = performance.now()
    const names = this.#requests.namer.made(parts)
    const op: ConsumeOp = { type: 'consume', parts, cost, count: 1, leaseMs: 0, ...names }
    return this.#permits.give(await this.#requests.send(key, op).promise(), askedAtMs)
  }

  async release(key: AnyKey, requestId: string, options?: CostOptions): Promise<boolean> {
    return this.#hold('release', key, requestId, options)
  }

  async extend(key: AnyKey, requestId: string, options?: CostOptions): Promise<boolean> {
    return this.#hold('extend', key, requestId, options)
  }

  async #hold(type: HoldOp['type'], key: AnyKey, id: string, options?: CostOptions): Promise<boolean> {
    const units = parseCost(options, COST_NAMES)
    const parts = this.#heldParts(key, options)
    const requestId = this.#keys.encoding.key(id, 'requestId', 'invalid_request_id')
    return (await this.#ask({ type, parts, requestId, units })).held
  }

  async wait(key: AnyKey, options?: WaitOptions): Promise<Decision> {
    const request = parseWaitOptions(options)
    const parts = () => {
      const found = this.#requests.partsOf(key, options)
      refuseValues(found, 'wait')
      return found
    }
    const decision = await this.#room.wait(wordsOf(parts()), parts, request)
    this.#requests.announce(key, decision)
    return decision
  }

  async schedule<T>(
    key: AnyKey,
    task: (decision: Decision) => T | PromiseLike<T>,
    options?: WaitOptions,
  ): Promise<T> {
    checkThat(typeof task === 'function', 'the task', task, 'a function')
    const decision = await this.wait(key, options)
    const charge = chargeOf(decision)
    if (charge === undefined || !areHeld(charge.parts)) return task(decision)
    const permit = this.#permits.give(decision, performance.now())
    try {
      // Renews the slot now, because it may have been granted some time ago.
      await permit.extend().catch(() => {})
      return await task(decision)
    } finally {
      await permit[Symbol.asyncDispose]()
    }
  }

  waiting(key?: AnyKey): WaitingState {
    this.#requests.checkOpen()
    if (key === undefined) return this.#room.state()
    const words = this.#keys.keysOf(key).map((one) => wordOf(one.dimension.limiter, one.key))
    return this.#room.state(words.join())
  }

  async list(key: Partial<AnyKey>, options?: KeyOptions): Promise<readonly LimitEntries[]> {
    const parts = this.#someParts(key, options)
    if (!areKept(parts)) {
      const what = `no limit in the limiter ${show(this.name)} stores its requests separately`
      throw invalidOption(`${what}; add one with log: 'zset'`, key)
    }
    const { lists } = await this.#ask({ type: 'list', parts })
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
    const cost = parseCost(options, EXPLAIN_NAMES)
    const parts = this.#someParts(key, options)
    const charges = chargesAsked(options?.charges, parts)
    const op: ExplainOp = { type: 'explain', parts, cost, count: 1, charges }
    const outcome = await this.#ask(op)
    const keys = this.#keys.keysOf(key, false)
    const overrides = keys.flatMap((one, part) => {
      const inForce = outcome.overrides?.[part]
      return inForce === undefined ? [] : [this.#overrides.overrideOf(one, inForce, parts[part]!.set.limits)]
    })
    const names = keys.map(({ dimension }) => dimension.name)
    return { ...explanationOf(op, outcome, names), overrides }
  }

  async refund(key: AnyKey, decision: Decision, units: number = decision?.cost): Promise<number> {
    this.#requests.checkOpen()
    const keys = this.#keys.keysOf(key).map((one) => one.key)
    const charge = returnable(this.#requests, keys, decision, units)
    return returnUnits((op) => this.#ask(op), charge, units)
  }

  async #giveBack(decision: Decision): Promise<void> {
    const charge = chargeOf(decision)
    if (charge !== undefined) await returnUnits((op) => this.#ask(op), charge, charge.cost)
  }

  async reserve(key: AnyKey, estimate: number, options?: KeyOptions): Promise<Reservation> {
    const op = this.#reservations.opFor(this.#requests.partsOf(key, options), estimate)
    return this.#reservations.of(key, op, await this.#requests.send(key, op).promise())
  }

  async settle(token: string, actual: number, options?: KeyOptions): Promise<Settlement> {
    const claim = parseToken(this.name, token)
    const parts = this.#requests.partsOf(claim.key, options)
    refuseValues(parts, 'settle')
    return this.#reservations.settle(parts, claim, actual)
  }

  cancel(token: string, options?: KeyOptions): Promise<Settlement> {
    return this.settle(token, 0, options)
  }

  async reset(key: Partial<AnyKey>, options?: KeyOptions): Promise<void> {
    const parts = this.#reservations.partsWith(this.#someParts(key, options))
    await this.#ask({ type: 'reset', parts })
  }

  async block(key: Partial<AnyKey>, duration: Duration): Promise<void> {
    const blockMs = parseWindow(duration, 'the duration')
    this.#checkOverridable()
    await this.#overrides.block(key, blockMs)
  }

  async unblock(key: Partial<AnyKey>): Promise<void> {
    await this.#overrides.block(key, 0)
  }

  async isBlocked(key: Partial<AnyKey>): Promise<boolean> {
    return this.#overrides.isBlocked(key)
  }

  get overrides(): Overrides<Partial<AnyKey>> {
    this.#checkOverridable()
    return this.#overrides
  }

  #checkOverridable(): void {
    if (this.#isOverridable) return
    const what = `the limiter ${show(this.name)} doesn't support overrides or blocks`
    throw invalidOption(`${what}; create it with overrides: true`, this.name)
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
    return { ...this.#announcer.counts.stats(), permits: this.#permits.size }
  }

  close(): void {
    this.#requests.close()
    this.#permits.close()
    this.#room.close()
    this.#store.close()
  }

  #someParts(key: Partial<AnyKey>, options: KeyOptions | undefined): readonly Part[] {
    this.#requests.checkOpen()
    return this.#keys.partsOf(key, options?.request, false)
  }

  #heldParts(key: AnyKey, options: KeyOptions | undefined): readonly Part[] {
    const parts = this.#requests.partsOf(key, options)
    if (areHeld(parts)) return parts
    const message = `the limiter ${show(this.name)} has no slots to hold; add a concurrency() limit`
    throw invalidOption(message, key)
  }

  async #ask<Asked extends Op>(op: Asked): Promise<OutcomeOf<Asked>> {
    const [outcome] = await outcomesOf(this.#store, [op])
    if (kindOf(op).effect === 'free') this.#room.wake(wordsOf(op.parts))
    return outcome as OutcomeOf<Asked>
  }
}

function wordsOf(parts: readonly Part[]): readonly string[] {
  return parts.map(({ key, set }) => wordOf(set.limiter, key))
}
