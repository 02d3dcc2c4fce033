import type { Decision, Limit } from '../../src/index.ts'
import { fullestWindow } from '../processes/fullest-window.ts'

/** How far a log may be ahead of the clock before what it holds is taken to have happened now. */
const MAX_AHEAD_MS = 1000

/** Units charged to one key, at times by the server's clock. */
interface Charge {
  atMs: number
  readonly cost: number
}

/**
 * The most units of a key that a window of this limit ever held by the server's clock, given decisions in stretches
 * of time between which that clock was set. When it was set back, what the window still held counts from the next
 * decision on; nothing else is forgotten before its time.
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
