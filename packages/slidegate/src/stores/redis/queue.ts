// Queues ops until they are sent. Merges identical requests, and prevents one key from filling a whole call to Redis.

import type { Entries } from '../../limits/limit.ts'
import { entriesOf } from '../../limits/limit-set.ts'
import type { Work } from '../../ops/op.ts'
import { isSingle, kindOf, unitsOf } from '../../ops/table.ts'
import { textHash } from '../../runtime/hash.ts'
import { randomInt32 } from '../../runtime/platform.ts'
import type { Call, Op, Part } from '../store.ts'
import type { Request } from './encode.ts'

/** Maximum weight of a call, so that no script blocks Redis for long. */
const MAX_WEIGHT = 128

export interface CallSize {
  /** Number of ops. A slow op counts as several. */
  readonly ops: number
  readonly requests: number
}

/** The script's maximum. If a busy key had more requests per call, Redis and this process would take turns. */
export const OF_SCRIPT: CallSize = { ops: MAX_WEIGHT, requests: 512 }

/** Maximum number of requests waiting in all of a store's queues together. Further requests are rejected. */
const MAX_WAITING = 65_536

/** One key may use up to this share of the remaining capacity. */
const SHARE = 1 / 4

/** Maximum ops examined to fill a call, as a multiple of the call's size. */
const LOOKS = 4

/** Total number of places in a store's hash tables, and the minimum per table. */
const PLACES = 4096
const MIN_PLACES = 256

const NO_PARTS: readonly Part[] = []

export class Backlog {
  size = 0
  readonly places: number
  readonly seed: number

  /** @param seed a secret, so that callers can't choose keys that collide in the hash table */
  constructor(queues = 1, seed: number = randomInt32()) {
    this.places = Math.max(MIN_PLACES, PLACES / queues)
    this.seed = seed | 0
  }
}

/** A waiting op and its requests, in order of arrival. */
export class PendingOp implements Request {
  readonly op: Op
  readonly nowMs: number | undefined
  readonly ofKey: KeyQueue
  readonly weight: number
  readonly mayRemove: boolean
  calls: Call[]
  isOpen: boolean
  /** False while the op is held back. */
  isQueued = false
  next: PendingOp | undefined

  constructor(op: Op, nowMs: number | undefined, call: Call, ofKey: KeyQueue) {
    this.op = op
    this.nowMs = nowMs
    this.ofKey = ofKey
    this.weight = weightOf(op)
    this.mayRemove = kindOf(op).effect === 'free'
    this.calls = [call]
    this.isOpen = isJoinable(op)
  }

  get count(): number {
    return this.op.type === 'consume' ? this.op.count * this.calls.length : 1
  }

  get isAbandoned(): boolean {
    return this.calls.every(isSettled)
  }
}

/** The waiting ops for one key, or for one combination of keys. */
class KeyQueue {
  /** The queue's place in the hash table, and the next queue at that place. */
  readonly place: number
  next: KeyQueue | undefined
  /** A queue that was overloaded keeps its parts, even if it has no ops left. */
  parts: readonly Part[] = NO_PARTS
  last: PendingOp | undefined
  /** The first op that is held back. All later ops are held back, too. */
  held: PendingOp | undefined
  requests = 0
  /** Requests in ops that aren't held back. */
  queuedRequests = 0
  queuedWeight = 0
  /** The number of the last call that skipped one of the queue's ops. */
  skippedBy = 0
  /** When the key's waiting ops last filled its share of a call. */
  overloadedAtMs: number = Number.NEGATIVE_INFINITY

  constructor(place: number, next: KeyQueue | undefined) {
    this.place = place
    this.next = next
  }

  isOf(parts: readonly Part[]): boolean {
    if (this.parts.length !== parts.length) return false
    for (let i = 0; i < parts.length; i++) if (this.parts[i]!.key !== parts[i]!.key) return false
    return true
  }
}

export interface Batch {
  readonly sentAtMs: number
  ops: PendingOp[]
  weight: number
  requests: number
  /** A number, starting at 0, that no other call in flight has. */
  place: number
}

/**
 * Queues ops in order of arrival. A key can fill at most half of a call. Its other ops are held back, so that a flood
 * of requests for one key doesn't delay other keys.
 *
 * Uses linked lists and its own hash table, because an array or a Map that fills and empties at this rate retains garbage.
 */
export class Queue {
  readonly #backlog: Backlog
  readonly #size: CallSize
  readonly #keys: (KeyQueue | undefined)[]
  weight = 0
  #requests = 0
  #first: PendingOp | undefined
  #last: PendingOp | undefined
  #calls = 0

  constructor(backlog: Backlog, size: CallSize = OF_SCRIPT) {
    this.#backlog = backlog
    this.#size = size
    this.#keys = new Array<KeyQueue | undefined>(backlog.places).fill(undefined)
  }

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  get fillsCall(): boolean {
    return this.weight >= this.#size.ops || this.#requests >= this.#size.requests
  }

  /** Merges a request into an identical op, or adds an op for it. Returns false if the queue is full. */
  add(op: Op, nowMs: number | undefined, call: Call): boolean {
    const ofKey = this.#keyQueueOf(op.parts)
    const room = MAX_WAITING - this.#backlog.size
    if (op.parts.length > 1) this.#closeQueuesOf(op.parts)
    if (ofKey.requests >= SHARE * room) return false
    const { last } = ofKey
    this.#backlog.size++
    this.#requests++
    ofKey.requests++
    // Joins only the last op. If it joined an earlier one, the request would overtake the last op.
    if (last?.isOpen && last.calls.length < this.#size.requests && canJoin(last, op, nowMs)) {
      last.calls.push(call)
      if (last.isQueued) ofKey.queuedRequests++
      return true
    }
    const pending = new PendingOp(op, nowMs, call, ofKey)
    this.weight += pending.weight
    if (!this.#fillsShare(ofKey)) this.#enqueue(pending)
    else if (ofKey.held === undefined) ofKey.held = pending
    else last!.next = pending
    ofKey.last = pending
    return true
  }

  take(maxWeight: number, nowMs: number): Batch {
    const batch: Batch = { sentAtMs: nowMs, ops: [], weight: 0, requests: 0, place: -1 }
    const maxRequests = this.#size.requests
    const most = LOOKS * this.#size.ops
    const number = ++this.#calls
    let before: PendingOp | undefined
    let pending = this.#first
    for (let looks = 0; pending !== undefined && looks < most; looks++) {
      if (batch.weight >= maxWeight || batch.requests >= maxRequests) break
      const { ofKey, weight } = pending
      const hasManyKeys = pending.op.parts.length > 1
      // An op with several keys may share some of them with a skipped op, so it must not overtake that op.
      const mustStay = ofKey.skippedBy === number || (hasManyKeys && before !== undefined)
      if (mustStay || !fits(pending, batch, maxWeight, maxRequests)) {
        // Later ops may share some of these keys.
        if (hasManyKeys) break
        ofKey.skippedBy = number
        before = pending
      } else {
        this.#remove(pending, before, nowMs)
        // A request that timed out must not be charged.
        if (pending.calls.some(isSettled)) pending.calls = pending.calls.filter((call) => !call.isSettled)
        if (pending.calls.length > 0) {
          // Most calls have one op. Adding it to an empty array would allocate room for 17 items.
          if (batch.ops.length === 0) batch.ops = [pending]
          else batch.ops.push(pending)
          batch.weight += weight
          batch.requests += pending.calls.length
        }
      }
      pending = before === undefined ? this.#first : before.next
    }
    return batch
  }

  /** Keeps requests that have timed out from piling up during an outage. */
  dropAbandoned(nowMs: number): void {
    while (this.#first?.isAbandoned) this.#remove(this.#first, undefined, nowMs)
  }

  /** Whether the op's keys fill their share of a call. Also true if they have filled it at any time since `sinceMs`. */
  isOverloaded(op: Op, sinceMs: number): boolean {
    const ofKey = this.#find(op.parts)
    return ofKey !== undefined && (this.#fillsShare(ofKey) || ofKey.overloadedAtMs >= sinceMs)
  }

  /** Whether the waiting ops of a key fill its share of one call. */
  #fillsShare({ queuedWeight, queuedRequests }: KeyQueue): boolean {
    return queuedWeight >= this.#size.ops / 2 || queuedRequests >= this.#size.requests
  }

  #find(parts: readonly Part[]): KeyQueue | undefined {
    let ofKey = this.#keys[placeOf(parts, this.#backlog)]
    while (ofKey !== undefined && !ofKey.isOf(parts)) ofKey = ofKey.next
    return ofKey
  }

  #keyQueueOf(parts: readonly Part[]): KeyQueue {
    const place = placeOf(parts, this.#backlog)
    const first = this.#keys[place]
    let idle: KeyQueue | undefined
    for (let ofKey = first; ofKey !== undefined; ofKey = ofKey.next) {
      if (ofKey.isOf(parts)) return ofKey
      if (ofKey.requests === 0) idle = ofKey
    }
    if (idle === undefined) {
      idle = new KeyQueue(place, first)
      this.#keys[place] = idle
    }
    idle.parts = parts
    idle.overloadedAtMs = Number.NEGATIVE_INFINITY
    return idle
  }

  /** Removes a key queue without ops. The last one in its list is kept and reused for the next key. */
  #retire(ofKey: KeyQueue): void {
    ofKey.parts = NO_PARTS
    let before = this.#keys[ofKey.place]!
    if (before === ofKey) return
    while (before.next !== ofKey) before = before.next!
    before.next = ofKey.next
  }

  /** Prevents later requests from joining ops that come before an op with several keys. */
  #closeQueuesOf(parts: readonly Part[]): void {
    for (const part of parts) {
      const last = this.#find([part])?.last
      if (last !== undefined) last.isOpen = false
    }
  }

  #enqueue(pending: PendingOp): void {
    const { ofKey, weight, calls } = pending
    pending.isQueued = true
    ofKey.queuedWeight += weight
    ofKey.queuedRequests += calls.length
    if (this.#last === undefined) this.#first = pending
    else this.#last.next = pending
    this.#last = pending
  }

  #remove(pending: PendingOp, before: PendingOp | undefined, nowMs: number): void {
    const { ofKey, weight, calls, next } = pending
    if (before === undefined) this.#first = next
    else before.next = next
    if (next === undefined) this.#last = before
    // A removed op in V8's old generation would otherwise keep newer ops alive.
    pending.next = undefined
    this.#backlog.size -= calls.length
    this.#requests -= calls.length
    this.weight -= weight
    if (this.#fillsShare(ofKey)) ofKey.overloadedAtMs = nowMs
    if (ofKey.last === pending) ofKey.last = undefined
    ofKey.requests -= calls.length
    ofKey.queuedRequests -= calls.length
    ofKey.queuedWeight -= weight
    if (ofKey.requests === 0 && ofKey.overloadedAtMs === Number.NEGATIVE_INFINITY) this.#retire(ofKey)
    while (ofKey.held !== undefined && !this.#fillsShare(ofKey)) {
      const { held } = ofKey
      ofKey.held = held.next
      held.next = undefined
      this.#enqueue(held)
    }
  }
}

// Ops that may remove keys are in separate batches: after a removal, the script could write even though Redis is out of memory.
function fits(pending: PendingOp, batch: Batch, maxWeight: number, maxRequests: number): boolean {
  const first = batch.ops[0]
  if (first === undefined) return true
  if (first.mayRemove !== pending.mayRemove) return false
  return batch.weight + pending.weight <= maxWeight && batch.requests + pending.calls.length <= maxRequests
}

function placeOf(parts: readonly Part[], { places, seed }: Backlog): number {
  let hash = seed
  for (let part = 0; part < parts.length; part++) hash = textHash(parts[part]!.key, hash)
  return (hash ^ (hash >>> 15)) & (places - 1)
}

function isSettled(call: Call): boolean {
  return call.isSettled
}

/** Whether identical requests may join this op, which then has a count. */
function isJoinable(op: Op): boolean {
  return isSingle(op) && !op.parts[0]!.set.logs.some(({ kind }) => kind.isOneByOne === true)
}

function canJoin(waiting: Request, op: Op, nowMs: number | undefined): boolean {
  if (waiting.nowMs !== nowMs) return false
  if (op === waiting.op) return true
  if (!isSingle(op) || op.cost !== unitsOf(waiting.op)) return false
  const { key, set } = waiting.op.parts[0]!
  return op.parts[0]!.key === key && op.parts[0]!.set === set
}

/** Writing this many units as entries takes as long as a typical op. */
const UNITS_PER_OP = 100

/** An op with up to this many logs takes as long as a typical op. */
const LOGS_PER_OP = 4

/** How long an op takes, relative to a typical op. At most {@link MAX_WEIGHT}. */
function weightOf(op: Op): number {
  const { work } = kindOf(op)
  // An `explain` op searches for each time that it reports, and a page has hundreds of overrides.
  let weight = work === 'search' || work === 'page' ? MAX_WEIGHT / 8 : 1
  if ('charges' in op && op.charges !== undefined) weight = MAX_WEIGHT
  let logs = 0
  for (const { set } of op.parts) {
    logs += set.logs.length
    if (set.keeps.size > 0) for (const log of set.logs) weight += entriesWeight(op, entriesOf(log))
  }
  return Math.min(weight + Math.ceil(logs / LOGS_PER_OP) - 1, MAX_WEIGHT)
}

const WRITES: readonly Work[] = ['take', 'write', 'find']

function entriesWeight(op: Op, are: Entries | undefined): number {
  const { work } = kindOf(op)
  if (are === undefined) return 0
  // A refund from a stream may rewrite all of its entries.
  if (work === 'read' || (work === 'take' && are === 'record')) return MAX_WEIGHT
  return WRITES.includes(work) ? Math.floor(unitsOf(op) / UNITS_PER_OP) : 0
}
