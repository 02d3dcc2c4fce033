import { admission } from './testing/admission.ts'
import { answers } from './testing/answers.ts'
import { calendar } from './testing/calendar.ts'
import { charges } from './testing/charges.ts'
import { clockSteps } from './testing/clock-steps.ts'
import type { ConformanceCase } from './testing/conformance-case.ts'
import { entries } from './testing/entries.ts'
import { holders } from './testing/holders.ts'
import { operations } from './testing/operations.ts'
import { repeats } from './testing/repeats.ts'
import { sharing } from './testing/sharing.ts'
import { slidingCounters } from './testing/sliding-counter.ts'
import { tokenBuckets } from './testing/token-bucket.ts'
import { values } from './testing/values.ts'
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
]
