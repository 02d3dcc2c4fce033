import { textHash } from '../../runtime/hash.ts'
import { randomInt32 } from '../../runtime/platform.ts'
import type { Call, Op, Part } from '../store.ts'
import { type Batch, type CallSize, Line, NOBODYS, OF_SCRIPT, Pending } from './batch.ts'
import { canJoin } from './encode.ts'

/** Requests that wait at most, in all batchers of a store; more are refused. */
const MAX_WAITING = 65_536

/** Of the room that is left, what waits for a key may be this share. */
const SHARE = 1 / 4

/** For each op that a call has room for, those that are looked at. */
const LOOKS = 4

/** Places for lines in a store, and the least for each batcher. Few lines share one. */
const LINES = 4096
const MIN_LINES = 256

/** What waits in all batchers of a store. */
export class Backlog {
  /** Requests. */
  size = 0
  /** Places for lines in each batcher, a power of two. */
  readonly lines: number
  readonly seed: number

  /** @param seed a secret, so that callers can't choose keys that share a place */
  constructor(batchers = 1, seed: number = randomInt32()) {
    this.lines = Math.max(MIN_LINES, LINES / batchers)
    this.seed = seed | 0
  }
}

/**
 * Ops that wait, in the order in which they were asked for; but of each key no more than half a call. What is beyond waits
 * for those before it in its own line, so that nobody waits for the many of another: a caller's flood delays himself.
 *
 * Lists are chained through the ops. (One array, from which batches are cut, leaves behind tables that keep what they held
 * alive; so does a Map that is filled and emptied at this rate: lines stand at the place of their keys' hash.)
 */
export class Queue {
  readonly #backlog: Backlog
  readonly #size: CallSize
  readonly #lines: (Line | undefined)[]
  #first: Pending | undefined
  #last: Pending | undefined
  /** Who waits, in the queue and aside, and the time that it takes Redis. */
  #requests = 0
  #weight = 0
  #calls = 0

  constructor(backlog: Backlog, size: CallSize = OF_SCRIPT) {
    this.#backlog = backlog
    this.#size = size
    this.#lines = new Array<Line | undefined>(backlog.lines).fill(undefined)
  }

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** The time that all that waits takes Redis, in usual ops. */
  get weight(): number {
    return this.#weight
  }

  /** Whether more waits than one call takes. */
  get fillsCall(): boolean {
    return this.#weight >= this.#size.ops || this.#requests >= this.#size.requests
  }

  /** Finds a place for a request: at an op that it may join, or as an op of its own. Answers whether there was room. */
  add(op: Op, nowMs: number | undefined, call: Call): boolean {
    const line = this.#lineOf(op)
    const room = MAX_WAITING - this.#backlog.size
    if (op.parts.length > 1) this.#closeLinesOf(op.parts)
    if (line.requests >= SHARE * room) return false
    const { last } = line
    this.#backlog.size++
    this.#requests++
    // A later request may join the last op of its key, but not overtake another.
    if (last?.isOpen && last.calls.length < this.#size.requests && canJoin(last, op, nowMs)) {
      last.calls.push(call)
      if (last.isQueued) line.queuedRequests++
      else line.asideRequests++
      return true
    }
    const pending = new Pending(op, nowMs, call, line)
    this.#weight += pending.weight
    if (line.isCrowded) {
      if (line.aside === undefined) line.aside = pending
      else last!.next = pending
      line.asideRequests++
    } else {
      this.#enqueue(pending)
    }
    line.last = pending
    return true
  }

  /** Those that leave next: the first, and of the others those that may travel with it. */
  fill(batch: Batch): void {
    const number = ++this.#calls
    let isAnyLeft = false
    let before: Pending | undefined
    let pending = this.#first
    const most = LOOKS * this.#size.ops
    for (let looks = 0; pending !== undefined && looks < most; looks++) {
      if (!batch.hasRoom) return
      const { line, op } = pending
      // Ops of several keys share some with others, and are decided in their order.
      const mustStay = isAnyLeft && (line.leftBehindBy === number || op.parts.length > 1)
      if (mustStay || !batch.hasRoomFor(pending)) {
        // What is behind it may be of any of its keys.
        if (op.parts.length > 1) return
        line.leftBehindBy = number
        isAnyLeft = true
        before = pending
      } else {
        this.#remove(pending, before, batch.sentAtMs)
        pending.forgetGivenUp()
        if (pending.calls.length > 0) batch.take(pending)
      }
      pending = before === undefined ? this.#first : before.next
    }
  }

  /** What waits in an outage must not pile up. */
  dropGivenUp(nowMs: number): void {
    while (this.#first?.isGivenUp) this.#remove(this.#first, undefined, nowMs)
  }

  /** Whether at some time since then more has waited for the op's keys than their share of a call. */
  isCrowded(op: Op, sinceMs: number): boolean {
    const line = this.#find(op.parts)
    return line !== undefined && (line.isCrowded || line.crowdedAtMs >= sinceMs)
  }

  #find(parts: readonly Part[]): Line | undefined {
    let line = this.#lines[placeOf(parts, this.#backlog)]
    while (line !== undefined && !line.isOf(parts)) line = line.next
    return line
  }

  /** The line of an op's keys: an existing, an idle or a new one. */
  #lineOf({ parts }: Op): Line {
    const place = placeOf(parts, this.#backlog)
    const first = this.#lines[place]
    let idle: Line | undefined
    for (let line = first; line !== undefined; line = line.next) {
      if (line.isOf(parts)) return line
      if (line.requests === 0) idle = line
    }
    if (idle === undefined) {
      idle = new Line(this.#size, place, first)
      this.#lines[place] = idle
    }
    idle.parts = parts
    idle.crowdedAtMs = Number.NEGATIVE_INFINITY
    return idle
  }

  /** Releases an idle line. The last one at a place stays there for the next key. */
  #retire(line: Line): void {
    line.parts = NOBODYS
    let before = this.#lines[line.place]!
    if (before === line) return
    while (before.next !== line) before = before.next!
    before.next = line.next
  }

  /** Who comes after an op of several keys must not join those of one of them that came before it. */
  #closeLinesOf(parts: readonly Part[]): void {
    for (const part of parts) {
      const last = this.#find([part])?.last
      if (last !== undefined) last.isOpen = false
    }
  }

  #enqueue(pending: Pending): void {
    const { line, weight, calls } = pending
    pending.isQueued = true
    line.queuedWeight += weight
    line.queuedRequests += calls.length
    if (this.#last === undefined) this.#first = pending
    else this.#last.next = pending
    this.#last = pending
  }

  #remove(pending: Pending, before: Pending | undefined, nowMs: number): void {
    const { line, weight, calls, next } = pending
    if (before === undefined) this.#first = next
    else before.next = next
    if (next === undefined) this.#last = before
    // What is old must not keep what is new alive.
    pending.next = undefined
    this.#backlog.size -= calls.length
    this.#requests -= calls.length
    this.#weight -= weight
    if (line.isCrowded) line.crowdedAtMs = nowMs
    if (line.last === pending) line.last = undefined
    line.queuedRequests -= calls.length
    line.queuedWeight -= weight
    if (line.requests === 0 && line.crowdedAtMs === Number.NEGATIVE_INFINITY) this.#retire(line)
    while (line.aside !== undefined && !line.isCrowded) {
      const { aside } = line
      line.aside = aside.next
      aside.next = undefined
      line.asideRequests -= aside.calls.length
      this.#enqueue(aside)
    }
  }
}

/** Where the line of these keys is. */
function placeOf(parts: readonly Part[], { lines, seed }: Backlog): number {
  let hash = seed
  for (let part = 0; part < parts.length; part++) hash = textHash(parts[part]!.key, hash)
  return (hash ^ (hash >>> 15)) & (lines - 1)
}
