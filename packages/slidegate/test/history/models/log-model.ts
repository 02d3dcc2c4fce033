import type { Limit } from '../../../src/index.ts'

/** A request that is charged or checked. */
export interface Request {
  readonly units: number
  /** Chosen by the caller or created by the limiter. */
  readonly id: string
  /** Whether the caller chose the id. */
  readonly isChosen?: boolean
  /** The request's value, or '' if it has none. */
  readonly value: string
}

/**
 * One log, as its kind documents it.
 * Time doesn't go back here: `nowMs` is never before `newest()`, except for a refund after the clock was set back.
 */
export interface LogModel {
  copy(): LogModel
  /** Sets the limits that read it from now on, for kinds that need them. */
  under?(limits: readonly Limit[]): void
  /** The newest stamp, or 0 if there is none. */
  newest(): number
  /** Handles a clock that was set back: everything that counted is now stamped `nowMs`. */
  restamp(nowMs: number): void
  /** Units used within the limit's window. They only fall while nothing is charged. */
  used(limit: Limit, nowMs: number): number
  /** Units that the request would take. */
  need(nowMs: number, request: Request): number
  /** `limits` are all charged limits that share the log. */
  charge(limits: readonly Limit[], nowMs: number, request: Request): void
  /** Refunds units charged at `atMs`. Returns how many were refunded. */
  refund(nowMs: number, atMs: number, request: Request): number
  /** The individual charges that count, if the log keeps their times. */
  charges?(limit: Limit, nowMs: number): readonly Stamped[]
  /** The entries by name, if the log keeps any. */
  readonly entries?: Entries
}

export interface Stamped {
  readonly units: number
  readonly stampMs: number
}

export interface Entry extends Stamped {
  readonly name: string
}

/** Operations of a log that keeps individual entries. */
export interface Entries {
  readonly are: 'request' | 'holder' | 'value' | 'nameless'
  /** When this entry was charged or renewed, if it still counts. */
  find(nowMs: number, name: string): number | undefined
  /** Restarts the entry's time. Returns whether it still counted. */
  renew(nowMs: number, name: string): boolean
  list(nowMs: number): readonly Entry[]
  /** Removes the entry. Returns whether it still counted. */
  remove(nowMs: number, name: string): boolean
}
