// The keys of a memory store and their logs: bounded, with room made by expiry and by use.

import { invalidOption, show } from '../../errors.ts'
import type { Kind, Logs } from '../../limits/limit.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import { Slab } from '../../runtime/slab.ts'
import { BLOCK_SLOTS, Expiry } from './expiry.ts'
import { KeyMap } from './key-map.ts'
import { OverrideRecords } from './override-records.ts'
import { UseOrder } from './use-order.ts'

/** A row has a tick (use-order.ts), then two integers: the first log, and the group, 0 if the slot is free. */
const ROW_DOUBLES = 2
const LOG = 2
const GROUP = 3
const FREE = 0

/** The keys that were last held to one limit set. */
export interface Group {
  readonly set: LimitSet
  /** Where its logs are kept, one for each. */
  readonly logs: readonly Logs[]
  /** Its only log, if that counts units only and can deny. */
  readonly alone: Log | undefined
  /** All keys of the limiter's name. */
  keys: KeyMap
  /** What rows know it by, 0 while there are none. */
  id: number
  size: number
}

/** A log of a key. */
interface Held {
  readonly log: Log
  readonly number: number
}

/** Blocks of slots that are swept at most to make room once: they may all be due, and nothing in them have expired. */
const MOST_SWEPT = 64

/** Limits of least recently used keys that are looked at to make room once: as many keys may be at their limit as there are. */
const MOST_LOOKED_AT = 1024

/** The bytes of all keys: for each key that may be held. A smaller table has those of 2^18 keys. */
const BYTES_PER_KEY = 1024
const FEWEST_KEYS = 2 ** 18

/** Bytes besides those of logs, roughly: of a key, of a limit or log of a set, of a log kept for another set. */
const KEY_BYTES = 200
const SET_BYTES = 1024
const OTHER_BYTES = 512

/** Logs that a key keeps of other limit sets: those of the latest. No set of a limiter has more. */
const MOST_OTHERS = 256

/** Ops after which a block of slots is swept, if one is due: then a search for room finds few that are. */
const OPS_PER_SWEEP = 32

/** Overrides that are checked then, and by each search for room. */
const OVERRIDES_PER_SWEEP = 64

/**
 * Rows that are searched for the least recently used keys then, once the table is this full: all of them, before there is
 * no room.
 */
const ROWS_PER_SWEEP = 16_384
const NEARLY = 7 / 8

const NONE: readonly Held[] = []
const NO_SLOTS: readonly number[] = []
/** Stays empty. */
const NO_KEYS = new KeyMap()

/**
 * The keys of a memory store, at most `maxKeys`: each has a slot, and a slot its logs. To make room it drops
 * expired keys first, then the least recently used one that is not at its limit: never one whose limit would
 * be forgotten by that. A key counts as at its limit while its log of bans remembers anything. Each override takes the place of
 * a key, and is dropped when it has ended.
 */
export class KeyTable {
  readonly #maxKeys: number
  readonly #maxBytes: number
  readonly #graceMs: number
  readonly #slots = new Slab(ROW_DOUBLES)
  readonly #order: UseOrder
  readonly #expiry = new Expiry()
  /** By slot. In pieces, since to enlarge one array for all of them, or a map, would take long. */
  readonly #keys: string[][] = []
  /** In the same way, all logs of a slot but the first: most have but one. */
  readonly #others: (readonly Held[])[][] = []
  readonly #logs = new Map<Kind, Logs>()
  readonly #maps = new Map<string, KeyMap>()
  readonly #groupOf = new WeakMap<LimitSet, Group>()
  readonly #groups: (Group | undefined)[] = [undefined]
  readonly #freeGroups: number[] = []
  #lastGroup: Group | undefined
  #ops = 0
  /** What had expired by then is forgotten wherever it is met. */
  #goneMs = 0
  /** Slots that the present op needs. */
  #inUse: readonly number[] = NO_SLOTS
  /** Limits that may still be looked at for it. */
  #lookingLeft = 0
  size = 0
  readonly overrides: OverrideRecords = new OverrideRecords()
  /** Bytes of keys, limit sets and logs of other sets. */
  #bytesBesides = 0
  /** Whether the keys take too many bytes. Then no key may grow, unless another is dropped. */
  isHeavy = false
  /** Live keys dropped to make room. */
  evicted = 0

  /** An expired key is swept once it has been so for `graceMs`, unless its room is needed. */
  constructor(
    maxKeys: number,
    graceMs: number,
    maxBytes: number = BYTES_PER_KEY * Math.max(maxKeys, FEWEST_KEYS),
  ) {
    this.#maxKeys = maxKeys
    this.#maxBytes = maxBytes
    this.#graceMs = graceMs
    // Slot 0 stays unused.
    this.#slots.create()
    this.#order = new UseOrder(this.#slots)
  }

  /** Roughly how many bytes all keys and overrides take. */
  get bytes(): number {
    let bytes = this.#bytesBesides + this.overrides.bytes
    for (const logs of this.#logs.values()) bytes += logs.bytes
    return bytes
  }

  /** Names of limiters that have keys: no others are remembered. */
  get names(): number {
    return this.#maps.size
  }

  /** @throws {SlidegateError} `invalid_option` for a set without logs, under which no key could be found again */
  groupOf(set: LimitSet): Group {
    if (this.#lastGroup?.set === set) return this.#lastGroup
    let group = this.#groupOf.get(set)
    if (group === undefined) {
      if (set.logs.length === 0) {
        throw invalidOption(`a limit set of ${show(set.limiter)} has no logs; it needs at least one`)
      }
      const logs = set.logs.map(({ kind }) => this.#logsOf(kind))
      group = { set, logs, alone: aloneIn(set), keys: NO_KEYS, id: 0, size: 0 }
      this.#groupOf.set(set, group)
    }
    this.#lastGroup = group
    return group
  }

  /** To be called with each op, before it uses any slot. */
  sweep(nowMs: number): void {
    this.#goneMs = nowMs - this.#graceMs
    this.#ops = (this.#ops + 1) % OPS_PER_SWEEP
    if (this.#ops > 0) return
    this.#inUse = NO_SLOTS
    this.#sweepBlock(nowMs - this.#graceMs)
    this.overrides.sweep(nowMs - this.#graceMs, OVERRIDES_PER_SWEEP)
    const { bytes } = this
    this.isHeavy = bytes > this.#maxBytes
    const isNearlyFull = this.size > NEARLY * this.#maxKeys || bytes > NEARLY * this.#maxBytes
    if (isNearlyFull) this.#order.searchAhead(ROWS_PER_SWEEP)
  }

  /** Finds the slot of a key, 0 if it has none, and marks it as just used. */
  use(group: Group, key: string): number {
    const slot = this.find(group, key)
    if (slot !== 0) this.useSlot(slot, group)
    return slot
  }

  /** The slot of a key, 0 if it has none. */
  find(group: Group, key: string): number {
    return this.#keysOf(group).get(key) ?? 0
  }

  /** Marks a slot as just used, arranged for the group's limits. Returns the number of its first log. */
  useSlot(slot: number, group: Group): number {
    if (this.#read(slot, GROUP) !== group.id) this.#arrange(slot, group)
    this.#order.use(slot)
    return this.#read(slot, LOG)
  }

  /** The number of a log of the slot, in the order of its group's. */
  logOf(slot: number, index: number): number {
    return index === 0 ? this.#read(slot, LOG) : this.#othersOf(slot)[index - 1]!.number
  }

  /**
   * Whether this many keys more can be held; drops others for it, but none of those that are in use. Where many are at
   * their limits it gives up before all were looked at: the next search goes on from there.
   */
  makeRoom(keys: number, nowMs: number, inUse: readonly number[] = NO_SLOTS): boolean {
    this.#inUse = inUse
    this.#lookingLeft = MOST_LOOKED_AT
    while (
      this.size + this.overrides.size + keys > this.#maxKeys ||
      (this.isHeavy && this.bytes > this.#maxBytes)
    ) {
      if (!this.#dropExpired(nowMs) && !this.#dropEnded(nowMs) && !this.#dropLeastRecent(nowMs)) return false
    }
    this.isHeavy = false
    return true
  }

  /**
   * When there may be room: when the first key opens, or at once, where not all were looked at. Only after
   * {@link makeRoom} found none.
   */
  get opensAtMs(): number {
    return this.#lookingLeft > 0 ? this.#order.opensAtMs : 0
  }

  /** Only after {@link makeRoom}; `logs` are those of the group, which are the table's from then on. */
  add(group: Group, key: string, logs: readonly number[], nowMs: number): void {
    this.#sweepBlock(nowMs - this.#graceMs)
    const slot = this.#slots.create()
    this.#nameOf(slot)[slot & this.#slots.mask] = key
    this.#mapFor(group).add(key, slot)
    this.size++
    this.#bytesBesides += KEY_BYTES + key.length
    this.#write(slot, LOG, logs[0]!)
    if (logs.length > 1) this.#keepOthers(slot, heldBy(group.set, logs).slice(1))
    this.#join(slot, group)
    this.#order.use(slot)
    this.#expiry.lower(slot, this.#expiresAt(slot))
  }

  delete(slot: number): void {
    for (const { log, number } of this.#held(slot)) this.#logsOf(log.kind).delete(number)
    this.#keepOthers(slot, NONE)
    this.#order.forget(slot)
    const group = this.#group(slot)
    const keys = this.#keysOf(group)
    const key = this.#nameOf(slot)[slot & this.#slots.mask]!
    keys.delete(key)
    this.#bytesBesides -= KEY_BYTES + key.length
    if (keys.size === 0) this.#maps.delete(group.set.limiter)
    this.#nameOf(slot)[slot & this.#slots.mask] = ''
    this.#leave(slot)
    this.#slots.delete(slot)
    this.size--
  }

  /** Forgets what the logs of its group hold; other limits' logs on the same key stay. */
  clear(slot: number): void {
    const { set } = this.#group(slot)
    const held = this.#held(slot)
    if (held.length === set.logs.length) {
      this.delete(slot)
      return
    }
    const cleared = held.map(({ log, number }, i) => {
      if (i >= set.logs.length) return { log, number }
      const logs = this.#logsOf(log.kind)
      logs.delete(number)
      return { log, number: logs.create() }
    })
    this.#keep(slot, cleared)
  }

  /** Puts the logs in the order of the group's; those of other limits on the same key are kept behind them. */
  #arrange(slot: number, group: Group): void {
    const held = this.#held(slot)
    const numbers = new Map(held.map(({ log, number }) => [log.name, number]))
    const { logs } = group.set
    const names = new Set(logs.map(({ name }) => name))
    const others = held.filter(({ log }) => !names.has(log.name))
    // The latest are those in front.
    const kept = others.filter((other) => !this.#isGone(other)).slice(0, MOST_OTHERS)
    const isKept = new Set(kept)
    for (const other of others) if (!isKept.has(other)) this.#logsOf(other.log.kind).delete(other.number)
    this.#keep(slot, [
      ...logs.map((log) => ({ log, number: numbers.get(log.name) ?? this.#logsOf(log.kind).create() })),
      ...kept,
    ])
    this.#leave(slot)
    this.#join(slot, group)
  }

  #isGone({ log: { kind, params }, number }: Held): boolean {
    return kind.expiresAt(this.#logsOf(kind).at(number), params) <= this.#goneMs
  }

  #held(slot: number): readonly Held[] {
    const first = { log: this.#group(slot).set.logs[0]!, number: this.#read(slot, LOG) }
    return [first, ...this.#othersOf(slot)]
  }

  #keep(slot: number, [first, ...others]: readonly Held[]): void {
    this.#write(slot, LOG, first!.number)
    this.#keepOthers(slot, others)
  }

  #othersOf(slot: number): readonly Held[] {
    return this.#others[slot >>> this.#slots.shift]?.[slot & this.#slots.mask] ?? NONE
  }

  #keepOthers(slot: number, others: readonly Held[]): void {
    const before = this.#othersOf(slot).length
    if (others.length === 0 && before === 0) return
    this.#bytesBesides += OTHER_BYTES * (others.length - before)
    pieceOf(this.#others, slot >>> this.#slots.shift)[slot & this.#slots.mask] = others
  }

  #group(slot: number): Group {
    return this.#groups[this.#read(slot, GROUP)]!
  }

  #join(slot: number, group: Group): void {
    if (group.size++ === 0) {
      group.id = this.#freeGroups.pop() ?? this.#groups.length
      this.#groups[group.id] = group
      this.#bytesBesides += bytesOf(group.set)
    }
    this.#write(slot, GROUP, group.id)
  }

  #leave(slot: number): void {
    const group = this.#group(slot)
    this.#write(slot, GROUP, FREE)
    if (--group.size > 0) return
    this.#bytesBesides -= bytesOf(group.set)
    this.#groups[group.id] = undefined
    this.#freeGroups.push(group.id)
    group.id = FREE
  }

  /** Drops keys that had expired by then; false where none were found. */
  #dropExpired(byMs: number): boolean {
    for (let swept = 0; swept < MOST_SWEPT; swept++) {
      const dropped = this.#sweepBlock(byMs)
      if (dropped !== 0) return dropped !== undefined
    }
    return false
  }

  #dropEnded(byMs: number): boolean {
    return this.overrides.sweep(byMs, OVERRIDES_PER_SWEEP) > 0
  }

  /** Drops the keys of one block that had expired by then; answers how many, or nothing where no block is due. */
  #sweepBlock(byMs: number): number | undefined {
    const first = this.#expiry.due(byMs)
    if (first === undefined) return undefined
    const { size } = this
    let dueAtMs = Number.POSITIVE_INFINITY
    for (let slot = first; slot < first + BLOCK_SLOTS; slot++) {
      if (!this.#isUsed(slot)) continue
      const expiresAtMs = this.#expiresAt(slot)
      if (expiresAtMs > byMs) dueAtMs = Math.min(dueAtMs, expiresAtMs)
      else if (this.#inUse.includes(slot)) dueAtMs = Math.min(dueAtMs, byMs + 1)
      else this.delete(slot)
    }
    this.#expiry.set(first, dueAtMs)
    return size - this.size
  }

  /** Drops the least recently used key that is not at its limit; false where none was found. */
  #dropLeastRecent(nowMs: number): boolean {
    while (this.#lookingLeft > 0) {
      const slot = this.#order.oldest(nowMs)
      if (slot === 0 || this.#inUse.includes(slot)) return false
      const opensInMs = this.#untilOpen(slot, nowMs)
      if (opensInMs === 0) {
        this.delete(slot)
        this.evicted++
        return true
      }
      this.#order.park(slot, nowMs + opensInMs)
    }
    return false
  }

  #expiresAt(slot: number): number {
    const { set, logs } = this.#group(slot)
    const { kind, params } = set.logs[0]!
    let latest = kind.expiresAt(logs[0]!.at(this.#read(slot, LOG)), params)
    for (const { log, number } of this.#othersOf(slot)) {
      latest = Math.max(latest, log.kind.expiresAt(this.#logsOf(log.kind).at(number), log.params))
    }
    return latest
  }

  /** Milliseconds until a request of cost 1 would be admitted. */
  #untilOpen(slot: number, nowMs: number): number {
    const used: number[] = []
    let wait = 0
    const key = this.#nameOf(slot)[slot & this.#slots.mask]!
    const { logs } = this.overrides.setOf({ key, set: this.#group(slot).set }, nowMs)
    for (const [i, { log: kept, number }] of this.#held(slot).entries()) {
      const log = logs[i] ?? kept
      this.#lookingLeft -= Math.max(1, log.params.limits.length)
      if (log.shadow) continue
      const { kind, params } = log
      const state = this.#logsOf(kind).at(number)
      const instantMs = Math.max(nowMs, kind.newest(state))
      kind.check(state, params, instantMs, used)
      params.limits.forEach((limit, i) => {
        if (used[i]! >= limit) wait = Math.max(wait, kind.retryAfter(state, params, i, instantMs, 1))
      })
    }
    return wait
  }

  #logsOf(kind: Kind): Logs {
    let logs = this.#logs.get(kind)
    if (logs === undefined) {
      logs = kind.createLogs()
      this.#logs.set(kind, logs)
    }
    return logs
  }

  /** A map that holds keys is the one of its name. An empty one may have been replaced. */
  #keysOf(group: Group): KeyMap {
    if (group.keys.size === 0) group.keys = this.#maps.get(group.set.limiter) ?? NO_KEYS
    return group.keys
  }

  /** The same, to add a key to. */
  #mapFor(group: Group): KeyMap {
    if (this.#keysOf(group) === NO_KEYS) {
      group.keys = new KeyMap()
      this.#maps.set(group.set.limiter, group.keys)
    }
    return group.keys
  }

  /** The piece of {@link #keys} that the slot is in. */
  #nameOf(slot: number): string[] {
    return pieceOf(this.#keys, slot >>> this.#slots.shift)
  }

  #isUsed(slot: number): boolean {
    const row = this.#slots.ints[slot >>> this.#slots.shift]!
    return (row[2 * (slot & this.#slots.mask) * ROW_DOUBLES + GROUP] ?? FREE) !== FREE
  }

  #read(slot: number, column: typeof LOG | typeof GROUP): number {
    const { ints, shift, mask } = this.#slots
    return ints[slot >>> shift]![2 * (slot & mask) * ROW_DOUBLES + column]!
  }

  #write(slot: number, column: typeof LOG | typeof GROUP, value: number): void {
    const { ints, shift, mask } = this.#slots
    ints[slot >>> shift]![2 * (slot & mask) * ROW_DOUBLES + column] = value
  }
}

function aloneIn({ logs: [log, another] }: LimitSet): Log | undefined {
  if (another !== undefined || log!.role !== 'count') return undefined
  return log!.shadow || log!.kind.entries !== undefined ? undefined : log
}

function bytesOf({ limits, logs }: LimitSet): number {
  return SET_BYTES * (limits.length + logs.length)
}

function pieceOf<T>(pieces: T[][], piece: number): T[] {
  while (piece >= pieces.length) pieces.push([])
  return pieces[piece]!
}

function heldBy({ logs }: LimitSet, numbers: readonly number[]): Held[] {
  return logs.map((log, i) => ({ log, number: numbers[i]! }))
}
