// The fallback: what requests are answered without the store.

import type { StatCounts } from '../events.ts'
import type { Limit } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { FOREVER, type InForce } from '../limits/override.ts'
import { setUsed, setWait, usedOf, waitOf } from '../ops/numbers.ts'
import { type MemoryStore, memoryStore } from '../stores/memory/memory.ts'
import { limitsOf, zerosFor } from '../stores/outcome.ts'
import {
  banOf,
  type Call,
  type ConsumeOp,
  type ConsumeOutcome,
  type Op,
  type Outcome,
  type Part,
  type PeekOp,
  partsInForce,
} from '../stores/store.ts'
import { KeyRing } from './by-key.ts'

/**
 * What a request is told when the store gives no answer:
 * - `throw`: a `StoreUnavailableError`
 * - `deny`: it is denied, with the source `failClosed`
 * - `allow`: it is allowed, uncounted, with the source `failOpen`
 * - `local`: this process decides, by an equal share of the limits, with the source `fallback`
 *
 * Where so much was asked for a key at once that it waited for itself while the store was answering, all but `throw` deny it.
 */
export type OnStoreError = 'throw' | 'deny' | 'allow' | 'local'

/** A denial lasts at least this long, so that callers don't retry in a loop. */
const MIN_WAIT_MS = 100

/** Answers requests by `onStoreError`. */
export class Fallback {
  readonly #policy: OnStoreError
  readonly #counts: StatCounts
  readonly #local: LocalShare
  readonly #overrides = new SeenOverrides()

  constructor(policy: OnStoreError, instances: number, counts: StatCounts) {
    this.#policy = policy
    this.#counts = counts
    this.#local = new LocalShare(instances)
  }

  /**
   * Returns nothing if the ops fail: callers that charge, refund or reset must know that it wasn't done.
   *
   * @param pauseMs until the store may be asked again
   * @param isCrowd whether the keys had too many requests of their own: such requests are never allowed
   */
  answer(
    ops: readonly Op[],
    nowMs: number,
    pauseMs: number,
    isCrowd: boolean,
  ): readonly Outcome[] | undefined {
    if (this.#policy === 'throw') return undefined
    const policy = isCrowd ? 'deny' : this.#policy
    const answers: ConsumeOutcome[] = []
    for (const op of ops) {
      if (op.type === 'charge' && this.#policy === 'local') this.#local.charge(op)
      if (op.type !== 'consume' && op.type !== 'peek') return undefined
      answers.push(this.#decide(op, policy, nowMs, Math.max(MIN_WAIT_MS, pauseMs)))
    }
    this.#counts.addAnswers(answers)
    return answers
  }

  /** Whether the op is about what was decided in this process: then the call is answered. A reset is for the store, too. */
  settles(op: Op, call: Call): boolean {
    if ('source' in op && op.source === 'fallback') {
      call.resolve([this.#local.apply(op)], 0)
      return true
    }
    if (op.type === 'reset' && this.#local.isInUse) this.#local.apply(op)
    return false
  }

  /** Called with what the store has answered. */
  learn(ops: readonly Op[], outcomes: readonly Outcome[], nowMs: number): void {
    for (let i = 0; i < ops.length; i++) this.#overrides.learn(ops[i]!, outcomes[i], nowMs)
  }

  #decide(
    op: ConsumeOp | PeekOp,
    policy: Exclude<OnStoreError, 'throw'>,
    nowMs: number,
    pauseMs: number,
  ): ConsumeOutcome {
    const overrides = this.#overrides.of(op.parts, nowMs)
    const parts = partsInForce(op.parts, overrides)
    const unblocked = parts.map(() => 0)
    const ban = banOf(unblocked, overrides)
    const answer =
      policy === 'local' && ban === undefined
        ? this.#local.decide({ ...op, parts }, pauseMs)
        : uncounted(op, policy === 'allow' && ban === undefined, pauseMs)
    return overrides === undefined ? answer : { ...answer, overrides, ...(ban && { ban }) }
  }
}

function uncounted(
  { parts, count }: ConsumeOp | PeekOp,
  isAllowed: boolean,
  pauseMs: number,
): ConsumeOutcome {
  const limits = zerosFor(parts)
  const atMs = Date.now()
  return isAllowed
    ? { source: 'failOpen', atMs, admitted: count, limits, waitMs: 0 }
    : { source: 'failClosed', atMs, admitted: 0, limits, waitMs: pauseMs }
}

/** Keys that this process holds, at most. */
const MAX_LOCAL_KEYS = 100_000

/**
 * Decides in this process: each of `instances` processes admits an equal share of the limits, at least 1. It knows nothing of
 * what the store has counted.
 */
export class LocalShare {
  readonly #instances: number
  readonly #createStore: () => MemoryStore
  readonly #shares = new WeakMap<LimitSet, LimitSet>()
  #store: MemoryStore | undefined

  /** @param createStore makes the store when it is first needed */
  constructor(
    instances: number,
    createStore = (): MemoryStore => memoryStore({ maxKeys: MAX_LOCAL_KEYS, onFull: 'deny' }),
  ) {
    this.#instances = instances
    this.#createStore = createStore
  }

  /** @param pauseMs until the store may be asked again */
  decide(op: ConsumeOp | PeekOp, pauseMs: number): ConsumeOutcome {
    const outcome = this.apply(op) as ConsumeOutcome
    // This process has no room for one more key, but the store does.
    if (outcome.source !== 'store') return { ...outcome, waitMs: pauseMs }
    const limits = outcome.limits.slice()
    const shares = limitsOf(this.#partsOf(op))
    limitsOf(op.parts).forEach(({ limit }, i) => {
      // The declared limit has as much left as the share.
      setUsed(limits, i, usedOf(limits, i) + limit - shares[i]!.limit)
      // The cost is above the share, but the store may have room for it.
      if (waitOf(limits, i) === Number.POSITIVE_INFINITY && op.cost <= limit) setWait(limits, i, pauseMs)
    })
    return { ...outcome, source: 'fallback', limits }
  }

  /** Counts what has happened. There may be no room for the key. */
  charge(op: Op): void {
    try {
      this.apply(op)
    } catch {
      // The charge fails in any case: the store knows nothing of it.
    }
  }

  /** Applies an op to what was decided here. */
  apply(op: Op): Outcome {
    this.#store ??= this.#createStore()
    return this.#store.applySync([{ ...op, parts: this.#partsOf(op) }])[0]
  }

  /** Whether anything was decided here. */
  get isInUse(): boolean {
    return this.#store !== undefined
  }

  #partsOf({ parts }: Op): readonly Part[] {
    return parts.map(({ key, set }) => ({ key, set: this.#shareOf(set) }))
  }

  #shareOf(set: LimitSet): LimitSet {
    const known = this.#shares.get(set)
    if (known !== undefined) return known
    const limits = set.limits.map((limit) => shareOf(limit, this.#instances))
    const logs = set.logs.map((log) =>
      log.role === 'count' ? { ...log, params: log.kind.params(log.serves.map((i) => limits[i]!)) } : log,
    )
    const share = { ...set, limits, logs, isOverridable: false }
    this.#shares.set(set, share)
    return share
  }
}

function shareOf(limit: Limit, instances: number): Limit {
  if (limit.kind.share !== undefined) return limit.kind.share(limit, instances)
  return { ...limit, limit: Math.max(1, Math.floor(limit.limit / instances)) }
}

/** Keys whose overrides are remembered, at most. The oldest are forgotten. */
const MAX_OVERRIDES = 10_000

interface Seen {
  inForce: InForce | undefined
  atMs: number
}

/** Overrides that decisions of the store have read: they stay in force without it. */
class SeenOverrides {
  readonly #seen = new KeyRing<Seen>(MAX_OVERRIDES)

  learn({ type, parts }: Op, outcome: Outcome, nowMs: number): void {
    const isRead = outcome !== undefined && 'admitted' in outcome
    if (!isRead && type !== 'override') return
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      if (part.set.isOverridable) this.#keep(part, isRead ? outcome.overrides?.[i] : undefined, nowMs)
    }
  }

  /** The overrides in force per part, as far as they are known. */
  of(parts: readonly Part[], nowMs: number): ConsumeOutcome['overrides'] {
    const found = parts.map((part) => {
      const seen = part.set.isOverridable ? this.#seen.get(part) : undefined
      return seen?.inForce && after(nowMs - seen.atMs, seen.inForce)
    })
    return found.some((each) => each !== undefined) ? found : undefined
  }

  #keep(part: Part, inForce: InForce | undefined, atMs: number): void {
    const seen = this.#seen.get(part)
    if (seen !== undefined) {
      seen.inForce = inForce
      seen.atMs = atMs
    } else if (inForce !== undefined) {
      this.#seen.add(part, { inForce, atMs })
    }
  }
}

/** What is left of an override. */
function after(passedMs: number, { rule, ruleMs, blockedMs }: InForce): InForce | undefined {
  const left = (ms: number) => (ms === FOREVER ? FOREVER : Math.max(0, Math.ceil(ms - passedMs)))
  const ruleLeftMs = left(ruleMs)
  const blockedLeftMs = left(blockedMs)
  if (ruleLeftMs === 0 && blockedLeftMs === 0) return undefined
  return { rule: ruleLeftMs === 0 ? '' : rule, ruleMs: ruleLeftMs, blockedMs: blockedLeftMs }
}
