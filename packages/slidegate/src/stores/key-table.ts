import TinyQueue from 'tinyqueue'
import type { LimitSet, Log } from '../limits/limit-set.ts'
import type { Part } from './store.ts'
import { UseOrder } from './use-order.ts'

const NO_STATES: unknown[] = []

/** What is held of one key of one limiter. What every use needs stands first, and so side by side in memory. */
export class Entry {
  /** Where it stands in the order of use. */
  readonly slot: number
  where: 'recent' | 'parked' | 'opened' | 'gone' = 'gone'
  /** The limits that it was last held to: their logs come first. */
  set: LimitSet
  /** Of the first log: most sets have but one, and an array for it would be two more objects to fetch. */
  #firstState: unknown
  /** Of the other logs. */
  #otherStates: unknown[]
  logs: readonly Log[]
  readonly key: string
  /** In the queue of keys by expiry; not before this time. */
  dueAtMs = 0

  constructor(key: string, slot: number, set: LimitSet, states: readonly unknown[]) {
    this.slot = slot
    this.set = set
    this.#firstState = states[0]
    this.#otherStates = states.length === 1 ? NO_STATES : states.slice(1)
    this.logs = set.logs
    this.key = key
  }

  /** The state of one of its logs. */
  state(index: number): unknown {
    return index === 0 ? this.#firstState : this.#otherStates[index - 1]
  }

  /** Forgets what the logs of its set hold. */
  clear(): void {
    this.#keep(this.logs.map((log, i) => (i < this.set.logs.length ? log.kind.create() : this.state(i))))
  }

  /** Puts the logs in the order of the set's; those of other sets on the same key are kept behind them. */
  arrange(set: LimitSet): void {
    const held = new Map(this.logs.map((log, index) => [log.name, this.state(index)]))
    const names = new Set(set.logs.map((log) => log.name))
    this.logs = [...set.logs, ...this.logs.filter((log) => !names.has(log.name))]
    this.#keep(this.logs.map((log) => held.get(log.name) ?? log.kind.create()))
    this.set = set
  }

  #keep(states: readonly unknown[]): void {
    this.#firstState = states[0]
    this.#otherStates = states.slice(1)
  }
}

/** A key that was found at its limit, until it is used again. */
interface Parked {
  readonly entry: Entry
  readonly usedAt: number
  readonly opensAtMs: number
}

/** Expired keys looked for with each new one, so that a table shrinks while it is used. */
const SWEPT_PER_ADD = 2

/**
 * The keys of a memory store, at most `maxKeys`. To make room it drops expired keys first, then the least
 * recently used one that is not at its limit: never one whose limit would be forgotten by that.
 *
 * All in amortised logarithmic time: entries stand in an order of use; those found at their limit are parked
 * outside it, in a queue by when they open, and wait thereafter in a queue by when they were used; one more
 * queue knows when the next may have expired.
 */
export class KeyTable {
  readonly #limiters = new Map<string, Map<string, Entry>>()
  /** The limits that were asked for last, and their limiter's keys. */
  #lastSet: LimitSet | undefined
  #lastKeys: Map<string, Entry> = new Map()
  readonly #maxKeys: number
  readonly #graceMs: number
  readonly #order = new UseOrder()
  /** By slot; those that are free hold nothing. */
  readonly #entries: (Entry | undefined)[] = [undefined]
  readonly #freeSlots: number[] = []
  /** By slot, the number of the op that used it last. */
  readonly #usedAt: number[] = [0]
  #byExpiry: TinyQueue<Entry> = new TinyQueue([], sooner)
  #parked: TinyQueue<Parked> = new TinyQueue([], opensSooner)
  #opened: TinyQueue<Parked> = new TinyQueue([], usedSooner)
  #op = 0
  size = 0
  /** Live keys dropped to make room. */
  evicted = 0

  /** An expired key is swept once it has been so for `graceMs`, unless its room is needed. */
  constructor(maxKeys: number, graceMs: number) {
    this.#maxKeys = maxKeys
    this.#graceMs = graceMs
  }

  /** What is used from now on until the next call is not dropped to make room. */
  beginOp(): void {
    this.#op++
  }

  /** The entry of a key, arranged for the part's limits. */
  find(part: Part): Entry | undefined {
    const entry = this.#keysOf(part.set).get(part.key)
    if (entry === undefined) return undefined
    if (entry.set !== part.set) entry.arrange(part.set)
    return entry
  }

  /** Marks as just used. */
  touch(entry: Entry): void {
    const { slot } = entry
    this.#usedAt[slot] = this.#op
    if (slot === this.#order.newest) return
    if (entry.where === 'recent') this.#order.remove(slot)
    this.#order.append(slot)
    entry.where = 'recent'
  }

  /** Whether this many keys more can be held; drops others for it. */
  makeRoom(keys: number, nowMs: number): boolean {
    while (this.size + keys > this.#maxKeys) {
      if (!this.#dropExpired(nowMs) && !this.#dropLeastRecent(nowMs)) return false
    }
    return true
  }

  /** When the first key that is at its limit no longer is; only after {@link makeRoom} found no room. */
  get opensAtMs(): number {
    return this.#parked.peek()?.opensAtMs ?? 0
  }

  /** Only after {@link makeRoom}. */
  add(part: Part, states: unknown[], nowMs: number): void {
    for (let i = 0; i < SWEPT_PER_ADD; i++) this.#dropExpired(nowMs - this.#graceMs)
    const slot = this.#freeSlots.pop() ?? this.#entries.length
    const entry = new Entry(part.key, slot, part.set, states)
    this.#entries[slot] = entry
    this.#keysOf(part.set).set(part.key, entry)
    this.size++
    this.touch(entry)
    entry.dueAtMs = expiresAt(entry)
    this.#byExpiry.push(entry)
  }

  delete(entry: Entry): void {
    if (entry.where === 'recent') this.#order.remove(entry.slot)
    entry.where = 'gone'
    this.#entries[entry.slot] = undefined
    this.#freeSlots.push(entry.slot)
    this.#keysOf(entry.set).delete(entry.key)
    this.size--
    // What is gone stays in the queue until it is due; that must not become the larger part of it.
    if (this.#byExpiry.length > 2 * this.size + 64) {
      this.#byExpiry = new TinyQueue(
        this.#byExpiry.data.filter((held) => held.where !== 'gone'),
        sooner,
      )
    }
  }

  #keysOf(set: LimitSet): Map<string, Entry> {
    if (set === this.#lastSet) return this.#lastKeys
    let keys = this.#limiters.get(set.limiter)
    if (keys === undefined) {
      keys = new Map()
      this.#limiters.set(set.limiter, keys)
    }
    this.#lastSet = set
    this.#lastKeys = keys
    return keys
  }

  /** Drops one key that had expired by then; false where there is none. */
  #dropExpired(byMs: number): boolean {
    for (;;) {
      const entry = this.#byExpiry.peek()
      if (entry === undefined || entry.dueAtMs > byMs) return false
      this.#byExpiry.pop()
      if (entry.where === 'gone') continue
      entry.dueAtMs = expiresAt(entry)
      if (entry.dueAtMs <= byMs && this.#usedAt[entry.slot] !== this.#op) {
        this.delete(entry)
        return true
      }
      this.#byExpiry.push(entry)
      if (entry.dueAtMs <= byMs) return false
    }
  }

  /** Drops the least recently used key that is not at its limit; false where all are. */
  #dropLeastRecent(nowMs: number): boolean {
    this.#open(nowMs)
    for (;;) {
      const entry = this.#leastRecent()
      if (entry === undefined || this.#usedAt[entry.slot] === this.#op) return false
      const opensInMs = untilOpen(entry, nowMs)
      if (opensInMs === 0) {
        this.delete(entry)
        this.evicted++
        return true
      }
      this.#park(entry, nowMs + opensInMs)
    }
  }

  /** The least recently used key, but for those that are parked. */
  #leastRecent(): Entry | undefined {
    const oldest = this.#entries[this.#order.oldest]
    let opened = this.#opened.peek()
    while (opened !== undefined && !this.#isWaiting(opened)) {
      this.#opened.pop()
      opened = this.#opened.peek()
    }
    if (opened === undefined) return oldest
    return oldest !== undefined && this.#usedAt[oldest.slot]! < opened.usedAt ? oldest : opened.entry
  }

  /** Only for the least recently used. */
  #park(entry: Entry, opensAtMs: number): void {
    if (entry.where === 'recent') this.#order.remove(entry.slot)
    else this.#opened.pop()
    entry.where = 'parked'
    this.#parked.push({ entry, usedAt: this.#usedAt[entry.slot]!, opensAtMs })
    // What was used again stays in the queues until it is due; that must not become the larger part of them.
    if (this.#parked.length + this.#opened.length > 2 * this.size + 64) {
      const isWaiting = (parked: Parked) => this.#isWaiting(parked)
      this.#parked = new TinyQueue(this.#parked.data.filter(isWaiting), opensSooner)
      this.#opened = new TinyQueue(this.#opened.data.filter(isWaiting), usedSooner)
    }
  }

  /** Lets those wait to be dropped that may no longer be at their limit. */
  #open(nowMs: number): void {
    for (let parked = this.#parked.peek(); parked !== undefined; parked = this.#parked.peek()) {
      const isWaiting = this.#isWaiting(parked)
      if (isWaiting && parked.opensAtMs > nowMs) return
      this.#parked.pop()
      if (!isWaiting) continue
      parked.entry.where = 'opened'
      this.#opened.push(parked)
    }
  }

  /** Whether the key has not been used since it was parked. */
  #isWaiting({ entry, usedAt }: Parked): boolean {
    return (entry.where === 'parked' || entry.where === 'opened') && this.#usedAt[entry.slot] === usedAt
  }
}

function opensSooner(a: Parked, b: Parked): number {
  return a.opensAtMs - b.opensAtMs
}

function usedSooner(a: Parked, b: Parked): number {
  return a.usedAt - b.usedAt
}

function sooner(a: Entry, b: Entry): number {
  return a.dueAtMs - b.dueAtMs
}

function expiresAt(entry: Entry): number {
  return entry.logs.reduce(
    (latest, log, i) => Math.max(latest, log.kind.expiresAt(entry.state(i), log.params)),
    0,
  )
}

/** Milliseconds until a request of cost 1 would be admitted. */
function untilOpen(entry: Entry, nowMs: number): number {
  const used: number[] = []
  let wait = 0
  entry.logs.forEach((log, index) => {
    if (log.shadow) return
    const state = entry.state(index)
    const instantMs = Math.max(nowMs, log.kind.newest(state))
    log.kind.check(state, log.params, instantMs, used)
    log.params.limits.forEach((limit, i) => {
      if (used[i]! >= limit) wait = Math.max(wait, log.kind.retryAfter(state, log.params, i, instantMs, 1))
    })
  })
  return wait
}
