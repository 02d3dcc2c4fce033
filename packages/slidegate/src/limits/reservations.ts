// Reservations: a log of those that can still be settled. It isn't a limit.

import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Log } from './limit-set.ts'

const kind = entryWindowKind('r', 'holder')

/**
 * The log of a key's open reservations, one entry each.
 *
 * It keeps 10,000. If there are more, the oldest can't be settled.
 *
 * @param ttlMs how long they stay open
 */
export function reservationLog(ttlMs: number): Log {
  const params = { precision: 1, records: MAX_ENTRIES, windows: [ttlMs], limits: [MAX_ENTRIES] }
  return { name: `r${ttlMs}`, kind, role: 'reservations', shadow: false, params, serves: [] }
}
