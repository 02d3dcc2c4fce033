import { admission } from './testing/admission.ts'
import { answers } from './testing/answers.ts'
import { bans } from './testing/bans.ts'
import { calendar } from './testing/calendar.ts'
import { changes } from './testing/changes.ts'
import { charges } from './testing/charges.ts'
import { clockSteps } from './testing/clock-steps.ts'
import type { ConformanceCase } from './testing/conformance-case.ts'
import { entries } from './testing/entries.ts'
import { explaining } from './testing/explaining.ts'
import { holders } from './testing/holders.ts'
import { operations } from './testing/operations.ts'
import { overriding } from './testing/overriding.ts'
import { repeats } from './testing/repeats.ts'
import { reservations } from './testing/reservations.ts'
import { severalKeys } from './testing/several-keys.ts'
import { sharing } from './testing/sharing.ts'
import { slidingCounters } from './testing/sliding-counter.ts'
import { tokenBuckets } from './testing/token-bucket.ts'
import { values } from './testing/values.ts'
import { waiting } from './testing/waiting.ts'
import { windows } from './testing/windows.ts'

export type { ConformanceCase, CreateStore } from './testing/conformance-case.ts'
export { ManualClock } from './testing/manual-clock.ts'

/**
 * What every store promises, one case each. They need no test runner; with one they read:
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
 * The store has to go by the clock that it is given, and to begin each case empty; `run` closes it.
 */
export const storeConformance: readonly ConformanceCase[] = [
  ...admission,
  ...answers,
  ...charges,
  ...windows,
  ...calendar,
  ...tokenBuckets,
  ...slidingCounters,
  ...entries,
  ...repeats,
  ...holders,
  ...values,
  ...sharing,
  ...clockSteps,
  ...operations,
  ...severalKeys,
  ...bans,
  ...changes,
  ...reservations,
  ...explaining,
  ...waiting,
  ...overriding,
]
