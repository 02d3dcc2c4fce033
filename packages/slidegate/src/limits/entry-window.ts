// A kind of limit: sliding windows whose log has an entry per request, slot or value.

import { mapKey } from '../runtime/hash.ts'
import type { Charge, Entries, Entry, Kind, Limit, ListedCharge, LogParams, Logs } from './limit.ts'
import { ObjectLogs } from './logs.ts'
import { packedWindowKind } from './packed-window.ts'
import { MAX_RECORDS, type WindowLog, WindowLogs } from './window-log.ts'

/** Maximum units or records in a log of entries, and so the maximum limit. */
export const MAX_ENTRIES = 10_000

const MIN_REFUND_ENTRIES = 128
const MAX_REFUND_ENTRIES = 1024

/**
 * Maximum entries of a stream that a refund may rewrite. Equals the limit, clamped to a range.
 *
 * If there are more, only the newest can be refunded.
 */
export function rewritable(limit: number): number {
  return Math.min(MAX_REFUND_ENTRIES, Math.max(MIN_REFUND_ENTRIES, limit))
}

/**
 * A window log and its entries, in order of time.
 *
 * The map's key is {@link mapKey} of the name, or a number if names can repeat.
 */
interface EntryLog {
  log: WindowLog
  entries: Map<string, Entry>
}

/** Approximate bytes of an entry with a name of typical length. */
const ENTRY_BYTES = 256

class EntryLogs implements Logs<EntryLog> {
  readonly #logs = new WindowLogs()
  readonly #maps = new ObjectLogs<Map<string, Entry>>(
    () => new Map(),
    (entries) => new Map(entries),
    ({ size }) => 64 + ENTRY_BYTES * size,
  )
  /** The index of each log's map. */
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

/** The kinds of entries, as numbers for the twin. Reservations are 4. */
const NUMBERS: Readonly<Record<Entries, number>> = { record: 0, request: 1, holder: 2, value: 3 }

/**
 * A sliding window with a grain of 1 ms that keeps separate entries.
 *
 * In Redis it is a sorted set. Here it is a map, beside a window log that does all the counting. Each window length has its own
 * log.
 *
 * @param prefix start of its log names
 * @param are the kind of entries; requests and holders are found by request id
 * @param tag names the twin, if it isn't the usual one
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
      // A value that counts keeps its place, even under a lower limit.
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
        // Records are kept whole, everything else unit by unit.
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

/** Adds an entry, or moves the one with this name to now. */
function add(state: EntryLog, params: LogParams, nowMs: number, charge: Charge): void {
  const { units, leaseMs, entry: name } = charge
  const own = mapKey(name)
  const known = state.entries.get(own)
  if (known !== undefined) remove(state, own)
  const kept = known?.units ?? Math.min(units, MAX_ENTRIES)
  packedWindowKind.commit(state.log, params, nowMs, { units: kept, leaseMs, entry: name })
  state.entries.set(own, { name, units: kept, atMs: nowMs })
  // A forced charge pushes out the oldest entries, which doesn't change any limit's result.
  for (const [place, { units: oldest }] of state.entries) {
    if (state.log.total - state.log.base - oldest < MAX_ENTRIES) return
    remove(state, place)
  }
}

/** Number of records ever created. Each has its own map key, because names can repeat, even in the same instant. */
let records = 0

/** Adds a record. Names can repeat. */
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

/** The map key of a record. */
function findCharge(entries: Map<string, Entry>, { name, units, atMs }: Entry): string {
  for (const [place, entry] of entries) {
    if (entry.name === name && entry.units === units && entry.atMs === atMs) return place
  }
  return ''
}

/** Whether a record can be refunded: it is the newest, or there aren't too many. */
function canBeRewritten({ log, entries }: EntryLog, params: LogParams, place: string): boolean {
  forgetGone(entries, params, log.stamp)
  return entries.size <= rewritable(params.records) || Array.from(entries.keys()).at(-1) === place
}

function remove({ log, entries }: EntryLog, place: string): void {
  const { atMs, units } = entries.get(place)!
  entries.delete(place)
  log.subtract(atMs, units, MAX_RECORDS)
}

/** Drops entries that left the window. The oldest come first, because a renewed entry is added again. */
function forgetGone(entries: Map<string, Entry>, params: LogParams, nowMs: number): void {
  for (const [place, entry] of entries) {
    if (counts(entry, params, nowMs)) return
    entries.delete(place)
  }
}
