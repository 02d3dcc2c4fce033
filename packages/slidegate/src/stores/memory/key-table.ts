// A memory store's keys and their logs. A full table drops expired keys and the least recently used ones.

import { invalidOption, show } from '../../errors.ts'
import type { Kind, Logs } from '../../limits/limit.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import type { LoadedLog } from '../../ops/op.ts'
import { partsInForce } from '../../ops/request.ts'
import { Slab } from '../../runtime/slab.ts'
import { BLOCK_SLOTS, Expiry } from './expiry.ts'
import { KeyMap } from './key-map.ts'
import { OverrideRecords } from './override-records.ts'
import { UseOrder } from './use-order.ts'

/** A slot's row: a tick (see use-order.ts), its first log and its group. A free slot has group 0. */
const ROW_DOUBLES = 2
const LOG = 2
const GROUP = 3
const FREE = 0

/** The keys that were last used with this limit set. */
export interface Group {
  readonly set: LimitSet
  /** The storage of each log in the set. */
  readonly logs: readonly Logs[]
  /** The set's only log, if that log only counts units and can deny. */
  readonly alone: Log | undefined
  /** The keys of all groups with the same limiter name. If the map is empty, another one may have replaced it. */
  keys: KeyMap
  /** The group's number in slots' rows, or `FREE` while the group has no keys. */
  id: number
  size: number
}

type Held = Pick<LoadedLog, 'log' | 'number'>

/** Maximum blocks swept, and limits checked, per call to `makeRoom`. */
const MOST_SWEPT = 64
const MOST_LOOKED_AT = 1024

/** The table's maximum size is this many bytes times the larger of `maxKeys` and `FEWEST_KEYS`. */
const BYTES_PER_KEY = 1024
const FEWEST_KEYS = 2 ** 18

/** Estimated bytes of a key, without its logs. */
const KEY_BYTES = 200
/** Estimated bytes per limit and per log in a limit set. */
const SET_BYTES = 1024
/** Estimated bytes for keeping a log of another limit set with a key. The log itself isn't included. */
const OTHER_BYTES = 512

/** Maximum logs that a key keeps for other limit sets. No limit set has more logs than this. */
const MOST_OTHERS = 256

/** The number of ops between sweeps, and of overrides checked per sweep. */
const OPS_PER_SWEEP = 32
const OVERRIDES_PER_SWEEP = 64

/** Rows searched per sweep when the table is nearly full. The search ends before the table is full. */
const ROWS_PER_SWEEP = 16_384
const NEARLY = 7 / 8

const NONE: readonly Held[] = []
const NO_SLOTS: readonly number[] = []
/** A map that stays empty. */
const NO_KEYS = new KeyMap()

/**
 * Up to `maxKeys` keys. Each key has a slot, and each slot has logs.
 *
 * To make room, it drops expired keys first, then the least recently used key that isn't at its limit. A key with
 * a ban, or with denials that count toward one, isn't dropped either. Until an override ends, it counts as one key
 * toward `maxKeys`.
 */
export class KeyTable {
  readonly #maxKeys: number
  readonly #maxBytes: number
  readonly #graceMs: number
  readonly #slots = new Slab(ROW_DOUBLES)
  readonly #order: UseOrder
  readonly #expiry = new Expiry()
  /** Keys by slot, split into several arrays. Growing one large array would take too long. */
  readonly #keys: string[][] = []
  /** Each slot's logs after the first, split like the keys. Most slots have only one log. */
  readonly #others: (readonly Held[])[][] = []
  readonly #logs = new Map<Kind, Logs>()
  readonly #maps = new Map<string, KeyMap>()
  readonly #groupOf = new WeakMap<LimitSet, Group>()
  readonly #groups: (Group | undefined)[] = [undefined]
  readonly #freeGroups: number[] = []
  #lastGroup: Group | undefined
  #ops = 0
  /** Logs of other sets that expired before this time are dropped. */
  #goneMs = 0
  /** Slots that the current op needs. */
  #inUse: readonly number[] = NO_SLOTS
  /** How many more limits the current op may check. */
  #lookingLeft = 0
  size = 0
  readonly overrides: OverrideRecords = new OverrideRecords()
  /** Estimated bytes of everything except logs and overrides. */
  #bytesBesides = 0
  /** Whether the table takes up too many bytes. If so, a key can grow only if another is dropped. */
  isHeavy = false
  /** Number of unexpired keys dropped to make room. */
  evicted = 0

  /** @param graceMs how long expired keys are kept, unless other keys need the room */
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

  /** The estimated memory use. */
  get bytes(): number {
    let bytes = this.#bytesBesides + this.overrides.bytes
    for (const logs of this.#logs.values()) bytes += logs.bytes
    return bytes
  }

  /** The number of limiter names with keys. */
  get names(): number {
    return this.#maps.size
  }

  /** @throws {SlidegateError} `invalid_option` for a set without logs */
  groupOf(set: LimitSet): Group {
    if (this.#lastGroup?.set === set) return this.#lastGroup
    let group = this.#groupOf.get(set)
    if (group === undefined) {
      if (set.logs.length === 0) {
        throw invalidOption(`a limit set for ${show(set.limiter)} has no logs; it needs at least one`)
      }
      const logs = set.logs.map(({ kind }) => this.#logsOf(kind))
      group = { set, logs, alone: aloneIn(set), keys: NO_KEYS, id: 0, size: 0 }
      this.#groupOf.set(set, group)
    }
    this.#lastGroup = group
    return group
  }

  /** Drops expired keys from time to time. Call it for each op, before using slots. */
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

  /** Returns the slot of a key, or 0 for an unknown key. */
  find(group: Group, key: string): number {
    return this.#keysOf(group).get(key) ?? 0
  }

  /** Marks a slot as just used by this group. Returns the number of the slot's first log. */
  useSlot(slot: number, group: Group): number {
    if (this.#read(slot, GROUP) !== group.id) this.#arrange(slot, group)
    this.#order.use(slot)
    return this.#read(slot, LOG)
  }

  /** The number of a slot's log. The index is the log's position in the slot's group. */
  logOf(slot: number, index: number): number {
    return index === 0 ? this.#read(slot, LOG) : this.#othersOf(slot)[index - 1]!.number
  }

  /** Drops keys if necessary, but none in `inUse`. Returns whether there is room for `keys` more keys. */
  makeRoom(keys: number, nowMs: number, inUse: readonly number[] = NO_SLOTS): boolean {
    this.#inUse = inUse
    this.#lookingLeft = MOST_LOOKED_AT
    while (
      this.size + this.overrides.size + keys > this.#maxKeys ||
      (this.isHeavy && this.bytes > this.#maxBytes)
    ) {
      const hasDropped =
        this.#dropExpired(nowMs) ||
        this.overrides.sweep(nowMs, OVERRIDES_PER_SWEEP) > 0 ||
        this.#dropLeastRecent(nowMs)
      if (!hasDropped) return false
    }
    this.isHeavy = false
    return true
  }

  /** When the first key falls below its limit, or 0 if some weren't checked. Valid after {@link makeRoom} fails. */
  get opensAtMs(): number {
    return this.#lookingLeft > 0 ? this.#order.opensAtMs : 0
  }

  /** Adds a key to the group, with the numbers of its logs. Call {@link makeRoom} first. */
  add(group: Group, key: string, logs: readonly number[], nowMs: number): void {
    this.#sweepBlock(nowMs - this.#graceMs)
    const slot = this.#slots.create()
    this.#nameOf(slot)[slot & this.#slots.mask] = key
    if (this.#keysOf(group) === NO_KEYS) {
      group.keys = new KeyMap()
      this.#maps.set(group.set.limiter, group.keys)
    }
    group.keys.add(key, slot)
    this.size++
    this.#bytesBesides += KEY_BYTES + key.length
    this.#write(slot, LOG, logs[0]!)
    if (logs.length > 1) {
      this.#keepOthers(slot, group.set.logs.map((log, i) => ({ log, number: logs[i]! })).slice(1))
    }
    this.#join(slot, group)
    this.#order.use(slot)
    this.#expiry.lower(slot, this.#expiresAt(slot))
  }

  delete(slot: number): void {
    for (const each of this.#held(slot)) this.#drop(each)
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

  /** Clears the slot's logs for the limit set of the slot's group. Keeps its logs for other limit sets. */
  clear(slot: number): void {
    const { logs } = this.#group(slot).set
    const held = this.#held(slot)
    const others = held.slice(logs.length)
    if (others.length === 0) {
      this.delete(slot)
      return
    }
    for (const each of held.slice(0, logs.length)) this.#drop(each)
    this.#keep(slot, [...logs.map((log) => this.#create(log)), ...others])
  }

  /** Puts the group's logs first, in the group's order. Logs for other limit sets follow. */
  #arrange(slot: number, group: Group): void {
    const held = this.#held(slot)
    // The most recently used logs come first.
    const others = new Map(held.map((each) => [each.log.name, each]))
    const own = group.set.logs.map((log) => {
      const number = others.get(log.name)?.number
      others.delete(log.name)
      return number === undefined ? this.#create(log) : { log, number }
    })
    const kept: Held[] = []
    for (const other of others.values()) {
      if (this.#expiryOf(other) > this.#goneMs && kept.length < MOST_OTHERS) kept.push(other)
      else this.#drop(other)
    }
    this.#keep(slot, [...own, ...kept])
    this.#leave(slot)
    this.#join(slot, group)
  }

  #create(log: Log): Held {
    return { log, number: this.#logsOf(log.kind).create() }
  }

  #drop({ log, number }: Held): void {
    this.#logsOf(log.kind).delete(number)
  }

  #expiryOf({ log: { kind, params }, number }: Held): number {
    return kind.expiresAt(this.#logsOf(kind).at(number), params)
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

  /** Drops expired keys. Returns whether there were any. */
  #dropExpired(byMs: number): boolean {
    for (let swept = 0; swept < MOST_SWEPT; swept++) {
      const dropped = this.#sweepBlock(byMs)
      if (dropped !== 0) return dropped !== undefined
    }
    return false
  }

  /** Drops the expired keys in one block. Returns how many it dropped, or `undefined` if no block is due. */
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

  /** Drops the least recently used key that isn't at its limit. Returns whether it found one. */
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
    for (const other of this.#othersOf(slot)) latest = Math.max(latest, this.#expiryOf(other))
    return latest
  }

  /** Milliseconds until a request with a cost of 1 would be admitted. */
  #untilOpen(slot: number, nowMs: number): number {
    const used: number[] = []
    let wait = 0
    const key = this.#nameOf(slot)[slot & this.#slots.mask]!
    const parts = [{ key, set: this.#group(slot).set }]
    const { logs } = partsInForce(parts, this.overrides.inForce(parts, nowMs))[0]!.set
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

  #keysOf(group: Group): KeyMap {
    if (group.keys.size === 0) group.keys = this.#maps.get(group.set.limiter) ?? NO_KEYS
    return group.keys
  }

  /** The array in {@link #keys} that contains the slot. */
  #nameOf(slot: number): string[] {
    return pieceOf(this.#keys, slot >>> this.#slots.shift)
  }

  /** Unlike {@link #read}, this can be called for a slot that was never used. */
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
