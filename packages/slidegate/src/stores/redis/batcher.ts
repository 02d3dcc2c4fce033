import { asUnavailable, SlidegateError, StoreUnavailableError } from '../../errors.ts'
import { asyncOrigin, backgroundTimer, endOfTick, nextTurn, type Timer } from '../../runtime/platform.ts'
import type { Call, Op } from '../store.ts'
import { Batch, type CallSize, OF_SCRIPT } from './batch.ts'
import type { CallCounts } from './call-counts.ts'
import { type Backlog, Queue } from './queue.ts'
import type { Result, Transport } from './transport.ts'

/** Calls in flight at a time. */
export interface Width {
  /** Those that need no full batch: enough to keep Redis at work while the next is made ready. */
  readonly eager: number
  /** All, the others being full: enough for a Redis that is far away. */
  readonly most: number
  /** Whether to read all that has arrived before anything is sent: callers that are answered ask again, and travel together. */
  readonly readsFirst: boolean
  /** What one call takes at most. Default: what a script may. */
  readonly size?: CallSize
}

/** A Redis that has fallen silent is asked once in this time. */
const PROBE_MS = 25

/** A client that would queue what it is given is looked at again after so long. */
const READY_MS = 10

/** As many ops, waiting or in flight, are divided between two calls. Fewer leave together: a call costs more than they do. */
const MIN_DIVIDED = 8

/** Milliseconds that Redis should take for all that is in flight: whoever comes then waits for it. */
const IN_FLIGHT_MS = 16

/**
 * Sends ops that wait at the same time in one call. A lone one is sent at once (at the end of the current
 * tick, or of this turn of the event loop): nobody waits for company, so batches grow just as Redis becomes the
 * bottleneck. Equal requests for one key become one op with a count: the first to ask are the first to be admitted.
 *
 * A call takes at most half of the ops that wait or are in flight. With all of them in one call, this process and Redis
 * would work in turns: callers whose requests return together send the next ones together.
 */
export class Batcher {
  readonly #transport: Transport
  readonly #width: Width
  readonly #size: CallSize
  readonly #waiting: Queue
  readonly #counts: CallCounts | undefined
  /** Calls in flight, the oldest first. */
  readonly #calls: Batch[] = []
  /** The places that they do not have. */
  readonly #places: number[]
  /** Calls given up since Redis last answered. */
  #lost = 0
  /** When Redis last answered. */
  #heardAtMs = Number.NEGATIVE_INFINITY
  /** Since when it owes an answer, and has given none. */
  #owesSinceMs = Number.POSITIVE_INFINITY
  /** Milliseconds that it has lately taken for a call, by the times between its answers. */
  #tookMs = 0
  /** Runs out when a Redis that has fallen silent may be asked again. */
  #pause: Timer | undefined
  /** For timers: made on behalf of a request, they would keep its async context. */
  readonly #origin = asyncOrigin('slidegate.batcher')
  #isScheduled = false

  /** @param counts who is told of each call */
  constructor(transport: Transport, width: Width, backlog: Backlog, counts?: CallCounts) {
    this.#transport = transport
    this.#counts = counts
    this.#width = width
    this.#size = width.size ?? OF_SCRIPT
    this.#waiting = new Queue(backlog, this.#size)
    this.#places = Array.from({ length: width.most }, (_, i) => width.most - 1 - i)
  }

  send(op: Op, nowMs: number | undefined, call: Call): void {
    if (this.#waiting.add(op, nowMs, call)) this.#schedule()
    else call.reject(new StoreUnavailableError('overload', 'too many requests wait for the store already'))
  }

  /** Whether no caller waits for an answer any more. */
  isIdle(): boolean {
    this.#waiting.dropGivenUp(performance.now())
    return this.#waiting.isEmpty && this.#calls.every((batch) => batch.isGivenUp)
  }

  /** See `Store.isCrowded`. */
  isCrowded(op: Op, sinceMs: number): boolean {
    return this.#waiting.isCrowded(op, sinceMs) && this.#owesSinceMs >= sinceMs && this.#transport.isReady
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#isDue()) return
    this.#isScheduled = true
    if (this.#width.readsFirst) nextTurn(this.#sendDue)
    else endOfTick(this.#sendDue)
  }

  readonly #sendDue = (): void => {
    this.#isScheduled = false
    // If the client can't send a call, it would keep it and send it when nobody waits for it any more.
    if (!this.#transport.isReady && this.#isDue()) this.#startPause(READY_MS)
    while (this.#isDue()) {
      // A batch whose requests have all timed out isn't sent.
      if (!this.#sendBatch()) continue
      if (this.#isSilent) this.#startPause(PROBE_MS)
      // The other half leaves in the next turn of the event loop, when Redis is at work on this one.
      if (this.#waiting.fillsCall || !this.#isDue()) continue
      this.#isScheduled = true
      nextTurn(this.#sendDue)
      return
    }
  }

  #isDue(): boolean {
    if (this.#waiting.isEmpty || this.#pause !== undefined) return false
    // At full load this is asked for each request: a look at the oldest call must do.
    if (this.#calls[0]?.ops[0]?.calls[0]?.isSettled) this.#forgetLostCalls()
    return this.#calls.length < this.#callsAtOnce()
  }

  #callsAtOnce(): number {
    // Until the script is loaded one by one, so that no call has to be sent again after a later one.
    if (!this.#transport.isOrdered || this.#isSilent) return 1
    const { eager, most } = this.#width
    if (!this.#waiting.fillsCall) return eager
    // Two at least: how long Redis takes shows only between the answers to them.
    return Math.max(eager, 2, Math.min(most, IN_FLIGHT_MS / this.#tookMs))
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
      this.#waiting.dropGivenUp(performance.now())
      if (this.#waiting.isEmpty) return
      if (this.#transport.isReady) this.#schedule()
      else this.#startPause(READY_MS)
    }
    this.#pause = this.#origin.runInAsyncScope(() => backgroundTimer(end, ms))
  }

  #heard({ sentAtMs }: Batch): void {
    const nowMs = performance.now()
    // What was in flight with another was begun when that was answered, or later. The shortest time says most: others
    // have the way to Redis in them.
    const tookMs = nowMs - Math.max(sentAtMs, this.#heardAtMs)
    this.#tookMs = tookMs < this.#tookMs ? tookMs : this.#tookMs + (tookMs - this.#tookMs) / 8
    this.#counts?.answered(nowMs - sentAtMs)
    this.#heardAtMs = nowMs
    this.#owesSinceMs = nowMs
    this.#lost = 0
    clearTimeout(this.#pause)
    this.#pause = undefined
  }

  /** Answers whether anybody still waited for it. */
  #sendBatch(): boolean {
    const { requests } = this.#size
    const batch = new Batch(performance.now(), { ops: this.#mostOps(), requests })
    this.#waiting.fill(batch)
    if (batch.ops.length === 0) return false
    this.#execute(batch)
    return true
  }

  /** The most that the next call takes, in usual ops. */
  #mostOps(): number {
    const { ops } = this.#size
    if (this.#isSilent) return 1
    if (this.#width.eager < 2 || this.#callsAtOnce() < 2) return ops
    let weight = this.#waiting.weight
    for (const call of this.#calls) weight += call.weight
    return weight < MIN_DIVIDED ? ops : Math.min(ops, Math.ceil(weight / 2))
  }

  #execute(batch: Batch): void {
    const { ops } = batch
    batch.place = this.#places.pop()!
    this.#calls.push(batch)
    this.#counts?.sent(batch.requests, ops.length)
    this.#owesSinceMs = Math.min(this.#owesSinceMs, batch.sentAtMs)
    this.#transport.send(ops, batch.place).then(
      (results) => this.#answered(batch, results),
      (error: unknown) => this.#failed(batch, error),
    )
  }

  #answered(batch: Batch, results: readonly Result[]): void {
    const { ops } = batch
    try {
      this.#heard(batch)
      for (let i = 0; i < ops.length; i++) settle(ops[i]!.calls, results[i])
    } catch (error) {
      this.#failed(batch, error)
      return
    }
    this.#ended(batch)
  }

  #failed(batch: Batch, error: unknown): void {
    this.#counts?.failed()
    // A client that is not installed is no outage.
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
    if (this.#calls.length === 0 && this.#lost === 0) this.#owesSinceMs = Number.POSITIVE_INFINITY
    this.#schedule()
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
