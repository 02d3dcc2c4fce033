import type { Decision } from '../../src/index.ts'
import type { Part } from '../../src/stores/store.ts'
import type { Execution } from './server.ts'
import type { WatchedLimiter } from './watched-limiter.ts'

export type Question = 'consume' | 'peek' | 'charge' | 'refund' | 'reset'

/** What a caller has asked for, and what has become of it. */
export interface Asked {
  readonly number: number
  readonly of: WatchedLimiter
  readonly question: Question
  readonly key: string
  readonly cost: number
  /** What it returns. */
  readonly refundOf: Asked | undefined
  readonly atMs: number
  /** For how long the loop had been blocked by then. */
  readonly stalledMs: number
  /** The same, in the task that has asked. */
  readonly stalledHereMs: number
  /** Whether its limiter was closed by then. */
  readonly isRefused: boolean
  /** Whether only the store's own answer will do. */
  readonly mustBeExact: boolean
  isRefundAsked: boolean
  /** Where it has reached the store. */
  part?: Part
  settledAtMs?: number
  /** When the loop had come around, before that. */
  roundAtMs?: number
  decision?: Decision
  /** Units that a refund has returned. */
  returned?: number
  error?: unknown
  /** What has charged it, in its place among those that were decided together, and when that was told, in epoch milliseconds. */
  execution?: Execution
  position?: number
  heardAtMs?: number
  /** Whether it had been told something else by then. */
  isLate?: boolean
  /** How often all of its key had been forgotten in this process. */
  localGeneration?: number
}

export function wordsOf({ of, number, question, key, cost }: Asked): string {
  return `${of.name} #${number} ${question} ${key} ${cost}`
}

export function wordsOfAnswer({ decision, error, returned }: Asked): string {
  if (error !== undefined) return `${error}`
  if (decision === undefined) return returned === undefined ? 'done' : `${returned} returned`
  const { allowed, source, remaining, retryAfterMs } = decision
  return `${allowed ? 'allowed' : 'denied'} (${source}), ${remaining} left, wait ${retryAfterMs}`
}
