import type { Source } from '../decision.ts'
import type { LimitSet } from '../limits/limit-set.ts'

/** A key and the limits that it is held to. */
export interface Part {
  /** As stored: see `storedKey`. */
  readonly key: string
  readonly set: LimitSet
}

/** Decide `count` requests of `cost` units, the first to ask first; each is charged if all enforced limits of all parts have room. */
export interface ConsumeOp {
  readonly type: 'consume'
  readonly parts: readonly Part[]
  readonly cost: number
  readonly count: number
  /** For so long the units may be spent by the process that took them; 0 where they are spent at once. */
  readonly leaseMs: number
}

/** What `consume` would answer. Writes nothing. */
export interface PeekOp {
  readonly type: 'peek'
  readonly parts: readonly Part[]
  readonly cost: number
  readonly count: 1
}

/** Charge every log without asking. */
export interface ChargeOp {
  readonly type: 'charge'
  readonly parts: readonly Part[]
  readonly units: number
}

/** Take back units of a charge made at `atMs`, from each log named in `logs`. */
export interface RefundOp {
  readonly type: 'refund'
  readonly parts: readonly Part[]
  readonly units: number
  readonly atMs: number
  /** Per part, per log: whether the decision charged it (a shadow limit without room did not). */
  readonly charged: readonly (readonly boolean[])[]
}

/** Forget every log. */
export interface ResetOp {
  readonly type: 'reset'
  readonly parts: readonly Part[]
}

export type Op = ConsumeOp | PeekOp | ChargeOp | RefundOp | ResetOp

/** What a limit answers to a consume or peek op. */
export interface LimitOutcome {
  /** Units used within the window before this op. */
  readonly used: number
  /** After the op: until the cost fits once more; 0 where it fits. */
  readonly retryAfterMs: number
  /** After the op: until the window is empty. */
  readonly resetAfterMs: number
}

/** The outcome of a consume or peek op. */
export interface ConsumeOutcome {
  readonly source: Source
  readonly atMs: number
  /** How many of `count` were admitted (for a peek: would be). */
  readonly admitted: number
  /** Per part, per limit of its set. */
  readonly limits: readonly (readonly LimitOutcome[])[]
}

/** The outcome of a refund op. */
export interface RefundOutcome {
  /** Per part, per log: the units returned. */
  readonly returned: readonly (readonly number[])[]
}

/** What an op answers; a charge and a reset have nothing to say. An op alone may fail: the others of its batch do not. */
export type OutcomeOf<O extends Op> = O extends ConsumeOp | PeekOp
  ? ConsumeOutcome
  : O extends RefundOp
    ? RefundOutcome
    : undefined
