// Computes the share of a limit that a key used over time, from the units charged.

import type { CountSeries } from '../../../server/src/admin/api-types.ts'
import type { ExplainedLimit } from '../api-types.ts'

/** Kinds of limits that count units over a window. A bucket's window is the time that it takes to refill completely. */
const KINDS = ['slidingWindow', 'fixedWindow', 'calendarWindow', 'slidingCounter', 'tokenBucket']

/**
 * Returns the share of a limit in use at the end of each step.
 *
 * If several windows fit into a step, the share is their average. Uses the limit's current numbers. Values
 * are `null` if part of the window is unknown. Returns `undefined` if the limit doesn't count units, or its
 * window is longer than the series.
 */
export function sharesOf(
  { units, stepSeconds }: Pick<CountSeries, 'units' | 'stepSeconds'>,
  { limit, windowMs, declared }: Pick<ExplainedLimit, 'limit' | 'windowMs' | 'declared'>,
): (number | null)[] | undefined {
  const stepsPerWindow = windowMs / (1000 * stepSeconds)
  if (declared === undefined || !KINDS.includes(declared.kind) || stepsPerWindow >= units.length)
    return undefined
  const steps = Math.max(1, Math.ceil(stepsPerWindow))
  // If the window isn't a whole number of steps, the limit is scaled up to whole steps.
  const most = limit * (steps / stepsPerWindow)
  return units.map((_, i) => {
    if (i + 1 < steps) return null
    const window = units.slice(i + 1 - steps, i + 1)
    if (window.includes(null)) return null
    return window.reduce<number>((sum, each) => sum + each!, 0) / most
  })
}
