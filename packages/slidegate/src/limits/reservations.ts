// Reservations: no limit, but a log of those that can still be settled.

import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { ExtraLog } from './limit-set.ts'

const kind = entryWindowKind('r', 'holder')

/**
 * Where the reservations of a key are kept that are still to be settled, one entry each. There are no more than 10,000
 * at a time: one more, and the oldest can be settled no longer.
 *
 * @param ttlMs for how long they can be settled
 */
export function reservationLog(ttlMs: number): ExtraLog {
  const params = { precision: 1, records: MAX_ENTRIES, windows: [ttlMs], limits: [MAX_ENTRIES] }
  return { name: `r${ttlMs}`, kind, role: 'reservations', params }
}
