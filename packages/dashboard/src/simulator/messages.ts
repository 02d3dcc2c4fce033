// Messages between the page and its worker.

import type { BadLine } from '../../../replay/src/log/parse-line.ts'
import type { KindName } from './choices.ts'
import type { ReadOptions } from './log.ts'
import type { Need, Simulated, Timeline } from './simulate.ts'

/** What the page asks of its worker. The last question counts: whatever is under way is left. */
export type Question = LoadQuestion | SimulateQuestion

export interface LoadQuestion {
  readonly type: 'load'
  /** `sample`: the log that is made here. */
  readonly source: Blob | 'sample'
  readonly options: ReadOptions
}

export interface SimulateQuestion {
  readonly type: 'simulate'
  readonly kinds: readonly KindName[]
  readonly limit: number
  readonly windowMs: number
}

/** What the worker answers. Shares are from 0 to 1. */
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
  /** How many lines for which reason, the most first. */
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
  /** Kinds that cannot hold these numbers, and why. */
  readonly refused: readonly { readonly kind: KindName; readonly message: string }[]
  readonly needs: readonly Need[]
}
