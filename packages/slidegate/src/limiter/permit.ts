import type { Decision } from '../decision.ts'
import { StoreUnavailableError } from '../errors.ts'
import { MAX_WINDOW_MS } from '../runtime/duration.ts'
import { asyncOrigin, backgroundTimer, type Timer } from '../runtime/platform.ts'
import type { HoldOp, HoldOutcome, Op, Outcome } from '../stores/store.ts'
import { type Origin, originOf } from './origin.ts'

/**
 * What `acquire` resolves to. Allowed, it holds units until `release`, or until the block ends that it was declared in
 * with `await using`; meanwhile it is renewed after each third of the limit's `ttl`, by one timer for all of a limiter,
 * which does not keep the process alive.
 */
export interface Permit extends AsyncDisposable {
  readonly decision: Decision
  readonly allowed: boolean
  /**
   * Aborted when what is held is lost, and may by now be held by somebody else: this process, or the store, has been
   * silent for `ttl`, or the key was reset. Then stop what it was for.
   */
  readonly signal: AbortSignal
  /** Renews it now; whether it was still held. Rejects with a `StoreUnavailableError` where the store did not say. */
  extend(): Promise<boolean>
  /**
   * Frees what is held, once; whether it was still held. Frees nobody else's, however late it comes. Where the store
   * gives no answer it rejects with a `StoreUnavailableError`, and what is held is free after `ttl`.
   */
  release(): Promise<boolean>
}

class Held implements Permit {
  readonly decision: Decision
  /** When it was last known to be held, by `performance.now()`, from before the store was asked. */
  heldAtMs: number
  /** When it is to be renewed. */
  dueAtMs: number
  /** After which it is lost if it is not renewed. */
  readonly ttlMs: number
  readonly #permits: Permits
  readonly #abort = new AbortController()

  constructor(permits: Permits, decision: Decision, heldAtMs: number) {
    this.#permits = permits
    this.decision = decision
    this.heldAtMs = heldAtMs
    this.ttlMs = ttlOf(decision)
    this.dueAtMs = heldAtMs + this.renewalMs
  }

  get renewalMs(): number {
    return this.ttlMs / 3
  }

  get allowed(): boolean {
    return this.decision.allowed
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  async extend(): Promise<boolean> {
    if (!this.#permits.has(this)) return false
    const sentAtMs = performance.now()
    const isHeld = await this.#permits.ask('extend', this)
    if (!this.#permits.has(this)) return false
    if (isHeld) {
      this.heldAtMs = sentAtMs
      this.dueAtMs = sentAtMs + this.renewalMs
    } else {
      this.lose()
    }
    return isHeld
  }

  async release(): Promise<boolean> {
    return this.#permits.delete(this) && (await this.#permits.ask('release', this))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release()
    } catch (error) {
      // What the block has thrown matters more; the units are free in time.
      if (!(error instanceof StoreUnavailableError)) throw error
    }
  }

  lose(): void {
    if (!this.#permits.delete(this)) return
    this.#abort.abort(new Error('what the permit held is lost: its ttl has passed'))
    // Another limit may count it for longer.
    this.#permits.ask('release', this).catch(() => {})
  }
}

// What compilers of `await using` look for where the runtime does not know it yet.
if (Symbol.asyncDispose === undefined) {
  Object.defineProperty(Held.prototype, Symbol.for('Symbol.asyncDispose'), {
    value: Held.prototype[Symbol.asyncDispose],
  })
}

/** The shortest time for which any limit lets it be held. */
function ttlOf(decision: Decision): number {
  const parts = originOf(decision)?.parts ?? []
  const ttls = parts.flatMap(({ set }) =>
    set.limits.map(({ kind, windowMs }) => (kind.entries?.are === 'holder' ? windowMs : MAX_WINDOW_MS)),
  )
  return Math.min(MAX_WINDOW_MS, ...ttls)
}

/** For how long the timer is set at most: what is due by then waits for no longer. */
const MAX_TURN_MS = 1000

/** Renewals on their way at a time: all at once they would be a flood that no deadline stands. */
const MAX_RENEWING = 64

/** What a limiter has given and not got back. One timer renews it all, little by little. */
export class Permits {
  readonly #apply: (op: Op) => Promise<Outcome>
  /** The shortest so far. */
  #ttlMs = MAX_WINDOW_MS
  readonly #held = new Set<Held>()
  /** Those that wait to be renewed, and how many are being. */
  readonly #due = new Set<Held>()
  #renewing = 0
  /** For the timer: made on behalf of a request, it would keep its async context. */
  readonly #origin = asyncOrigin('slidegate.permits')
  #timer: Timer | undefined
  #isClosed = false

  /** @param apply asks the limiter's store */
  constructor(apply: (op: Op) => Promise<Outcome>) {
    this.#apply = apply
  }

  /** @param askedAtMs by `performance.now()` */
  give(decision: Decision, askedAtMs: number): Permit {
    const permit = new Held(this, decision, askedAtMs)
    const origin = originOf(decision)
    // Who was denied holds nothing, nor who may pass uncounted.
    if (origin !== undefined && origin.left > 0) {
      this.#held.add(permit)
      if (permit.ttlMs < this.#ttlMs) {
        this.#ttlMs = permit.ttlMs
        clearTimeout(this.#timer)
        this.#timer = undefined
      }
      this.#watch(permit.ttlMs)
    }
    return permit
  }

  /** Whether it was still held, as the store knows it. */
  async ask(type: HoldOp['type'], { decision }: Held): Promise<boolean> {
    const { parts, cost: units, names, source, debits } = originOf(decision) as Origin
    const op: HoldOp = {
      type,
      parts,
      requestId: names.requestId!,
      units,
      ...(source === 'fallback' && { source }),
      ...(debits !== undefined && { debits }),
    }
    return ((await this.#apply(op)) as HoldOutcome).held
  }

  /** Those that are held now. */
  get size(): number {
    return this.#held.size
  }

  has(permit: Held): boolean {
    return this.#held.has(permit)
  }

  delete(permit: Held): boolean {
    this.#due.delete(permit)
    return this.#held.delete(permit)
  }

  /** What is held is not renewed any more; it can still be released. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#due.clear()
  }

  #watch(lostInMs: number): void {
    if (this.#timer !== undefined || this.#held.size === 0 || this.#isClosed) return
    const ms = Math.max(1, Math.min(Math.floor(this.#ttlMs / 30), Math.ceil(lostInMs), MAX_TURN_MS))
    this.#timer = this.#origin.runInAsyncScope(() => backgroundTimer(() => this.#turn(), ms))
  }

  #turn(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    let lostInMs = this.#ttlMs
    for (const permit of this.#held) {
      const leftMs = permit.heldAtMs + permit.ttlMs - nowMs
      if (leftMs <= 0) {
        permit.lose()
        continue
      }
      lostInMs = Math.min(lostInMs, leftMs)
      if (nowMs >= permit.dueAtMs) this.#due.add(permit)
    }
    while (this.#renewing < MAX_RENEWING && this.#due.size > 0) void this.#renewDue()
    this.#watch(lostInMs)
  }

  async #renewDue(): Promise<void> {
    this.#renewing++
    for (const permit of this.#due) {
      this.#due.delete(permit)
      try {
        // It is not due again before this is answered, or given up.
        permit.dueAtMs = Number.POSITIVE_INFINITY
        await permit.extend()
      } catch {
        // Perhaps the store answers again soon.
        permit.dueAtMs = performance.now() + permit.renewalMs / 3
      }
    }
    this.#renewing--
  }
}
