import { StoreUnavailableError } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import { limitsInForce, outcomeAt } from '../../stores/outcome.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Op, Outcome, Store } from '../../stores/store.ts'
import { refundsOf } from '../refunds.ts'
import { Lease } from './lease.ts'
import { LeaseCall, ReturnCall, type Taker } from './lease-call.ts'

/** So many requests within the time of a lease are few: a key is hot beyond it. */
export const FEW = 5

/** Requests that a lease is for at most. */
const MAX_SIZE: number = 2 ** 20

/** Of what remains, one process takes no more than this beyond what it is being asked for. */
const SHARE = 1 / 4

/** Requests that wait at most, in all pools. */
const MAX_WAITING = 65_536

/** Of the room that is left, what waits for a key may be this share. */
const SHARE_WAITING = 1 / 4

/** What all pools of a store share. */
export interface Supply {
  readonly store: Store
  readonly clock: Clock
  /** Requests that wait, in all pools. */
  waiting: number
  /** Returns what is held of the op's key; `undefined` where that is nothing. */
  freeUp(op: ConsumeOp): Promise<unknown> | undefined
}

/** What all pools of a key share. */
export interface KeyCrowd {
  /** Requests that wait, in all of them. */
  waiting: number
}

/** What is held for requests of one key, limit set and cost. */
export class Pool implements Taker {
  readonly op: ConsumeOp
  readonly #supply: Supply
  readonly #key: KeyCrowd
  readonly #leaseMs: number
  #lease: Lease | undefined
  #pending: LeaseCall | undefined
  /** When, by `performance.now()`. */
  #askedAtMs = 0
  /** Those that have come since it was sent, in their order. */
  readonly #waiting: Call[] = []
  /** Requests that the next lease should be for. */
  #size = 2 * FEW
  /** Requests that the store had room for when it last answered. */
  #room: number
  #hotAtMs: number
  #state: 'open' | 'closed' | 'void' = 'open'

  /** @param outcome the store's latest answer to this op */
  constructor(supply: Supply, key: KeyCrowd, op: ConsumeOp, leaseMs: number, outcome: ConsumeOutcome) {
    this.#supply = supply
    this.#key = key
    this.op = op
    this.#leaseMs = leaseMs
    this.#room = roomAfter(op, outcome)
    this.#hotAtMs = supply.clock()
  }

  get isHolding(): boolean {
    return this.#lease !== undefined && this.#lease.left > 0
  }

  ask(call: Call): void {
    const lease = this.#spendable()
    if (lease !== undefined) {
      lease.spendOn(call)
    } else if (this.isCrowded) {
      call.reject(new StoreUnavailableError('overload', 'too many requests wait for leases already'))
    } else {
      this.#count(1)
      this.#waiting.push(call)
      if (this.#pending === undefined || this.#pending.isGivenUp) this.#take()
    }
  }

  /** Whether no more may wait for the key. */
  get isCrowded(): boolean {
    return this.#key.waiting >= SHARE_WAITING * (MAX_WAITING - this.#supply.waiting)
  }

  /** Whether the store has had a lease to decide since before then. */
  isPendingSince(ms: number): boolean {
    return this.#pending !== undefined && this.#askedAtMs < ms
  }

  /** What the next request would be told from here; `undefined` where the store has to be asked. */
  peek(): Outcome {
    const lease = this.#spendable()
    return lease && outcomeAt(this.op, lease.outcome, lease.spent)
  }

  /** Those for whom it was asked come first; those that came meanwhile share what is left, and then what comes next. */
  answer(asked: LeaseCall, outcomes: readonly Outcome[], position: number): void {
    const outcome = outcomes[0] as ConsumeOutcome
    const isDecided = outcome.source === 'store'
    const granted = Math.min(asked.op.count, Math.max(0, outcome.admitted - position))
    const calls = asked.calls.filter(isWaiting)
    const denied = calls.splice(granted)
    if (isDecided) {
      this.#room = roomAfter(asked.op, outcome)
      if (granted > calls.length) this.#keep(asked, outcome, position + calls.length, position + granted)
    }
    for (let i = 0; i < calls.length; i++) calls[i]!.resolve(outcomes, position + i)
    if (!isDecided || !this.#askAgain(asked, denied)) {
      for (let i = 0; i < denied.length; i++) denied[i]!.resolve(outcomes, position + granted + i)
    }
    this.#goOn(asked)
  }

  fail(asked: LeaseCall, error: unknown): void {
    for (const call of asked.calls) if (!call.isSettled) call.reject(error)
    this.#goOn(asked)
  }

  /** Ends what is over. Answers when to look again; `undefined` where the key is no longer hot. */
  review(nowMs: number): number | undefined {
    if (this.#pending?.isSettled) this.#goOn(this.#pending)
    const lease = this.#lease
    if (lease?.isLiveAt(nowMs)) return lease.endsAtMs
    if (lease !== undefined && lease.spent > FEW) this.#hotAtMs = nowMs
    this.#end(nowMs)
    const isCold = this.#pending === undefined && !(nowMs - this.#hotAtMs < this.#leaseMs)
    return isCold ? undefined : nowMs + this.#leaseMs
  }

  /** Returns what is held. */
  giveBack(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    return lease === undefined ? Promise.resolve() : this.#refund(lease.refunds())
  }

  /** Returns what is held, and what is still to come when it does. */
  close(): Promise<void> {
    this.#state = 'closed'
    return this.giveBack()
  }

  /** The key was reset: of what is held or still to come, nothing may be spent or returned. Answers those that wait. */
  void(): readonly Call[] {
    this.#state = 'void'
    this.#lease = undefined
    this.#count(-this.#waiting.length)
    return this.#waiting.splice(0)
  }

  #count(waiting: number): void {
    this.#supply.waiting += waiting
    this.#key.waiting += waiting
  }

  #spendable(): Lease | undefined {
    const lease = this.#lease
    return lease !== undefined && lease.left > 0 && lease.isLiveAt(this.#supply.clock()) ? lease : undefined
  }

  /** Asks for those that wait, and for some that will come. */
  #take(): void {
    const nowMs = this.#supply.clock()
    this.#hotAtMs = nowMs
    this.#end(nowMs)
    this.#count(-this.#waiting.length)
    const calls = this.#waiting.splice(0).filter(isWaiting)
    if (calls.length === 0) return
    const most = this.#state === 'open' ? Math.floor(this.#room * SHARE) : 0
    const more = Math.max(0, Math.min(this.#size - calls.length, most))
    const op = { ...this.op, count: calls.length + more, leaseMs: more > 0 ? this.#leaseMs : 0 }
    this.#pending = new LeaseCall(this, op, calls, this.#supply.clock, false)
    this.#askedAtMs = performance.now()
    this.#send(this.#pending)
  }

  #send(asked: LeaseCall): void {
    try {
      this.#supply.store.apply([asked.op], asked)
    } catch (error) {
      asked.reject(error)
    }
  }

  /** What was granted at these positions is for those that will come. */
  #keep(asked: LeaseCall, outcome: ConsumeOutcome, from: number, end: number): void {
    if (this.#state === 'void') return
    const { op, sentAtMs } = asked
    const lease = op.leaseMs > 0 ? new Lease(op, outcome, sentAtMs, from) : undefined
    const isWanted = asked === this.#pending && this.#state === 'open'
    if (isWanted && lease?.isLiveAt(this.#supply.clock())) this.#lease = lease
    else void this.#refund(refundsOf(op, outcome, from, end))
  }

  /** Room may be missing only because this process holds it for others: that is returned before anyone is denied. */
  #askAgain(asked: LeaseCall, denied: readonly Call[]): boolean {
    if (denied.length === 0 || asked.isSecond) return false
    const freed = this.#supply.freeUp(this.op)
    void freed?.then(() => {
      const calls = denied.filter(isWaiting)
      const op = { ...this.op, count: calls.length }
      if (calls.length > 0) this.#send(new LeaseCall(this, op, calls, this.#supply.clock, true))
    })
    return freed !== undefined
  }

  /** Serves those that came while it was on its way. */
  #goOn(asked: LeaseCall): void {
    if (this.#pending !== asked) return
    let served = 0
    for (; served < this.#waiting.length; served++) {
      const call = this.#waiting[served]!
      if (call.isSettled) continue
      const lease = this.#spendable()
      if (lease === undefined) break
      lease.spendOn(call)
    }
    this.#waiting.splice(0, served)
    this.#count(-served)
    this.#pending = undefined
    if (this.#waiting.length > 0) this.#take()
  }

  /** The next lease is for as many as this one has been spent on, or would have been if it had been larger. */
  #end(nowMs: number): void {
    const lease = this.#lease
    if (lease === undefined) return
    this.#lease = undefined
    if (lease.left > 0) {
      this.#size = Math.max(2 * FEW, lease.spent)
      void this.#refund(lease.refunds())
    } else {
      const demand = lease.demandAt(nowMs)
      if (demand > this.#size) this.#size = Math.min(2 * this.#size, demand, MAX_SIZE)
    }
  }

  /** Resolves when that is done, or has failed. */
  #refund(refunds: readonly Op[]): Promise<void> {
    return new Promise((resolve) => {
      const call = new ReturnCall(resolve, this.#supply.clock)
      try {
        this.#supply.store.apply(refunds, call)
      } catch {
        call.reject()
      }
    })
  }
}

function isWaiting(call: Call): boolean {
  return !call.isSettled
}

/** Requests of this cost for which there is room after the op. */
function roomAfter(op: ConsumeOp, outcome: ConsumeOutcome): number {
  let room = Number.POSITIVE_INFINITY
  limitsInForce(op, outcome).forEach(({ limit, shadow }, i) => {
    if (!shadow)
      room = Math.min(room, Math.floor((limit - outcome.limits[3 * i]!) / op.cost) - outcome.admitted)
  })
  return room
}
