// Sends ops in batches. Ops that are waiting at the same time share a call: one run of the script, or one HTTP request.
//
// Until the script is loaded, calls are sent one at a time. Otherwise, a resent call could arrive after a later one. If
// all requests in a call time out, another call can be sent in its place. After `maxCalls` timeouts in a row, Redis
// gets one op every 25 ms until it answers.

import { SlidegateError, StoreUnavailableError } from '../../errors.ts'
import { asyncOrigin, backgroundTimer, endOfTick, nextTurn, type Timer } from '../../runtime/platform.ts'
import { applyEach } from '../call.ts'
import type { Call, Op, Outcome, Store } from '../store.ts'
import { CallCounts } from './call-counts.ts'
import { Backlog, type Batch, type CallSize, OF_SCRIPT, Queue } from './queue.ts'

export type Result = Outcome | StoreUnavailableError | SlidegateError

export interface Receiver {
  answered(batch: Batch, results: readonly Result[]): void
  /** The batch failed, but the store may have decided some or all of its ops. */
  failed(batch: Batch, error: unknown): void
}

export interface Transport {
  /** Whether calls arrive in the order in which they were sent. If not, they are sent one at a time. */
  readonly isOrdered: boolean
  readonly isReady: boolean
  send(batch: Batch, receiver: Receiver): void
  /** Returns the error for a failed batch, with the server's name. */
  failure(error: unknown): StoreUnavailableError
  /** Called when a call is abandoned because all of its requests have timed out. */
  lost(): void
}

export interface BatchOptions {
  /** Maximum number of full calls in flight. */
  readonly maxCalls: number
  /** Whether to read all available replies before sending. The callers' next requests then share a batch. */
  readonly readsFirst: boolean
  /** The maximum size of a call. Default: the script's maximum. */
  readonly size?: CallSize
}

/** While Redis doesn't answer, one op is sent per interval. */
const PROBE_MS = 25

/** If the client isn't ready, the batcher checks again after this time. */
const READY_MS = 10

/** Fewer ops than this aren't divided between two calls, because one call is cheaper. */
const MIN_DIVIDED = 8

/** Maximum work in flight, in milliseconds of Redis time. Further calls wait. */
const IN_FLIGHT_MS = 16

/** How long `whenIdle` waits. Most calls in flight time out earlier, in the limiter. */
const MAX_CLOSING_MS = 2000

const IDLE_LOOK_MS = 5

export interface BatchedStore extends Required<Pick<Store, 'apply' | 'isOverloaded'>> {
  /** Resolves when no call is in flight, or after 2 s. */
  whenIdle(): Promise<void>
  readonly counts: CallCounts
}

/** Sends ops through these transports. `now` replaces the server's clock, and `backlog` is for tests. */
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
    async whenIdle() {
      const untilMs = performance.now() + MAX_CLOSING_MS
      while (!batchers.every((batcher) => batcher.isIdle()) && performance.now() < untilMs) {
        await new Promise((resolve) => setTimeout(resolve, IDLE_LOOK_MS))
      }
    },
    counts,
  }
}

/**
 * Sends waiting ops together. No op waits for a batch to fill, so batches grow only if Redis is the bottleneck.
 *
 * A call takes at most half of the ops waiting or in flight. If it took all of them, this process and Redis would take turns,
 * because callers that are answered together send their next requests together.
 */
class Batcher implements Receiver {
  readonly #transport: Transport
  readonly #options: BatchOptions
  readonly #size: CallSize
  readonly #queue: Queue
  readonly #counts: CallCounts
  /** Calls in flight, oldest first. */
  readonly #calls: Batch[] = []
  /** The values of `place` that no call in flight is using. */
  readonly #places: number[]
  /** Calls abandoned since Redis last answered. */
  #lost = 0
  #answeredAtMs = Number.NEGATIVE_INFINITY
  /** When the current period without answers began. `Infinity` if no call is in flight. */
  #silentSinceMs = Number.POSITIVE_INFINITY
  /** Milliseconds that Redis takes per call, estimated from the times between its answers. */
  #tookMs = 0
  /** A timer that runs while Redis isn't answering or the client isn't ready. When it fires, the next op is sent. */
  #pause: Timer | undefined
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
    else
      call.reject(
        new StoreUnavailableError('overload', 'too many requests are already waiting for the store'),
      )
  }

  isIdle(): boolean {
    this.#queue.dropAbandoned(performance.now())
    return this.#queue.isEmpty && this.#calls.every(isAbandoned)
  }

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
    // A client that isn't ready would queue the call, and send it after the call's requests have timed out.
    if (!this.#transport.isReady && this.#isDue()) this.#startPause(READY_MS)
    while (this.#isDue()) {
      const batch = this.#queue.take(this.#maxWeight(), performance.now())
      if (batch.ops.length === 0) continue
      this.#execute(batch)
      if (this.#isSilent) this.#startPause(PROBE_MS)
      // Sends the other half in the next turn of the event loop, while Redis executes the first half.
      if (this.#queue.fillsCall || !this.#isDue()) continue
      this.#isScheduled = true
      nextTurn(this.#sendDue)
      return
    }
  }

  #isDue(): boolean {
    if (this.#queue.isEmpty || this.#pause !== undefined) return false
    // Under full load, this runs for each request, so it checks only the oldest call.
    if (this.#calls[0]?.ops[0]?.calls[0]?.isSettled) this.#forgetLostCalls()
    return this.#calls.length < this.#callsAtOnce()
  }

  #callsAtOnce(): number {
    if (!this.#transport.isOrdered || this.#isSilent) return 1
    const { maxCalls, readsFirst } = this.#options
    if (!this.#queue.fillsCall) return readsFirst ? 1 : 2
    // At least two calls, because the time between their answers shows how long Redis takes.
    return Math.max(2, Math.min(maxCalls, IN_FLIGHT_MS / this.#tookMs))
  }

  #maxWeight(): number {
    const { ops } = this.#size
    if (this.#isSilent) return 1
    if (this.#options.readsFirst || this.#callsAtOnce() < 2) return ops
    let { weight } = this.#queue
    for (const call of this.#calls) weight += call.weight
    return weight < MIN_DIVIDED ? ops : Math.min(ops, Math.ceil(weight / 2))
  }

  /** Stops counting abandoned calls as in flight, because their replies may never arrive. */
  #forgetLostCalls(): void {
    while (this.#calls[0] !== undefined && isAbandoned(this.#calls[0])) {
      this.#places.push(this.#calls.shift()!.place)
      this.#lost++
      this.#transport.lost()
    }
  }

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
    // Redis starts a call when it has answered the previous one. A time above the estimate may include network delays,
    // so it counts less.
    const tookMs = nowMs - Math.max(sentAtMs, this.#answeredAtMs)
    this.#tookMs = tookMs < this.#tookMs ? tookMs : this.#tookMs + (tookMs - this.#tookMs) / 8
    this.#counts.answered(nowMs - sentAtMs)
    this.#answeredAtMs = nowMs
    this.#silentSinceMs = nowMs
    // Any answer, even a late one, ends the silence.
    this.#lost = 0
    clearTimeout(this.#pause)
    this.#pause = undefined
  }

  failed(batch: Batch, error: unknown): void {
    this.#counts.failed()
    // A missing client package isn't an outage.
    const failure = error instanceof SlidegateError ? error : this.#transport.failure(error)
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

function isAbandoned({ ops }: Batch): boolean {
  return ops.every((pending) => pending.isAbandoned)
}

/** Also resolves calls that have timed out, because they may have been charged. */
function settle(calls: readonly Call[], result: Result): void {
  const outcomes = result instanceof Error ? undefined : [result]
  for (let position = 0; position < calls.length; position++) {
    const call = calls[position]!
    if (outcomes !== undefined) call.resolve(outcomes, position)
    else if (!call.isSettled) call.reject(result)
  }
}
