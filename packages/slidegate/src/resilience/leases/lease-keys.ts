import type { Clock } from '../../runtime/clock.ts'
import { asyncOrigin, backgroundTimer, type Timer } from '../../runtime/platform.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Op, Outcome, Part, PeekOp, Store } from '../../stores/store.ts'
import { ByKey, placeOf } from '../by-key.ts'
import { FEW, type KeyCrowd, Pool, type Supply } from './lease-pool.ts'

/** A lease that ends a millisecond early has to last for more than one. */
export const MIN_LEASE_MS = 2

/** Leaves a second to return units before too many later records make the refund impossible. */
export const MAX_LEASE_MS = 3000

/** Places in the table of admissions. */
const PLACES = 16_384

/** How long `close` waits for a store that does not answer. */
const CLOSE_MS = 1000

/** A key with pools, one for each limit set and cost. */
interface HotKey extends KeyCrowd {
  readonly part: Part
  readonly pools: Pool[]
}

/** Which keys are hot, and their pools. */
export class Leases implements Supply {
  readonly store: Store
  readonly clock: Clock
  waiting = 0
  readonly #leaseMs: number
  readonly #maxKeys: number
  readonly #keys = new ByKey<HotKey>()
  #pools = 0
  /** Admissions since `#countedFromMs`, at the place of their hash: where keys share a place, one is hot a little early. */
  readonly #admissions = new Uint8Array(PLACES)
  #countedFromMs = 0
  #timer: Timer | undefined
  #timerDueMs = 0
  /** For the timer: made on behalf of a request, it would keep its async context. */
  readonly #origin = asyncOrigin('slidegate.leases')
  #isClosed = false

  constructor(store: Store, clock: Clock, leaseMs: number, maxKeys: number) {
    this.store = store
    this.clock = clock
    this.#leaseMs = leaseMs
    this.#maxKeys = maxKeys
  }

  apply(ops: readonly Op[], call: Call): void {
    const op = ops[0]!
    if (ops.length === 1 && (op.type === 'consume' || op.type === 'peek') && op.parts.length === 1) {
      if (op.type === 'peek') this.#peek(op, ops, call)
      else if (isLeasable(op)) this.#consume(op, ops, call)
      else this.store.apply(ops, call)
    } else {
      const waiting = this.#void(ops)
      this.#close(ops)
      this.store.apply(ops, call)
      for (const [asked, waits] of waiting) this.#consume(asked, [asked], waits)
    }
  }

  /** One more admission of a cold key: where there were more than a few, it is hot. */
  count(op: ConsumeOp, outcome: ConsumeOutcome): void {
    const nowMs = this.clock()
    const passedMs = nowMs - this.#countedFromMs
    if (!(passedMs >= 0 && passedMs < this.#leaseMs)) {
      this.#admissions.fill(0)
      this.#countedFromMs = nowMs
    }
    const place = (placeOf(op.parts[0]!.key, PLACES) + op.cost) % PLACES
    this.#admissions[place]!++
    if (this.#admissions[place]! <= FEW) return
    this.#admissions[place] = 0
    if (!this.#isClosed && this.#pools < this.#maxKeys && this.#poolOf(op) === undefined)
      this.#add(op, outcome)
  }

  freeUp({ parts }: ConsumeOp): Promise<unknown> | undefined {
    const holding = this.#keys.get(parts[0]!)?.pools.filter(({ isHolding }) => isHolding) ?? []
    return holding.length === 0 ? undefined : Promise.all(holding.map((pool) => pool.giveBack()))
  }

  /** See `Store.isCrowded`. */
  isCrowded(op: Op, sinceMs: number): boolean {
    if (this.store.isCrowded?.(op, sinceMs) === true) return true
    const pools = this.#keys.get(op.parts[0]!)?.pools ?? []
    return pools.some((pool) => pool.isCrowded) && !pools.some((pool) => pool.isPendingSince(sinceMs))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const pools = this.#allPools()
    for (const pool of pools) this.#remove(pool)
    const returned = Promise.all(pools.map((pool) => pool.close()))
    const late = new Promise<void>((resolve) => backgroundTimer(resolve, CLOSE_MS))
    await Promise.race([returned, late])
  }

  #consume(op: ConsumeOp, ops: readonly Op[], call: Call): void {
    const pool = this.#poolOf(op)
    if (pool !== undefined) pool.ask(call)
    else this.store.apply(ops, new ColdCall(this, op, call))
  }

  /** What is held here could be consumed. */
  #peek(op: PeekOp, ops: readonly Op[], call: Call): void {
    const outcome = this.#poolOf(op)?.peek()
    if (outcome !== undefined) call.resolve([outcome], 0)
    else this.store.apply(ops, call)
  }

  /** A reset forgets what is held, too. Answers those that wait, for them to ask anew. */
  #void(ops: readonly Op[]): [ConsumeOp, Call][] {
    const parts = ops.filter(({ type }) => type === 'reset').flatMap((op) => op.parts)
    const pools = new Set(parts.flatMap((part) => this.#keys.get(part)?.pools ?? []))
    return Array.from(pools).flatMap((pool) => {
      this.#remove(pool)
      return pool.void().map((call): [ConsumeOp, Call] => [pool.op, call])
    })
  }

  /** What is held by numbers that change is returned. */
  #close(ops: readonly Op[]): void {
    for (const { type, parts } of ops) {
      if (type !== 'override') continue
      for (const pool of parts.flatMap((part) => [...(this.#keys.get(part)?.pools ?? [])])) {
        this.#remove(pool)
        void pool.close()
      }
    }
  }

  #poolOf({ parts, cost }: ConsumeOp | PeekOp): Pool | undefined {
    const part = parts[0]!
    const pools = this.#keys.get(part)?.pools
    if (pools === undefined) return undefined
    for (let i = 0; i < pools.length; i++) {
      const { op } = pools[i]!
      if (op.cost === cost && op.parts[0]!.set === part.set) return pools[i]
    }
    return undefined
  }

  #allPools(): Pool[] {
    return Array.from(this.#keys.values()).flatMap(({ pools }) => pools)
  }

  #add(op: ConsumeOp, outcome: ConsumeOutcome): void {
    const part = op.parts[0]!
    const shortestMs = Math.min(...part.set.limits.map(({ windowMs }) => windowMs))
    const leaseMs = Math.min(this.#leaseMs, Math.floor(shortestMs / 10))
    if (leaseMs < MIN_LEASE_MS) return
    const key = this.#keys.get(part) ?? { part, pools: [], waiting: 0 }
    key.pools.push(new Pool(this, key, op, leaseMs, outcome))
    this.#keys.set(part, key)
    this.#pools++
    this.#watch(this.clock() + leaseMs)
  }

  #remove(pool: Pool): void {
    const part = pool.op.parts[0]!
    const { pools } = this.#keys.get(part)!
    pools.splice(pools.indexOf(pool), 1)
    if (pools.length === 0) this.#keys.delete(part)
    this.#pools--
  }

  #watch(dueMs: number): void {
    if (this.#timer !== undefined && this.#timerDueMs <= dueMs) return
    clearTimeout(this.#timer)
    this.#timerDueMs = dueMs
    const waitMs = Math.max(1, Math.ceil(dueMs - this.clock()))
    this.#timer = this.#origin.runInAsyncScope(() => backgroundTimer(() => this.#review(), waitMs))
  }

  /** Ends leases whose time has passed, and forgets keys that are no longer hot. */
  #review(): void {
    this.#timer = undefined
    const nowMs = this.clock()
    for (const pool of this.#allPools()) {
      const dueMs = pool.review(nowMs)
      if (dueMs === undefined) this.#remove(pool)
      else this.#watch(dueMs)
    }
  }
}

/** Requests that are known by a name are each decided by the store, and so are those whose denials may bring bans on. */
function isLeasable(op: ConsumeOp): boolean {
  const { count, leaseMs, requestId, isWaiting, reservation, parts } = op
  if (count !== 1 || leaseMs !== 0 || requestId !== undefined) return false
  if (isWaiting || reservation !== undefined) return false
  return parts[0]!.set.logs.every(({ role }) => role !== 'ban')
}

/** One that waits for the store's answer to a request of a cold key. */
class ColdCall implements Call {
  readonly #leases: Leases
  readonly #op: ConsumeOp
  readonly #call: Call

  constructor(leases: Leases, op: ConsumeOp, call: Call) {
    this.#leases = leases
    this.#op = op
    this.#call = call
  }

  get isSettled(): boolean {
    return this.#call.isSettled
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    const outcome = outcomes[0] as ConsumeOutcome
    if (outcome.source === 'store') {
      if (position < outcome.admitted) this.#leases.count(this.#op, outcome)
      else if (this.#askAgain()) return
    }
    this.#call.resolve(outcomes, position)
  }

  reject(error: unknown): void {
    this.#call.reject(error)
  }

  /** Room may be missing only because this process holds it for others: that is returned before anyone is denied. */
  #askAgain(): boolean {
    const freed = this.#leases.freeUp(this.#op)
    void freed?.then(() => {
      if (this.#call.isSettled) return
      try {
        this.#leases.store.apply([this.#op], this.#call)
      } catch (error) {
        this.#call.reject(error)
      }
    })
    return freed !== undefined
  }
}
