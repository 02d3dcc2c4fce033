import type { KindName } from './declarations.ts'

/** How large the numbers of a history become. */
export interface Scale {
  readonly limit: number
  readonly windowMs: number
  /** The shortest window; 10 ms unless told. */
  readonly shortestMs?: number
  readonly events: number
  /** Of ten waits, how many are as long as a window: the fewer, the longer the logs become. */
  readonly longWaits: number
  /** The kinds of limits, each as often as it is named; and how many limits a limiter has at most. */
  readonly kinds: readonly KindName[]
  readonly limits?: number
  /** Whether all limits are sliding at the grain of 1 ms, enforced, and so share one log. */
  readonly oneLog?: boolean
  /** Whether all limits are enforced. */
  readonly noShadows?: boolean
  /** Whether the clock is also set back. */
  readonly clockSteps?: boolean
  /** Units that are charged at most without asking; unless told, little more than a limit admits. */
  readonly charge?: number
  /** Requests that may come one behind the other: so logs grow, and many records leave at once. */
  readonly burst?: number
}

/** Windows so long that a clock which is set back by more than a second is still in one that counts. */
export const LONG: Omit<Scale, 'kinds'> = {
  ...{ limit: 6, windowMs: 3000, events: 60, longWaits: 5, clockSteps: true },
}

/** By the real clock permits are renewed each third of their time: no history may last for so long. */
export function longerIfHeld(scale: Scale): Scale {
  return scale.kinds.includes('concurrency') ? { ...scale, shortestMs: 300_000, windowMs: 600_000 } : scale
}

/** Kinds that keep sums, and so admit, and hold, as much as numbers can tell. */
export const SUMMING: readonly KindName[] = ['fixed', 'calendar', 'firstHit', 'counter', 'bucket']
