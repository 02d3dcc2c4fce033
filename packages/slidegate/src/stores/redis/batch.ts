import type { Entries } from '../../limits/limit.ts'
import type { Call } from '../call.ts'
import type { Op } from '../store.ts'
import type { Request } from './protocol.ts'

/** Ops per call at most, so that no script holds Redis for long; those that take longer weigh more. */
const MAX_BATCH = 128

/** Units that a log which keeps entries writes in about the time of one usual op. */
const UNITS_PER_OP = 100

/** Requests per call at most: with all of a busy key's in one, Redis and this process would wait for each other. */
export const MAX_REQUESTS: number = 512

/** Entries in the table of ops that may be joined. */
export const ENTRIES: number = 4096

/** An op that waits to be sent, and who waits for it, in the order in which they asked. */
export class Pending implements Request {
  readonly op: Op
  readonly nowMs: number | undefined
  readonly batch: Batch
  /** Its place in the table of ops that may be joined. */
  readonly slot: number
  calls: Call[]

  constructor(op: Op, nowMs: number | undefined, call: Call, batch: Batch, slot: number) {
    this.op = op
    this.nowMs = nowMs
    this.batch = batch
    this.slot = slot
    this.calls = [call]
  }

  get count(): number {
    return this.op.type === 'consume' ? this.op.count * this.calls.length : 1
  }
}

/** Ops that leave in one call. */
export class Batch {
  ops: Pending[] = []
  /** Who waits for them, all in all. */
  requests = 0
  /** The time that they take Redis, in usual ops. */
  #weight = 0
  /**
   * What removes keys does not travel with what writes: Redis lets a script that has removed something write on
   * when it is out of memory.
   */
  readonly mayRemove: boolean
  /** Which of the calls in flight it is. */
  place = -1

  constructor(mayRemove: boolean) {
    this.mayRemove = mayRemove
  }

  get isGivenUp(): boolean {
    return this.ops.every(({ calls }) => calls.every(isSettled))
  }

  get hasRoom(): boolean {
    return this.#weight < MAX_BATCH && this.requests < MAX_REQUESTS
  }

  hasRoomFor(op: Op): boolean {
    return this.hasRoom && this.#weight + weightOf(op) <= MAX_BATCH
  }

  add(pending: Pending): void {
    this.ops.push(pending)
    this.#weight += weightOf(pending.op)
  }
}

/** How long an op takes Redis, as a multiple of what the usual one does, and no more than a whole call may take. */
function weightOf(op: Op): number {
  // Each of its times is searched for, and some hundred notes are read at a time.
  let weight = op.type === 'explain' || op.type === 'notes' ? MAX_BATCH / 8 : 1
  for (const { set } of op.parts) {
    for (const { kind, role } of set.logs) {
      if (role === 'count' && kind.entries !== undefined) weight += entriesWeight(op, kind.entries.are)
    }
  }
  return Math.min(weight, MAX_BATCH)
}

/** Each unit or entry of such a log is written, or read, on its own. */
function entriesWeight(op: Op, are: Entries): number {
  switch (op.type) {
    case 'list':
      return MAX_BATCH
    case 'refund':
      // A stream is written anew.
      return are === 'record' ? MAX_BATCH : Math.floor(op.units / UNITS_PER_OP)
    case 'consume':
    case 'peek':
      return Math.floor(op.cost / UNITS_PER_OP)
    case 'charge':
    case 'extend':
    case 'release':
      return Math.floor(op.units / UNITS_PER_OP)
    default:
      return 0
  }
}

/** What waits in all batchers of a store. */
export class Backlog {
  /** Requests. */
  size = 0
  /**
   * The last op that waits for a key, at the place of its hash. Where another key has taken the place, the
   * next request just joins nobody. (A Map that is filled and emptied at this rate leaves behind old tables,
   * which keep what they held alive.)
   */
  readonly lastAt: (Pending | undefined)[] = new Array<Pending | undefined>(ENTRIES).fill(undefined)
}

export function isSettled(call: Call): boolean {
  return call.isSettled
}
