import type { Source } from '../decision.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { Call } from './call.ts'

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

/** Take back units of a charge made at `atMs`. */
export interface RefundOp {
  readonly type: 'refund'
  readonly parts: readonly Part[]
  readonly units: number
  readonly atMs: number
  /** Per log, over all parts in order: whether it was charged then (a shadow limit without room was not). */
  readonly charged: readonly boolean[]
  /** Who has charged it, where that was not the store. */
  readonly source?: 'fallback'
}

/** Forget every log. */
export interface ResetOp {
  readonly type: 'reset'
  readonly parts: readonly Part[]
}

export type Op = ConsumeOp | PeekOp | ChargeOp | RefundOp | ResetOp

/** The outcome of a consume or peek op. */
export interface ConsumeOutcome {
  readonly source: Source
  readonly atMs: number
  /** How many of `count` were admitted (for a peek: would be). */
  readonly admitted: number
  /**
   * Three numbers per limit, over the limits of all parts in order: the units used within its window before
   * this op; the milliseconds until it has room for the cost once more after it (0 where it has,
   * `Infinity` where it never will); the milliseconds until its window is empty after it.
   */
  readonly limits: readonly number[]
  /** With the source `failClosed`: for how many milliseconds the refusal is expected to last. Else 0. */
  readonly waitMs: number
}

/** The outcome of a refund op. */
export interface RefundOutcome {
  /** Per log, over all parts in order: the units returned. */
  readonly returned: readonly number[]
}

/** What an op answers. A charge and a reset have nothing to say. */
export type Outcome = ConsumeOutcome | RefundOutcome | undefined

/**
 * Where the state lives and whose clock counts. Stores know no kind of limit, kinds know no store; every
 * present and later need of a limiter is an op, so that there is one door.
 *
 * Outcomes stand in the order of the ops. A store that cannot decide rejects with `StoreUnavailableError`; no op of the call
 * has then been charged for certain, and none is certain not to have been.
 */
export interface Store {
  /** Calls back rather than answering with a promise: at full load, promises are what a decision costs. */
  apply(ops: readonly Op[], call: Call): void
  /** Only where the state is in this process. What it answers is good until its next call. */
  applySync?(ops: readonly Op[]): readonly Outcome[]
  /**
   * Where the op's keys live, as a number: what lives elsewhere may be down on its own. Left out where all share one
   * fate.
   */
  domainOf?(op: Op): number
  /** Ends what the store started, never what it was given; a promise where that takes time. */
  close(): void | Promise<void>
}
