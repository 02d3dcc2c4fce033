import type { Decision } from '../../src/index.ts'
import type { Event } from './histories.ts'

/** The result of an event, or an error code. Compared between the oracle and every store. */
export type Result = Decision | readonly ListedEntry[] | number | boolean | string | undefined

/** An entry of a limit. Names that the limiter created are replaced by `made`. */
export interface ListedEntry {
  readonly limit: string
  readonly name: string
  readonly units: number
  readonly atMs: number
}

/** An event other than time passing. */
export type Asking = Exclude<Event, { readonly type: 'wait' | 'waitWindow' }>

export function inOrder(entries: readonly ListedEntry[]): ListedEntry[] {
  return entries.toSorted(
    (a, b) =>
      a.atMs - b.atMs || a.limit.localeCompare(b.limit) || a.name.localeCompare(b.name) || a.units - b.units,
  )
}
