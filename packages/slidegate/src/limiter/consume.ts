// Turns the caller's input into operations (ops) for the store, and the store's outcomes into decisions.
import type { Decision } from '../decision.ts'
import { type Names, SlidegateError, show } from '../errors.ts'
import type { Announcer } from '../events.ts'
import type { AnyKey, KeyOptions } from '../key.ts'
import type { ConsumeOptions } from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import type { Call, ConsumeOp, ConsumeOutcome, FastPath, Outcome, Part, Store } from '../stores/store.ts'
import { decisionBy, decisionByOne, decisionOf } from './decide.ts'
import type { KeyLimits } from './dimensions.ts'
import { type FastPathCharges, remember, type SharedCharge } from './refund.ts'
import { areHeld, NAMELESS, parseCost, REQUEST_NAMES, RequestNamer } from './request.ts'

export class Requests {
  readonly namer: RequestNamer
  readonly #limiter: string
  readonly #keys: KeyLimits
  readonly #store: Store
  readonly #announcer: Announcer
  readonly #fastPath: FastPath | undefined
  readonly #fastCharges: FastPathCharges | undefined
  /** The only limit, if there is just one and it is enforced. */
  readonly #onlyLimit: Limit | undefined
  #lastKey: string | undefined
  /** The last op without an id or value. It is reused if the next request has the same key and cost. */
  #lastOps: readonly [ConsumeOp] | undefined
  #lastCharge: SharedCharge | undefined
  #lastDenied: { readonly outcome: ConsumeOutcome; readonly decision: Decision } | undefined
  #isClosed = false

  constructor(limiter: string, keys: KeyLimits, store: Store, announcer: Announcer) {
    this.namer = new RequestNamer(keys.encoding)
    this.#limiter = limiter
    this.#keys = keys
    this.#store = store
    this.#announcer = announcer
    if (keys.set === undefined) return
    this.#fastPath = store.fastPath?.(keys.set)
    this.#fastCharges = { limiter: this, set: keys.set, encoding: keys.encoding }
    const [limit, ...others] = keys.set.limits
    if (others.length === 0 && !limit!.shadow) this.#onlyLimit = limit
  }

  // Isn't async and creates at most one promise, because under full load, promises take most of the time.
  consume(key: AnyKey, options?: ConsumeOptions): Promise<Decision> {
    try {
      const decision = this.#decideFast(key, options)
      if (decision !== undefined) return Promise.resolve(decision)
      return this.send(key, this.opFor(key, options)).promise()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  consumeSync(key: AnyKey, options?: ConsumeOptions): Decision {
    const fast = this.#decideFast(key, options)
    if (fast !== undefined) return fast
    const op = this.opFor(key, options)
    if (this.#store.applySync === undefined) {
      const message = 'consumeSync needs a store in this process, such as memoryStore; use consume instead'
      throw new SlidegateError('sync_unsupported', message, key)
    }
    // Copied, because a refund may read it after the store has reused it.
    const outcome = { ...this.#store.applySync([op])[0] } as ConsumeOutcome
    const decision = outcome.admitted > 0 ? this.#admitted(op, outcome, 0) : decisionOf(op, outcome, 0)
    this.announce(key, decision)
    return decision
  }

  /** Decides a common request without an op, if the store is in this process. Returns `undefined` for other requests. */
  #decideFast(key: AnyKey, options: ConsumeOptions | undefined): Decision | undefined {
    const isNamed = options?.requestId !== undefined || options?.value !== undefined
    if (this.#fastPath === undefined || isNamed || this.#isClosed) return undefined
    const cost = parseCost(options, REQUEST_NAMES)
    const of = this.#fastCharges!
    const outcome = this.#fastPath(key, cost, of.encoding)
    if (outcome === undefined) return undefined
    const only = this.#onlyLimit
    const decision =
      only === undefined
        ? decisionBy(of.set.limits, cost, outcome, 0, true)
        : decisionByOne(only, cost, outcome)
    if (decision.allowed) remember(decision, { of, key, cost, atMs: outcome.atMs })
    this.announce(key, decision)
    return decision
  }

  /** @throws {SlidegateError} for invalid input */
  opFor(
    key: AnyKey,
    options: ConsumeOptions | undefined,
    optionNames: Names<ConsumeOptions> = REQUEST_NAMES,
  ): ConsumeOp {
    const cost = parseCost(options, optionNames)
    const last = this.#lastOps?.[0]
    const isUnnamed = options?.requestId === undefined && options?.value === undefined
    if (last?.cost === cost && this.#lastKey === key && isUnnamed && !this.#isClosed) return last
    const parts = this.partsOf(key, options)
    if (options?.requestId === undefined && areHeld(parts)) {
      const message = 'a concurrency limit needs acquire(), or a requestId for release()'
      throw new SlidegateError('invalid_request_id', message)
    }
    const names = this.namer.forCharge(options, parts)
    const op: ConsumeOp = { type: 'consume', parts, cost, count: 1, leaseMs: 0 }
    if (names !== NAMELESS) return { ...op, ...names }
    if (this.#keys.set === undefined) return op
    this.#lastKey = key as string
    this.#lastOps = [op]
    return op
  }

  partsOf(key: AnyKey, options: KeyOptions | undefined): readonly Part[] {
    this.checkOpen()
    return this.#keys.partsOf(key, options?.request)
  }

  send(key: AnyKey, op: ConsumeOp): ConsumeCall {
    const call = new ConsumeCall(this, key, op)
    this.#store.apply(op === this.#lastOps?.[0] ? this.#lastOps : [op], call)
    return call
  }

  /** Returns the decision on one of the requests that share an op. `position` is its index, starting at 0. */
  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision {
    return position < outcome.admitted ? this.#admitted(op, outcome, position) : this.#denied(op, outcome)
  }

  #admitted(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision {
    const decision = decisionOf(op, outcome, position)
    if (this.#lastCharge?.outcome !== outcome || this.#lastCharge.op !== op) {
      this.#lastCharge = { limiter: this, op, outcome }
    }
    remember(decision, this.#lastCharge)
    return decision
  }

  /** All denied requests in an op get copies of the same decision. */
  #denied(op: ConsumeOp, outcome: ConsumeOutcome): Decision {
    if (outcome !== this.#lastDenied?.outcome) {
      this.#lastDenied = { outcome, decision: decisionOf(op, outcome, outcome.admitted) }
    }
    return { ...this.#lastDenied.decision }
  }

  announce(key: AnyKey, decision: Decision): void {
    if (this.#announcer.isHeard('decision')) this.#announcer.emit('decision', { key, decision })
  }

  checkOpen(): void {
    if (!this.#isClosed) return
    throw new SlidegateError('closed', `the limiter ${show(this.#limiter)} is closed`, this.#limiter)
  }

  close(): void {
    this.#isClosed = true
  }
}

const forget = (): void => {}

const kept: { resolve: (decision: Decision) => void; reject: (error: unknown) => void } = {
  resolve: forget,
  reject: forget,
}

/** The executor for all promises. A separate closure for each promise would create garbage. */
function keep(resolve: (decision: Decision) => void, reject: (error: unknown) => void): void {
  kept.resolve = resolve
  kept.reject = reject
}

/** A request that is waiting for its decision. A store may answer before `promise` is called. */
export class ConsumeCall implements Call {
  isSettled = false
  decision: Decision | undefined
  error: unknown
  readonly op: ConsumeOp
  readonly #requests: Requests
  readonly #key: AnyKey
  #resolve: ((decision: Decision) => void) | undefined
  #reject: ((error: unknown) => void) | undefined

  constructor(requests: Requests, key: AnyKey, op: ConsumeOp) {
    this.#requests = requests
    this.#key = key
    this.op = op
  }

  promise(): Promise<Decision> {
    if (this.decision !== undefined) return Promise.resolve(this.decision)
    if (this.isSettled) return Promise.reject(this.error)
    const promise = new Promise<Decision>(keep)
    this.#resolve = kept.resolve
    this.#reject = kept.reject
    kept.resolve = kept.reject = forget
    return promise
  }

  whenSettled(settled: () => void): void {
    if (this.isSettled) settled()
    else this.#resolve = this.#reject = settled
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    try {
      this.decision = this.#requests.decide(this.op, outcomes[0] as ConsumeOutcome, position)
    } catch (error) {
      // Throwing here would abort the other calls in the batch.
      this.reject(error)
      return
    }
    this.isSettled = true
    this.#requests.announce(this.#key, this.decision)
    this.#resolve?.(this.decision)
  }

  reject(error: unknown): void {
    this.isSettled = true
    this.error = error
    this.#reject?.(error)
  }
}

/** Resolves when all calls are settled, without creating a promise for each. */
export function allSettled(calls: readonly ConsumeCall[]): Promise<void> {
  return new Promise((resolve) => {
    let missing = calls.length
    if (missing === 0) resolve()
    const settled = (): void => {
      if (--missing === 0) resolve()
    }
    for (const call of calls) call.whenSettled(settled)
  })
}
