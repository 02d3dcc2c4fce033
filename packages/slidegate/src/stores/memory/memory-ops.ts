// Applies any op in memory: loads the logs for its keys, and makes room for new keys.

import { StoreUnavailableError, show } from '../../errors.ts'
import { restamp, settleInstant } from '../../ops/driver.ts'
import { type Loaded, LoadedLog, type Memory, type OnFull, stateOf } from '../../ops/op.ts'
import {
  type OverrideChange,
  type Overrides,
  type OverridesOutcome,
  type Part,
  partsInForce,
} from '../../ops/request.ts'
import { kindOf, type Op, type Outcome } from '../../ops/table.ts'
import type { KeyTable } from './key-table.ts'

/** Maximum overrides checked before a new one is rejected. Those that have ended are dropped. */
const MOST_SWEPT = 1024

const NO_LOGS: Loaded = []

export class MemoryOps implements Memory {
  readonly onFull: OnFull
  readonly #keys: KeyTable
  /** Objects for an op's logs, by the number of logs. They can be reused, because ops don't overlap. */
  readonly #blank: LoadedLog[][] = []
  readonly #maxOverrides: number
  // The current op's state.
  #parts: readonly Part[] = []
  loaded: Loaded = NO_LOGS
  clockMs = 0
  nowMs = 0
  overrides: Overrides
  /** How many new keys the current op adds. */
  #added = 0

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
    this.#added = 0
    const outcome = kind.apply(op, this)
    if (this.#added > 0) this.#add()
    for (const { logs, number } of copies) logs.delete(number)
    return this.overrides !== undefined && outcome !== undefined && 'admitted' in outcome
      ? { ...outcome, overrides: this.overrides }
      : outcome
  }

  /** Copies logs whose newest time is ahead of the clock. A read-only op can then change the copies instead. */
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
    if (rule !== '' || blockMs > 0) this.#makeRoomForOverrides(parts)
    parts.forEach((part, i) => {
      if (part.set.isOverridable) overrides.change(part, change, given?.[i], this.clockMs)
    })
  }

  listOverrides(limiter: string, after: string): OverridesOutcome {
    return this.#keys.overrides.page(limiter, after, this.clockMs)
  }

  #makeRoomForOverrides(parts: readonly Part[]): void {
    const { clockMs } = this
    const { overrides } = this.#keys
    const added = parts.filter((part) => part.set.isOverridable && !overrides.has(part)).length
    if (overrides.size + added > this.#maxOverrides) overrides.sweep(clockMs, MOST_SWEPT)
    if (added > 0 && overrides.size + added > this.#maxOverrides) {
      throw full(`overrides (maximum: ${this.#maxOverrides})`, parts)
    }
    if ((added > 0 || this.#keys.isHeavy) && !this.#keys.makeRoom(added, clockMs)) {
      throw full('overrides and keys at their limits', parts)
    }
  }

  load(parts: readonly Part[]): Loaded {
    let count = 0
    for (let p = 0; p < parts.length; p++) count += parts[p]!.set.logs.length
    this.#blank[count] ??= Array.from({ length: count }, () => new LoadedLog())
    const loaded = this.#blank[count]!
    const inForce = partsInForce(parts, this.overrides)
    let index = 0
    let first = 0
    for (let p = 0; p < parts.length; p++) {
      const { set, key } = parts[p]!
      // This part can have overrides, but has no logs.
      if (set.logs.length === 0 && set.isOverridable) continue
      const group = this.#keys.groupOf(set)
      const slot = this.#keys.find(group, key)
      if (slot !== 0) this.#keys.useSlot(slot, group)
      const { logs } = inForce[p]!.set
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

  makeRoom(): boolean {
    const { loaded, nowMs } = this
    let added = 0
    let index = 0
    for (const { set } of this.#parts) {
      if (loaded[index]!.slot === 0) added++
      index += set.logs.length
    }
    if (added === 0 && !this.#keys.isHeavy) return true
    const inUse = loaded.map(({ slot }) => slot)
    if (!this.#keys.makeRoom(added, nowMs, inUse)) return false
    for (const held of loaded) if (held.slot === 0) held.number = held.logs.create()
    this.#added = added
    return true
  }

  #add(): void {
    for (const [part, { set, key }] of this.#parts.entries()) {
      const added = this.loaded.filter((held) => held.part === part && held.slot === 0)
      const numbers = added.map(({ number }) => number)
      if (numbers.length > 0) this.#keys.add(this.#keys.groupOf(set), key, numbers, this.nowMs)
    }
  }
}

function full(what: string, parts: readonly Part[]): StoreUnavailableError {
  return new StoreUnavailableError(
    'full',
    `the memory store is full of ${what}: no room for ${show(parts[0]?.key)}`,
  )
}
