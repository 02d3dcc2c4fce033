import { AsyncResource } from 'node:async_hooks'
import { asUnavailable, SlidegateError, StoreUnavailableError } from '../../errors.ts'
import type { Call } from '../call.ts'
import type { Op } from '../store.ts'
import { type Backlog, Batch, ENTRIES, isSettled, MAX_REQUESTS, Pending } from './batch.ts'
import { crc16 } from './keyspace.ts'
import { canJoin } from './protocol.ts'
import type { Result, Transport } from './transport.ts'

/** Calls in flight at a time. */
export interface Width {
  /** Those that need no full batch: enough to keep Redis at work while the next is made ready. */
  readonly eager: number
  /** All, the others being full: enough for a Redis that is far away. */
  readonly most: number
  /** Whether to read all that has arrived before anything is sent: callers that are answered ask again, and travel together. */
  readonly readsFirst: boolean
}

/** Ops that may remove a key. */
const MAY_REMOVE: ReadonlySet<Op['type']> = new Set([
  'reset',
  'refund',
  'release',
  'settle',
  'leave',
  'block',
])

/** A Redis that has fallen silent is asked once in this time. */
const PROBE_MS = 25

/** A client that would queue what it is given is looked at again after so long. */
const READY_MS = 10

/** Requests waiting at most; more are refused. */
const MAX_WAITING = 65_536

/**
 * Sends ops that wait at the same time in one call. A lone one is sent at once (at the end of the current
 * tick, or of this turn of the event loop): nobody waits for company, so batches grow just as Redis becomes the bottleneck. Equal requests for
 * one key become one op with a count: the first to ask are the first to be admitted.
 */
export class Batcher {
  readonly #transport: Transport
  readonly #width: Width
  readonly #backlog: Backlog
  /**
   * Batches that wait, the last still open. (One list of ops, from which batches are cut, leaves behind tables that
   * keep what they held alive.)
   */
  readonly #waiting: Batch[] = []
  /** Calls in flight, the oldest first. */
  readonly #calls: Batch[] = []
  /** The places that they do not have. */
  readonly #places: number[]
  /** Calls given up since Redis last answered. */
  #lost = 0
  /** Runs out when a Redis that has fallen silent may be asked again. */
  #pause: NodeJS.Timeout | undefined
  /** For timers: made on behalf of a request, they would keep its async context. */
  readonly #origin = new AsyncResource('slidegate.batcher')
  #isScheduled = false

  constructor(transport: Transport, width: Width, backlog: Backlog) {
    this.#transport = transport
    this.#width = width
    this.#backlog = backlog
    this.#places = Array.from({ length: width.most }, (_, i) => width.most - 1 - i)
  }

  send(op: Op, nowMs: number | undefined, call: Call): void {
    if (this.#backlog.size >= MAX_WAITING) {
      call.reject(new StoreUnavailableError('overload', `${MAX_WAITING} requests wait for Redis already`))
      return
    }
    this.#backlog.size++
    this.#place(op, nowMs, call).requests++
    this.#schedule()
  }

  /** Finds a place for a request: at an op that it may join, or as an op of its own. */
  #place(op: Op, nowMs: number | undefined, call: Call): Batch {
    const slot = crc16(op.parts[0]!.key) % ENTRIES
    const last = this.#backlog.lastAt[slot]
    // A later request may join the last op of its key, but not overtake another.
    if (last !== undefined && last.batch.requests < MAX_REQUESTS && canJoin(last, op, nowMs)) {
      last.calls.push(call)
      return last.batch
    }
    const batch = this.#openBatch(op)
    const pending = new Pending(op, nowMs, call, batch, slot)
    this.#backlog.lastAt[slot] = pending
    batch.add(pending)
    return batch
  }

  #openBatch(op: Op): Batch {
    const mayRemove = MAY_REMOVE.has(op.type)
    const last = this.#waiting.at(-1)
    if (last?.mayRemove === mayRemove && last.hasRoomFor(op)) return last
    const batch = new Batch(mayRemove)
    this.#waiting.push(batch)
    return batch
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#isDue()) return
    this.#isScheduled = true
    const later = this.#width.readsFirst ? setImmediate : queueMicrotask
    later(() => {
      this.#isScheduled = false
      // What a client cannot send it would keep, and send when nobody waits for it any more.
      if (!this.#transport.isReady && this.#isDue()) this.#startPause(READY_MS)
      while (this.#isDue()) {
        // What all have given up takes no turn: nothing was asked.
        if (this.#sendBatch() && this.#isSilent) this.#startPause(PROBE_MS)
      }
    })
  }

  #isDue(): boolean {
    if (this.#waiting.length === 0 || this.#pause !== undefined) return false
    // At full load this is asked for each request: a look at the oldest call must do.
    if (this.#calls[0]?.ops[0]?.calls[0]?.isSettled) this.#forgetLostCalls()
    return this.#calls.length < this.#callsAtOnce()
  }

  #callsAtOnce(): number {
    // Until the script is loaded one by one, so that no call has to be sent again after a later one.
    if (!this.#transport.isOrdered || this.#isSilent) return 1
    return this.#waiting[0]!.hasRoom ? this.#width.eager : this.#width.most
  }

  /** A client may lose a reply for good: a call that all have given up stands in nobody's way. */
  #forgetLostCalls(): void {
    while (this.#calls[0]?.isGivenUp) {
      this.#places.push(this.#calls.shift()!.place)
      this.#lost++
      this.#transport.lost()
    }
  }

  /** A Redis that has fallen silent is not given more and more: it is asked one thing now and then, until it answers. */
  get #isSilent(): boolean {
    return this.#lost >= this.#width.most
  }

  #startPause(ms: number): void {
    const end = () => {
      this.#pause = undefined
      this.#dropGivenUp()
      if (this.#waiting.length === 0) return
      if (this.#transport.isReady) this.#schedule()
      else this.#startPause(READY_MS)
    }
    this.#pause = this.#origin.runInAsyncScope(() => setTimeout(end, ms).unref())
  }

  /** What waits in an outage must not pile up. */
  #dropGivenUp(): void {
    while (this.#waiting[0]?.isGivenUp) this.#take(this.#waiting.shift()!)
  }

  /** It waits no longer. */
  #take({ ops, requests }: Batch): void {
    this.#backlog.size -= requests
    const { lastAt } = this.#backlog
    for (const pending of ops) if (lastAt[pending.slot] === pending) lastAt[pending.slot] = undefined
  }

  #heard(): void {
    this.#lost = 0
    clearTimeout(this.#pause)
    this.#pause = undefined
  }

  /** Answers whether anybody still waited for it. */
  #sendBatch(): boolean {
    const batch = this.#isSilent ? this.#firstAlone() : this.#waiting.shift()!
    this.#take(batch)
    let isGivenUp = false
    for (const pending of batch.ops) {
      // Who has given up must not be charged.
      if (pending.calls.some(isSettled)) {
        pending.calls = pending.calls.filter((call) => !call.isSettled)
        isGivenUp ||= pending.calls.length === 0
      }
    }
    if (isGivenUp) batch.ops = batch.ops.filter(({ calls }) => calls.length > 0)
    if (batch.ops.length === 0) return false
    void this.#execute(batch)
    return true
  }

  /** The op that has waited longest, in a batch of its own. */
  #firstAlone(): Batch {
    const first = this.#waiting[0]!
    if (first.ops.length === 1) return this.#waiting.shift()!
    const alone = new Batch(first.mayRemove)
    const pending = first.ops.shift()!
    alone.add(pending)
    alone.requests = pending.calls.length
    first.requests -= alone.requests
    return alone
  }

  async #execute(batch: Batch): Promise<void> {
    const { ops } = batch
    batch.place = this.#places.pop()!
    this.#calls.push(batch)
    try {
      const results = await this.#transport.send(ops, batch.place)
      this.#heard()
      for (let i = 0; i < ops.length; i++) settle(ops[i]!.calls, results[i])
    } catch (error) {
      // A client that is not installed is no outage.
      const failure = error instanceof SlidegateError ? error : asUnavailable(error, 'Redis')
      for (const { calls } of ops) settle(calls, failure)
    } finally {
      const index = this.#calls.indexOf(batch)
      if (index >= 0) {
        this.#calls.splice(index, 1)
        this.#places.push(batch.place)
      }
      this.#schedule()
    }
  }
}

/** Those that have given up are told, too, of what was decided: it may have been charged. */
function settle(calls: readonly Call[], result: Result | SlidegateError): void {
  const outcomes = result instanceof Error ? undefined : [result]
  for (let position = 0; position < calls.length; position++) {
    const call = calls[position]!
    if (outcomes !== undefined) call.resolve(outcomes, position)
    else if (!call.isSettled) call.reject(result)
  }
}
