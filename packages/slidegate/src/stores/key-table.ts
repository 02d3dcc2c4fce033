import TinyQueue from 'tinyqueue'
import type { LimitSet, Log } from '../limits/limit-set.ts'
import type { Part } from './store.ts'

/** What is held of one key of one limiter. */
export class Entry {
  readonly key: string
  readonly owner: Map<string, Entry>
  /** The limits that it was last held to: their logs come first. */
  set: LimitSet
  logs: readonly Log[]
  /** One per log. */
  states: unknown[]
  /** Number of the op that used it last. */
  usedAt = 0
  older: Entry | undefined
  newer: Entry | undefined
  /** In the queue of keys by expiry; not before this time. */
  dueAtMs = 0
  where: 'recent' | 'parked' | 'gone' = 'gone'

  constructor(key: string, owner: Map<string, Entry>, set: LimitSet, states: unknown[]) {
    this.key = key
    this.owner = owner
    this.set = set
    this.logs = set.logs
    this.states = states
  }
}

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
 * All in amortised logarithmic time: entries stand in a list by use; those found at their limit are parked
 * outside it until they open; a queue knows when the next may have expired.
 */
export class KeyTable {
  readonly #limiters = new Map<string, Map<string, Entry>>()
  readonly #maxKeys: number
  readonly #graceMs: number
  #oldest: Entry | undefined
  #newest: Entry | undefined
  #byExpiry: TinyQueue<Entry> = new TinyQueue([], sooner)
  #parked = new TinyQueue<Parked>([], (a, b) => a.opensAtMs - b.opensAtMs)
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
    const entry = this.#limiters.get(part.set.limiter)?.get(part.key)
    if (entry === undefined) return undefined
    if (entry.set !== part.set) arrange(entry, part.set)
    return entry
  }

  /** Marks as just used. */
  touch(entry: Entry): void {
    entry.usedAt = this.#op
    if (entry === this.#newest) return
    if (entry.where === 'recent') this.#unlink(entry)
    this.#linkBefore(entry, undefined)
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
    let owner = this.#limiters.get(part.set.limiter)
    if (owner === undefined) {
      owner = new Map()
      this.#limiters.set(part.set.limiter, owner)
    }
    const entry = new Entry(part.key, owner, part.set, states)
    owner.set(part.key, entry)
    this.size++
    this.touch(entry)
    entry.dueAtMs = expiresAt(entry)
    this.#byExpiry.push(entry)
  }

  delete(entry: Entry): void {
    if (entry.where === 'recent') this.#unlink(entry)
    entry.where = 'gone'
    entry.owner.delete(entry.key)
    this.size--
    // What is gone stays in the queue until it is due; that must not become the larger part of it.
    if (this.#byExpiry.length > 2 * this.size + 64) {
      this.#byExpiry = new TinyQueue(
        this.#byExpiry.data.filter((held) => held.where !== 'gone'),
        sooner,
      )
    }
  }

  /** Drops one key that had expired by then; false where there is none. */
  #dropExpired(byMs: number): boolean {
    for (;;) {
      const entry = this.#byExpiry.peek()
      if (entry === undefined || entry.dueAtMs > byMs) return false
      this.#byExpiry.pop()
      if (entry.where === 'gone') continue
      entry.dueAtMs = expiresAt(entry)
      if (entry.dueAtMs <= byMs && entry.usedAt !== this.#op) {
        this.delete(entry)
        return true
      }
      this.#byExpiry.push(entry)
      if (entry.dueAtMs <= byMs) return false
    }
  }

  /** Drops the least recently used key that is not at its limit; false where all are. */
  #dropLeastRecent(nowMs: number): boolean {
    this.#unpark(nowMs)
    for (let entry = this.#oldest; entry !== undefined && entry.usedAt !== this.#op; ) {
      const next: Entry | undefined = entry.newer
      const opensInMs = untilOpen(entry, nowMs)
      if (opensInMs === 0) {
        this.delete(entry)
        this.evicted++
        return true
      }
      this.#unlink(entry)
      entry.where = 'parked'
      this.#parked.push({ entry, usedAt: entry.usedAt, opensAtMs: nowMs + opensInMs })
      entry = next
    }
    return false
  }

  /** Puts back those that are no longer at their limit, in order of use. */
  #unpark(nowMs: number): void {
    for (let parked = this.#parked.peek(); parked !== undefined; parked = this.#parked.peek()) {
      const { entry } = parked
      const isStale = entry.where !== 'parked' || entry.usedAt !== parked.usedAt
      if (!isStale && parked.opensAtMs > nowMs) return
      this.#parked.pop()
      if (isStale) continue
      let newer = this.#oldest
      while (newer !== undefined && newer.usedAt < entry.usedAt) newer = newer.newer
      this.#linkBefore(entry, newer)
    }
  }

  #linkBefore(entry: Entry, newer: Entry | undefined): void {
    const older = newer === undefined ? this.#newest : newer.older
    entry.older = older
    entry.newer = newer
    if (older === undefined) this.#oldest = entry
    else older.newer = entry
    if (newer === undefined) this.#newest = entry
    else newer.older = entry
    entry.where = 'recent'
  }

  #unlink(entry: Entry): void {
    const { older, newer } = entry
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    entry.older = undefined
    entry.newer = undefined
  }
}

function sooner(a: Entry, b: Entry): number {
  return a.dueAtMs - b.dueAtMs
}

/** Puts the logs in the order of the set's; those of other sets on the same key are kept behind them. */
function arrange(entry: Entry, set: LimitSet): void {
  const held = new Map(entry.logs.map((log, index) => [log.name, entry.states[index]]))
  const names = new Set(set.logs.map((log) => log.name))
  entry.logs = [...set.logs, ...entry.logs.filter((log) => !names.has(log.name))]
  entry.states = entry.logs.map((log) => held.get(log.name) ?? log.kind.create())
  entry.set = set
}

function expiresAt(entry: Entry): number {
  return entry.logs.reduce(
    (latest, log, i) => Math.max(latest, log.kind.expiresAt(entry.states[i], log.params)),
    0,
  )
}

/** Milliseconds until a request of cost 1 would be admitted. */
function untilOpen(entry: Entry, nowMs: number): number {
  const used: number[] = []
  let wait = 0
  entry.logs.forEach((log, index) => {
    if (log.shadow) return
    const state = entry.states[index]
    const instantMs = Math.max(nowMs, log.kind.newest(state))
    log.kind.check(state, log.params, instantMs, used)
    log.params.limits.forEach((limit, i) => {
      if (used[i]! >= limit) wait = Math.max(wait, log.kind.retryAfter(state, log.params, i, instantMs, 1))
    })
  })
  return wait
}
