// Merges the key statistics from several processes.

import { setImmediate } from 'node:timers/promises'
import type { TopKey } from './api-types.ts'
import { HyperLogLog } from './hyperloglog.ts'
import type { CallerSketch, TopCounts } from './sliding-keys.ts'
import { merged, type Summary } from './space-saving.ts'

export type RenameKey = (key: string) => string

/** Statistics about a limiter's callers. */
export interface Callers {
  /** The estimated number of distinct keys in the last few minutes. */
  readonly distinct: number
  /** A lower bound on the busiest key's share of all requests. */
  readonly topShare: number
}

/** Number of limiters to count before yielding to the event loop. They take a few milliseconds. */
export const AT_A_TIME = 32

export interface TopReport {
  readonly spanMs: number
  /** The number of distinct keys, estimated to within 2%. */
  readonly distinct: number
  readonly keys: TopKey[]
  /** Upper bound on the count of any key that isn't listed. */
  readonly unlisted: number
}

/** Merges the most frequent keys from several processes, and the number of distinct keys. */
export function mergeTop(processes: readonly TopCounts[], count: number): TopReport {
  const keys = topKeys(processes, Number.POSITIVE_INFINITY)
  const uncounted = processes.flatMap(({ summaries }) => summaries).reduce((sum, { floor }) => sum + floor, 0)
  return {
    spanMs: Math.max(0, ...processes.map(({ spanMs }) => spanMs)),
    distinct: distinctIn(processes.map(({ callers }) => callers)),
    keys: keys.slice(0, count),
    unlisted: keys.slice(count).reduce((most, { count }) => Math.max(most, count), uncounted),
  }
}

/** Returns the most frequent keys across several processes. */
export function topKeys(processes: readonly TopCounts[], count: number): TopKey[] {
  return merged(processes.flatMap(({ summaries }) => summaries))
    .slice(0, count)
    .map(({ word, count, error }) => {
      const [dimension, key] = partsOf(word)
      return { ...(dimension !== '' && { dimension }), key, count, error }
    })
}

export function renameKeys(summaries: readonly Summary[], rename: RenameKey): Summary[] {
  return summaries.map(({ floor, counted }) => ({
    floor,
    counted: counted.map((each) => {
      const [dimension, key] = partsOf(each.word)
      return { ...each, word: `${dimension}=${rename(key)}` }
    }),
  }))
}

/** Splits text such as `user=42` into dimension and key. */
export function partsOf(word: string): readonly [dimension: string, key: string] {
  const end = word.indexOf('=')
  return [word.slice(0, end), word.slice(end + 1)]
}

/** Merges the caller statistics from several processes, by limiter. */
export async function mergeCallers(
  processes: readonly Readonly<Record<string, CallerSketch>>[],
): Promise<ReadonlyMap<string, Callers>> {
  const byName = new Map<string, CallerSketch[]>()
  for (const [name, sketch] of processes.flatMap(Object.entries)) {
    byName.set(name, [...(byName.get(name) ?? []), sketch])
  }
  const callers = new Map<string, Callers>()
  for (const [name, each] of byName) {
    callers.set(name, together(each))
    if (callers.size % AT_A_TIME === 0) await setImmediate()
  }
  return callers
}

function together(each: readonly CallerSketch[]): Callers {
  const requests = each.reduce((sum, sketch) => sum + sketch.requests, 0)
  const [first] = merged(each.flatMap(({ top }) => top))
  return {
    distinct: distinctIn(each.map(({ sketch }) => sketch)),
    topShare: first === undefined ? 0 : (first.count - first.error) / requests,
  }
}

/** Estimates the number of distinct keys in several processes. */
export function distinctIn(sketches: readonly unknown[]): number {
  const known = sketches.flatMap((text) => HyperLogLog.of(text) ?? [])
  if (known.length === 0) return 0
  const size = Math.min(...known.map(({ registers }) => registers.length))
  return HyperLogLog.union(known.filter(({ registers }) => registers.length === size)).count()
}
