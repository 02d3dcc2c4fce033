// A kind of limit: sliding windows whose log keeps entries one by one: requests, slots or values.

import { mapKey } from '../runtime/hash.ts'
import type { Charge, Entries, Entry, Kind, Limit, ListedCharge, LogParams, Logs } from './limit.ts'
import { ObjectLogs } from './logs.ts'
import { packedWindowKind } from './packed-window.ts'
import { MAX_RECORDS, type WindowLog, WindowLogs } from './window-log.ts'

/** Units that a log keeps one by one at most, or records, and so the greatest limit on it. */
export const MAX_ENTRIES = 10_000

const MIN_REFUND_ENTRIES = 128
const MAX_REFUND_ENTRIES = 1024

/**
 * How many entries of a stream a refund may write anew: as many as the limit lets in, within bounds. Where there are more,
 * only the newest can be returned.
 */
export function rewritable(limit: number): number {
  return Math.min(MAX_REFUND_ENTRIES, Math.max(MIN_REFUND_ENTRIES, limit))
}

/**
 * A window log, and what it counts one by one, in order of time: by {@link mapKey} of the name, or where the same name may
 * come again, by a number.
 */
interface EntryLog {
  log: WindowLog
  entries: Map<string, Entry>
}

/** Bytes of an entry whose name has the usual length. */
const ENTRY_BYTES = 256

class EntryLogs implements Logs<EntryLog> {
  readonly #logs = new WindowLogs()
  readonly #maps = new ObjectLogs<Map<string, Entry>>(
    () => new Map(),
    (entries) => new Map(entries),
    ({ size }) => 64 + ENTRY_BYTES * size,
  )
  /** By the number of its log, that of a map. */
  readonly #mapOf: number[] = [0]
  readonly #shown: EntryLog = { log: this.#logs.at(0), entries: this.#maps.at(0) }

  get bytes(): number {
    return this.#logs.bytes + this.#maps.bytes
  }

  create(): number {
    const number = this.#logs.create()
    this.#mapOf[number] = this.#maps.create()
    return number
  }

  at(number: number): EntryLog {
    this.#shown.log = this.#logs.at(number)
    this.#shown.entries = this.#maps.at(this.#mapOf[number]!)
    return this.#shown
  }

  copy(number: number): number {
    const copied = this.#logs.copy(number)
    this.#mapOf[copied] = this.#maps.copy(this.#mapOf[number]!)
    return copied
  }

  delete(number: number): void {
    this.#logs.delete(number)
    this.#maps.delete(this.#mapOf[number]!)
    this.#mapOf[number] = 0
  }
}

/** What entries are, for the twin. Reservations are 4. */
const NUMBERS: Readonly<Record<Entries, number>> = { record: 0, request: 1, holder: 2, value: 3 }

/**
 * A sliding window at the grain of 1 ms whose log keeps what it counts one by one: in Redis a sorted set, here a map
 * beside the log of a sliding window, by which everything is counted. Each window has a log of its own.
 *
 * @param prefix what the names of its logs begin with
 * @param are what the entries are; those of requests and holders are found again by the id of the request
 * @param tag names the twin, where that is another
 */
export function entryWindowKind(prefix: string, are: Entries, tag = 'z'): Kind<EntryLog> {
  return {
    tag,

    logName: (limit) => `${prefix}${limit.windowMs}`,

    params: (limits: readonly Limit[]): LogParams => ({
      precision: 1,
      records: Math.max(...limits.map(({ limit }) => limit)),
      windows: limits.map(({ windowMs }) => windowMs),
      limits: limits.map(({ limit }) => limit),
    }),

    most: () => MAX_ENTRIES,

    words: ({ windows, limits }) => [windows[0]!, ...(tag === 'z' ? [NUMBERS[are]] : []), ...limits],

    createLogs: () => new EntryLogs(),

    newest: ({ log }) => log.stamp,

    restamp({ log, entries }, params, nowMs) {
      forgetGone(entries, params, log.stamp)
      for (const [place, entry] of entries) entries.set(place, { ...entry, atMs: nowMs })
      packedWindowKind.restamp(log, params, nowMs)
    },

    check(state, params, nowMs, used, entry = '') {
      packedWindowKind.check(state.log, params, nowMs, used)
      // A value that counts has its place, whatever the limit is by now.
      if (are === 'value' && find(state, params, nowMs, mapKey(entry)) !== undefined) {
        used[0] = Math.min(used[0]!, params.limits[0]!) - 1
      }
    },

    commit(state, params, nowMs, charge) {
      forgetGone(state.entries, params, nowMs)
      if (are === 'record') record(state, params, nowMs, charge)
      else add(state, params, nowMs, charge)
    },

    retryAfter: ({ log }, params, i, nowMs, cost) => packedWindowKind.retryAfter(log, params, i, nowMs, cost),

    resetAfter: ({ log }, params, i, nowMs) => packedWindowKind.resetAfter(log, params, i, nowMs),

    refund(state, params, nowMs, atMs, units, name) {
      if (are === 'value') return 0
      const place = are === 'record' ? findCharge(state.entries, { name, units, atMs }) : mapKey(name)
      const entry = find(state, params, nowMs, place)
      if (entry === undefined || entry.units !== units) return 0
      if (are !== 'holder' && entry.atMs !== atMs) return 0
      if (are === 'record' && !canBeRewritten(state, params, place)) return 0
      remove(state, place)
      return units
    },

    expiresAt: ({ log }) => log.stamp + log.keepMs,

    charges({ entries }, params, _i, nowMs, most) {
      const charges: ListedCharge[] = []
      let left = most
      for (const entry of Array.from(entries.values()).reverse()) {
        if (left === 0 || !counts(entry, params, nowMs)) break
        // Records are kept whole, of all else each unit is.
        const units = are === 'record' ? entry.units : Math.min(entry.units, left)
        charges.push({ atMs: entry.atMs, units })
        left -= are === 'record' ? 1 : units
      }
      return charges.reverse()
    },

    entries: {
      are,

      find: (state, params, nowMs, name) => find(state, params, nowMs, mapKey(name)),

      renew(state, params, nowMs, name, units) {
        const entry = find(state, params, nowMs, mapKey(name))
        if (entry === undefined || entry.units !== units) return false
        forgetGone(state.entries, params, nowMs)
        add(state, params, nowMs, { units: 0, leaseMs: 0, entry: name })
        return true
      },

      list: ({ entries }, params, nowMs) =>
        Array.from(entries.values()).filter((entry) => counts(entry, params, nowMs)),
    },
  }
}

function counts({ atMs }: Entry, params: LogParams, nowMs: number): boolean {
  return nowMs - atMs < params.windows[0]!
}

/** Adds an entry, or moves the one of this name to now. */
function add(state: EntryLog, params: LogParams, nowMs: number, charge: Charge): void {
  const { units, leaseMs, entry: name } = charge
  const own = mapKey(name)
  const known = state.entries.get(own)
  if (known !== undefined) remove(state, own)
  const kept = known?.units ?? Math.min(units, MAX_ENTRIES)
  packedWindowKind.commit(state.log, params, nowMs, { units: kept, leaseMs, entry: name })
  state.entries.set(own, { name, units: kept, atMs: nowMs })
  // What was charged without asking pushes out the oldest, which no limit can tell.
  for (const [place, { units: oldest }] of state.entries) {
    if (state.log.total - state.log.base - oldest < MAX_ENTRIES) return
    remove(state, place)
  }
}

/** Records ever made. Each has a place of its own, since a name may come again, even in the same instant. */
let records = 0

/** Adds a record: the same name may come again. */
function record({ log, entries }: EntryLog, params: LogParams, nowMs: number, charge: Charge): void {
  const { leaseMs, entry: name } = charge
  const units = Math.min(charge.units, MAX_ENTRIES)
  packedWindowKind.commit(log, params, nowMs, { units, leaseMs, entry: name })
  entries.set(`${records++}`, { name, units, atMs: nowMs })
  for (const place of entries.keys()) {
    if (entries.size <= MAX_ENTRIES) return
    remove({ log, entries }, place)
  }
}

function find({ entries }: EntryLog, params: LogParams, nowMs: number, place: string): Entry | undefined {
  const entry = entries.get(place)
  return entry !== undefined && counts(entry, params, nowMs) ? entry : undefined
}

/** Where a record is among the entries. */
function findCharge(entries: Map<string, Entry>, { name, units, atMs }: Entry): string {
  for (const [place, entry] of entries) {
    if (entry.name === name && entry.units === units && entry.atMs === atMs) return place
  }
  return ''
}

/** Whether the record is one of not too many, or the newest. */
function canBeRewritten({ log, entries }: EntryLog, params: LogParams, place: string): boolean {
  forgetGone(entries, params, log.stamp)
  return entries.size <= rewritable(params.records) || Array.from(entries.keys()).at(-1) === place
}

function remove({ log, entries }: EntryLog, place: string): void {
  const { atMs, units } = entries.get(place)!
  entries.delete(place)
  log.subtract(atMs, units, MAX_RECORDS)
}

/** The oldest come first, since whatever is renewed is added anew. */
function forgetGone(entries: Map<string, Entry>, params: LogParams, nowMs: number): void {
  for (const [place, entry] of entries) {
    if (counts(entry, params, nowMs)) return
    entries.delete(place)
  }
}
