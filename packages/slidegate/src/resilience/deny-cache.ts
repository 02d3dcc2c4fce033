// The deny cache: repeats denials in this process until the store might admit the request.

import { checkInteger } from '../errors.ts'
import type { Limit } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { FOREVER } from '../limits/override.ts'
import { resetOf, setReset, setUsed, setWait, usedOf, waitOf } from '../ops/numbers.ts'
import { isSingle, kindOf } from '../ops/table.ts'
import type { Clock } from '../runtime/clock.ts'
import { intercepted, PassingCall } from '../stores/call.ts'
import { limitsInForce, outcomeAt } from '../stores/outcome.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Op, Outcome, Part, Store } from '../stores/store.ts'
import { KeyRing, slotOf } from './by-key.ts'
import { failurePolicy } from './failure-policy.ts'
import { checkWrapped } from './guard.ts'

/** How long denials are cached, and for how many keys. */
export interface DenyCacheOptions {
  /**
   * Maximum time that a denial is cached, in milliseconds from 1 to 2^31 - 1. Default: 1000.
   *
   * Changes in other processes, such as refunds, take effect within this time.
   */
  readonly maxStaleMs?: number
  /** Maximum number of cached keys, from 1 to 2^24. The oldest keys are dropped. Default: 10,000. */
  readonly maxKeys?: number
  /** A monotonic clock in milliseconds, for tests. Default: `performance.now`. */
  readonly clock?: Clock
}

/**
 * Answers repeated denials in this process.
 *
 * After a denial, requests with the same key, limits and cost are denied without a call to the store. This lasts for
 * the denial's `retryAfterMs`. The `source` is `denyCache`. The waits and `deniedBy` come from the store's last answer.
 * The time since that answer is subtracted from the waits. If another process's request has been admitted in that time,
 * the store might report more limits and longer waits, but never shorter ones. `remaining` may be stale.
 *
 * Changes made through this wrapper take effect immediately. Changes made elsewhere take effect within `maxStaleMs`. If denials
 * can cause bans, denials are cached only for blocked keys.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function withDenyCache(store: Store, options: DenyCacheOptions = {}): Store {
  checkWrapped(store, options, 'withDenyCache', { maxStaleMs: true, maxKeys: true, clock: true })
  const { maxStaleMs = 1000, maxKeys = 10_000, clock = () => performance.now() } = options
  checkInteger('maxStaleMs', maxStaleMs, 1, 2 ** 31 - 1)
  checkInteger('maxKeys', maxKeys, 1, 2 ** 24)
  const denials = new Denials(maxStaleMs, maxKeys)

  return {
    apply(ops, call) {
      const op = ops[0]!
      // Requests with an id always go to the store, because each can have a different answer. So do waiting requests.
      if (ops.length === 1 && isSingle(op)) {
        // Reads the time before sending. With network latency, a cached denial may then end early, but never late.
        const nowMs = clock()
        const answer = denials.find(op, nowMs)
        if (answer !== undefined) call.resolve(answer, 0)
        else store.apply(ops, new RequestCall(call, op, denials, nowMs))
      } else if (ops.every(isLook)) {
        store.apply(ops, call)
      } else {
        denials.forgetChanged(ops)
        const resolve: Call['resolve'] = (outcomes, position) => {
          denials.forgetChanged(ops)
          call.resolve(outcomes, position)
        }
        const reject = (error: unknown) => {
          denials.forgetChanged(ops)
          call.reject(error)
        }
        // Denials are dropped before and after, because the ops can change their keys at any time in between.
        store.apply(ops, intercepted(call, resolve, reject))
      }
    },
    shardOf: store.shardOf?.bind(store),
    isOverloaded: store.isOverloaded?.bind(store),
    failurePolicy,
    connection: store.connection,
    close: () => store.close(),
  }
}

/** Whether cached denials for the op's keys stay valid. */
function isLook(op: Op): boolean {
  const { effect } = kindOf(op)
  return effect === 'look' || effect === 'renew'
}

/** A request to the store. If it is denied, the denial is cached. If it is admitted, its key has changed. */
class RequestCall extends PassingCall {
  readonly #op: ConsumeOp
  readonly #denials: Denials
  readonly #sentAtMs: number
  readonly #changes: number

  constructor(call: Call, op: ConsumeOp, denials: Denials, sentAtMs: number) {
    super(call)
    this.#op = op
    this.#denials = denials
    this.#sentAtMs = sentAtMs
    this.#changes = denials.changesOf(op)
  }

  override resolve(outcomes: readonly Outcome[], position: number): void {
    const outcome = outcomes[0] as ConsumeOutcome
    if (position < outcome.admitted) this.#denials.forget(this.#op.parts)
    else if (outcome.source === 'store' && this.#denials.changesOf(this.#op) === this.#changes) {
      this.#denials.hold(this.#op, outcome, position, this.#sentAtMs)
    }
    this.call.resolve(outcomes, position)
  }
}

/** Whether the next denial may cause a ban. If so, the store must count it. */
function mayBan({ parts }: ConsumeOp, { ban }: ConsumeOutcome): boolean {
  const isBlocked = ban !== undefined && ban.parts.length > 0
  return !isBlocked && parts[0]!.set.logs.some(({ role }) => role === 'ban')
}

/** Maximum number of cached denials per key. Each has a different limit set or cost. */
const MAX_PER_KEY = 4

const CHANGE_SLOTS = 4096

/** The denials for up to `maxKeys` keys. A key without denials is kept until its place in the ring is needed. */
class Denials {
  readonly #maxStaleMs: number
  readonly #keys: KeyRing<Denial[]>
  /** Counts changes to each key, by hash. A denial isn't cached if its key has changed since the request was sent. */
  readonly #changes = new Uint32Array(CHANGE_SLOTS)

  constructor(maxStaleMs: number, maxKeys: number) {
    this.#maxStaleMs = maxStaleMs
    this.#keys = new KeyRing(maxKeys)
  }

  find({ parts, cost }: ConsumeOp, nowMs: number): readonly Outcome[] | undefined {
    const { set } = parts[0]!
    const denials = this.#keys.get(parts[0]!)
    if (denials === undefined) return undefined
    for (let i = 0; i < denials.length; i++) {
      const denial = denials[i]!
      if (denial.cost === cost && denial.set === set) return denial.answerAt(nowMs)
    }
    return undefined
  }

  hold(op: ConsumeOp, outcome: ConsumeOutcome, position: number, sentAtMs: number): void {
    // Requests that are denied together share the first one's denial.
    if (mayBan(op, outcome) || this.find(op, sentAtMs) !== undefined) return
    const part = op.parts[0]!
    const denials = this.#keys.get(part) ?? this.#keys.add(part, [])
    const same = denials.findIndex(({ set, cost }) => set === part.set && cost === op.cost)
    if (same >= 0) denials.splice(same, 1)
    else if (denials.length === MAX_PER_KEY) denials.shift()
    const denied = outcomeAt(op, outcome, position) as ConsumeOutcome
    denials.push(new Denial(op, denied, sentAtMs, this.#maxStaleMs))
  }

  changesOf({ parts }: ConsumeOp): number {
    return this.#changes[slotOf(parts[0]!.key, CHANGE_SLOTS)]!
  }

  forgetChanged(ops: readonly Op[]): void {
    for (const op of ops) if (!isLook(op)) this.forget(op.parts)
  }

  forget(parts: readonly Part[]): void {
    for (const part of parts) {
      this.#changes[slotOf(part.key, CHANGE_SLOTS)]!++
      const denials = this.#keys.get(part)
      if (denials !== undefined) denials.length = 0
    }
  }
}

class Denial {
  readonly set: LimitSet
  readonly cost: number
  readonly #outcome: ConsumeOutcome
  readonly #limits: readonly Limit[]
  readonly #sentAtMs: number
  /** For this long after the request was sent, the store would certainly deny it again. */
  readonly #lastsMs: number
  /** The answer at `#ageMs`. It is reused within a millisecond, for callers that retry in a tight loop. */
  #answer: readonly Outcome[] = []
  #ageMs = -1

  constructor(op: ConsumeOp, outcome: ConsumeOutcome, sentAtMs: number, maxStaleMs: number) {
    this.set = op.parts[0]!.set
    this.cost = op.cost
    this.#outcome = outcome
    this.#limits = limitsInForce(op, outcome)
    this.#sentAtMs = sentAtMs
    const waits = this.#limits.map(({ shadow }, i) => (shadow ? 0 : waitOf(outcome.limits, i)))
    // A denial after the end of the ban counts toward the next ban, so the store has to see it.
    const waitMs = outcome.ban?.ms ?? Math.max(...waits)
    const endsMs = outcome.overrides?.map((each) => each?.ruleMs || FOREVER) ?? []
    // The store's clock counts whole milliseconds, and may have been about to advance.
    this.#lastsMs = Math.min(waitMs, maxStaleMs, ...endsMs) - 1
  }

  answerAt(nowMs: number): readonly Outcome[] | undefined {
    const passedMs = nowMs - this.#sentAtMs
    if (!(passedMs >= 0 && passedMs <= this.#lastsMs)) return undefined
    const ageMs = Math.floor(passedMs)
    if (ageMs !== this.#ageMs) {
      this.#ageMs = ageMs
      this.#answer = [this.#outcomeAfter(ageMs)]
    }
    return this.#answer
  }

  #outcomeAfter(ageMs: number): ConsumeOutcome {
    const { atMs, ban, overrides } = this.#outcome
    return {
      source: 'denyCache',
      atMs: atMs + ageMs,
      admitted: 0,
      limits: this.#limitsAfter(ageMs),
      waitMs: 0,
      ...(overrides && { overrides }),
      ...(ban && ban.parts.length > 0 && { ban: { ...ban, ms: ban.ms - ageMs } }),
    }
  }

  #limitsAfter(ageMs: number): number[] {
    const limits = this.#outcome.limits.slice()
    this.#limits.forEach(({ limit }, i) => {
      const waitMs = waitOf(limits, i)
      // Once a limit's own wait is over, it has room for the cost, even if other limits still deny the request.
      if (waitMs > 0 && waitMs <= ageMs) setUsed(limits, i, Math.min(usedOf(limits, i), limit - this.cost))
      setWait(limits, i, Math.max(0, waitMs - ageMs))
      setReset(limits, i, Math.max(0, resetOf(limits, i) - ageMs))
    })
    return limits
  }
}
