import type { Entries } from '../../limits/limit.ts'
import type { Call, Op, Part } from '../store.ts'
import { isJoinable, type Request } from './encode.ts'

/** What travels in one call at most. */
export interface CallSize {
  /** Ops; those that take longer weigh more. */
  readonly ops: number
  /** Requests that they are made of. */
  readonly requests: number
}

/** Ops per call at most, so that no script holds Redis for long. */
const MAX_BATCH = 128

/** Units that a log which keeps entries writes in about the time of one usual op. */
const UNITS_PER_OP = 100

/** Logs that an op has without taking longer than the usual one; more of them take as much longer. */
const LOGS_PER_OP = 4

/** Requests per call at most: with all of a busy key's in one, Redis and this process would wait for each other. */
const MAX_REQUESTS = 512

export const OF_SCRIPT: CallSize = { ops: MAX_BATCH, requests: MAX_REQUESTS }

/** Ops that may remove a key. */
const MAY_REMOVE: ReadonlySet<Op['type']> = new Set(['reset', 'refund', 'release', 'settle', 'override'])

export const NOBODYS: readonly Part[] = []

/** What waits for the same keys: its last op is the one that others may join. */
export class Line {
  readonly #size: CallSize
  /** Where it is among the lines of a queue, and another that is there, too. */
  readonly place: number
  next: Line | undefined
  /** Whose it is; or was, where nobody waits in it but has been crowded. */
  parts: readonly Part[] = NOBODYS
  last: Pending | undefined
  /** Those that are not in the queue yet, from here to the last. */
  aside: Pending | undefined
  asideRequests = 0
  /** Who waits for its ops in the queue, and the time that these take Redis. */
  queuedRequests = 0
  queuedWeight = 0
  /** The last call that an op of it was left behind by. */
  leftBehindBy = 0
  /** When more than its share of a call was last seen to wait in it. */
  crowdedAtMs: number = Number.NEGATIVE_INFINITY

  /** @param size of a call: the ops of a key that stand in the queue may take half of it */
  constructor(size: CallSize, place: number, next: Line | undefined) {
    this.#size = size
    this.place = place
    this.next = next
  }

  /** Whether it is that of these keys. */
  isOf(parts: readonly Part[]): boolean {
    if (this.parts.length !== parts.length) return false
    for (let i = 0; i < parts.length; i++) if (this.parts[i]!.key !== parts[i]!.key) return false
    return true
  }

  get requests(): number {
    return this.queuedRequests + this.asideRequests
  }

  /** Whether more waits in it than its share of a call. */
  get isCrowded(): boolean {
    const { ops, requests } = this.#size
    return this.queuedWeight >= ops / 2 || this.queuedRequests >= requests
  }
}

/** An op that waits to be sent, and who waits for it, in the order in which they asked. */
export class Pending implements Request {
  readonly op: Op
  readonly nowMs: number | undefined
  readonly line: Line
  /** The time that it takes Redis, in usual ops. */
  readonly weight: number
  /**
   * What removes keys does not travel with what writes: Redis lets a script that has removed something write on
   * when it is out of memory.
   */
  readonly mayRemove: boolean
  calls: Call[]
  /** Whether others may join it. */
  isOpen: boolean
  /** Whether it stands in the queue; else it waits in its line for others of it to leave. */
  isQueued = false
  /** The one behind it. */
  next: Pending | undefined

  constructor(op: Op, nowMs: number | undefined, call: Call, line: Line) {
    this.op = op
    this.nowMs = nowMs
    this.line = line
    this.weight = weightOf(op)
    this.mayRemove = MAY_REMOVE.has(op.type)
    this.calls = [call]
    this.isOpen = isJoinable(op)
  }

  get count(): number {
    return this.op.type === 'consume' ? this.op.count * this.calls.length : 1
  }

  get isGivenUp(): boolean {
    return this.calls.every(isSettled)
  }

  /** Who has given up must not be charged. */
  forgetGivenUp(): void {
    if (this.calls.some(isSettled)) this.calls = this.calls.filter((call) => !call.isSettled)
  }
}

/** Ops that leave in one call. */
export class Batch {
  readonly ops: Pending[] = []
  readonly sentAtMs: number
  readonly #size: CallSize
  /** Which of the calls in flight it is. */
  place = -1
  #requests = 0
  #weight = 0

  constructor(sentAtMs: number, size: CallSize) {
    this.sentAtMs = sentAtMs
    this.#size = size
  }

  get isGivenUp(): boolean {
    return this.ops.every((pending) => pending.isGivenUp)
  }

  /** Who waits for them, all in all. */
  get requests(): number {
    return this.#requests
  }

  /** The time that they take Redis, in usual ops. */
  get weight(): number {
    return this.#weight
  }

  get hasRoom(): boolean {
    return this.#weight < this.#size.ops && this.#requests < this.#size.requests
  }

  /** Whether it may leave with those before it. */
  hasRoomFor({ weight, mayRemove, calls }: Pending): boolean {
    const first = this.ops[0]
    if (first === undefined) return true
    if (first.mayRemove !== mayRemove) return false
    const { ops, requests } = this.#size
    return this.#weight + weight <= ops && this.#requests + calls.length <= requests
  }

  take(pending: Pending): void {
    this.ops.push(pending)
    this.#weight += pending.weight
    this.#requests += pending.calls.length
  }
}

/** How long an op takes Redis, as a multiple of what the usual one does, and no more than a whole call may take. */
function weightOf(op: Op): number {
  // Each of its times is searched for, and some hundred overrides, or charges, are read at a time.
  let weight = op.type === 'explain' || op.type === 'overrides' ? MAX_BATCH / 8 : 1
  if (op.type === 'explain' && op.charges !== undefined) weight = MAX_BATCH
  let logs = 0
  for (const { set } of op.parts) {
    logs += set.logs.length
    for (const { kind, role } of set.logs) {
      if (role === 'count' && kind.entries !== undefined) weight += entriesWeight(op, kind.entries.are)
    }
  }
  return Math.min(weight + Math.ceil(logs / LOGS_PER_OP) - 1, MAX_BATCH)
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

function isSettled(call: Call): boolean {
  return call.isSettled
}
