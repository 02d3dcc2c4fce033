// Merges what several processes know of keys.

import { setImmediate } from 'node:timers/promises'
import type { TopKey } from './api-types.ts'
import { HyperLogLog } from './hyperloglog.ts'
import type { CallerSketch, TopCounts } from './sliding-keys.ts'
import { merged, type Summary } from './space-saving.ts'

export type RenameKey = (key: string) => string

/** Who asks a limiter. */
export interface Callers {
  /** Different keys of the last minutes, estimated. */
  readonly distinct: number
  /** Share of the requests that the busiest key has made, at least. */
  readonly topShare: number
}

/** Limiters whose callers are counted at a time: some milliseconds. */
export const AT_A_TIME = 32

export interface TopReport {
  readonly spanMs: number
  /** Different keys, estimated: within 2%. */
  readonly distinct: number
  readonly keys: TopKey[]
}

/** The keys that came most, and how many there were, of several processes. */
export function mergeTop(processes: readonly TopCounts[], count: number): TopReport {
  return {
    spanMs: Math.max(0, ...processes.map(({ spanMs }) => spanMs)),
    distinct: distinctIn(processes.map(({ callers }) => callers)),
    keys: topKeys(processes, count),
  }
}

/** @param processes what each knows */
export function topKeys(processes: readonly TopCounts[], count: number): TopKey[] {
  return merged(processes.flatMap(({ summaries }) => summaries))
    .slice(0, count)
    .map(({ word, count, error }) => {
      const [dimension, key] = partsOf(word)
      return { ...(dimension !== '' && { dimension }), key, count, error }
    })
}

/** The same with other keys. */
export function renameKeys(summaries: readonly Summary[], rename: RenameKey): Summary[] {
  return summaries.map(({ floor, counted }) => ({
    floor,
    counted: counted.map((each) => {
      const [dimension, key] = partsOf(each.word)
      return { ...each, word: `${dimension}=${rename(key)}` }
    }),
  }))
}

function partsOf(word: string): readonly [dimension: string, key: string] {
  const end = word.indexOf('=')
  return [word.slice(0, end), word.slice(end + 1)]
}

/** Of each limiter, what several processes know of who asks it. */
export async function mergeCallers(
  processes: readonly Readonly<Record<string, CallerSketch>>[],
): Promise<ReadonlyMap<string, Callers>> {
  const byName = new Map<string, CallerSketch[]>()
  for (const [name, told] of processes.flatMap(Object.entries)) {
    byName.set(name, [...(byName.get(name) ?? []), told])
  }
  const callers = new Map<string, Callers>()
  for (const [name, each] of byName) {
    callers.set(name, together(each))
    if (callers.size % AT_A_TIME === 0) await setImmediate()
  }
  return callers
}

function together(each: readonly CallerSketch[]): Callers {
  const requests = each.reduce((sum, told) => sum + told.requests, 0)
  const [first] = merged(each.flatMap(({ top }) => top))
  return {
    distinct: distinctIn(each.map(({ sketch }) => sketch)),
    topShare: first === undefined ? 0 : (first.count - first.error) / requests,
  }
}

/** How many different keys came to several processes, estimated. */
export function distinctIn(sketches: readonly unknown[]): number {
  const known = sketches.flatMap((text) => HyperLogLog.of(text) ?? [])
  if (known.length === 0) return 0
  const size = Math.min(...known.map(({ registers }) => registers.length))
  return HyperLogLog.union(known.filter(({ registers }) => registers.length === size)).count()
}
