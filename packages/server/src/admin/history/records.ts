// A limiter's stored counts for one minute or hour, and how counts are added to them.

/** Allowed requests, denied requests, and units. The last number is a limiter's shadow denials, or a key's rank. */
export type Counts = readonly [allowed: number, denied: number, units: number, other: number]

/** Counts by name. `''` stands for the whole limiter. Any other name is a dimension, `=` and a key. */
export type Entries = Readonly<Record<string, Counts>>

/** A limiter's counts in one minute or hour. */
export interface HistoryRecord {
  /** The counts for the limiter and its keys. */
  readonly c: Entries
  /** The last batch number of each process, so that no batch is added twice. */
  readonly r: Readonly<Record<string, number>>
}

/** One process's counts for one minute. */
export interface Batch {
  readonly process: string
  /** Increases with each batch from a process. */
  readonly number: number
  /** Minutes since the epoch. */
  readonly minute: number
  readonly limiters: readonly { readonly limiter: string; readonly entries: Entries }[]
}

/** How long counts are kept, and at which resolution. */
export interface Range {
  readonly letter: 'm' | 'h'
  readonly stepMs: number
  /** The number of full minutes or hours to show. */
  readonly steps: number
  /** How long a record is kept after the last change. */
  readonly ttlMs: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

export const RANGES = {
  '1h': { letter: 'm', stepMs: MINUTE_MS, steps: 60, ttlMs: 70 * MINUTE_MS },
  '7d': { letter: 'h', stepMs: HOUR_MS, steps: 168, ttlMs: 170 * HOUR_MS },
} as const satisfies Readonly<Record<string, Range>>

export type RangeName = keyof typeof RANGES

/** The name of the records that only show that the service was counting. No limiter has this name. */
export const SERVICE = '~'

/** The name of a record: `api:m29700000`. Minutes and hours are counted from the epoch. */
export function recordName(limiter: string, { letter }: Range, step: number): string {
  return `${limiter}:${letter}${step}`
}

/** Maximum number of keys in a record, for each of the three `ORDERS`. */
export const KEYS_PER_ORDER = 8

/** Returns the record with a batch's entries added. `lua/add-history.lua` does the same in Redis. */
export function added(
  record: HistoryRecord | undefined,
  { process, number }: Pick<Batch, 'process' | 'number'>,
  entries: Entries,
): HistoryRecord {
  const { c = {}, r = {} } = record ?? {}
  if ((r[process] ?? 0) >= number) return { c, r }
  const sums = new Map<string, Counts>(Object.entries(c))
  for (const [name, counts] of Object.entries(entries)) {
    const known = sums.get(name) ?? [0, 0, 0, 0]
    const other = name === '' ? known[3] + counts[3] : Math.max(known[3], counts[3])
    sums.set(name, [known[0] + counts[0], known[1] + counts[1], known[2] + counts[2], other])
  }
  const limiter = sums.get('')
  sums.delete('')
  const kept = busiest(Array.from(sums), KEYS_PER_ORDER)
  return { c: Object.fromEntries(limiter ? [['', limiter], ...kept] : kept), r: { ...r, [process]: number } }
}

type Entry = readonly [name: string, counts: Counts]

/** The values that keys are ordered by: rank, requests, denials. Keys whose first value is 0 are omitted. */
const ORDERS: readonly ((counts: Counts) => readonly number[])[] = [
  ([allowed, denied, , rank]) => [rank, allowed + denied],
  ([allowed, denied]) => [allowed + denied],
  ([, denied]) => [denied],
]

/** Keeps the first keys in each of the three orders. */
export function busiest(entries: readonly Entry[], perOrder: number): Entry[] {
  if (entries.length <= perOrder) return [...entries]
  const rest = new Set(entries)
  return ORDERS.flatMap((valuesOf) => {
    const first = Array.from(rest)
      .map((entry) => ({ entry, values: valuesOf(entry[1]) }))
      .filter(({ values }) => values[0]! > 0)
      .sort((a, b) => compare(a.values, b.values) || (a.entry[0] < b.entry[0] ? -1 : 1))
      .slice(0, perOrder)
      .map(({ entry }) => entry)
    for (const entry of first) rest.delete(entry)
    return first
  })
}

/** Compares lists of values. Lists with higher values come first. */
function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, i) => value !== b[i])
  return at === -1 ? 0 : b[at]! - a[at]!
}
