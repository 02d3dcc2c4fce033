import { StoreUnavailableError, show } from '../../errors.ts'
import type { Entry } from '../../limits/limit.ts'
import { setInForce } from '../../limits/override.ts'
import {
  banOf,
  type ChargeOp,
  type ConsumeOp,
  type ConsumeOutcome,
  debitsOf,
  type ExplainOp,
  type ExplainOutcome,
  type HoldOp,
  type HoldOutcome,
  type ListOp,
  type ListOutcome,
  type Op,
  type Outcome,
  type OverrideOp,
  type OverrideOutcome,
  type Part,
  type PeekOp,
  type RefundOp,
  type RefundOutcome,
  type RequestOp,
  type ResetOp,
  type SettleOp,
  type SettleOutcome,
} from '../store.ts'
import { banDenied, bansOf, chargesOf, freesOf, settle } from './beyond.ts'
import {
  answer,
  answerAgain,
  charge,
  check,
  commit,
  costsIn,
  findRepeat,
  hold,
  list,
  refund,
  restamp,
  settleInstant,
} from './driver.ts'
import type { KeyTable } from './key-table.ts'
import { type Loaded, type LoadedLog, stateOf } from './loaded.ts'

/** The answer to a new key for which there is no room. */
export type OnFull = 'throw' | 'deny' | 'allow'

/** Overrides that are checked before one is rejected: ended ones make room. */
const MOST_SWEPT = 1024

/** Any op on any logs of a table, by the general driver. */
export class MemoryOps {
  readonly #keys: KeyTable
  readonly #onFull: OnFull
  /** By how many there are, the logs of an op: an op is over before the next begins, and fills them anew. */
  readonly #loaded: LoadedLog[][] = []
  readonly #maxOverrides: number
  /** Of the op's parts, while it lasts. */
  #inForce: Overrides

  constructor(keys: KeyTable, onFull: OnFull, maxOverrides: number = Number.POSITIVE_INFINITY) {
    this.#keys = keys
    this.#onFull = onFull
    this.#maxOverrides = maxOverrides
  }

  apply(op: Op, clockMs: number): Outcome {
    const overrides = this.#keys.overrides.inForce(op.parts, clockMs)
    this.#inForce = overrides
    const outcome = this.#apply(op, clockMs)
    this.#inForce = undefined
    return overrides !== undefined && outcome !== undefined && 'admitted' in outcome
      ? { ...outcome, overrides }
      : outcome
  }

  #apply(op: Op, clockMs: number): Outcome {
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
      case 'settle':
        return this.#settle(op, clockMs)
      case 'override':
        return this.#override(op, clockMs)
      case 'overrides':
        return this.#keys.overrides.page(op, clockMs)
      case 'reset':
        return this.#reset(op)
      case 'explain':
        return this.#explain(op, clockMs)
    }
  }

  #consume(op: ConsumeOp, clockMs: number): ConsumeOutcome {
    const { parts } = op
    const loaded = this.#load(parts)
    const nowMs = settleInstant(loaded, clockMs)
    restamp(loaded, nowMs)
    const banned = denialByBan(loaded, nowMs, op, this.#inForce)
    if (banned !== undefined) return banned
    const first = findRepeat(loaded, nowMs, op)
    const admitted = check(loaded, nowMs, op)
    if (first !== undefined) return repeated(loaded, nowMs, first, op)
    // Those that were denied are counted if that leads to bans.
    const isRemembered = admitted < op.count && loaded.some(remembers)
    if (admitted === 0 && !isRemembered) return decided(loaded, nowMs, admitted, op)
    if (!this.#makeRoom(parts, loaded, nowMs)) {
      return admitted > 0 ? this.#whenFull(loaded, nowMs, op) : decided(loaded, nowMs, admitted, op)
    }
    if (admitted > 0) commit(loaded, nowMs, op, admitted)
    const outcome = decided(loaded, nowMs, admitted, op)
    const blockedMs = isRemembered ? banDenied(loaded, nowMs, op, op.count - admitted) : 0
    this.#keep(parts, loaded, nowMs)
    return blockedMs > 0 ? { ...outcome, ban: { ms: blockedMs, parts: [] } } : outcome
  }

  #peek(op: PeekOp, clockMs: number): ConsumeOutcome {
    return this.#look(op.parts, clockMs, (loaded) => {
      const nowMs = settleInstant(loaded, clockMs)
      restamp(loaded, nowMs)
      const banned = denialByBan(loaded, nowMs, op, this.#inForce)
      if (banned !== undefined) return banned
      const first = findRepeat(loaded, nowMs, op)
      const admitted = check(loaded, nowMs, op)
      if (first !== undefined) return repeated(loaded, nowMs, first, op)
      return decided(loaded, nowMs, admitted, op)
    })
  }

  /** Writes nothing: what may have to be restamped is a copy. */
  #look<T>(parts: readonly Part[], clockMs: number, view: (loaded: Loaded) => T): T {
    const loaded = this.#load(parts)
    const copies = loaded.filter((held) => held.log.kind.newest(stateOf(held)) > clockMs)
    for (const held of copies) held.number = held.logs.copy(held.number)
    const seen = view(loaded)
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
      throw full(KEYS, parts)
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
    return { held: hold(loaded, settleInstant(loaded, clockMs), op) }
  }

  #list({ parts }: ListOp, clockMs: number): ListOutcome {
    return this.#look(parts, clockMs, (loaded) => {
      const nowMs = settleInstant(loaded, clockMs)
      restamp(loaded, nowMs)
      return { lists: list(loaded, nowMs) }
    })
  }

  #settle(op: SettleOp, clockMs: number): SettleOutcome {
    const loaded = this.#load(op.parts)
    const nowMs = settleInstant(loaded, clockMs)
    restamp(loaded, nowMs)
    if (loaded.some(({ slot }) => slot === 0)) return NOT_SETTLED
    const returned = settle(loaded, nowMs, op)
    return returned === undefined ? NOT_SETTLED : { settled: true, returned }
  }

  #override(op: OverrideOp, clockMs: number): OverrideOutcome {
    const { parts, rule = '', blockMs = 0 } = op
    if (rule !== '' || blockMs > 0) this.#makeRoomForOverrides(parts, clockMs)
    parts.forEach(({ set }, i) => {
      if (set.isOverridable) this.#keys.overrides.change(op, i, clockMs)
    })
    if (op.blockMs === 0 && op.rule === undefined) {
      for (const held of this.#load(parts)) if (held.number !== 0) held.log.kind.ban?.unblock(stateOf(held))
    }
    return { existed: this.#inForce !== undefined }
  }

  #makeRoomForOverrides(parts: readonly Part[], clockMs: number): void {
    const { overrides } = this.#keys
    for (const part of parts) overrides.dropEnded(part, clockMs)
    const added = parts.filter((part) => part.set.isOverridable && !overrides.has(part)).length
    if (overrides.size + added > this.#maxOverrides) overrides.sweep(clockMs, MOST_SWEPT)
    if (added > 0 && overrides.size + added > this.#maxOverrides) {
      throw full(`${overrides.size} overrides, as many as it may hold`, parts)
    }
    if ((added > 0 || this.#keys.isHeavy) && !this.#keys.makeRoom(added, clockMs)) {
      throw full('overrides, and of keys at their limits', parts)
    }
  }

  #reset({ parts }: ResetOp): undefined {
    const groups = parts.map(({ set }) => this.#keys.groupOf(set))
    parts.forEach(({ key }, p) => {
      const slot = this.#keys.use(groups[p]!, key)
      if (slot !== 0) this.#keys.clear(slot)
    })
  }

  #explain(op: ExplainOp, clockMs: number): ExplainOutcome {
    return this.#look(op.parts, clockMs, (loaded) => {
      const nowMs = settleInstant(loaded, clockMs)
      restamp(loaded, nowMs)
      const outcome =
        denialByBan(loaded, nowMs, op, this.#inForce) ?? decided(loaded, nowMs, check(loaded, nowMs, op), op)
      return {
        ...outcome,
        frees: freesOf(loaded, nowMs),
        bans: bansOf(loaded, op.parts.length, nowMs),
        ...(op.charges !== undefined && { charges: chargesOf(loaded, nowMs, op.charges) }),
      }
    })
  }

  /** Every key held is at its limit, so that none may be forgotten for a new one. */
  #whenFull(loaded: Loaded, nowMs: number, op: ConsumeOp): ConsumeOutcome {
    if (this.#onFull === 'throw') throw full(KEYS, op.parts)
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
    const loaded = this.#blankLogs(parts)
    let index = 0
    let first = 0
    for (let p = 0; p < parts.length; p++) {
      const { set, key } = parts[p]!
      // What only has overrides.
      if (set.logs.length === 0 && set.isOverridable) continue
      const group = this.#keys.groupOf(set)
      const slot = this.#keys.use(group, key)
      const { logs } = setInForce(set, this.#inForce?.[p]?.rule ?? '')
      for (let i = 0; i < logs.length; i++) {
        const held = loaded[index++]!
        held.log = logs[i]!
        held.logs = group.logs[i]!
        held.number = slot === 0 ? 0 : this.#keys.logOf(slot, i)
        held.slot = slot
        held.part = p
        held.first = first
        held.charged = 0
      }
      first += set.limits.length
    }
    return loaded
  }

  #blankLogs(parts: readonly Part[]): LoadedLog[] {
    let count = 0
    for (let p = 0; p < parts.length; p++) count += parts[p]!.set.logs.length
    let loaded = this.#loaded[count]
    if (loaded === undefined) {
      const set = parts.find((part) => part.set.logs.length > 0)?.set
      if (set === undefined) return []
      const logs = this.#keys.groupOf(set).logs[0]!
      loaded = Array.from({ length: count }, () => ({
        log: set.logs[0]!,
        logs,
        number: 0,
        slot: 0,
        part: 0,
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
    if (unknown === 0 && !this.#keys.isHeavy) return true
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

/** Whether it keeps something of those that were denied. */
function remembers({ log }: LoadedLog): boolean {
  return log.role === 'ban'
}

/** What is in force per part, where anything is. */
type Overrides = ConsumeOutcome['overrides']

const NOT_SETTLED: SettleOutcome = { settled: false, returned: [] }

/** The outcome if a key is blocked. It tells how its limits are. */
function denialByBan(
  loaded: Loaded,
  nowMs: number,
  op: RequestOp,
  overrides: Overrides,
): ConsumeOutcome | undefined {
  if (overrides === undefined && loaded.every(({ log }) => log.kind.ban === undefined)) return undefined
  const bans = bansOf(loaded, op.parts.length, nowMs).map((ban) => ban?.blockedMs ?? 0)
  const ban = banOf(bans, overrides)
  if (ban === undefined) return undefined
  check(loaded, nowMs, op)
  return { ...decided(loaded, nowMs, 0, op), ban }
}

function decided(loaded: Loaded, nowMs: number, admitted: number, op: RequestOp): ConsumeOutcome {
  const limits = answer(loaded, nowMs, op.count)
  return withDebits(loaded, op, { source: 'store', atMs: nowMs, admitted, limits, waitMs: 0 })
}

function repeated(loaded: Loaded, nowMs: number, first: Entry, op: RequestOp): ConsumeOutcome {
  const { atMs, units } = first
  const limits = answerAgain(loaded, nowMs, atMs)
  return withDebits(loaded, op, { source: 'store', atMs, admitted: 1, limits, waitMs: 0, repeats: units })
}

function withDebits(loaded: Loaded, op: RequestOp, outcome: ConsumeOutcome): ConsumeOutcome {
  const costs = costsIn(loaded, op)
  return costs === undefined ? outcome : { ...outcome, debits: debitsOf(op.parts, outcome, costs) }
}

const KEYS = 'keys at their limits'

function full(what: string, parts: readonly Part[]): StoreUnavailableError {
  return new StoreUnavailableError(
    'full',
    `the memory store is full of ${what}: no room for ${show(parts[0]?.key)}`,
  )
}
