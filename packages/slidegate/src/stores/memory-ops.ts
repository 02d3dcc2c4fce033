import { StoreUnavailableError, show } from '../errors.ts'
import {
  answer,
  answerAgain,
  charge,
  check,
  commit,
  costsIn,
  findRepeat,
  hold,
  type Loaded,
  type LoadedLog,
  list,
  refund,
  restamp,
  settleInstant,
  stateOf,
} from './driver.ts'
import type { KeyTable } from './key-table.ts'
import type {
  ChargeOp,
  ConsumeOp,
  ConsumeOutcome,
  HoldOp,
  HoldOutcome,
  ListOp,
  ListOutcome,
  Op,
  Outcome,
  Part,
  PeekOp,
  RefundOp,
  RefundOutcome,
  ResetOp,
} from './store.ts'

export type OnFull = 'throw' | 'deny' | 'allow'

/** Any op on any logs of a table, by the general driver. */
export class MemoryOps {
  readonly #keys: KeyTable
  readonly #onFull: OnFull
  /** By how many there are, the logs of an op: an op is over before the next begins, and fills them anew. */
  readonly #loaded: LoadedLog[][] = []

  constructor(keys: KeyTable, onFull: OnFull) {
    this.#keys = keys
    this.#onFull = onFull
  }

  apply(op: Op, clockMs: number): Outcome {
    switch (op.type) {
      case 'consume':
        return this.#consume(op, clockMs)
      case 'peek':
        return this.#peek(op, clockMs)
      case 'charge':
        return this.#charge(op, clockMs)
      case 'refund':
        return this.#refund(op, clockMs)
      case 'extend':
      case 'release':
        return this.#hold(op, clockMs)
      case 'list':
        return this.#list(op, clockMs)
      case 'reset':
        return this.#reset(op)
    }
  }

  #consume(op: ConsumeOp, clockMs: number): ConsumeOutcome {
    const { parts } = op
    const loaded = this.#load(parts)
    const nowMs = settleInstant(loaded, clockMs)
    restamp(loaded, nowMs)
    const firstAtMs = findRepeat(loaded, nowMs, op)
    const admitted = check(loaded, nowMs, op)
    if (firstAtMs !== undefined) return repeated(loaded, nowMs, firstAtMs, op)
    if (admitted > 0) {
      if (!this.#makeRoom(parts, loaded, nowMs)) return this.#whenFull(loaded, nowMs, op)
      commit(loaded, nowMs, op, admitted)
      this.#keep(parts, loaded, nowMs)
    }
    return decided(loaded, nowMs, admitted, op)
  }

  #peek(op: PeekOp, clockMs: number): ConsumeOutcome {
    return this.#look(op.parts, clockMs, (loaded, nowMs) => {
      const firstAtMs = findRepeat(loaded, nowMs, op)
      const admitted = check(loaded, nowMs, op)
      if (firstAtMs !== undefined) return repeated(loaded, nowMs, firstAtMs, op)
      return decided(loaded, nowMs, admitted, op)
    })
  }

  #list({ parts }: ListOp, clockMs: number): ListOutcome {
    return this.#look(parts, clockMs, (loaded, nowMs) => ({ lists: list(loaded, nowMs) }))
  }

  /** Writes nothing: what the clock was set back for is restamped in a copy. */
  #look<T>(parts: readonly Part[], clockMs: number, view: (loaded: Loaded, nowMs: number) => T): T {
    const loaded = this.#load(parts)
    const nowMs = settleInstant(loaded, clockMs)
    const copies = loaded.filter((held) => held.log.kind.newest(stateOf(held)) > nowMs)
    for (const held of copies) held.number = held.logs.copy(held.number)
    restamp(loaded, nowMs)
    const seen = view(loaded, nowMs)
    for (const { logs, number } of copies) logs.delete(number)
    return seen
  }

  #charge(op: ChargeOp, clockMs: number): undefined {
    const { parts } = op
    const loaded = this.#load(parts)
    const nowMs = settleInstant(loaded, clockMs)
    restamp(loaded, nowMs)
    if (!this.#makeRoom(parts, loaded, nowMs)) {
      if (this.#onFull === 'allow') return
      throw full(parts)
    }
    charge(loaded, nowMs, op)
    this.#keep(parts, loaded, nowMs)
  }

  #refund(op: RefundOp, clockMs: number): RefundOutcome {
    const loaded = this.#load(op.parts)
    return { returned: refund(loaded, settleInstant(loaded, clockMs), op) }
  }

  #hold(op: HoldOp, clockMs: number): HoldOutcome {
    const loaded = this.#load(op.parts)
    const nowMs = settleInstant(loaded, clockMs)
    // Of a key that is not known, nothing is held.
    if (loaded.some(({ slot }) => slot === 0)) {
      return { held: loaded.every(({ log }) => log.shadow || log.kind.entries?.are !== 'holder') }
    }
    restamp(loaded, nowMs)
    return { held: hold(loaded, nowMs, op) }
  }

  #reset({ parts }: ResetOp): undefined {
    for (const { set, key } of parts) {
      const slot = this.#keys.use(this.#keys.groupOf(set), key)
      if (slot !== 0) this.#keys.clear(slot)
    }
  }

  /** Every key held is at its limit, so that none may be forgotten for a new one. */
  #whenFull(loaded: Loaded, nowMs: number, op: ConsumeOp): ConsumeOutcome {
    if (this.#onFull === 'throw') throw full(op.parts)
    const limits = answer(loaded, nowMs, op.count)
    return this.#onFull === 'allow'
      ? { source: 'failOpen', atMs: nowMs, admitted: op.count, limits, waitMs: 0 }
      : {
          source: 'failClosed',
          atMs: nowMs,
          admitted: 0,
          limits,
          waitMs: Math.max(1, this.#keys.opensAtMs - nowMs),
        }
  }

  /** The logs of all parts. */
  #load(parts: readonly Part[]): Loaded {
    const loaded = this.#logsOf(parts)
    let index = 0
    let first = 0
    for (let p = 0; p < parts.length; p++) {
      const { set, key } = parts[p]!
      const group = this.#keys.groupOf(set)
      const slot = this.#keys.use(group, key)
      for (let i = 0; i < set.logs.length; i++) {
        const held = loaded[index++]!
        held.log = set.logs[i]!
        held.logs = group.logs[i]!
        held.number = slot === 0 ? 0 : this.#keys.logOf(slot, i)
        held.slot = slot
        held.first = first
        held.charged = 0
      }
      first += set.limits.length
    }
    return loaded
  }

  #logsOf(parts: readonly Part[]): LoadedLog[] {
    let count = 0
    for (let p = 0; p < parts.length; p++) count += parts[p]!.set.logs.length
    let loaded = this.#loaded[count]
    if (loaded === undefined) {
      const { set } = parts[0]!
      const logs = this.#keys.groupOf(set).logs[0]!
      loaded = Array.from({ length: count }, () => ({
        log: set.logs[0]!,
        logs,
        number: 0,
        slot: 0,
        first: 0,
        used: [],
        cost: 0,
        charged: 0,
      }))
      this.#loaded[count] = loaded
    }
    return loaded
  }

  /** Makes room, and logs, for the parts that are not in the table yet. */
  #makeRoom(parts: readonly Part[], loaded: Loaded, nowMs: number): boolean {
    let unknown = 0
    let index = 0
    for (const { set } of parts) {
      if (loaded[index]!.slot === 0) unknown++
      index += set.logs.length
    }
    if (unknown === 0) return true
    const inUse = loaded.map(({ slot }) => slot)
    if (!this.#keys.makeRoom(unknown, nowMs, inUse)) return false
    for (const held of loaded) if (held.slot === 0) held.number = held.logs.create()
    return true
  }

  /** Puts those parts into the table. */
  #keep(parts: readonly Part[], loaded: Loaded, nowMs: number): void {
    let index = 0
    for (let p = 0; p < parts.length; p++) {
      const { set, key } = parts[p]!
      const after = index + set.logs.length
      if (loaded[index]!.slot === 0) {
        const numbers = loaded.slice(index, after).map(({ number }) => number)
        this.#keys.add(this.#keys.groupOf(set), key, numbers, nowMs)
      }
      index = after
    }
  }
}

function decided(loaded: Loaded, nowMs: number, admitted: number, op: ConsumeOp | PeekOp): ConsumeOutcome {
  const limits = answer(loaded, nowMs, op.count)
  return withCosts(loaded, op, { source: 'store', atMs: nowMs, admitted, limits, waitMs: 0 })
}

function repeated(loaded: Loaded, nowMs: number, atMs: number, op: ConsumeOp | PeekOp): ConsumeOutcome {
  const limits = answerAgain(loaded, nowMs, atMs)
  return withCosts(loaded, op, { source: 'store', atMs, admitted: 1, isRepeat: true, limits, waitMs: 0 })
}

function withCosts(loaded: Loaded, op: ConsumeOp | PeekOp, outcome: ConsumeOutcome): ConsumeOutcome {
  const costs = costsIn(loaded, op)
  return costs === undefined ? outcome : { ...outcome, costs }
}

function full(parts: readonly Part[]): StoreUnavailableError {
  return new StoreUnavailableError(
    'full',
    `the memory store holds as many keys as it may, all at their limits: no room for ${show(parts[0]?.key)}`,
  )
}
