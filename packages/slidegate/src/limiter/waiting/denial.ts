// Decides when a queue sends its next request after a denial.
import { waitOf } from '../../ops/numbers.ts'
import { limitsInForce, limitsOf } from '../../stores/outcome.ts'
import type { ConsumeOp, ConsumeOutcome, Part } from '../../stores/store.ts'

/** Maximum pause before the next request. Another process may raise the limits in the meantime. */
const MAX_WAIT_MS = 5000

/** Maximum pause for a concurrency limit. A slot may be released at any time. */
const MAX_HELD_MS = 100

/** Maximum pause if processes may have briefly blocked each other. The pause is random, and at least half of this. */
const MAX_JOINED_MS = 1000

/** Maximum random delay for a process that shares a key with others. */
const MAX_DELAY_MS = 20

/** After this many admissions in a row, a process assumes that it is waiting alone. */
const ALONE_AFTER = 8

export interface Answer {
  readonly op: ConsumeOp
  readonly outcome: ConsumeOutcome
}

export interface Denial {
  readonly parts: readonly Part[]
  readonly cost: number
  /** When the store expects to have room, by its own clock. */
  readonly openAtMs: number
  /** The same time by `performance.now()`. */
  readonly roomAtMs: number
  readonly dueAtMs: number
  /** Until this time, there can't be room. `undefined` if units may be freed at any time. */
  readonly closedUntilMs: number | undefined
}

export function denialOf(answer: Answer, sentAtMs: number, waitMs: number, contention: Contention): Denial {
  const { op, outcome } = answer
  const nowMs = performance.now()
  const isHeld = areHeld(op.parts)
  const isOfStore = outcome.source === 'store'
  const isCertain = isOfStore && !isHeld && outcome.debits === undefined
  // Assumes the same latency for the next request, so that it arrives on time even over a slow network.
  const fromMs = isOfStore ? sentAtMs : nowMs
  const mostMs = Math.min(
    isHeld ? MAX_HELD_MS : MAX_WAIT_MS,
    // Processes that blocked each other must not send at the same time again, so the pause is random.
    outcome.debits !== undefined ? MAX_JOINED_MS * (1 - Math.random() / 2) : Number.POSITIVE_INFINITY,
  )
  return {
    parts: op.parts,
    cost: op.cost,
    openAtMs: outcome.atMs + waitMs,
    roomAtMs: fromMs + waitMs,
    dueAtMs: Math.max(nowMs, fromMs + Math.min(waitMs + contention.delayMs(), mostMs)),
    // A lower bound: the store decided after the op was sent, and the store's clock counts whole milliseconds.
    closedUntilMs: isCertain ? Math.max(nowMs, sentAtMs + waitMs - 1) : undefined,
  }
}

/** Milliseconds until a denied request can be sent again; `Infinity` if it never can. */
export function waitIn({ op, outcome }: Answer): number {
  // In a decision made without the store, the wait may be 0.
  let waitMs = Math.max(1, outcome.waitMs, outcome.ban?.ms ?? 0)
  limitsInForce(op, outcome).forEach(({ shadow }, i) => {
    if (!shadow) waitMs = Math.max(waitMs, waitOf(outcome.limits, i))
  })
  return waitMs
}

function areHeld(parts: readonly Part[]): boolean {
  return limitsOf(parts).some(({ kind, shadow }) => !shadow && kind.entries?.are === 'holder')
}

/** Units per millisecond that the tightest limit allows. `Infinity` if no limit is a rate limit. */
export function rateOf(parts: readonly Part[]): number {
  const rated = limitsOf(parts).filter(({ kind, shadow }) => !shadow && kind.entries?.are !== 'holder')
  return Math.min(...rated.map(({ limit, windowMs }) => limit / windowMs))
}

/**
 * Delays a queue's next request, so that other processes get their turn.
 *
 * The store announces the same time to all processes, so without a delay, the process nearest to the store would always
 * win. Each process adds a random delay, which halves whenever another process wins. The longer a process goes without an
 * admission, the earlier it sends. A process that waits alone never loses and adds no delay.
 */
export class Contention {
  #losses = 0
  #left = 0

  lost(): void {
    this.#losses++
    this.#left = ALONE_AFTER
  }

  admitted(): void {
    this.#losses = 0
    if (this.#left > 0) this.#left--
  }

  delayMs(): number {
    return this.#left === 0 ? 0 : (MAX_DELAY_MS * Math.random()) / 2 ** this.#losses
  }
}
