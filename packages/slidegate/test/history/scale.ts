import type { KindName } from './declarations.ts'

/** The size of the numbers in a history. */
export interface Scale {
  readonly limit: number
  readonly windowMs: number
  /** The shortest window. Default: 10 ms. */
  readonly shortestMs?: number
  readonly events: number
  /** How many of every ten waits are as long as a window. With fewer, logs become longer. */
  readonly longWaits: number
  /** The kinds of limits, and the most limits per limiter. A kind is chosen as often as it is listed. */
  readonly kinds: readonly KindName[]
  readonly limits?: number
  /** Whether all limits share one log. Then they are enforced sliding windows with a precision of 1 ms. */
  readonly oneLog?: boolean
  /** Whether all limits are enforced. */
  readonly noShadows?: boolean
  /** Whether the clock is also set back. */
  readonly clockSteps?: boolean
  /** The most units per unconditional charge. Default: slightly more than a limit admits. */
  readonly charge?: number
  /** The most requests in one burst. Bursts make logs grow, and many records expire together. */
  readonly burst?: number
}

/** Windows are longer than a clock step. Charges from before a step back still count. */
export const LONG: Omit<Scale, 'kinds'> = {
  ...{ limit: 6, windowMs: 3000, events: 60, longWaits: 5, clockSteps: true },
}

/**
 * Lengthens windows of histories with permits.
 * Permits are renewed every third of their TTL in real time, and no history may take that long.
 */
export function longerIfHeld(scale: Scale): Scale {
  return scale.kinds.includes('concurrency') ? { ...scale, shortestMs: 300_000, windowMs: 600_000 } : scale
}

/** Kinds that keep sums, so their numbers may be very large. */
export const SUMMING: readonly KindName[] = ['fixed', 'calendar', 'firstHit', 'counter', 'bucket']
