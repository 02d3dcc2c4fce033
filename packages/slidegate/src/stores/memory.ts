import { type Clock, monotonicClock } from '../clock.ts'
import { checkOptions, SlidegateError, StoreUnavailableError, show } from '../errors.ts'
import { answer, check, commit, type Loaded, type LoadedLog, restamp, settleInstant } from './driver.ts'
import { checkClock, readClock } from './instant.ts'
import { KeyTable } from './key-table.ts'
import type {
  ChargeOp,
  ConsumeOp,
  ConsumeOutcome,
  Op,
  Outcome,
  Part,
  PeekOp,
  RefundOp,
  RefundOutcome,
  Store,
} from './store.ts'

export type OnFull = 'throw' | 'deny' | 'allow'

export interface MemoryStoreOptions {
  /** Keys held at most, from 1. When full, expired keys go first, then the least recently used one that is not at its limit. Default: 1,000,000. */
  readonly maxKeys?: number
  /**
   * The answer to a new key where all that are held are at their limits: `throw` (the default) a
   * `StoreUnavailableError` of reason `full`, `deny` until the first of them opens, or `allow` uncounted.
   */
  readonly onFull?: OnFull
  /** Epoch milliseconds, for tests and replay. Default: a monotonic clock, anchored to the wall clock once. */
  readonly clock?: Clock
}

export interface MemoryStore extends Store {
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
  checkOptions(options, 'memoryStore')
  const { maxKeys = 1_000_000, onFull = 'throw', clock } = options
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1) {
    throw new SlidegateError(
      'invalid_option',
      `maxKeys is ${show(maxKeys)}; it must be an integer from 1`,
      maxKeys,
    )
  }
  if (onFull !== 'throw' && onFull !== 'deny' && onFull !== 'allow') {
    throw new SlidegateError(
      'invalid_option',
      `onFull is ${show(onFull)}; it must be 'throw', 'deny' or 'allow'`,
      onFull,
    )
  }
  checkClock(clock)
  const keys = new KeyTable(maxKeys, clock === undefined ? 0 : GRACE_MS)
  const now = clock === undefined ? monotonicClock : () => readClock(clock)

  function apply(op: Op): Outcome {
    keys.beginOp()
    const clockMs = now()
    switch (op.type) {
      case 'consume':
        return consume(keys, op, clockMs, onFull)
      case 'peek':
        return peek(keys, op, clockMs)
      case 'charge':
        return charge(keys, op, clockMs, onFull)
      case 'refund':
        return refund(keys, op, clockMs)
      case 'reset':
        return reset(keys, op.parts)
    }
  }

  return {
    applySync: (ops) => (ops.length === 1 ? [apply(ops[0]!)] : ops.map(apply)),
    apply(ops, call) {
      try {
        call.resolve(ops.map(apply), 0)
      } catch (error) {
        call.reject(error)
      }
    },
    stats: () => ({ keys: keys.size, evicted: keys.evicted }),
    close() {},
  }
}

function consume(keys: KeyTable, op: ConsumeOp, clockMs: number, onFull: OnFull): ConsumeOutcome {
  const { parts, cost, count, leaseMs } = op
  const loaded = load(keys, parts)
  const nowMs = settleInstant(loaded, clockMs)
  restamp(loaded, nowMs, true)
  const admitted = check(loaded, nowMs, cost, count)
  if (admitted > 0) {
    if (!keys.makeRoom(unknownIn(loaded), nowMs)) return whenFull(keys, loaded, nowMs, op, onFull)
    commit(loaded, nowMs, cost, admitted, leaseMs)
    keep(keys, parts, loaded, nowMs)
  }
  return { source: 'store', atMs: nowMs, admitted, limits: answer(loaded, nowMs, cost, count), waitMs: 0 }
}

function peek(keys: KeyTable, { parts, cost, count }: PeekOp, clockMs: number): ConsumeOutcome {
  const loaded = load(keys, parts)
  const nowMs = settleInstant(loaded, clockMs)
  restamp(loaded, nowMs, false)
  const admitted = check(loaded, nowMs, cost, count)
  return { source: 'store', atMs: nowMs, admitted, limits: answer(loaded, nowMs, cost, count), waitMs: 0 }
}

function charge(keys: KeyTable, { parts, units }: ChargeOp, clockMs: number, onFull: OnFull): undefined {
  const loaded = load(keys, parts)
  const nowMs = settleInstant(loaded, clockMs)
  restamp(loaded, nowMs, true)
  if (!keys.makeRoom(unknownIn(loaded), nowMs)) {
    if (onFull === 'allow') return
    throw full(parts)
  }
  for (const { log, state } of loaded) log.kind.commit(state, log.params, nowMs, units, 0)
  keep(keys, parts, loaded, nowMs)
}

function refund(keys: KeyTable, op: RefundOp, clockMs: number): RefundOutcome {
  const loaded = load(keys, op.parts)
  const nowMs = settleInstant(loaded, clockMs)
  const returned = loaded.map(({ log, state }, i) =>
    op.charged[i] === true ? log.kind.refund(state, log.params, nowMs, op.atMs, op.units) : 0,
  )
  return { returned }
}

function reset(keys: KeyTable, parts: readonly Part[]): undefined {
  for (const part of parts) {
    const entry = keys.find(part)
    if (entry === undefined) continue
    // Logs of other limits under the same limiter's name and key are not this limiter's to forget.
    if (entry.logs.length === part.set.logs.length) keys.delete(entry)
    else entry.clear()
  }
}

/** Every key held is at its limit, so that none may be forgotten for a new one. */
function whenFull(
  keys: KeyTable,
  loaded: Loaded,
  nowMs: number,
  op: ConsumeOp,
  onFull: OnFull,
): ConsumeOutcome {
  if (onFull === 'throw') throw full(op.parts)
  const limits = answer(loaded, nowMs, op.cost, op.count)
  return onFull === 'allow'
    ? { source: 'failOpen', atMs: nowMs, admitted: op.count, limits, waitMs: 0 }
    : { source: 'failClosed', atMs: nowMs, admitted: 0, limits, waitMs: Math.max(1, keys.opensAtMs - nowMs) }
}

function full(parts: readonly Part[]): StoreUnavailableError {
  return new StoreUnavailableError(
    'full',
    `the memory store holds as many keys as it may, all at their limits: no room for ${show(parts[0]?.key)}`,
  )
}

/** By how many there are, the logs of an op: an op is over before the next begins, and fills them anew. */
const LOADED: LoadedLog[][] = []

/** The logs of all parts. */
function load(keys: KeyTable, parts: readonly Part[]): Loaded {
  const loaded = logsOf(parts)
  let index = 0
  let first = 0
  for (let p = 0; p < parts.length; p++) {
    const part = parts[p]!
    const { logs, limits } = part.set
    const entry = keys.find(part)
    if (entry !== undefined) keys.touch(entry)
    for (let i = 0; i < logs.length; i++) {
      const log = logs[i]!
      const held = loaded[index++]!
      held.log = log
      held.state = entry === undefined ? log.kind.create() : entry.state(i)
      held.isNew = entry === undefined && i === 0
      held.first = first
      held.charged = 0
    }
    first += limits.length
  }
  return loaded
}

function logsOf(parts: readonly Part[]): LoadedLog[] {
  let count = 0
  for (let p = 0; p < parts.length; p++) count += parts[p]!.set.logs.length
  let loaded = LOADED[count]
  if (loaded === undefined) {
    const log = parts[0]!.set.logs[0]!
    loaded = Array.from({ length: count }, () => ({
      log,
      state: undefined,
      isNew: false,
      first: 0,
      used: [],
      charged: 0,
    }))
    LOADED[count] = loaded
  }
  return loaded
}

/** Parts that are not in the table yet. */
function unknownIn(loaded: Loaded): number {
  let unknown = 0
  for (let i = 0; i < loaded.length; i++) if (loaded[i]!.isNew) unknown++
  return unknown
}

/** Puts those parts into the table. */
function keep(keys: KeyTable, parts: readonly Part[], loaded: Loaded, nowMs: number): void {
  let index = 0
  for (let p = 0; p < parts.length; p++) {
    const part = parts[p]!
    const after = index + part.set.logs.length
    if (loaded[index]!.isNew) {
      keys.add(
        part,
        loaded.slice(index, after).map(({ state }) => state),
        nowMs,
      )
    }
    index = after
  }
}
