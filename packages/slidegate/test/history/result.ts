import type { Decision } from '../../src/index.ts'
import type { Event } from './histories.ts'

/** What an event led to, or the code of the error: compared between the oracle and every store. */
export type Result = Decision | readonly ListedEntry[] | number | boolean | string | undefined

/** An entry of a limit; what the limiter has named itself is called `made`. */
export interface ListedEntry {
  readonly limit: string
  readonly name: string
  readonly units: number
  readonly atMs: number
}

/** An event that asks something, not one that lets time pass. */
export type Asking = Exclude<Event, { readonly type: 'wait' | 'waitWindow' }>

export function inOrder(entries: readonly ListedEntry[]): ListedEntry[] {
  return entries.toSorted(
    (a, b) =>
      a.atMs - b.atMs || a.limit.localeCompare(b.limit) || a.name.localeCompare(b.name) || a.units - b.units,
  )
}
