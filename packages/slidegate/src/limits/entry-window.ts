// A kind of limit: sliding windows whose log has an entry per request, slot or value.

import { mapKey } from '../runtime/hash.ts'
import { paramsOf } from './declare.ts'
import type { Charge, Entries, Entry, Kind, ListedCharge, LogParams } from './limit.ts'
import { ObjectLogs } from './logs.ts'

/** Maximum number of units or records in a log, and therefore the maximum limit. */
export const MAX_ENTRIES = 10_000

const MIN_REFUND_ENTRIES = 128
const MAX_REFUND_ENTRIES = 1024

/** The longest stream that a refund rewrites, in entries. In a longer one, only the newest entry can be refunded. */
export function rewritable(limit: number): number {
  return Math.min(MAX_REFUND_ENTRIES, Math.max(MIN_REFUND_ENTRIES, limit))
}

interface EntryLog {
  /** In chronological order. The map key is {@link mapKey} of the name, or a number if names can repeat. */
  readonly entries: Map<string, Entry>
  /** The units of all entries. */
  units: number
  /** When the newest entry was charged or renewed. */
  stamp: number
}

/** The estimated memory for an entry whose name has a typical length. */
const ENTRY_BYTES = 256

/** The kinds of entries, as numbers for entry-window.lua. */
const NUMBERS: Readonly<Record<Entries, number>> = { record: 0, request: 1, holder: 2, value: 3 }

/** Creates a kind of limit whose log names start with `prefix`. Each window length has its own log, with a precision of 1 ms. */
export function entryWindowKind(prefix: string, are: Entries, tag = 'z'): Kind<EntryLog> {
  return {
    tag,
    logName: (limit) => `${prefix}${limit.windowMs}`,
    params: (limits) => paramsOf(limits, 1, Math.max(...limits.map(({ limit }) => limit))),
    most: () => MAX_ENTRIES,
    words: ({ windows, limits }) => [windows[0]!, ...(tag === 'z' ? [NUMBERS[are]] : []), ...limits],

    createLogs: () =>
      new ObjectLogs<EntryLog>(
        () => ({ entries: new Map(), units: 0, stamp: 0 }),
        ({ entries }) => 128 + ENTRY_BYTES * entries.size,
      ),

    newest: ({ stamp }) => stamp,

    restamp(log, _params, nowMs) {
      for (const [place, entry] of log.entries) log.entries.set(place, { ...entry, atMs: nowMs })
      log.stamp = nowMs
    },

    check(log, params, nowMs, used, entry = '') {
      let { units } = log
      for (const each of log.entries.values()) {
        if (counts(each, params, nowMs)) break
        units -= each.units
      }
      // A value that already counts stays admitted, even if the limit was lowered.
      if (are === 'value' && find(log, params, nowMs, mapKey(entry)) !== undefined) {
        units = Math.min(units, params.limits[0]!) - 1
      }
      for (let i = 0; i < params.limits.length; i++) used[i] = units
    },

    commit(log, params, nowMs, charge) {
      forgetGone(log, params, nowMs)
      add(log, are, nowMs, charge)
    },

    retryAfter(log, params, i, nowMs, cost) {
      const limit = params.limits[i]!
      if (cost > limit) return Number.POSITIVE_INFINITY
      let over = log.units + cost - limit
      let lastMs = 0
      for (const { atMs, units } of log.entries.values()) {
        if (over <= 0) break
        over -= units
        lastMs = atMs
      }
      return lastMs + params.windows[i]! - nowMs
    },

    resetAfter: ({ units, stamp }, { windows }, i, nowMs) =>
      units === 0 ? 0 : Math.max(0, stamp + windows[i]! - nowMs),

    refund(log, params, nowMs, atMs, units, name) {
      if (are === 'value') return 0
      const place = are === 'record' ? findCharge(log, { name, units, atMs }) : mapKey(name)
      const entry = find(log, params, nowMs, place)
      if (entry?.units !== units || (are !== 'holder' && entry.atMs !== atMs)) return 0
      if (are === 'record' && !canBeRewritten(log, params, place)) return 0
      remove(log, place)
      if (entry.atMs === log.stamp) {
        log.stamp = 0
        for (const { atMs } of log.entries.values()) log.stamp = atMs
      }
      return units
    },

    expiresAt: ({ stamp }, { windows }) => stamp + windows[0]!,

    charges({ entries }, params, _i, nowMs, most) {
      const charges: ListedCharge[] = []
      let left = most
      for (const entry of Array.from(entries.values()).reverse()) {
        if (left === 0 || !counts(entry, params, nowMs)) break
        // A record is one charge. Any other entry is one charge per unit.
        const units = are === 'record' ? entry.units : Math.min(entry.units, left)
        charges.push({ atMs: entry.atMs, units })
        left -= are === 'record' ? 1 : units
      }
      return charges.reverse()
    },

    entries: {
      are,

      find: (log, params, nowMs, name) => find(log, params, nowMs, mapKey(name)),

      renew(log, params, nowMs, name, units) {
        if (find(log, params, nowMs, mapKey(name))?.units !== units) return false
        forgetGone(log, params, nowMs)
        add(log, are, nowMs, { units, leaseMs: 0, entry: name })
        return true
      },

      list: ({ entries }, params, nowMs) =>
        Array.from(entries.values()).filter((entry) => counts(entry, params, nowMs)),
    },
  }
}

function counts({ atMs }: Entry, { windows }: LogParams, nowMs: number): boolean {
  return nowMs - atMs < windows[0]!
}

let records = 0

/** Adds an entry, or sets the time of the one with this name to now. */
function add(log: EntryLog, are: Entries, nowMs: number, { units, entry: name }: Charge): void {
  const place = are === 'record' ? `${records++}` : mapKey(name)
  const kept = log.entries.get(place)?.units ?? Math.min(units, MAX_ENTRIES)
  remove(log, place)
  log.entries.set(place, { name, units: kept, atMs: nowMs })
  log.units += kept
  log.stamp = nowMs
  // A forced charge drops the oldest entries if there are too many. This doesn't affect any limit.
  for (const [oldest, entry] of log.entries) {
    const size = are === 'record' ? log.entries.size - 1 : log.units - entry.units
    if (size < MAX_ENTRIES) return
    remove(log, oldest)
  }
}

function find({ entries }: EntryLog, params: LogParams, nowMs: number, place: string): Entry | undefined {
  const entry = entries.get(place)
  return entry !== undefined && counts(entry, params, nowMs) ? entry : undefined
}

/** Returns the map key of a record, or `''` if there is no such record. */
function findCharge({ entries }: EntryLog, { name, units, atMs }: Entry): string {
  for (const [place, entry] of entries) {
    if (entry.name === name && entry.units === units && entry.atMs === atMs) return place
  }
  return ''
}

/** Whether a record can be refunded. If the log has too many records, only the newest one can be. */
function canBeRewritten({ entries }: EntryLog, { records }: LogParams, place: string): boolean {
  return entries.size <= rewritable(records) || Array.from(entries.keys()).at(-1) === place
}

function remove(log: EntryLog, place: string): void {
  log.units -= log.entries.get(place)?.units ?? 0
  log.entries.delete(place)
}

function forgetGone(log: EntryLog, params: LogParams, nowMs: number): void {
  for (const [place, entry] of log.entries) {
    if (counts(entry, params, nowMs)) return
    remove(log, place)
  }
}
