// Messages between the page and its worker.

import type { Need } from '../../../replay/src/counts/needed-limits.ts'
import type { BadLine } from '../../../replay/src/log/parse-line.ts'
import type { KindName } from './choices.ts'
import type { ReadOptions } from './log.ts'
import type { Simulated, Timeline } from './simulate.ts'

/** A message to the worker. A new message cancels the previous one. */
export type Question = LoadQuestion | SimulateQuestion

export interface LoadQuestion {
  readonly type: 'load'
  /** `sample` is the generated log. */
  readonly source: Blob | 'sample'
  readonly options: ReadOptions
}

export interface SimulateQuestion {
  readonly type: 'simulate'
  readonly kinds: readonly KindName[]
  readonly limit: number
  readonly windowMs: number
}

/** A message from the worker. Each `share` is from 0 to 1. */
export type Answer =
  | { readonly type: 'loading'; readonly lines: number; readonly share: number }
  | { readonly type: 'loaded'; readonly log: LogSummary }
  | { readonly type: 'unreadable'; readonly message: string }
  | { readonly type: 'simulating'; readonly share: number }
  | { readonly type: 'simulated'; readonly outcome: Outcome }
  | { readonly type: 'failed'; readonly message: string }

export interface LogSummary {
  readonly requests: number
  readonly callers: number
  readonly fromMs: number
  readonly toMs: number
  readonly lines: number
  readonly skipped: number
  /** The number of skipped lines for each reason, in descending order. */
  readonly reasons: readonly (readonly [reason: string, lines: number])[]
  readonly badLines: readonly BadLine[]
  readonly releasedEarly: number
  readonly isCut: boolean
  readonly hasCosts: boolean
  readonly limiters: readonly string[]
  readonly limiter: string | undefined
  readonly fields: readonly string[]
  readonly timeline: Timeline
}

export interface Outcome {
  readonly question: SimulateQuestion
  readonly results: readonly Simulated[]
  /** The kinds that don't support these numbers, with the reasons. */
  readonly refused: readonly { readonly kind: KindName; readonly message: string }[]
  readonly needs: readonly Need[]
}
