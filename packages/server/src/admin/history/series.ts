// Columns of counts over time, from a limiter's records.

import type { CountSeries } from '../api-types.ts'
import { partsOf } from '../merge-keys.ts'
import type { Step } from './history-store.ts'
import { busiest, type Counts } from './records.ts'

const NOTHING: Counts = [0, 0, 0, 0]

/** Number of keys to list in each of two orders: by requests and by denials. */
const LISTED = 10

type Columns = Pick<CountSeries, 'allowed' | 'denied' | 'units' | 'shadowDenied' | 'keys'>

/** A limiter's counts, and the busiest of its recorded keys. */
export function limiterSeries(steps: readonly Step[]): Columns {
  const rows = steps.map(({ isCounted, record }) => record?.c[''] ?? (isCounted ? NOTHING : undefined))
  return { ...columnsOf(rows), shadowDenied: columnOf(rows, 3), keys: keysOf(steps) }
}

/**
 * A key's counts, or `null` in steps for which they are unknown.
 *
 * @param isWatched whether the key was watched in a step
 */
export function keySeries(
  steps: readonly Step[],
  word: string,
  isWatched: (step: number) => boolean,
): Pick<Columns, 'allowed' | 'denied' | 'units'> {
  return columnsOf(
    steps.map((step, i) => {
      const counts = step.record?.c[word]
      if (counts !== undefined) return counts
      return step.isCounted && (isWatched(i) || isComplete(step, word)) ? NOTHING : undefined
    }),
  )
}

/** Whether the recorded keys in a step account for all requests. */
function isComplete({ record }: Step, word: string): boolean {
  if (record === undefined) return true
  const label = word.slice(0, word.indexOf('=') + 1)
  const requests = ([allowed, denied]: Counts) => allowed + denied
  const kept = Object.entries(record.c).filter(([name]) => name !== '' && name.startsWith(label))
  return kept.reduce((sum, [, counts]) => sum + requests(counts), 0) >= requests(record.c[''] ?? NOTHING)
}

function columnsOf(rows: readonly (Counts | undefined)[]) {
  return { allowed: columnOf(rows, 0), denied: columnOf(rows, 1), units: columnOf(rows, 2) }
}

function columnOf(rows: readonly (Counts | undefined)[], i: 0 | 1 | 2 | 3): (number | null)[] {
  return rows.map((row) => row?.[i] ?? null)
}

function keysOf(steps: readonly Step[]): NonNullable<CountSeries['keys']> {
  const sums = new Map<string, Counts>()
  for (const { record } of steps) {
    for (const [name, [allowed, denied, units]] of Object.entries(record?.c ?? {})) {
      const known = sums.get(name) ?? NOTHING
      if (name !== '') sums.set(name, [known[0] + allowed, known[1] + denied, known[2] + units, 0])
    }
  }
  return busiest(Array.from(sums), LISTED)
    .map(([name, [allowed, denied, units]]) => {
      const [dimension, key] = partsOf(name)
      return { ...(dimension !== '' && { dimension }), key, allowed, denied, units }
    })
    .sort((a, b) => b.allowed + b.denied - a.allowed - a.denied)
}
