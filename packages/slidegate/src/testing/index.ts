// The public entry point slidegate/testing.
import { bans } from './bans.ts'
import { calendar } from './calendar.ts'
import { changes } from './changes.ts'
import { charges } from './charges.ts'
import { clockSteps } from './clock-steps.ts'
import { type ConformanceCase, play } from './conformance-case.ts'
import { decisions } from './decisions.ts'
import { entries } from './entries.ts'
import { explaining } from './explaining.ts'
import { holders } from './holders.ts'
import { operations } from './operations.ts'
import { overriding } from './overriding.ts'
import { repeats } from './repeats.ts'
import { reservations } from './reservations.ts'
import { severalKeys } from './several-keys.ts'
import { sharing } from './sharing.ts'
import { slidingCounters } from './sliding-counter.ts'
import { tokenBuckets } from './token-bucket.ts'
import { values } from './values.ts'
import { waiting } from './waiting.ts'
import { windows } from './windows.ts'

export { type ConformanceCase, type CreateStore, ManualClock } from './conformance-case.ts'

/**
 * The conformance suite for stores, with one case per guarantee. It works with or without a test runner:
 *
 * ```ts
 * import { storeConformance } from 'slidegate/testing'
 *
 * describe('my store', () => {
 *   for (const { name, run } of storeConformance) {
 *     it(name, () => run(({ clock }) => myStore({ clock, namespace: randomUUID() })))
 *   }
 * })
 * ```
 *
 * The store must use the given clock and start each case empty. `run` closes the store.
 */
export const storeConformance: readonly ConformanceCase[] = [
  decisions,
  charges,
  windows,
  calendar,
  tokenBuckets,
  slidingCounters,
  entries,
  repeats,
  holders,
  values,
  sharing,
  clockSteps,
  operations,
  severalKeys,
  bans,
  changes,
  reservations,
  explaining,
  waiting,
  overriding,
].flatMap((cases) =>
  Object.entries(cases).map(([name, check]) => ({ name, run: (createStore) => play(check, createStore) })),
)
