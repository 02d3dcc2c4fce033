import { type Clock, monotonicClock } from '../clock.ts'
import { checkOptions, SlidegateError, StoreUnavailableError, show } from '../errors.ts'
import { answer, check, commit, type Loaded, type LoadedLog, restamp, settleInstant } from './driver.ts'
import { readClock } from './instant.ts'
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
  if (clock !== undefined && typeof clock !== 'function') {
    throw new SlidegateError('invalid_option', `clock is ${show(clock)}; it must be a function`, clock)
  }
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
    applySync: (ops) => ops.map(apply),
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
  const { loaded, unknown } = load(keys, parts)
  const nowMs = settleInstant(loaded, clockMs)
  restamp(loaded, nowMs, true)
  const admitted = check(loaded, nowMs, cost, count)
  if (admitted > 0) {
    if (!keys.makeRoom(unknown.length, nowMs)) return whenFull(keys, loaded, nowMs, op, onFull)
    commit(loaded, nowMs, cost, admitted, leaseMs)
    for (const { part, states } of unknown) keys.add(part, states, nowMs)
  }
  return { source: 'store', atMs: nowMs, admitted, limits: answer(loaded, nowMs, cost, count), waitMs: 0 }
}

function peek(keys: KeyTable, { parts, cost, count }: PeekOp, clockMs: number): ConsumeOutcome {
  const { loaded } = load(keys, parts)
  const nowMs = settleInstant(loaded, clockMs)
  restamp(loaded, nowMs, false)
  const admitted = check(loaded, nowMs, cost, count)
  return { source: 'store', atMs: nowMs, admitted, limits: answer(loaded, nowMs, cost, count), waitMs: 0 }
}

function charge(keys: KeyTable, { parts, units }: ChargeOp, clockMs: number, onFull: OnFull): undefined {
  const { loaded, unknown } = load(keys, parts)
  const nowMs = settleInstant(loaded, clockMs)
  restamp(loaded, nowMs, true)
  if (!keys.makeRoom(unknown.length, nowMs)) {
    if (onFull === 'allow') return
    throw full(parts)
  }
  for (const { log, state } of loaded) log.kind.commit(state, log.params, nowMs, units, 0)
  for (const { part, states } of unknown) keys.add(part, states, nowMs)
}

function refund(keys: KeyTable, op: RefundOp, clockMs: number): RefundOutcome {
  const { loaded } = load(keys, op.parts)
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
    else
      part.set.logs.forEach((log, i) => {
        entry.states[i] = log.kind.create()
      })
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

/** The logs of all parts, and which parts are not in the table yet. */
function load(
  keys: KeyTable,
  parts: readonly Part[],
): { loaded: Loaded; unknown: { part: Part; states: unknown[] }[] } {
  const loaded: LoadedLog[] = []
  const unknown: { part: Part; states: unknown[] }[] = []
  let first = 0
  for (const part of parts) {
    const { logs, limits } = part.set
    const entry = keys.find(part)
    if (entry !== undefined) keys.touch(entry)
    const states = entry?.states ?? logs.map((log) => log.kind.create())
    if (entry === undefined) unknown.push({ part, states })
    for (let i = 0; i < logs.length; i++) {
      loaded.push({ log: logs[i]!, state: states[i], first, used: [], charged: 0 })
    }
    first += limits.length
  }
  return { loaded, unknown }
}
