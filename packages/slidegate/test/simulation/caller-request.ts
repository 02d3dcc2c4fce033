import type { Decision } from '../../src/index.ts'
import type { Part } from '../../src/stores/store.ts'
import type { Execution } from './server.ts'
import type { WatchedLimiter } from './watched-limiter.ts'

export type Question = 'consume' | 'peek' | 'charge' | 'refund' | 'reset'

/** A caller's request, and its result. */
export interface CallerRequest {
  readonly number: number
  readonly of: WatchedLimiter
  readonly question: Question
  readonly key: string
  readonly cost: number
  /** The request that a refund returns. */
  readonly refundOf: CallerRequest | undefined
  readonly atMs: number
  /** How long the loop had been blocked before the request. */
  readonly stalledMs: number
  /** How long the current task had been blocked before the request. */
  readonly stalledHereMs: number
  /** Whether the limiter was closed before the request. */
  readonly isRefused: boolean
  /** Whether only an answer by the store is allowed. */
  readonly mustBeExact: boolean
  isRefundAsked: boolean
  /** The part that reached the store. */
  part?: Part
  settledAtMs?: number
  /** The start of the loop iteration that settled it. */
  roundAtMs?: number
  decision?: Decision
  /** Units that a refund returned. */
  returned?: number
  error?: unknown
  /** The execution that charged it, and its position there. `heardAtMs`: when the reply arrived, in epoch milliseconds. */
  execution?: Execution
  position?: number
  heardAtMs?: number
  /** Whether it had already been answered without the store. */
  isLate?: boolean
  /** How often its key had been reset in this process. */
  localGeneration?: number
}

export function wordsOf({ of, number, question, key, cost }: CallerRequest): string {
  return `${of.name} #${number} ${question} ${key} ${cost}`
}

export function wordsOfAnswer({ decision, error, returned }: CallerRequest): string {
  if (error !== undefined) return `${error}`
  if (decision === undefined) return returned === undefined ? 'done' : `${returned} returned`
  const { allowed, source, remaining, retryAfterMs } = decision
  return `${allowed ? 'allowed' : 'denied'} (${source}), ${remaining} left, wait ${retryAfterMs}`
}
