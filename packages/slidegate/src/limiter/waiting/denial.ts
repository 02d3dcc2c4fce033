// When a queue sends its next request after a denial.
import { waitOf } from '../../ops/numbers.ts'
import { limitsInForce, limitsOf } from '../../stores/outcome.ts'
import type { ConsumeOp, ConsumeOutcome, Part } from '../../stores/store.ts'

/** The longest pause between requests. Limits may have been raised elsewhere. */
const MAX_WAIT_MS = 5000

/** The same if a concurrency slot may be released at any time. */
const MAX_HELD_MS = 100

/** The same if processes may have blocked each other for a moment. Random, half of it at least. */
const MAX_JOINED_MS = 1000

/** A process that shares a key with others sends up to this much later than the store said. */
const MAX_DELAY_MS = 20

/** Admissions without a loss after which a process assumes that no other process waits. */
const ALONE_AFTER = 8

/** An op and its outcome. */
export interface Answer {
  readonly op: ConsumeOp
  readonly outcome: ConsumeOutcome
}

/** No room for a request, until it is due again. */
export interface Denial {
  readonly parts: readonly Part[]
  readonly cost: number
  /** When the store has said that there is room, by its clock and by the process's. */
  readonly openAtMs: number
  readonly roomAtMs: number
  readonly dueAtMs: number
  /** There is certainly no room before. */
  readonly closedUntilMs: number | undefined
}

/**
 * The denial of an answer.
 *
 * @param sentAtMs when the op was sent, by `performance.now()`
 * @param waitMs see {@link waitIn}
 */
export function denialOf(
  { op, outcome }: Answer,
  sentAtMs: number,
  waitMs: number,
  contention: Contention,
): Denial {
  const nowMs = performance.now()
  const isHeld = areHeld(op.parts)
  const isOfStore = outcome.source === 'store'
  const isCertain = isOfStore && !isHeld && outcome.debits === undefined
  // The next request takes as long to the store as this one did: from here on it arrives in time, however far the store is.
  const fromMs = isOfStore ? sentAtMs : nowMs
  const mostMs = Math.min(
    isHeld ? MAX_HELD_MS : MAX_WAIT_MS,
    // Processes that blocked each other must not come at the same time again.
    outcome.debits !== undefined ? MAX_JOINED_MS * (1 - Math.random() / 2) : Number.POSITIVE_INFINITY,
  )
  return {
    parts: op.parts,
    cost: op.cost,
    openAtMs: outcome.atMs + waitMs,
    roomAtMs: fromMs + waitMs,
    dueAtMs: Math.max(nowMs, fromMs + Math.min(waitMs + contention.delayMs(), mostMs)),
    // The store has decided after the op was sent, by a clock of whole milliseconds.
    closedUntilMs: isCertain ? Math.max(nowMs, sentAtMs + waitMs - 1) : undefined,
  }
}

/** Milliseconds until a denied request can be sent again; `Infinity` if it never can. */
export function waitIn({ op, outcome }: Answer): number {
  // An answer without the store may not say.
  let waitMs = Math.max(1, outcome.waitMs, outcome.ban?.ms ?? 0)
  limitsInForce(op, outcome).forEach(({ shadow }, i) => {
    if (!shadow) waitMs = Math.max(waitMs, waitOf(outcome.limits, i))
  })
  return waitMs
}

/** Whether units can be released at any time. */
function areHeld(parts: readonly Part[]): boolean {
  return limitsOf(parts).some(({ kind, shadow }) => !shadow && kind.entries?.are === 'holder')
}

/** Units per millisecond that the tightest limit admits. `Infinity` if no limit is a rate. */
export function rateOf(parts: readonly Part[]): number {
  const rated = limitsOf(parts).filter(({ kind, shadow }) => !shadow && kind.entries?.are !== 'holder')
  return Math.min(...rated.map(({ limit, windowMs }) => limit / windowMs))
}

/**
 * Delays the next request of a queue, so that other processes get their turn.
 *
 * The store names the same time to all processes, so without a delay the nearest would always be first. Each adds a random
 * delay, which halves whenever another process was faster: the longer a process goes without room, the earlier it sends. A
 * process that waits alone never loses, and adds nothing.
 */
export class Contention {
  /** In a row, since the last admission. */
  #losses = 0
  /** Admissions until the process assumes that it waits alone. */
  #left = 0

  /** Another process took the room that the store had promised. */
  lost(): void {
    this.#losses++
    this.#left = ALONE_AFTER
  }

  admitted(): void {
    this.#losses = 0
    if (this.#left > 0) this.#left--
  }

  /** The random delay of the next request. */
  delayMs(): number {
    return this.#left === 0 ? 0 : (MAX_DELAY_MS * Math.random()) / 2 ** this.#losses
  }
}
