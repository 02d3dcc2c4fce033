// The store in this process: `memoryStore`, and the fast path for the usual op.
//
// One request against limits that share one log is decided in one piece, by `admit` of its kind: `check` and `commit` with one search.
// A limiter gets this as `fastPath` and then makes no op. Everything else goes through the driver.

import { checkOptions, invalidOption, show } from '../../errors.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import { MAX_AHEAD_MS } from '../../ops/driver.ts'
import { setReset, setUsed, setWait } from '../../ops/numbers.ts'
import { type Clock, monotonicClock } from '../../runtime/clock.ts'
import { checkClock, readClock } from '../instant.ts'
import type { Call, ConsumeOutcome, FastPath, Op, Outcome, Store } from '../store.ts'
import { type Group, KeyTable } from './key-table.ts'
import { MemoryOps, type OnFull } from './memory-ops.ts'

export type { OnFull }

/** How many keys are held, and what becomes of more. */
export interface MemoryStoreOptions {
  /**
   * Keys and overrides held at most, from 1. Default: 1,000,000.
   *
   * When full, expired keys go first, then the least recently used one that is not at its limit. Overrides stay until they
   * end. A key that is banned, whose denials count towards a ban, or whose next ban will be longer, is kept like one at its
   * limit. Together they take 1 KiB for each of these at most, or 256 MiB if that is more.
   */
  readonly maxKeys?: number
  /**
   * The answer to a new key where all that are held are at their limits, or so many of those used longest ago that the
   * search was given up (it looks at 1,024 limits, and the next goes on from there): `throw` (the default) a
   * `StoreUnavailableError` of reason `full`, `deny` until the first of them opens, or `allow` uncounted. With bans, keys
   * with one denial each can fill the store, too, for the `within` of the ban.
   */
  readonly onFull?: OnFull
  /** Overrides held at most, from 1. One more is rejected with the reason `full`. Default: `maxKeys`. */
  readonly maxOverrides?: number
  /** Epoch milliseconds, for tests and replay. Default: a monotonic clock, anchored to the wall clock once. */
  readonly clock?: Clock
}

export interface MemoryStore extends Store {
  /** What it answers is good until its next call. */
  applySync(ops: readonly Op[]): readonly Outcome[]
  /** Keys held, and how many live ones were dropped to make room for others. */
  stats(): { readonly keys: number; readonly evicted: number }
}

/** With a clock that was handed in, and so may be set back, expired keys are kept for a while, as in Redis. */
const GRACE_MS = 600_000

/**
 * State in this process: for one process, and for tests.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptions(options, 'memoryStore', { maxKeys: true, onFull: true, maxOverrides: true, clock: true })
  const { maxKeys = 1_000_000, onFull = 'throw', clock, maxOverrides = maxKeys } = options
  for (const [name, most] of Object.entries({ maxKeys, maxOverrides })) {
    if (Number.isSafeInteger(most) && most >= 1) continue
    throw invalidOption(`${name} is ${show(most)}; it must be an integer from 1`, most)
  }
  if (onFull !== 'throw' && onFull !== 'deny' && onFull !== 'allow') {
    throw invalidOption(`onFull is ${show(onFull)}; it must be 'throw', 'deny' or 'allow'`, onFull)
  }
  checkClock(clock)
  const keys = new KeyTable(maxKeys, clock === undefined ? 0 : GRACE_MS)
  const ops = new MemoryOps(keys, onFull, maxOverrides)
  return new KeyTableStore(keys, clock === undefined ? monotonicClock : () => readClock(clock), ops)
}

/** An outcome while it is made. */
interface OutcomeInMaking extends ConsumeOutcome {
  atMs: number
  admitted: number
  readonly limits: number[]
}

class KeyTableStore implements MemoryStore {
  readonly #keys: KeyTable
  readonly #now: Clock
  readonly #ops: MemoryOps
  /** What {@link applySync} returns for the usual op. */
  readonly #outcomes: readonly [OutcomeInMaking] = [newOutcome()]
  /** Units within each limit's window before the op. */
  readonly #used: number[] = []

  constructor(keys: KeyTable, now: Clock, ops: MemoryOps) {
    this.#keys = keys
    this.#now = now
    this.#ops = ops
  }

  applySync(ops: readonly Op[]): readonly Outcome[] {
    if (ops.length === 1) {
      const clockMs = this.#now()
      return this.#decideAlone(ops[0]!, clockMs, this.#outcomes[0])
        ? this.#outcomes
        : [this.#ops.apply(ops[0]!, clockMs)]
    }
    return ops.map((op) => this.#ops.apply(op, this.#now()))
  }

  fastPath(set: LimitSet): FastPath | undefined {
    const group = this.#keys.groupOf(set)
    if (group.alone === undefined) return undefined
    const keys = this.#keys
    const outcome = newOutcome()
    return (given, cost, spelling) => {
      const clockMs = this.#now()
      keys.sweep(clockMs)
      let slot = spelling.isSame(given) ? keys.find(group, given) : 0
      let key = given as string
      if (slot === 0) {
        key = spelling.key(given)
        slot = keys.find(group, key)
      }
      return this.#decide(group, key, slot, cost, clockMs, outcome) ? outcome : undefined
    }
  }

  apply(ops: readonly Op[], call: Call): void {
    try {
      call.resolve(
        ops.map((op) => this.#apply(op)),
        0,
      )
    } catch (error) {
      call.reject(error)
    }
  }

  stats(): { readonly keys: number; readonly evicted: number } {
    return { keys: this.#keys.size, evicted: this.#keys.evicted }
  }

  close(): void {}

  #apply(op: Op): Outcome {
    const clockMs = this.#now()
    const outcome = newOutcome()
    return this.#decideAlone(op, clockMs, outcome) ? outcome : this.#ops.apply(op, clockMs)
  }

  #decideAlone(op: Op, clockMs: number, outcome: OutcomeInMaking): boolean {
    this.#keys.sweep(clockMs)
    if (op.type !== 'consume' || op.count !== 1 || op.leaseMs > 0 || op.parts.length > 1) return false
    const { key, set } = op.parts[0]!
    const group = this.#keys.groupOf(set)
    return this.#decide(group, key, this.#keys.find(group, key), op.cost, clockMs, outcome)
  }

  /**
   * Decides one request against limits that share one log, in one piece.
   *
   * Returns false, before anything is charged, if the general driver has to decide.
   */
  #decide(
    group: Group,
    key: string,
    slot: number,
    cost: number,
    clockMs: number,
    outcome: OutcomeInMaking,
  ): boolean {
    const keys = this.#keys
    const { set, alone } = group
    if (alone === undefined || (set.isOverridable && keys.overrides.has({ key, set }))) return false
    const { kind, params } = alone
    const logs = group.logs[0]!
    let number = slot === 0 ? 0 : keys.useSlot(slot, group)
    let state = logs.at(number)
    const newest = kind.newest(state)
    if (newest > clockMs + MAX_AHEAD_MS || keys.isHeavy) return false
    const nowMs = newest > clockMs ? newest : clockMs

    const used = this.#used
    const { limits } = params
    if (slot === 0) {
      for (let i = 0; i < limits.length; i++) if (cost > limits[i]!) return false
      if (!keys.makeRoom(1, nowMs)) return false
      number = logs.create()
      state = logs.at(number)
    }
    const isAdmitted =
      kind.admit === undefined
        ? admit(alone, state, nowMs, cost, used)
        : kind.admit(state, params, nowMs, cost, used)
    if (slot === 0 && isAdmitted !== true) logs.delete(number)
    if (isAdmitted === undefined) return false
    if (slot === 0) {
      keys.add(group, key, [number], nowMs)
      state = logs.at(number)
    }

    outcome.atMs = nowMs
    outcome.admitted = isAdmitted ? 1 : 0
    const numbers = outcome.limits
    // It serves all limits, in their order.
    for (let i = 0; i < limits.length; i++) {
      const isFull = !isAdmitted && used[i]! + cost > limits[i]!
      setUsed(numbers, i, unboxed(used[i]!))
      setWait(numbers, i, isFull ? unboxed(kind.retryAfter(state, params, i, nowMs, cost)) : 0)
      setReset(numbers, i, unboxed(kind.resetAfter(state, params, i, nowMs)))
    }
    return true
  }
}

/** Charges a log if all its limits have room. */
function admit({ kind, params }: Log, state: unknown, nowMs: number, cost: number, used: number[]): boolean {
  const { limits } = params
  kind.check(state, params, nowMs, used)
  for (let i = 0; i < limits.length; i++) if (used[i]! + cost > limits[i]!) return false
  kind.commit(state, params, nowMs, { units: cost, leaseMs: 0, entry: '' })
  return true
}

/** Returns the same number. V8 allocates an object for a small integer that comes from floating-point arithmetic. */
function unboxed(number: number): number {
  const integer = number | 0
  return integer === number ? integer : number
}

function newOutcome(): OutcomeInMaking {
  return { source: 'store', atMs: 0, admitted: 0, limits: [0, 0, 0], waitMs: 0 }
}
