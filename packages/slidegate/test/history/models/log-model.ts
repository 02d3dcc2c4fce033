import type { Limit } from '../../../src/index.ts'

/** What is charged, or asked about. */
export interface Request {
  readonly units: number
  /** The request's own, or what the limiter has named it. */
  readonly id: string
  /** Whether the caller has chosen it. */
  readonly isChosen?: boolean
  /** What it has brought; '' where it has brought nothing. */
  readonly value: string
}

/**
 * One log, as the promises of its kind tell of it. Time does not run back here: `nowMs` is never before `newest()`,
 * but for a refund after the clock was set back.
 */
export interface LogModel {
  copy(): LogModel
  /** The limits that read it from now on, where it matters. */
  under?(limits: readonly Limit[]): void
  /** The newest stamp; 0 where there is none. */
  newest(): number
  /** The clock was set back: what counted counts from now on. */
  restamp(nowMs: number): void
  /** Units used within the limit's window. If nothing is charged they only fall. */
  used(limit: Limit, nowMs: number): number
  /** Units that the request would take. */
  need(nowMs: number, request: Request): number
  /** `limits` are all that share the log and are charged. */
  charge(limits: readonly Limit[], nowMs: number, request: Request): void
  /** Takes back what was charged at `atMs`; answers how many units. */
  refund(nowMs: number, atMs: number, request: Request): number
  /** What counts, each by itself, by a log that keeps the times of charges. */
  charges?(limit: Limit, nowMs: number): readonly Stamped[]
  /** Whether what it holds is told apart by these names, if at all. */
  readonly entries?: Entries
}

export interface Stamped {
  readonly units: number
  readonly stampMs: number
}

export interface Entry extends Stamped {
  readonly name: string
}

/** What a log does that keeps what is charged one by one. */
export interface Entries {
  readonly are: 'request' | 'holder' | 'value' | 'nameless'
  /** When the entry of this name was charged, or renewed, where it still counts. */
  find(nowMs: number, name: string): number | undefined
  /** Lets it count from now on; answers whether it still did. */
  renew(nowMs: number, name: string): boolean
  list(nowMs: number): readonly Entry[]
  /** Lets it count no longer; answers whether it still did. */
  remove(nowMs: number, name: string): boolean
}
