import { AsyncResource } from 'node:async_hooks'
import { StoreUnavailableError } from '../../errors.ts'
import type { Call } from '../call.ts'
import type { Op, Outcome } from '../store.ts'
import type { ScriptRunner } from './client.ts'
import { crc16, type Keyspace } from './keyspace.ts'
import { canJoin, decode, encode, type Request } from './protocol.ts'

/** Ops per call at most, so that no script holds Redis for long. */
const MAX_BATCH = 128

/** Requests per call at most: with all of a busy key's in one, Redis and this process would wait for each other. */
const MAX_REQUESTS = 512

/** Calls in flight that need no full batch: enough to keep Redis at work while the next is made ready. */
const EAGER_CALLS = 2

/** Calls in flight at most, all but the eager ones full: enough for a Redis that is far away. */
const MAX_CALLS = 16

/** A Redis that has fallen silent is asked once in this time. */
const PROBE_MS = 25

/** Requests waiting at most; more are refused. */
const MAX_WAITING = 65_536

/** Places in the table of ops that may be joined. */
const PLACES = 4096

/** An op that waits to be sent, and who waits for it, in the order in which they asked. */
class Pending implements Request {
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
class Batch {
  ops: Pending[] = []
  /** Who waits for them, all in all. */
  requests = 0
  /**
   * What removes keys does not travel with what writes: Redis lets a script that has removed something write on
   * when it is out of memory.
   */
  readonly mayRemove: boolean

  constructor(mayRemove: boolean) {
    this.mayRemove = mayRemove
  }

  get hasRoom(): boolean {
    return this.ops.length < MAX_BATCH && this.requests < MAX_REQUESTS
  }
}

/**
 * Sends ops that wait at the same time in one call. A lone one is sent at once (at the end of the current
 * tick): nobody waits for company, so batches grow just as Redis becomes the bottleneck. Equal requests for
 * one key become one op with a count: the first to ask are the first to be admitted.
 */
export class Batcher {
  readonly #script: ScriptRunner
  readonly #keysOf: Keyspace
  /**
   * Batches that wait, the last still open. (One list of ops, from which batches are cut, leaves behind tables that
   * keep what they held alive.)
   */
  readonly #waiting: Batch[] = []
  #waitingCalls = 0
  /** Calls in flight, the oldest first. */
  readonly #calls: Batch[] = []
  /** Calls given up since Redis last answered. */
  #lost = 0
  /** Runs out when a Redis that has fallen silent may be asked again. */
  #pause: NodeJS.Timeout | undefined
  /** For timers: made on behalf of a request, they would keep its async context. */
  readonly #origin = new AsyncResource('slidegate.batcher')
  #isScheduled = false
  /**
   * The last op that waits for a key, at the place of its hash. Where another key has taken the place, the
   * next request just joins nobody. (A Map that is filled and emptied at this rate leaves behind old tables,
   * which keep what they held alive.)
   */
  readonly #lastAt = new Array<Pending | undefined>(PLACES).fill(undefined)

  constructor(script: ScriptRunner, keysOf: Keyspace) {
    this.#script = script
    this.#keysOf = keysOf
  }

  send(op: Op, nowMs: number | undefined, call: Call): void {
    if (this.#waitingCalls >= MAX_WAITING) {
      call.reject(new StoreUnavailableError('overload', `${MAX_WAITING} requests wait for Redis already`))
      return
    }
    this.#waitingCalls++
    this.#place(op, nowMs, call).requests++
    this.#schedule()
  }

  /** Finds a place for a request: at an op that it may join, or as an op of its own. */
  #place(op: Op, nowMs: number | undefined, call: Call): Batch {
    const slot = crc16(op.parts[0]!.key) % PLACES
    const last = this.#lastAt[slot]
    // A later request may join the last op of its key, but not overtake another.
    if (last !== undefined && last.batch.requests < MAX_REQUESTS && canJoin(last, op, nowMs)) {
      last.calls.push(call)
      return last.batch
    }
    const batch = this.#openBatch(op.type === 'reset' || op.type === 'refund')
    const pending = new Pending(op, nowMs, call, batch, slot)
    this.#lastAt[slot] = pending
    batch.ops.push(pending)
    return batch
  }

  #openBatch(mayRemove: boolean): Batch {
    const last = this.#waiting.at(-1)
    if (last?.hasRoom && last.mayRemove === mayRemove) return last
    const batch = new Batch(mayRemove)
    this.#waiting.push(batch)
    return batch
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#isDue()) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      while (this.#isDue()) {
        this.#sendBatch()
        if (this.#isSilent) this.#startPause()
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
    if (!this.#script.isLoaded || this.#isSilent) return 1
    return this.#waiting[0]!.hasRoom ? EAGER_CALLS : MAX_CALLS
  }

  /** A client may lose a reply for good: a call that all have given up stands in nobody's way. */
  #forgetLostCalls(): void {
    while (this.#calls[0]?.ops.every(({ calls }) => calls.every(isSettled))) {
      this.#calls.shift()
      this.#lost++
    }
  }

  /** A Redis that has fallen silent is not given more and more: it is asked one thing now and then, until it answers. */
  get #isSilent(): boolean {
    return this.#lost >= MAX_CALLS
  }

  #startPause(): void {
    const end = () => {
      this.#pause = undefined
      this.#schedule()
    }
    this.#pause = this.#origin.runInAsyncScope(() => setTimeout(end, PROBE_MS).unref())
  }

  #heard(): void {
    this.#lost = 0
    clearTimeout(this.#pause)
    this.#pause = undefined
  }

  #sendBatch(): void {
    const batch = this.#isSilent ? this.#firstAlone() : this.#waiting.shift()!
    this.#waitingCalls -= batch.requests
    let isGivenUp = false
    for (const pending of batch.ops) {
      if (this.#lastAt[pending.slot] === pending) this.#lastAt[pending.slot] = undefined
      // Who has given up must not be charged.
      if (pending.calls.some(isSettled)) {
        pending.calls = pending.calls.filter((call) => !call.isSettled)
        isGivenUp ||= pending.calls.length === 0
      }
    }
    if (isGivenUp) batch.ops = batch.ops.filter(({ calls }) => calls.length > 0)
    if (batch.ops.length > 0) void this.#execute(batch)
  }

  /** The op that has waited longest, in a batch of its own. */
  #firstAlone(): Batch {
    const first = this.#waiting[0]!
    if (first.ops.length === 1) return this.#waiting.shift()!
    const alone = new Batch(first.mayRemove)
    const pending = first.ops.shift()!
    alone.ops.push(pending)
    alone.requests = pending.calls.length
    first.requests -= alone.requests
    return alone
  }

  async #execute(batch: Batch): Promise<void> {
    const { ops } = batch
    this.#calls.push(batch)
    try {
      const keys: string[] = []
      for (const { op } of ops) this.#keysOf(op.parts, keys)
      const outcomes = decode(ops, await this.#script.run(keys, encode(ops)))
      this.#heard()
      for (let i = 0; i < ops.length; i++) settle(ops[i]!.calls, outcomes[i])
    } catch (error) {
      const unavailable = asUnavailable(error)
      for (const { calls } of ops) settle(calls, unavailable)
    } finally {
      const place = this.#calls.indexOf(batch)
      if (place >= 0) this.#calls.splice(place, 1)
      this.#schedule()
    }
  }
}

function isSettled(call: Call): boolean {
  return call.isSettled
}

function settle(calls: readonly Call[], outcome: Outcome | StoreUnavailableError): void {
  const outcomes = outcome instanceof StoreUnavailableError ? undefined : [outcome]
  for (let position = 0; position < calls.length; position++) {
    const call = calls[position]!
    if (call.isSettled) continue
    if (outcomes === undefined) call.reject(outcome)
    else call.resolve(outcomes, position)
  }
}

function asUnavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new StoreUnavailableError('error', `Redis did not decide: ${message}`, { cause: error })
}
