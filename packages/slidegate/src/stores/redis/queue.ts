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

/** With more requests of a busy key in a call, Redis and this process would take turns. */
export const OF_SCRIPT: CallSize = { ops: MAX_WEIGHT, requests: 512 }

/** The most requests that wait in all queues of a store. Further ones are rejected. */
const MAX_WAITING = 65_536

/** The share of the remaining room that one key may take. */
const SHARE = 1 / 4

/** For each op that a call has room for, ops that are examined. */
const LOOKS = 4

/** Places for keys in all queues of a store, and the least for each. Few keys share a place. */
const PLACES = 4096
const MIN_PLACES = 256

const NO_PARTS: readonly Part[] = []

/** Shared by all queues of a store. */
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
  /** Whether it is in the queue. Else it is held until others of its key have left. */
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
  /** Where it is in its queue's table, and another that has the same place. */
  readonly place: number
  next: KeyQueue | undefined
  /** Its keys; the former ones, if it is empty and was overloaded. */
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
  /** When it last filled its share of a call. */
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

/** Ops that leave in one call. */
export interface Batch {
  readonly sentAtMs: number
  ops: PendingOp[]
  weight: number
  requests: number
  /** Its number among the calls in flight, from 0. No two have the same at a time. */
  place: number
}

/**
 * Holds ops in the order in which they came, up to half a call of each key.
 *
 * Further ops are held until others of their key have left, so a flood of one key doesn't delay other keys. Lists are chained
 * through the ops, and keys have a place by their hash: an array or a Map that is filled and emptied at this rate keeps garbage alive.
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

  /** Joins a request to an equal op, or adds an op for it. Returns false if there is no room. */
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
    if (!this.#fillsShare(ofKey)) this.#enqueue(pending)
    else if (ofKey.held === undefined) ofKey.held = pending
    else last!.next = pending
    ofKey.last = pending
    return true
  }

  /** Takes the first op, and others that may leave with it, up to this weight. */
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
        // Ops behind it may be of any of its keys.
        if (hasManyKeys) break
        ofKey.skippedBy = number
        hasSkipped = true
        before = pending
      } else {
        this.#remove(pending, before, nowMs)
        // A request that has timed out must not be charged.
        if (pending.calls.some(isSettled)) pending.calls = pending.calls.filter((call) => !call.isSettled)
        if (pending.calls.length > 0) {
          // Most calls have one. An array that begins empty makes room for 17 at the first.
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

  /** Requests that wait in an outage must not pile up. */
  dropAbandoned(nowMs: number): void {
    while (this.#first?.isAbandoned) this.#remove(this.#first, undefined, nowMs)
  }

  /** Whether the op's keys have filled their share of a call at some time since then. */
  isOverloaded(op: Op, sinceMs: number): boolean {
    const ofKey = this.#find(op.parts)
    return ofKey !== undefined && (this.#fillsShare(ofKey) || ofKey.overloadedAtMs >= sinceMs)
  }

  /** Whether as much waits for a key as may leave in one call. */
  #fillsShare({ queuedWeight, queuedRequests }: KeyQueue): boolean {
    return queuedWeight >= this.#size.ops / 2 || queuedRequests >= this.#size.requests
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
      idle = new KeyQueue(place, first)
      this.#keys[place] = idle
    }
    idle.parts = parts
    idle.overloadedAtMs = Number.NEGATIVE_INFINITY
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

  /** An op of several keys separates the ops before it from those after it, for each of its keys. */
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
    // Old garbage must not keep new ops alive.
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
