import { FullestWindow } from '../../../server/src/replay/fullest-window.ts'
import type { Log } from './log.ts'

/** The least limit that would never deny such a share of the callers. */
export interface Need {
  readonly share: number
  readonly limit: number
}

const SHARES = [0.9, 0.95, 0.99, 0.999, 1]

/** Requests between two pauses. */
const STRIDE = 512

/**
 * What callers need of a window that slides: it never denies those whose own fullest window, of all that they asked for, is
 * within the limit. Pauses now and then, and may be left there.
 */
export function* needsOf(
  { callers, starts, timesMs, costs }: Log,
  windowMs: number,
): Generator<undefined, Need[], void> {
  const fullest = new Float64Array(callers.length)
  for (let caller = 0; caller < callers.length; caller++) {
    const window = new FullestWindow(windowMs)
    for (let i = starts[caller]!; i < starts[caller + 1]!; i++) {
      if (i % STRIDE === 0) yield
      window.add('', timesMs[i]!, costs?.[i])
    }
    fullest[caller] = window.count
  }
  fullest.sort()
  return SHARES.map((share) => ({ share, limit: fullest[Math.ceil(share * callers.length) - 1] ?? 1 }))
}
