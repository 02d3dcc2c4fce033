import type { Call } from '../call.ts'
import type { Op } from '../store.ts'
import type { Request } from './protocol.ts'

/** Ops per call at most, so that no script holds Redis for long. */
const MAX_BATCH = 128

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
    return this.ops.length < MAX_BATCH && this.requests < MAX_REQUESTS
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
