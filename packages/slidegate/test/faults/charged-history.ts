import type { Decision, Limit } from '../../src/index.ts'
import { fullestWindow } from '../processes/fullest-window.ts'

/** Logs that are further ahead of the clock are restamped. */
const MAX_AHEAD_MS = 1000

/** Units charged to one key at a time of the server's clock. */
interface Charge {
  atMs: number
  readonly cost: number
}

/**
 * Returns the most units that any window of this limit held, by the server's clock. The clock was set between series of
 * decisions. After a step back, units that the window still held count as if charged at the next decision. No other units are
 * dropped early.
 */
export function fullest(
  { windowMs, precisionMs }: Limit,
  stretches: readonly (readonly Decision[])[],
): number {
  const isFixed = precisionMs === windowMs
  let charges: Charge[] = []
  let newestMs = Number.NEGATIVE_INFINITY
  let fullestSoFar = 0
  for (const stretch of stretches) {
    const firstMs = Math.min(...stretch.map(({ atMs }) => atMs))
    if (newestMs > firstMs + MAX_AHEAD_MS) {
      const floorMs = isFixed ? newestMs - (newestMs % windowMs) - 1 : newestMs - windowMs
      charges = charges.filter(({ atMs }) => atMs > floorMs).map(({ cost }) => ({ atMs: firstMs, cost }))
    }
    for (const { allowed, atMs, cost } of stretch) if (allowed) charges.push({ atMs, cost })
    newestMs = Math.max(...stretch.map(({ atMs }) => atMs))
    fullestSoFar = Math.max(
      fullestSoFar,
      isFixed ? fullestAligned(charges, windowMs) : fullestWindow(charges, windowMs),
    )
  }
  return fullestSoFar
}

function fullestAligned(charges: readonly Charge[], windowMs: number): number {
  const units = new Map<number, number>()
  for (const { atMs, cost } of charges) {
    const window = Math.floor(atMs / windowMs)
    units.set(window, (units.get(window) ?? 0) + cost)
  }
  return Math.max(0, ...units.values())
}
