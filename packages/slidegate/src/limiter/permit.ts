// Permits: slots of a concurrency limit that are renewed until they are released.
import type { Decision } from '../decision.ts'
import { StoreUnavailableError } from '../errors.ts'
import { MAX_WINDOW_MS } from '../runtime/duration.ts'
import { asyncOrigin, backgroundTimer, type Timer } from '../runtime/platform.ts'
import type { Ask } from '../stores/call.ts'
import { limitsOf } from '../stores/outcome.ts'
import type { HoldOp } from '../stores/store.ts'
import { chargedBy, chargeOf } from './refund.ts'

/**
 * A slot, which is held if `allowed` is true.
 *
 * The slot is held until you call `release`, or until the end of the block that declares it with
 * `await using`. One background timer per limiter renews it three times per `ttl`.
 */
export interface Permit extends AsyncDisposable {
  readonly decision: Decision
  readonly allowed: boolean
  /** Aborted if the permit expires or its key is reset. Stop the work: another caller may get the permit's units. */
  readonly signal: AbortSignal
  /** Renews the permit now. Resolves to whether it was still held. Rejects if the store doesn't answer. */
  extend(): Promise<boolean>
  /** Releases the units, once. Resolves to whether they were still held. If the call rejects, they expire after `ttl`. */
  release(): Promise<boolean>
}

interface Held {
  readonly decision: Decision
  readonly ttlMs: number
  readonly abort: AbortController
  /** The time of the last renewal, by `performance.now()`. */
  heldAtMs: number
  dueAtMs: number
}

function ttlOf(decision: Decision): number {
  const held = limitsOf(chargeOf(decision)?.parts ?? []).filter(({ kind }) => kind.entries?.are === 'holder')
  return Math.min(MAX_WINDOW_MS, ...held.map(({ windowMs }) => windowMs))
}

const MAX_TURN_MS = 1000

/** Maximum concurrent renewals. If there were more, each would take longer and might miss its deadline. */
const MAX_RENEWING = 64

/** A limiter's held permits. One timer renews them all, a few at a time. */
export class Permits {
  readonly #ask: Ask
  #ttlMs = MAX_WINDOW_MS
  readonly #held = new Set<Held>()
  /** The permits due for renewal, and the number of renewals in flight. */
  readonly #due = new Set<Held>()
  #renewing = 0
  readonly #origin = asyncOrigin('slidegate.permits')
  #timer: Timer | undefined
  #isClosed = false

  constructor(ask: Ask) {
    this.#ask = ask
  }

  /** @param askedAtMs when the request was sent, by `performance.now()` */
  give(decision: Decision, askedAtMs: number): Permit {
    const ttlMs = ttlOf(decision)
    const abort = new AbortController()
    const permit: Held = { decision, ttlMs, abort, heldAtMs: askedAtMs, dueAtMs: askedAtMs + ttlMs / 3 }
    // A denied request doesn't hold a slot. Neither does a request that was admitted without being counted.
    if ((chargeOf(decision)?.left ?? 0) > 0) {
      this.#held.add(permit)
      if (ttlMs < this.#ttlMs) {
        this.#ttlMs = ttlMs
        clearTimeout(this.#timer)
        this.#timer = undefined
      }
      this.#watch(ttlMs)
    }
    const release = () => this.#release(permit)
    const dispose = async (): Promise<void> => {
      try {
        await release()
      } catch (error) {
        // A store error must not hide an error thrown in the block. The units expire anyway.
        if (!(error instanceof StoreUnavailableError)) throw error
      }
    }
    return {
      decision,
      allowed: decision.allowed,
      signal: abort.signal,
      extend: () => this.#extend(permit),
      release,
      [Symbol.asyncDispose]: dispose,
      // Compilers use this symbol for `await using` if the runtime lacks `Symbol.asyncDispose`.
      [Symbol.for('Symbol.asyncDispose')]: dispose,
    }
  }

  async #extend(permit: Held): Promise<boolean> {
    if (!this.#held.has(permit)) return false
    const sentAtMs = performance.now()
    const isHeld = await this.#send('extend', permit)
    if (!this.#held.has(permit)) return false
    if (isHeld) {
      permit.heldAtMs = sentAtMs
      permit.dueAtMs = sentAtMs + permit.ttlMs / 3
    } else {
      this.#lose(permit)
    }
    return isHeld
  }

  async #release(permit: Held): Promise<boolean> {
    return this.#drop(permit) && (await this.#send('release', permit))
  }

  #lose(permit: Held): void {
    if (!this.#drop(permit)) return
    permit.abort.abort(new Error("the permit expired: it wasn't renewed within its ttl"))
    // Limits with a longer ttl may still count the permit.
    this.#send('release', permit).catch(() => {})
  }

  #drop(permit: Held): boolean {
    this.#due.delete(permit)
    return this.#held.delete(permit)
  }

  async #send(type: HoldOp['type'], { decision }: Held): Promise<boolean> {
    const charge = chargeOf(decision)!
    const { parts, names, cost } = charge
    const op: HoldOp = { type, parts, requestId: names.requestId!, units: cost, ...chargedBy(charge) }
    return (await this.#ask(op)).held
  }

  get size(): number {
    return this.#held.size
  }

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
        this.#lose(permit)
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
        // The permit isn't due again before this renewal ends.
        permit.dueAtMs = Number.POSITIVE_INFINITY
        await this.#extend(permit)
      } catch {
        permit.dueAtMs = performance.now() + permit.ttlMs / 9
      }
    }
    this.#renewing--
  }
}
