import type { Rounds } from './measure.ts'
import type { Plot } from './report/plot.ts'

/** The length of the measurements: short for a quick look, full for the report. */
export interface Effort {
  readonly mode: 'short' | 'full'
  readonly rounds: Rounds
  /** Length of a timed turn. */
  readonly turnMs: number
  /** Calls per median. */
  readonly samples: number
  /** Whether to bind client and Redis to cores. */
  readonly isPinned: boolean
}

export const EFFORTS: Readonly<Record<Effort['mode'], Omit<Effort, 'isPinned'>>> = {
  short: { mode: 'short', rounds: { warmUps: 2, rounds: 5 }, turnMs: 150, samples: 51 },
  full: { mode: 'full', rounds: { warmUps: 2, rounds: 15 }, turnMs: 500, samples: 301 },
}

export type Target = { readonly atLeast: number } | { readonly atMost: number }

/** The unit of a figure. */
export type Unit = 'x' | '%' | 'bytes' | 'µs' | 'ms' | 'per second' | 'per 1,000' | 'k instructions'

/** A measured number, its target, and the raw values. */
export interface Figure {
  /** Unique in its scenario, and the same in every run, because notes.md refers to it. */
  readonly name: string
  readonly value: number
  readonly unit: Unit
  readonly target?: Target
  /** The figure of each round. */
  readonly spread?: readonly number[]
  /** Absolute numbers of this run. */
  readonly note?: string
  /** Measured values, per side and round. */
  readonly raw: Readonly<Record<string, readonly number[]>>
}

/** Figures and plots of a scenario. */
export interface Measured {
  readonly figures: readonly Figure[]
  readonly plots: readonly Plot[]
}

/** A measurement. It throws if its setup fails, but never because of a figure. */
export interface Scenario {
  readonly name: string
  readonly title: string
  run(effort: Effort): Promise<readonly Figure[] | Measured>
}

/** Returns whether the target was reached, or undefined if there is no target. */
export function isReached({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}
