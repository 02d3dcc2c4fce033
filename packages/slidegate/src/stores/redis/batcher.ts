import { StoreUnavailableError } from '../../errors.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Op, Outcome } from '../store.ts'
import type { RunScript } from './client.ts'
import { decode, encode, type Request } from './protocol.ts'

/** Ops per call at most, so that no script holds Redis for long. */
const MAX_BATCH = 128

/** Calls in flight that need no full batch: enough to keep Redis at work while the next is made ready. */
const EAGER_CALLS = 2

/** Calls in flight at most, all but the first of them full: enough for a Redis that is far away. */
const MAX_CALLS = 16

/** Requests waiting at most; more are refused. */
const MAX_WAITING = 65_536

interface Waiter {
  readonly call: Call | undefined
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

interface Pending extends Request {
  /** In the order in which they asked; more than one where equal requests became one op. */
  waiters: Waiter[]
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

  send(op: Op, keys: readonly string[], nowMs: number | undefined, call: Call | undefined): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (this.#waitingRequests >= MAX_WAITING) {
        reject(new StoreUnavailableError('overload', `${MAX_WAITING} requests wait for Redis already`))
        return
      }
      this.#waitingRequests++
      const waiter = { call, resolve, reject }
      const last = this.#lastOf.get(keys[0]!)
      if (last !== undefined && areEqual(last, op, nowMs)) {
        last.waiters.push(waiter)
      } else {
        const pending = { op, keys, nowMs, waiters: [waiter] }
        this.#waiting.push(pending)
        this.#lastOf.set(keys[0]!, pending)
      }
      this.#schedule()
    })
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
      // Who has given up meanwhile must not be charged.
      pending.waiters = pending.waiters.filter(({ call }) => call?.isSettled !== true)
    }
    const live = batch.filter(({ waiters }) => waiters.length > 0)
    if (live.length === 0) return
    this.#calls++
    this.#execute(live).finally(() => {
      this.#calls--
      this.#schedule()
    })
  }

  async #execute(batch: readonly Pending[]): Promise<void> {
    try {
      const requests = batch.map(({ op, keys, nowMs, waiters }) => ({
        op: counted(op, waiters.length),
        keys,
        nowMs,
      }))
      const outcomes = decode(
        requests,
        await this.#run(
          requests.flatMap(({ keys }) => keys),
          encode(requests),
        ),
      )
      for (const [i, { waiters }] of batch.entries()) settle(waiters, requests[i]!.op, outcomes[i])
    } catch (error) {
      const unavailable = asUnavailable(error)
      for (const { waiters } of batch) for (const { reject } of waiters) reject(unavailable)
    }
  }
}

/** Whether a request may be decided together with one that waits: as one op with a count. */
function areEqual(pending: Pending, op: Op, nowMs: number | undefined): boolean {
  const waiting = pending.op
  return (
    op.type === 'consume' &&
    waiting.type === 'consume' &&
    op.parts.length === 1 &&
    waiting.parts.length === 1 &&
    op.parts[0]!.set === waiting.parts[0]!.set &&
    op.cost === waiting.cost &&
    op.count === 1 &&
    waiting.count === 1 &&
    op.leaseMs === 0 &&
    waiting.leaseMs === 0 &&
    nowMs === pending.nowMs
  )
}

function counted(op: Op, count: number): Op {
  return count > 1 && op.type === 'consume' ? { ...op, count } : op
}

function settle(waiters: readonly Waiter[], op: Op, outcome: Outcome | StoreUnavailableError): void {
  waiters.forEach(({ resolve, reject }, position) => {
    if (outcome instanceof StoreUnavailableError) reject(outcome)
    else if (position === 0 && waiters.length === 1) resolve(outcome)
    else resolve(shareOf(op as ConsumeOp, outcome as ConsumeOutcome, position))
  })
}

/** The outcome for one of the requests that were decided together, as if it had asked alone after those before it. */
function shareOf(op: ConsumeOp, outcome: ConsumeOutcome, position: number): ConsumeOutcome {
  const { cost, parts } = op
  const limits = outcome.limits.slice()
  parts[0]!.set.limits.forEach(({ limit, shadow }, i) => {
    const used = limits[3 * i]!
    const fitting = shadow ? Math.max(0, Math.floor((limit - used) / cost)) : outcome.admitted
    limits[3 * i] = used + cost * Math.min(position, outcome.admitted, fitting)
  })
  return { ...outcome, admitted: position < outcome.admitted ? 1 : 0, limits }
}

function asUnavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new StoreUnavailableError('error', `Redis did not decide: ${message}`, { cause: error })
}
