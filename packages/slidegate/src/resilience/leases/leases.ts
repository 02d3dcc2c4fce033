// Leases: charge units for hot keys in advance, and spend them in this process.

import { checkInteger } from '../../errors.ts'
import type { ConsumeOp, PeekOp } from '../../ops/all.ts'
import type { ConsumeOutcome } from '../../ops/request.ts'
import type { Op, Outcome } from '../../ops/table.ts'
import type { Clock } from '../../runtime/clock.ts'
import { asyncOrigin, backgroundTimer, type Timer } from '../../runtime/platform.ts'
import { PassingCall } from '../../stores/call.ts'
import type { Call, Store } from '../../stores/store.ts'
import { ByKey, slotOf } from '../by-key.ts'
import { failurePolicy } from '../failure-policy.ts'
import { checkWrapped } from '../guard.ts'
import { FEW, HotKey, Pool, type Supply } from './lease-pool.ts'

/** How long units are leased, and for how many keys. */
export interface LeaseOptions {
  /**
   * Maximum length of a lease in milliseconds, from 2 to 3,000. Default: 100.
   *
   * A lease is never longer than a tenth of the shortest window. In every process, a leased key's sliding windows are
   * longer by the length of the lease. Longer leases need fewer calls to the store, but admit fewer requests.
   */
  readonly leaseMs?: number
  /** Maximum number of leased keys, from 1 to 2^20. A key counts once for each cost. Default: 1000. */
  readonly maxKeys?: number
  /** A monotonic clock in milliseconds, for tests. Default: `performance.now`. */
  readonly clock?: Clock
}

/** A store that holds leased units. Close it before its client. */
export interface LeasingStore extends Store {
  /** Refunds the units it holds, and resolves when that has succeeded or failed. Later requests don't use leases. */
  close(): Promise<void>
}

/** A lease ends one millisecond early, so it must be longer than one millisecond. */
const MIN_LEASE_MS = 2

/** Refunds can fail after 4.1 s (4,096 newer records, one per ms). A shorter lease leaves a second to refund units. */
const MAX_LEASE_MS = 3000

/**
 * Charges many requests for a hot key together, and spends the units in this process.
 *
 * A decision from a lease has the `source` `lease`, with `atMs` and `remaining` from the time of the charge. No window
 * exceeds its limit, even if other processes don't lease: a unit is spent within `leaseMs`, and every process counts it
 * for that much longer. Unspent units are returned. After a reset in another process, or if the store's clock jumps
 * ahead, units may still be spent for up to `leaseMs`.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function withLeases(store: Store, options: LeaseOptions = {}): LeasingStore {
  checkWrapped(store, options, 'withLeases', { leaseMs: true, maxKeys: true, clock: true })
  const { leaseMs = 100, maxKeys = 1000, clock = () => performance.now() } = options
  checkInteger('leaseMs', leaseMs, MIN_LEASE_MS, MAX_LEASE_MS)
  checkInteger('maxKeys', maxKeys, 1, 2 ** 20)
  return leasingStore({ store, clock, waiting: 0 }, leaseMs, maxKeys)
}

const ADMISSION_SLOTS = 16_384

/** How long `close` waits for a store that doesn't answer. */
const CLOSE_MS = 1000

/** The part of a leasing store that is used by requests for cold keys. */
interface Leases {
  /** Counts an admission for a cold key. More than a few admissions make the key hot. */
  admitted(op: ConsumeOp, outcome: ConsumeOutcome): void
  keyOf(op: Op): HotKey | undefined
}

function leasingStore(supply: Supply, maxLeaseMs: number, maxKeys: number): LeasingStore {
  const { store, clock } = supply
  const keys = new ByKey<HotKey>()
  const pools = new Set<Pool>()
  /** Admissions since `countedFromMs`, by key hash. Keys that share a slot become hot slightly earlier. */
  const admissions = new Uint8Array(ADMISSION_SLOTS)
  const origin = asyncOrigin('slidegate.leases')
  let countedFromMs = 0
  let timer: Timer | undefined
  let timerDueMs = 0
  let isClosed = false

  const leases: Leases = {
    admitted(op, outcome) {
      const nowMs = clock()
      const passedMs = nowMs - countedFromMs
      if (!(passedMs >= 0 && passedMs < maxLeaseMs)) {
        admissions.fill(0)
        countedFromMs = nowMs
      }
      const slot = (slotOf(op.parts[0]!.key, ADMISSION_SLOTS) + op.cost) % ADMISSION_SLOTS
      admissions[slot]!++
      if (admissions[slot]! <= FEW) return
      admissions[slot] = 0
      if (!isClosed && pools.size < maxKeys) add(op, outcome)
    },
    keyOf: ({ parts }) => keys.get(parts[0]!),
  }

  function consume(op: ConsumeOp, ops: readonly Op[], call: Call): void {
    const pool = leases.keyOf(op)?.find(op)
    if (pool !== undefined) pool.ask(call)
    else store.apply(ops, new ColdCall(call, leases, op))
  }

  /** Units held here can still be consumed, so a peek counts them as free. */
  function peek(op: PeekOp, ops: readonly Op[], call: Call): void {
    const outcome = leases.keyOf(op)?.find(op)?.peek()
    if (outcome !== undefined) call.resolve([outcome], 0)
    else store.apply(ops, call)
  }

  /** A reset drops the units held here, and waiting requests are sent again. An override ends leases, too. */
  function change(ops: readonly Op[], call: Call): void {
    const waiting: [ConsumeOp, Call][] = []
    for (const op of ops.filter(endsLeases)) {
      for (const pool of new Set(op.parts.flatMap((part) => keys.get(part)?.pools ?? []))) {
        remove(pool)
        if (op.type === 'override') void pool.close()
        else for (const each of pool.void()) waiting.push([pool.op, each])
      }
    }
    store.apply(ops, call)
    for (const [op, each] of waiting) consume(op, [op], each)
  }

  function add(op: ConsumeOp, outcome: ConsumeOutcome): void {
    const part = op.parts[0]!
    const key = leases.keyOf(op) ?? new HotKey(supply, part)
    const shortestMs = Math.min(...part.set.limits.map(({ windowMs }) => windowMs))
    const leaseMs = Math.min(maxLeaseMs, Math.floor(shortestMs / 10))
    if (leaseMs < MIN_LEASE_MS || key.find(op) !== undefined) return
    const pool = new Pool(key, op, leaseMs, outcome)
    key.pools.push(pool)
    pools.add(pool)
    keys.set(part, key)
    watch(clock() + leaseMs)
  }

  function remove(pool: Pool): void {
    const { part, pools: ofKey } = pool.key
    ofKey.splice(ofKey.indexOf(pool), 1)
    if (ofKey.length === 0) keys.delete(part)
    pools.delete(pool)
  }

  function watch(dueMs: number): void {
    if (timer !== undefined && timerDueMs <= dueMs) return
    clearTimeout(timer)
    timerDueMs = dueMs
    const waitMs = Math.max(1, Math.ceil(dueMs - clock()))
    timer = origin.runInAsyncScope(() => backgroundTimer(review, waitMs))
  }

  function review(): void {
    timer = undefined
    const nowMs = clock()
    for (const pool of pools) {
      const dueMs = pool.review(nowMs)
      if (dueMs === undefined) remove(pool)
      else watch(dueMs)
    }
  }

  return {
    failurePolicy,
    shardOf: store.shardOf?.bind(store),
    connection: store.connection,
    apply(ops, call) {
      const op = ops[0]!
      const isAlone = ops.length === 1 && op.parts.length === 1
      if (isAlone && op.type === 'consume' && isLeasable(op)) consume(op, ops, call)
      else if (isAlone && op.type === 'peek') peek(op, ops, call)
      else if (ops.some(endsLeases)) change(ops, call)
      else store.apply(ops, call)
    },
    isOverloaded(op, sinceMs) {
      if (store.isOverloaded?.(op, sinceMs) === true) return true
      const key = leases.keyOf(op)
      return key?.isOverloaded === true && !key.pools.some((pool) => pool.isPendingSince(sinceMs))
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      const open = Array.from(pools)
      open.forEach(remove)
      const returned = Promise.all(open.map((pool) => pool.close()))
      const late = new Promise<void>((resolve) => backgroundTimer(resolve, CLOSE_MS))
      await Promise.race([returned, late])
      await store.close()
    },
  }
}

function endsLeases({ type }: Op): boolean {
  return type === 'reset' || type === 'override'
}

/** Requests with an id or a value can't be leased. Neither can requests whose denial may cause a ban. */
function isLeasable({ count, leaseMs, requestId, isWaiting, reservation, parts }: ConsumeOp): boolean {
  if (count !== 1 || leaseMs !== 0 || requestId !== undefined) return false
  if (isWaiting || reservation !== undefined) return false
  return parts[0]!.set.logs.every(({ role }) => role !== 'ban')
}

/** A request to the store for a key that isn't hot. */
class ColdCall extends PassingCall {
  readonly #leases: Leases
  readonly #op: ConsumeOp

  constructor(call: Call, leases: Leases, op: ConsumeOp) {
    super(call)
    this.#leases = leases
    this.#op = op
  }

  override resolve(outcomes: readonly Outcome[], position: number): void {
    const outcome = outcomes[0] as ConsumeOutcome
    if (outcome.source === 'store') {
      if (position < outcome.admitted) this.#leases.admitted(this.#op, outcome)
      else if (this.#leases.keyOf(this.#op)?.askAgain(this.#op, [this.call])) return
    }
    this.call.resolve(outcomes, position)
  }
}
