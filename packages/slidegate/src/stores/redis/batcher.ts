// Sends ops in batches: those that wait at the same time share a call.
//
// Until the script is loaded, calls go one by one, so none is sent again after a later one. Calls in flight are kept to about 16 ms of
// Redis. A call whose requests have all timed out frees its place. After 16 of these in a row Redis gets one op every 25 ms until it
// answers.

import { asUnavailable, SlidegateError, StoreUnavailableError } from '../../errors.ts'
import { asyncOrigin, backgroundTimer, endOfTick, nextTurn, type Timer } from '../../runtime/platform.ts'
import { applyEach } from '../call.ts'
import type { Call, Op, Outcome, Store } from '../store.ts'
import { CallCounts } from './call-counts.ts'
import { Backlog, type Batch, type CallSize, OF_SCRIPT, Queue } from './queue.ts'

/** The outcome of an op, or its error. */
export type Result = Outcome | StoreUnavailableError | SlidegateError

/** Learns what became of a batch. */
export interface Receiver {
  answered(batch: Batch, results: readonly Result[]): void
  /** The store may have decided some of its ops, or none. */
  failed(batch: Batch, error: unknown): void
}

/** Sends batches. */
export interface Transport {
  /** The server, for messages. */
  readonly server: string
  /** Whether calls keep their order. If they don't, they are sent one by one. */
  readonly isOrdered: boolean
  /** Whether a call leaves at once. */
  readonly isReady: boolean
  send(batch: Batch, receiver: Receiver): void
  /** A call was abandoned before it was answered. */
  lost(): void
}

/** How calls are made. */
export interface BatchOptions {
  /** The most calls in flight, if each is full. Enough for a Redis that is far away. */
  readonly maxCalls: number
  /**
   * Whether to send only once all replies that have arrived are read. Callers that got answers then send together.
   * Else two calls that aren't full may be in flight: Redis works on one while the next is prepared.
   */
  readonly readsFirst: boolean
  /** The most that one call takes. Default: what the script may. */
  readonly size?: CallSize
}

/** A Redis that has stopped answering gets one op in this time. */
const PROBE_MS = 25

/** A client that would queue what it is given is checked again after this time. */
const READY_MS = 10

/** This many ops, waiting or in flight, are divided between two calls. Fewer leave together: a call costs more than they do. */
const MIN_DIVIDED = 8

/** The work in flight, in milliseconds of Redis. Further calls wait. */
const IN_FLIGHT_MS = 16

/** The part of a store that sends batches. */
export interface BatchedStore extends Required<Pick<Store, 'apply' | 'isOverloaded'>> {
  /** Whether no caller waits for an answer any more. */
  isIdle(): boolean
  readonly counts: CallCounts
}

/**
 * Sends ops by these transports.
 *
 * @param shardOf the transport of an op, by its number
 * @param now the time that counts, if it isn't the server's
 * @param backlog for tests: its seed makes them repeatable
 */
export function batchedStore(
  transports: readonly Transport[],
  options: BatchOptions,
  shardOf: (op: Op) => number,
  now: () => number | undefined = () => undefined,
  backlog: Backlog = new Backlog(transports.length),
): BatchedStore {
  const counts = new CallCounts()
  const batchers = transports.map((transport) => new Batcher(transport, options, backlog, counts))
  const send = (op: Op, nowMs: number | undefined, call: Call) => batchers[shardOf(op)]!.send(op, nowMs, call)
  const sendEach = (ops: readonly Op[], nowMs: number | undefined, call: Call) =>
    applyEach(ops, call, (op, each) => send(op, nowMs, each))
  return {
    apply(ops, call) {
      if (ops.length === 1) send(ops[0]!, now(), call)
      else sendEach(ops, now(), call)
    },
    isOverloaded: (op, sinceMs) => batchers[shardOf(op)]!.isOverloaded(op, sinceMs),
    isIdle: () => batchers.every((batcher) => batcher.isIdle()),
    counts,
  }
}

/**
 * Sends ops that wait at the same time in one call.
 *
 * A lone op is sent at the end of the current tick, or of this turn of the event loop. No request waits for others, so batches grow
 * only as Redis becomes the bottleneck. Equal requests for one key become one op with a count, first come, first admitted.
 *
 * A call takes at most half of the ops that wait or are in flight. With all of them in one call, this process and Redis
 * would work in turns: callers whose requests return together send the next ones together.
 */
class Batcher implements Receiver {
  readonly #transport: Transport
  readonly #options: BatchOptions
  readonly #size: CallSize
  readonly #queue: Queue
  readonly #counts: CallCounts
  /** Calls in flight, the oldest first. */
  readonly #calls: Batch[] = []
  /** The places that they don't have. */
  readonly #places: number[]
  /** Calls that were abandoned since Redis last answered. */
  #lost = 0
  /** When Redis last answered. */
  #answeredAtMs = Number.NEGATIVE_INFINITY
  /** Since when a call has waited for an answer while none came. */
  #silentSinceMs = Number.POSITIVE_INFINITY
  /** Milliseconds that Redis takes for a call, by the times between its answers. */
  #tookMs = 0
  /** Runs out when a Redis that has stopped answering gets another op. */
  #pause: Timer | undefined
  /** For timers: made on behalf of a request, they would keep its async context. */
  readonly #origin = asyncOrigin('slidegate.batcher')
  #isScheduled = false

  constructor(transport: Transport, options: BatchOptions, backlog: Backlog, counts: CallCounts) {
    this.#transport = transport
    this.#options = options
    this.#size = options.size ?? OF_SCRIPT
    this.#queue = new Queue(backlog, this.#size)
    this.#counts = counts
    this.#places = Array.from({ length: options.maxCalls }, (_, i) => options.maxCalls - 1 - i)
  }

  send(op: Op, nowMs: number | undefined, call: Call): void {
    if (this.#queue.add(op, nowMs, call)) this.#schedule()
    else call.reject(new StoreUnavailableError('overload', 'too many requests wait for the store already'))
  }

  isIdle(): boolean {
    this.#queue.dropAbandoned(performance.now())
    return this.#queue.isEmpty && this.#calls.every(isAbandoned)
  }

  /** See `Store.isOverloaded`. */
  isOverloaded(op: Op, sinceMs: number): boolean {
    return this.#queue.isOverloaded(op, sinceMs) && this.#silentSinceMs >= sinceMs && this.#transport.isReady
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#isDue()) return
    this.#isScheduled = true
    if (this.#options.readsFirst) nextTurn(this.#sendDue)
    else endOfTick(this.#sendDue)
  }

  readonly #sendDue = (): void => {
    this.#isScheduled = false
    // If the client can't send a call, it would keep it and send it after its requests have timed out.
    if (!this.#transport.isReady && this.#isDue()) this.#startPause(READY_MS)
    while (this.#isDue()) {
      const batch = this.#queue.take(this.#maxWeight(), performance.now())
      // All requests of these ops have timed out.
      if (batch.ops.length === 0) continue
      this.#execute(batch)
      if (this.#isSilent) this.#startPause(PROBE_MS)
      // The other half leaves in the next turn of the event loop, when Redis is at work on this one.
      if (this.#queue.fillsCall || !this.#isDue()) continue
      this.#isScheduled = true
      nextTurn(this.#sendDue)
      return
    }
  }

  #isDue(): boolean {
    if (this.#queue.isEmpty || this.#pause !== undefined) return false
    // At full load this runs for each request: a look at the oldest call must do.
    if (this.#calls[0]?.ops[0]?.calls[0]?.isSettled) this.#forgetLostCalls()
    return this.#calls.length < this.#callsAtOnce()
  }

  #callsAtOnce(): number {
    // Until the script is loaded one by one, so that no call has to be sent again after a later one.
    if (!this.#transport.isOrdered || this.#isSilent) return 1
    const { maxCalls, readsFirst } = this.#options
    if (!this.#queue.fillsCall) return readsFirst ? 1 : 2
    // Two at least: how long Redis takes shows only between the answers to them.
    return Math.max(2, Math.min(maxCalls, IN_FLIGHT_MS / this.#tookMs))
  }

  /** The most that the next call takes, in usual ops. */
  #maxWeight(): number {
    const { ops } = this.#size
    if (this.#isSilent) return 1
    if (this.#options.readsFirst || this.#callsAtOnce() < 2) return ops
    let { weight } = this.#queue
    for (const call of this.#calls) weight += call.weight
    return weight < MIN_DIVIDED ? ops : Math.min(ops, Math.ceil(weight / 2))
  }

  /** An abandoned call doesn't hold up others: a client may never get its reply. */
  #forgetLostCalls(): void {
    while (this.#calls[0] !== undefined && isAbandoned(this.#calls[0])) {
      this.#places.push(this.#calls.shift()!.place)
      this.#lost++
      this.#transport.lost()
    }
  }

  /** Whether Redis has stopped answering. It then gets one op now and then. */
  get #isSilent(): boolean {
    return this.#lost >= this.#options.maxCalls
  }

  #startPause(ms: number): void {
    const end = () => {
      this.#pause = undefined
      this.#queue.dropAbandoned(performance.now())
      if (this.#queue.isEmpty) return
      if (this.#transport.isReady) this.#schedule()
      else this.#startPause(READY_MS)
    }
    this.#pause = this.#origin.runInAsyncScope(() => backgroundTimer(end, ms))
  }

  #execute(batch: Batch): void {
    batch.place = this.#places.pop()!
    this.#calls.push(batch)
    this.#counts.sent(batch.requests, batch.ops.length)
    this.#silentSinceMs = Math.min(this.#silentSinceMs, batch.sentAtMs)
    try {
      this.#transport.send(batch, this)
    } catch (error) {
      this.failed(batch, error)
    }
  }

  answered(batch: Batch, results: readonly Result[]): void {
    const { ops } = batch
    try {
      this.#heard(batch)
      for (let i = 0; i < ops.length; i++) settle(ops[i]!.calls, results[i])
    } catch (error) {
      this.failed(batch, error)
      return
    }
    this.#ended(batch)
  }

  #heard({ sentAtMs }: Batch): void {
    const nowMs = performance.now()
    // Redis begins a call once it has answered the one before. The shortest time counts most: longer ones include the network.
    const tookMs = nowMs - Math.max(sentAtMs, this.#answeredAtMs)
    this.#tookMs = tookMs < this.#tookMs ? tookMs : this.#tookMs + (tookMs - this.#tookMs) / 8
    this.#counts.answered(nowMs - sentAtMs)
    this.#answeredAtMs = nowMs
    this.#silentSinceMs = nowMs
    // An answer, even a late one, ends the silence at once.
    this.#lost = 0
    clearTimeout(this.#pause)
    this.#pause = undefined
  }

  failed(batch: Batch, error: unknown): void {
    this.#counts.failed()
    // An uninstalled client isn't an outage.
    const failure = error instanceof SlidegateError ? error : asUnavailable(error, this.#transport.server)
    for (const { calls } of batch.ops) settle(calls, failure)
    this.#ended(batch)
  }

  #ended(batch: Batch): void {
    const index = this.#calls.indexOf(batch)
    if (index >= 0) {
      this.#calls.splice(index, 1)
      this.#places.push(batch.place)
    }
    if (this.#calls.length === 0 && this.#lost === 0) this.#silentSinceMs = Number.POSITIVE_INFINITY
    this.#schedule()
  }
}

/** Whether all requests of a call have timed out. */
function isAbandoned({ ops }: Batch): boolean {
  return ops.every((pending) => pending.isAbandoned)
}

/** Resolves calls that have timed out, too: they may have been charged. */
function settle(calls: readonly Call[], result: Result): void {
  const outcomes = result instanceof Error ? undefined : [result]
  for (let position = 0; position < calls.length; position++) {
    const call = calls[position]!
    if (outcomes !== undefined) call.resolve(outcomes, position)
    else if (!call.isSettled) call.reject(result)
  }
}
