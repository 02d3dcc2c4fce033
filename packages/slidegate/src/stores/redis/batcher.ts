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

/** A request and who waits for it, in the order in which they asked: several where equal requests have joined. */
class Pending implements Request {
  readonly op: Op
  readonly keys: readonly string[]
  readonly nowMs: number | undefined
  waiters: Waiter[]

  constructor(op: Op, keys: readonly string[], nowMs: number | undefined, waiter: Waiter) {
    this.op = op
    this.keys = keys
    this.nowMs = nowMs
    this.waiters = [waiter]
  }

  get count(): number {
    return this.op.type === 'consume' ? this.op.count * this.waiters.length : 1
  }

  /** Forgets who has given up: they must not be charged. False where nobody is left. */
  isWanted(): boolean {
    if (this.waiters.some(({ isSettled }) => isSettled)) {
      this.waiters = this.waiters.filter(({ isSettled }) => !isSettled)
    }
    return this.waiters.length > 0
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
  /** The last op waiting for a key, by its first log: a later one may join it, but not overtake others. */
  readonly #lastOf = new Map<string, Pending>()
  #waitingRequests = 0
  #calls = 0
  #isScheduled = false

  constructor(run: RunScript) {
    this.#run = run
  }

  send(op: Op, keys: readonly string[], nowMs: number | undefined, waiter: Waiter): void {
    if (this.#waitingRequests >= MAX_WAITING) {
      waiter.reject(new StoreUnavailableError('overload', `${MAX_WAITING} requests wait for Redis already`))
      return
    }
    this.#waitingRequests++
    const pending = new Pending(op, keys, nowMs, waiter)
    const last = this.#lastOf.get(keys[0]!)
    if (last !== undefined && canJoin(last, pending)) {
      last.waiters.push(waiter)
    } else {
      this.#waiting.push(pending)
      this.#lastOf.set(keys[0]!, pending)
    }
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#isDue()) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      while (this.#isDue()) this.#sendBatch()
    })
  }

  #isDue(): boolean {
    const waiting = this.#waiting.length
    return waiting > 0 && (this.#calls < EAGER_CALLS || (this.#calls < MAX_CALLS && waiting >= MAX_BATCH))
  }

  #sendBatch(): void {
    const batch = this.#waiting.splice(0, MAX_BATCH)
    for (const pending of batch) {
      this.#waitingRequests -= pending.waiters.length
      if (this.#lastOf.get(pending.keys[0]!) === pending) this.#lastOf.delete(pending.keys[0]!)
    }
    const wanted = batch.filter((pending) => pending.isWanted())
    if (wanted.length > 0) void this.#execute(wanted)
  }

  async #execute(batch: readonly Pending[]): Promise<void> {
    this.#calls++
    try {
      const keys = batch.flatMap((pending) => pending.keys)
      const outcomes = decode(batch, await this.#run(keys, encode(batch)))
      for (let i = 0; i < batch.length; i++) settle(batch[i]!, outcomes[i])
    } catch (error) {
      const unavailable = asUnavailable(error)
      for (const { waiters } of batch) for (const waiter of waiters) waiter.reject(unavailable)
    } finally {
      this.#calls--
      this.#schedule()
    }
  }
}

function settle({ op, waiters }: Pending, outcome: Outcome | StoreUnavailableError): void {
  if (outcome instanceof StoreUnavailableError) {
    for (const waiter of waiters) waiter.reject(outcome)
  } else if (waiters.length === 1) {
    waiters[0]!.resolve([outcome])
  } else {
    waiters.forEach((waiter, position) => {
      waiter.resolve([shareOf(op, outcome as ConsumeOutcome, position)])
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
