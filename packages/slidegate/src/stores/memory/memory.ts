// The store in this process: `memoryStore`, and the fast path for the usual op.
//
// If all of a request's limits share one log, the fast path decides the request without an op. Other requests and ops
// go through `MemoryOps`.

import { checkOptions, checkThat } from '../../errors.ts'
import type { Log } from '../../limits/limit-set.ts'
import { MAX_AHEAD_MS } from '../../ops/driver.ts'
import { setReset, setUsed, setWait } from '../../ops/numbers.ts'
import type { OnFull } from '../../ops/op.ts'
import { type Clock, checkClock, monotonicClock, readClock } from '../../runtime/clock.ts'
import type { Op, Outcome, Store } from '../store.ts'
import { type Group, KeyTable } from './key-table.ts'
import { MemoryOps } from './memory-ops.ts'

export type { OnFull }

/** Options of `memoryStore`: its size, and what happens when it is full. */
export interface MemoryStoreOptions {
  /**
   * Maximum number of keys and overrides, at least 1. Default: 1,000,000.
   *
   * When the store is full, it drops expired keys first, then the least recently used key that isn't at its limit. Keys
   * with a ban, or with denials that count toward one, are kept, too. Overrides are kept until they end. The store takes
   * up at most `maxKeys` times 1 KiB, or 256 MiB if that is more.
   */
  readonly maxKeys?: number
  /**
   * The result of a request for a new key if no key can be dropped. Default: `throw`.
   *
   * `throw` throws a `StoreUnavailableError` with the reason `full`. `deny` denies until a stored key is below its limit and
   * can be dropped. `allow` admits without counting. To find a key to drop, a request checks at most 1,024 limits. With bans,
   * a key with a single denial is kept for the ban's `within`, so such keys can fill the store.
   */
  readonly onFull?: OnFull
  /** Maximum number of overrides, at least 1. More are rejected with the reason `full`. Default: `maxKeys`. */
  readonly maxOverrides?: number
  /** Returns epoch milliseconds, for tests and replay. Default: a monotonic clock, set to the wall clock once. */
  readonly clock?: Clock
}

export interface MemoryStore extends Store {
  applySync(ops: readonly Op[]): readonly Outcome[]
  /** The number of keys, and of unexpired keys dropped to make room. */
  stats(): { readonly keys: number; readonly evicted: number }
}

/** How long expired keys are kept with a custom clock, which may be set back. The same as in Redis. */
const GRACE_MS = 600_000

/**
 * Keeps limits in this process. Use it for a single process and for tests.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptions(options, 'memoryStore', { maxKeys: true, onFull: true, maxOverrides: true, clock: true })
  const { maxKeys = 1_000_000, onFull = 'throw', clock, maxOverrides = maxKeys } = options
  for (const [name, most] of Object.entries({ maxKeys, maxOverrides })) {
    checkThat(Number.isSafeInteger(most) && most >= 1, name, most, 'an integer of at least 1')
  }
  checkThat(['throw', 'deny', 'allow'].includes(onFull), 'onFull', onFull, "'throw', 'deny' or 'allow'")
  checkClock(clock)
  const keys = new KeyTable(maxKeys, clock === undefined ? 0 : GRACE_MS)
  const driver = new MemoryOps(keys, onFull, maxOverrides)
  return keyTableStore(keys, clock === undefined ? monotonicClock : () => readClock(clock), driver)
}

function keyTableStore(keys: KeyTable, now: Clock, driver: MemoryOps): MemoryStore {
  /** Units used in each limit's window before the op. */
  const used: number[] = []

  /** Decides one request with the limits of one log. Returns false, without charging, if `MemoryOps` must decide. */
  function decide(
    group: Group,
    key: string,
    slot: number,
    cost: number,
    clockMs: number,
    outcome: ReturnType<typeof newOutcome>,
  ): boolean {
    const { set, alone } = group
    if (alone === undefined || keys.isHeavy || (set.isOverridable && keys.overrides.has({ key, set })))
      return false
    const { kind, params } = alone
    const logs = group.logs[0]!
    const number = slot === 0 ? newLog(keys, group, cost, clockMs) : keys.useSlot(slot, group)
    if (number === 0) return false
    let state = logs.at(number)
    const newest = kind.newest(state)
    if (newest > clockMs + MAX_AHEAD_MS) return false
    const nowMs = newest > clockMs ? newest : clockMs
    const isAdmitted = admit(alone, state, nowMs, cost, used)
    if (isAdmitted === undefined) return false
    if (slot === 0) {
      keys.add(group, key, [number], nowMs)
      state = logs.at(number)
    }

    outcome.atMs = nowMs
    outcome.admitted = isAdmitted ? 1 : 0
    const numbers = outcome.limits
    const { limits } = params
    // The log serves all of the set's limits, in order.
    for (let i = 0; i < limits.length; i++) {
      const isFull = !isAdmitted && used[i]! + cost > limits[i]!
      setUsed(numbers, i, unboxed(used[i]!))
      setWait(numbers, i, isFull ? unboxed(kind.retryAfter(state, params, i, nowMs, cost)) : 0)
      setReset(numbers, i, unboxed(kind.resetAfter(state, params, i, nowMs)))
    }
    return true
  }

  function apply(op: Op): Outcome {
    const clockMs = now()
    keys.sweep(clockMs)
    if (op.type === 'consume' && op.count === 1 && op.leaseMs === 0 && op.parts.length === 1) {
      const { key, set } = op.parts[0]!
      const group = keys.groupOf(set)
      const outcome = newOutcome()
      if (decide(group, key, keys.find(group, key), op.cost, clockMs, outcome)) return outcome
    }
    return driver.apply(op, clockMs)
  }

  return {
    applySync: (ops) => ops.map(apply),

    apply(ops, call) {
      try {
        call.resolve(ops.map(apply), 0)
      } catch (error) {
        call.reject(error)
      }
    },

    fastPath(set) {
      const group = keys.groupOf(set)
      if (group.alone === undefined) return undefined
      const outcome = newOutcome()
      return (given, cost, encoding) => {
        const clockMs = now()
        keys.sweep(clockMs)
        let slot = encoding.isSame(given) ? keys.find(group, given) : 0
        let key = given as string
        if (slot === 0) {
          key = encoding.key(given)
          slot = keys.find(group, key)
        }
        return decide(group, key, slot, cost, clockMs, outcome) ? outcome : undefined
      }
    },

    stats: () => ({ keys: keys.size, evicted: keys.evicted }),
    close() {},
  }
}

/** Creates a log for a new key. Returns 0 if there is no room for the log, or if the cost exceeds a limit. */
function newLog(keys: KeyTable, { logs, set }: Group, cost: number, nowMs: number): number {
  if (set.limits.some(({ limit }) => cost > limit) || !keys.makeRoom(1, nowMs)) return 0
  return logs[0]!.create()
}

/** Charges a log if all its limits have room. Returns `undefined` if `MemoryOps` must decide. */
function admit(
  { kind, params }: Log,
  state: unknown,
  nowMs: number,
  cost: number,
  used: number[],
): boolean | undefined {
  if (kind.admit !== undefined) return kind.admit(state, params, nowMs, cost, used)
  const { limits } = params
  kind.check(state, params, nowMs, used)
  for (let i = 0; i < limits.length; i++) if (used[i]! + cost > limits[i]!) return false
  kind.commit(state, params, nowMs, { units: cost, leaseMs: 0, entry: '' })
  return true
}

/** Returns the same number. Avoids the object that V8 allocates for a small integer from floating-point arithmetic. */
function unboxed(number: number): number {
  const integer = number | 0
  return integer === number ? integer : number
}

function newOutcome() {
  return { source: 'store' as const, atMs: 0, admitted: 0, limits: [0, 0, 0], waitMs: 0 }
}
