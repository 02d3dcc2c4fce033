import { StoreUnavailableError } from '../../errors.ts'
import type { ConsumeOutcome, Op, Outcome } from '../store.ts'
import type { RunScript } from './client.ts'
import { canJoin, decode, encode, type Request } from './protocol.ts'

/** Ops per call at most, so that no script holds Redis for long. */
const MAX_BATCH = 128

/** Calls in flight that need no full batch: enough to keep Redis at work while the next is made ready. */
const EAGER_CALLS = 2

/** Calls in flight at most, all but the eager ones full: enough for a Redis that is far away. */
const MAX_CALLS = 16

/** Requests waiting at most; more are refused. */
const MAX_WAITING = 65_536

/** Where the outcome goes; once settled, nowhere. A `Call` is one. */
export interface Waiter {
  readonly isSettled: boolean
  resolve(outcomes: readonly [Outcome]): void
  reject(error: unknown): void
}

/** A request that waits to be sent; or, where equal ones have joined it, several of them. */
class Pending implements Request {
  readonly op: Op
  readonly keys: readonly string[]
  readonly nowMs: number | undefined
  readonly waiter: Waiter
  /** Who asked for the same later, in that order. */
  joined: Waiter[] | undefined

  constructor(op: Op, keys: readonly string[], nowMs: number | undefined, waiter: Waiter) {
    this.op = op
    this.keys = keys
    this.nowMs = nowMs
    this.waiter = waiter
  }

  get count(): number {
    const own = this.op.type === 'consume' ? this.op.count : 1
    return this.joined === undefined ? own : own + this.joined.length
  }
}

/**
 * Sends ops that wait at the same time in one call. A lone one is sent at once (at the end of the current
 * tick): nobody waits for company, so batches grow just as Redis becomes the bottleneck. Equal requests for
 * one key become one op with a count: the first to ask are the first to be admitted.
 */
export class Batcher {
  readonly #run: RunScript
  #waiting: Pending[] = []
  #calls = 0
  #isScheduled = false

  constructor(run: RunScript) {
    this.#run = run
  }

  send(op: Op, keys: readonly string[], nowMs: number | undefined, waiter: Waiter): void {
    if (this.#waiting.length >= MAX_WAITING) {
      waiter.reject(new StoreUnavailableError('overload', `${MAX_WAITING} requests wait for Redis already`))
      return
    }
    this.#waiting.push(new Pending(op, keys, nowMs, waiter))
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#isDue()) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      while (this.#isDue()) {
        const batch = this.#nextBatch()
        if (batch.length > 0) void this.#execute(batch)
      }
    })
  }

  #isDue(): boolean {
    const waiting = this.#waiting.length
    return waiting > 0 && (this.#calls < EAGER_CALLS || (this.#calls < MAX_CALLS && waiting >= MAX_BATCH))
  }

  /** The first to have asked, as many as become a full batch. */
  #nextBatch(): Pending[] {
    const batch: Pending[] = []
    // The last op for a key, by its first log: a later request may join it, but not overtake others.
    const lastOf = new Map<string, Pending>()
    let taken = 0
    for (; taken < this.#waiting.length; taken++) {
      const pending = this.#waiting[taken]!
      // Who has given up must not be charged.
      if (pending.waiter.isSettled) continue
      const last = lastOf.get(pending.keys[0]!)
      if (last !== undefined && canJoin(last, pending)) {
        last.joined ??= []
        last.joined.push(pending.waiter)
      } else if (batch.length < MAX_BATCH) {
        lastOf.set(pending.keys[0]!, pending)
        batch.push(pending)
      } else {
        break
      }
    }
    this.#waiting.splice(0, taken)
    return batch
  }

  async #execute(batch: readonly Pending[]): Promise<void> {
    this.#calls++
    try {
      const keys = batch.flatMap((pending) => pending.keys)
      const outcomes = decode(batch, await this.#run(keys, encode(batch)))
      for (let i = 0; i < batch.length; i++) settle(batch[i]!, outcomes[i])
    } catch (error) {
      const unavailable = asUnavailable(error)
      for (const pending of batch) settle(pending, unavailable)
    } finally {
      this.#calls--
      this.#schedule()
    }
  }
}

function settle({ op, waiter, joined = [] }: Pending, outcome: Outcome | StoreUnavailableError): void {
  if (outcome instanceof StoreUnavailableError) {
    for (const each of [waiter, ...joined]) each.reject(outcome)
  } else if (joined.length === 0) {
    waiter.resolve([outcome])
  } else {
    ;[waiter, ...joined].forEach((each, position) => {
      each.resolve([shareOf(op, outcome as ConsumeOutcome, position)])
    })
  }
}

/** The outcome for one of the requests that were decided together, as if it had asked alone after those before it. */
function shareOf(op: Op, outcome: ConsumeOutcome, position: number): ConsumeOutcome {
  if (op.type !== 'consume') return outcome
  const { source, atMs, admitted, waitMs } = outcome
  const limits = outcome.limits.slice()
  op.parts[0]!.set.limits.forEach(({ limit, shadow }, i) => {
    const used = limits[3 * i]!
    const fitting = shadow ? Math.max(0, Math.floor((limit - used) / op.cost)) : admitted
    limits[3 * i] = used + op.cost * Math.min(position, admitted, fitting)
  })
  return { source, atMs, admitted: position < admitted ? 1 : 0, limits, waitMs }
}

function asUnavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new StoreUnavailableError('error', `Redis did not decide: ${message}`, { cause: error })
}
