import type { Clock } from '../runtime/clock.ts'
import { outcomeAt } from '../stores/outcome.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Op, Outcome, Store } from '../stores/store.ts'
import { Denials } from './denials.ts'
import { checkInteger, checkWrapped } from './options.ts'

/** For how long denials are repeated, and of how many keys. */
export interface DenyCacheOptions {
  /**
   * Milliseconds, from 1 to 2^31 - 1, for which a denial is repeated at most. What others do to the key, such as a
   * refund in another process, shows by then. Default: 1000.
   */
  readonly maxStaleMs?: number
  /** Keys whose denials are held at most, from 1 to 2^24; beyond it the oldest go. Default: 10,000. */
  readonly maxKeys?: number
  /** A monotonic clock in milliseconds, for tests. Default: `performance.now`. */
  readonly clock?: Clock
}

/**
 * Answers repeated denials in this process.
 *
 * A denied request cannot be admitted before its `retryAfterMs`, so the same one (key, limits and cost) is denied again
 * without asking the store; `source` is then `denyCache`. The waits and `deniedBy` come from the store's last answer, less
 * the time that has passed. If another process was admitted since, the store may report more limits and longer waits,
 * never shorter ones. `remaining` may be stale.
 *
 * Changes made through this wrapper show at once, those made elsewhere within `maxStaleMs`. If denials lead to bans, only
 * denials of a blocked key are repeated.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function withDenyCache(store: Store, options: DenyCacheOptions = {}): Store {
  checkWrapped(store, options, 'withDenyCache', { maxStaleMs: true, maxKeys: true, clock: true })
  const { maxStaleMs = 1000, maxKeys = 10_000, clock = () => performance.now() } = options
  checkInteger('maxStaleMs', maxStaleMs, 1, 2 ** 31 - 1)
  checkInteger('maxKeys', maxKeys, 1, 2 ** 24)
  const denials = new Denials(maxStaleMs, maxKeys)

  function forget(ops: readonly Op[]): void {
    for (const op of ops) if (!isLook(op)) denials.forget(op.parts)
  }

  return {
    apply(ops, call) {
      const op = ops[0]!
      if (ops.length === 1 && isRepeatable(op)) {
        // Before it is sent: how long it travels then makes a denial end early, never late.
        const nowMs = clock()
        const answer = denials.find(op, nowMs)
        if (answer !== undefined) call.resolve(answer, 0)
        else store.apply(ops, new RequestCall(call, op, denials, nowMs))
      } else if (ops.every(isLook)) {
        store.apply(ops, call)
      } else {
        forget(ops)
        store.apply(ops, new OtherCall(call, () => forget(ops)))
      }
    },
    domainOf: store.domainOf?.bind(store),
    isCrowded: store.isCrowded?.bind(store),
    connection: store.connection,
    close: () => store.close(),
  }
}

/** Named ones are always asked: the same id may be told something else than another. So are those that wait. */
function isRepeatable(op: Op): op is ConsumeOp {
  if (op.type !== 'consume' || op.requestId !== undefined) return false
  if (op.isWaiting || op.reservation !== undefined) return false
  return op.parts.length === 1 && op.count === 1 && op.leaseMs === 0
}

const LOOKS: readonly Op['type'][] = ['peek', 'list', 'extend', 'explain', 'overrides']

/** Whether it gives nobody room. */
function isLook({ type }: Op): boolean {
  return LOOKS.includes(type)
}

/** One that waits for an answer of the store to a request: denied it is held, admitted it changes the key. */
class RequestCall implements Call {
  readonly #call: Call
  readonly #op: ConsumeOp
  readonly #denials: Denials
  readonly #sentAtMs: number
  readonly #changes: number

  constructor(call: Call, op: ConsumeOp, denials: Denials, sentAtMs: number) {
    this.#call = call
    this.#op = op
    this.#denials = denials
    this.#sentAtMs = sentAtMs
    this.#changes = denials.changesOf(op.parts[0]!.key)
  }

  get isSettled(): boolean {
    return this.#call.isSettled
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    const outcome = outcomes[0] as ConsumeOutcome
    if (position < outcome.admitted) this.#denials.forget(this.#op.parts)
    else if (outcome.source === 'store' && !isCountedDenial(this.#op, outcome)) this.#hold(outcome, position)
    this.#call.resolve(outcomes, position)
  }

  reject(error: unknown): void {
    this.#call.reject(error)
  }

  #hold(outcome: ConsumeOutcome, position: number): void {
    if (this.#denials.changesOf(this.#op.parts[0]!.key) !== this.#changes) return
    // Of requests that were denied together, the first one's denial is that of all.
    if (this.#denials.find(this.#op, this.#sentAtMs) !== undefined) return
    this.#denials.hold(this.#op, outcomeAt(this.#op, outcome, position) as ConsumeOutcome, this.#sentAtMs)
  }
}

/** Whether the next denial may bring a ban on, so that the store has to hear of it. */
function isCountedDenial({ parts }: ConsumeOp, { ban }: ConsumeOutcome): boolean {
  return (
    (ban === undefined || ban.parts.length === 0) && parts[0]!.set.logs.some(({ role }) => role === 'ban')
  )
}

/** One that waits for ops that may change keys: while they are under way nobody knows whether they have. */
class OtherCall implements Call {
  readonly #call: Call
  readonly #forget: () => void

  constructor(call: Call, forget: () => void) {
    this.#call = call
    this.#forget = forget
  }

  get isSettled(): boolean {
    return this.#call.isSettled
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    this.#forget()
    this.#call.resolve(outcomes, position)
  }

  reject(error: unknown): void {
    this.#forget()
    this.#call.reject(error)
  }
}
