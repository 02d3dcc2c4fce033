// Applies any op in memory: loads the logs of its keys and makes room for new ones.

import { StoreUnavailableError, show } from '../../errors.ts'
import { setInForce } from '../../limits/override.ts'
import { restamp, settleInstant } from '../../ops/driver.ts'
import { type Loaded, type LoadedLog, type Memory, type OnFull, stateOf } from '../../ops/op.ts'
import type { OverrideChange, Overrides, OverridesOutcome, Part } from '../../ops/request.ts'
import { kindOf, type Op, type Outcome } from '../../ops/table.ts'
import type { KeyTable } from './key-table.ts'

export type { OnFull }

/** Maximum overrides checked for ended ones before a new one is rejected. */
const MOST_SWEPT = 1024

const NO_PARTS: readonly Part[] = []
const NO_LOGS: Loaded = []

/** Applies any op to the logs of a table, through the general driver. */
export class MemoryOps implements Memory {
  readonly onFull: OnFull
  readonly #keys: KeyTable
  /** Reused objects for an op's logs, by their number. Ops don't overlap. */
  readonly #blank: LoadedLog[][] = []
  readonly #maxOverrides: number
  // The current op's state.
  #parts = NO_PARTS
  loaded: Loaded = NO_LOGS
  clockMs = 0
  nowMs = 0
  overrides: Overrides

  constructor(keys: KeyTable, onFull: OnFull, maxOverrides: number = Number.POSITIVE_INFINITY) {
    this.#keys = keys
    this.onFull = onFull
    this.#maxOverrides = maxOverrides
  }

  get opensAtMs(): number {
    return this.#keys.opensAtMs
  }

  apply(op: Op, clockMs: number): Outcome {
    const kind = kindOf(op)
    this.#parts = op.parts
    this.clockMs = clockMs
    this.overrides = this.#keys.overrides.inForce(op.parts, clockMs)
    this.loaded = kind.keys === undefined ? this.load(op.parts) : NO_LOGS
    const copies = kind.effect === 'look' ? this.#copyAhead() : NO_LOGS
    this.nowMs = settleInstant(this.loaded, clockMs)
    if (!kind.leavesStamps) restamp(this.loaded, this.nowMs)
    const outcome = kind.apply(op, this)
    for (const { logs, number } of copies) logs.delete(number)
    return this.overrides !== undefined && outcome !== undefined && 'admitted' in outcome
      ? { ...outcome, overrides: this.overrides }
      : outcome
  }

  /** Replaces logs ahead of the clock with copies, which a read-only op can restamp. */
  #copyAhead(): Loaded {
    const ahead = this.loaded.filter((held) => held.log.kind.newest(stateOf(held)) > this.clockMs)
    for (const held of ahead) held.number = held.logs.copy(held.number)
    return ahead
  }

  full(): Error {
    return full('keys at their limits', this.#parts)
  }

  forget(): void {
    for (const slot of new Set(this.loaded.map((held) => held.slot))) if (slot !== 0) this.#keys.clear(slot)
  }

  changeOverrides(parts: readonly Part[], change: OverrideChange): void {
    const { rule = '', blockMs = 0, given } = change
    const { overrides } = this.#keys
    if (rule !== '' || blockMs > 0) this.#makeRoomForOverrides(parts, this.clockMs)
    parts.forEach((part, i) => {
      if (part.set.isOverridable) overrides.change(part, change, given?.[i], this.clockMs)
    })
  }

  listOverrides(limiter: string, after: string): OverridesOutcome {
    return this.#keys.overrides.page(limiter, after, this.clockMs)
  }

  #makeRoomForOverrides(parts: readonly Part[], clockMs: number): void {
    const { overrides } = this.#keys
    for (const part of parts) overrides.dropEnded(part, clockMs)
    const added = parts.filter((part) => part.set.isOverridable && !overrides.has(part)).length
    if (overrides.size + added > this.#maxOverrides) overrides.sweep(clockMs, MOST_SWEPT)
    if (added > 0 && overrides.size + added > this.#maxOverrides) {
      throw full(`${overrides.size} overrides, the maximum`, parts)
    }
    if ((added > 0 || this.#keys.isHeavy) && !this.#keys.makeRoom(added, clockMs)) {
      throw full('overrides and keys at their limits', parts)
    }
  }

  /** The logs of all parts. */
  load(parts: readonly Part[]): Loaded {
    const loaded = this.#blankLogs(parts)
    let index = 0
    let first = 0
    for (let p = 0; p < parts.length; p++) {
      const { set, key } = parts[p]!
      // A part that only has overrides.
      if (set.logs.length === 0 && set.isOverridable) continue
      const group = this.#keys.groupOf(set)
      const slot = this.#keys.use(group, key)
      const { logs } = setInForce(set, this.overrides?.[p]?.rule ?? '')
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
    let loaded = this.#blank[count]
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
      this.#blank[count] = loaded
    }
    return loaded
  }

  /** Makes room and logs for parts that aren't in the table yet. */
  makeRoom(): boolean {
    const { loaded, nowMs } = this
    let unknown = 0
    let index = 0
    for (const { set } of this.#parts) {
      if (loaded[index]!.slot === 0) unknown++
      index += set.logs.length
    }
    if (unknown === 0 && !this.#keys.isHeavy) return true
    const inUse = loaded.map(({ slot }) => slot)
    if (!this.#keys.makeRoom(unknown, nowMs, inUse)) return false
    for (const held of loaded) if (held.slot === 0) held.number = held.logs.create()
    return true
  }

  /** Adds those parts to the table. */
  keep(): void {
    const { loaded, nowMs } = this
    const parts = this.#parts
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

function full(what: string, parts: readonly Part[]): StoreUnavailableError {
  return new StoreUnavailableError(
    'full',
    `the memory store is full of ${what}: no room for ${show(parts[0]?.key)}`,
  )
}
