// Ops that wait to be sent. Equal ones are joined, and those of one key leave room in each call for others.

import { kindOf } from '../../ops/table.ts'
import { textHash } from '../../runtime/hash.ts'
import { randomInt32 } from '../../runtime/platform.ts'
import type { Call, Op, Part } from '../store.ts'
import { canJoin, isJoinable, type Request } from './encode.ts'
import { MAX_WEIGHT, weightOf } from './weight.ts'

/** The most that one call takes. */
export interface CallSize {
  /** Ops; those that take longer weigh more. */
  readonly ops: number
  /** Requests that they are made of. */
  readonly requests: number
}

/** With more requests of a busy key in one call, Redis and this process would wait for each other. */
export const OF_SCRIPT: CallSize = { ops: MAX_WEIGHT, requests: 512 }

/** Requests that wait at most, in all queues of a store; more are refused. */
const MAX_WAITING = 65_536

/** The requests of one key take at most this share of the room that is left. */
const SHARE = 1 / 4

/** For each op that a call has room for, ops that are examined. */
const LOOKS = 4

/** Places for keys in all queues of a store, and the least for each. Few keys share a place. */
const PLACES = 4096
const MIN_PLACES = 256

const NO_PARTS: readonly Part[] = []

/** What all queues of a store have in common. */
export class Backlog {
  /** Requests that wait. */
  size = 0
  /** Places for keys in each queue, a power of two. */
  readonly places: number
  readonly seed: number

  /** @param seed a secret, so that callers can't choose keys that share a place */
  constructor(queues = 1, seed: number = randomInt32()) {
    this.places = Math.max(MIN_PLACES, PLACES / queues)
    this.seed = seed | 0
  }
}

/** An op that waits, and its requests, in the order in which they came. */
export class PendingOp implements Request {
  readonly op: Op
  readonly nowMs: number | undefined
  readonly ofKey: KeyQueue
  readonly weight: number
  readonly mayRemove: boolean
  calls: Call[]
  /** Whether others may join it. */
  isOpen: boolean
  /** Whether it is in the queue; else it is held until others of its key have left. */
  isQueued = false
  /** The one behind it. */
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

  /** Whether all its requests have timed out. */
  get isAbandoned(): boolean {
    return this.calls.every(isSettled)
  }
}

/** The ops of one key, or of the keys of one op. Equal ops may join the last of them. */
class KeyQueue {
  readonly #size: CallSize
  /** Where it is in its queue's table, and another that has the same place. */
  readonly place: number
  next: KeyQueue | undefined
  /** Its keys; the former ones, if it is empty and was crowded. */
  parts: readonly Part[] = NO_PARTS
  last: PendingOp | undefined
  /** The first of the ops that are held, from here to the last. */
  held: PendingOp | undefined
  requests = 0
  /** Those that aren't held. */
  queuedRequests = 0
  queuedWeight = 0
  /** The last call for which one of its ops was passed over. */
  skippedBy = 0
  /** When more than its share of a call was last seen to wait in it. */
  crowdedAtMs: number = Number.NEGATIVE_INFINITY

  /** @param size a call's: the ops of a key may take half of it */
  constructor(size: CallSize, place: number, next: KeyQueue | undefined) {
    this.#size = size
    this.place = place
    this.next = next
  }

  isOf(parts: readonly Part[]): boolean {
    if (this.parts.length !== parts.length) return false
    for (let i = 0; i < parts.length; i++) if (this.parts[i]!.key !== parts[i]!.key) return false
    return true
  }

  /** Whether more waits in it than its share of a call. */
  get isCrowded(): boolean {
    const { ops, requests } = this.#size
    return this.queuedWeight >= ops / 2 || this.queuedRequests >= requests
  }
}

/** Ops that leave in one call. */
export interface Batch {
  readonly sentAtMs: number
  readonly ops: PendingOp[]
  weight: number
  requests: number
  /** Which of the calls in flight it is, from 0. */
  place: number
}

/**
 * Ops in the order in which they came, but no more than half a call of each key. What is beyond is held until
 * ops of its own key have left, so that one key's flood delays no other.
 *
 * Lists are chained through the ops. (One array, from which batches are cut, leaves behind tables that keep what they held
 * alive; so does a Map that is filled and emptied at this rate: keys have a place by their hash.)
 */
export class Queue {
  readonly #backlog: Backlog
  readonly #size: CallSize
  readonly #keys: (KeyQueue | undefined)[]
  /** All that wait, held or not. */
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

  /** Whether more waits than one call takes. */
  get fillsCall(): boolean {
    return this.weight >= this.#size.ops || this.#requests >= this.#size.requests
  }

  /** Joins a request to an op that asks the same, or adds it as an op of its own. Returns false if there is no room. */
  add(op: Op, nowMs: number | undefined, call: Call): boolean {
    const ofKey = this.#keyQueueOf(op.parts)
    const room = MAX_WAITING - this.#backlog.size
    if (op.parts.length > 1) this.#closeQueuesOf(op.parts)
    if (ofKey.requests >= SHARE * room) return false
    const { last } = ofKey
    this.#backlog.size++
    this.#requests++
    ofKey.requests++
    // A later request may join the last op of its key, but not overtake another.
    if (last?.isOpen && last.calls.length < this.#size.requests && canJoin(last, op, nowMs)) {
      last.calls.push(call)
      if (last.isQueued) ofKey.queuedRequests++
      return true
    }
    const pending = new PendingOp(op, nowMs, call, ofKey)
    this.weight += pending.weight
    if (!ofKey.isCrowded) this.#enqueue(pending)
    else if (ofKey.held === undefined) ofKey.held = pending
    else last!.next = pending
    ofKey.last = pending
    return true
  }

  /** Takes the ops of the next call: the first, and of the others those that may leave with it, up to this weight. */
  take(maxWeight: number, nowMs: number): Batch {
    const batch: Batch = { sentAtMs: nowMs, ops: [], weight: 0, requests: 0, place: -1 }
    const maxRequests = this.#size.requests
    const most = LOOKS * this.#size.ops
    const number = ++this.#calls
    let hasSkipped = false
    let before: PendingOp | undefined
    let pending = this.#first
    for (let looks = 0; pending !== undefined && looks < most; looks++) {
      if (batch.weight >= maxWeight || batch.requests >= maxRequests) break
      const { ofKey, weight } = pending
      const hasManyKeys = pending.op.parts.length > 1
      // Ops of several keys share some with others, and are decided in their order.
      const mustStay = hasSkipped && (ofKey.skippedBy === number || hasManyKeys)
      if (mustStay || !fits(pending, batch, maxWeight, maxRequests)) {
        // What is behind it may be of any of its keys.
        if (hasManyKeys) break
        ofKey.skippedBy = number
        hasSkipped = true
        before = pending
      } else {
        this.#remove(pending, before, nowMs)
        // A request that has timed out must not be charged.
        if (pending.calls.some(isSettled)) pending.calls = pending.calls.filter((call) => !call.isSettled)
        if (pending.calls.length > 0) {
          batch.ops.push(pending)
          batch.weight += weight
          batch.requests += pending.calls.length
        }
      }
      pending = before === undefined ? this.#first : before.next
    }
    return batch
  }

  /** What waits in an outage must not pile up. */
  dropAbandoned(nowMs: number): void {
    while (this.#first?.isAbandoned) this.#remove(this.#first, undefined, nowMs)
  }

  /** Whether at some time since then more has waited for the op's keys than their share of a call. */
  isCrowded(op: Op, sinceMs: number): boolean {
    const ofKey = this.#find(op.parts)
    return ofKey !== undefined && (ofKey.isCrowded || ofKey.crowdedAtMs >= sinceMs)
  }

  #find(parts: readonly Part[]): KeyQueue | undefined {
    let ofKey = this.#keys[placeOf(parts, this.#backlog)]
    while (ofKey !== undefined && !ofKey.isOf(parts)) ofKey = ofKey.next
    return ofKey
  }

  /** An existing, an idle or a new one. */
  #keyQueueOf(parts: readonly Part[]): KeyQueue {
    const place = placeOf(parts, this.#backlog)
    const first = this.#keys[place]
    let idle: KeyQueue | undefined
    for (let ofKey = first; ofKey !== undefined; ofKey = ofKey.next) {
      if (ofKey.isOf(parts)) return ofKey
      if (ofKey.requests === 0) idle = ofKey
    }
    if (idle === undefined) {
      idle = new KeyQueue(this.#size, place, first)
      this.#keys[place] = idle
    }
    idle.parts = parts
    idle.crowdedAtMs = Number.NEGATIVE_INFINITY
    return idle
  }

  /** Removes an idle one. The last one at a place stays there for the next key. */
  #retire(ofKey: KeyQueue): void {
    ofKey.parts = NO_PARTS
    let before = this.#keys[ofKey.place]!
    if (before === ofKey) return
    while (before.next !== ofKey) before = before.next!
    before.next = ofKey.next
  }

  /** What comes after an op of several keys must not join what came before it for one of them. */
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
    // What is old must not keep what is new alive.
    pending.next = undefined
    this.#backlog.size -= calls.length
    this.#requests -= calls.length
    this.weight -= weight
    if (ofKey.isCrowded) ofKey.crowdedAtMs = nowMs
    if (ofKey.last === pending) ofKey.last = undefined
    ofKey.requests -= calls.length
    ofKey.queuedRequests -= calls.length
    ofKey.queuedWeight -= weight
    if (ofKey.requests === 0 && ofKey.crowdedAtMs === Number.NEGATIVE_INFINITY) this.#retire(ofKey)
    while (ofKey.held !== undefined && !ofKey.isCrowded) {
      const { held } = ofKey
      ofKey.held = held.next
      held.next = undefined
      this.#enqueue(held)
    }
  }
}

/**
 * Whether an op may leave with those before it. What may remove keys doesn't leave with what writes: Redis lets a script
 * that has removed something write on when it is out of memory.
 */
function fits(pending: PendingOp, batch: Batch, maxWeight: number, maxRequests: number): boolean {
  const first = batch.ops[0]
  if (first === undefined) return true
  if (first.mayRemove !== pending.mayRemove) return false
  return batch.weight + pending.weight <= maxWeight && batch.requests + pending.calls.length <= maxRequests
}

/** Where the ops of these keys are in a queue's table. */
function placeOf(parts: readonly Part[], { places, seed }: Backlog): number {
  let hash = seed
  for (let part = 0; part < parts.length; part++) hash = textHash(parts[part]!.key, hash)
  return (hash ^ (hash >>> 15)) & (places - 1)
}

function isSettled(call: Call): boolean {
  return call.isSettled
}
