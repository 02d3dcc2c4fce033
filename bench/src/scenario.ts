import type { Rounds } from './measure.ts'
import type { Plot } from './report/plot.ts'

/** How much is measured: short for a look, full for figures to keep. */
export interface Effort {
  readonly mode: 'short' | 'full'
  readonly rounds: Rounds
  /** Length of a turn where turns go by time. */
  readonly turnMs: number
  /** Single calls that a median is taken over. */
  readonly samples: number
  /** Whether client and Redis are bound to cores, where it matters. */
  readonly isPinned: boolean
}

export const EFFORTS: Readonly<Record<Effort['mode'], Omit<Effort, 'isPinned'>>> = {
  short: { mode: 'short', rounds: { warmUps: 2, rounds: 5 }, turnMs: 150, samples: 51 },
  full: { mode: 'full', rounds: { warmUps: 2, rounds: 15 }, turnMs: 500, samples: 301 },
}

export type Target = { readonly atLeast: number } | { readonly atMost: number }

/** What a figure is counted in; by it a number is spelt. */
export type Unit = 'x' | '%' | 'bytes' | 'µs' | 'ms' | 'per second' | 'per 1,000' | 'k instructions'

/** One number, what it should be, and what it was made of. */
export interface Figure {
  /** Tells it from all others of its scenario, in every run: what is written about it by hand refers to it. */
  readonly name: string
  readonly value: number
  readonly unit: Unit
  readonly target?: Target
  /** The figure by each round alone. */
  readonly spread?: readonly number[]
  /** What the ratio hides: absolute numbers of this run. */
  readonly note?: string
  /** As measured, per side and round. */
  readonly raw: Readonly<Record<string, readonly number[]>>
}

/** What a scenario gives that has more to show than figures. */
export interface Measured {
  readonly figures: readonly Figure[]
  /** Drawn in the report. */
  readonly plots: readonly Plot[]
}

/** Something measured. It throws where what it set up did not happen, never because of a figure. */
export interface Scenario {
  readonly name: string
  readonly title: string
  run(effort: Effort): Promise<readonly Figure[] | Measured>
}

/** Undefined where there is no target. */
export function isReached({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}
