// The fallback: answers requests without the store.

import type { FailureReports } from '../events.ts'
import type { Limit } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { setUsed, setWait, usedOf, waitOf } from '../ops/numbers.ts'
import { type MemoryStore, memoryStore } from '../stores/memory/memory.ts'
import { limitsOf, zerosFor } from '../stores/outcome.ts'
import {
  banOf,
  type Call,
  type ConsumeOp,
  type ConsumeOutcome,
  type FailureSettings,
  type OnStoreError,
  type Op,
  type Outcome,
  type Part,
  type PeekOp,
  partsInForce,
} from '../stores/store.ts'
import type { SeenOverrides } from './seen-overrides.ts'

/** Minimum time of a denial, so that callers don't retry in a loop. */
const MIN_WAIT_MS = 100

/** Answers requests by `onStoreError`. */
export class Fallback {
  readonly #policy: OnStoreError
  readonly #counts: FailureReports['counts']
  readonly #local: LocalShare
  readonly #overrides: SeenOverrides | undefined

  /** @param overrides those that the store returned, which still apply without it */
  constructor(
    { onStoreError, instances }: FailureSettings,
    counts: FailureReports['counts'],
    overrides?: SeenOverrides,
  ) {
    this.#policy = onStoreError
    this.#overrides = overrides
    this.#counts = counts
    this.#local = new LocalShare(instances)
  }

  /**
   * Answers ops. Returns `undefined` if they fail: callers that charge, refund or reset must know.
   *
   * @param pauseMs until requests may be sent to the store again
   * @param isOverload whether the keys themselves had too many requests; such requests are never allowed
   */
  answer(
    ops: readonly Op[],
    nowMs: number,
    pauseMs: number,
    isOverload: boolean,
  ): readonly Outcome[] | undefined {
    if (this.#policy === 'throw') return undefined
    const policy = isOverload ? 'deny' : this.#policy
    const answers: ConsumeOutcome[] = []
    for (const op of ops) {
      if (op.type === 'charge' && this.#policy === 'local') this.#local.charge(op)
      if (op.type !== 'consume' && op.type !== 'peek') return undefined
      answers.push(this.#decide(op, policy, nowMs, Math.max(MIN_WAIT_MS, pauseMs)))
    }
    for (const { source } of answers) this.#counts.withoutStore[source as 'fallback']++
    return answers
  }

  /** Answers ops about decisions that this process made. Returns whether it did. A reset also goes to the store. */
  settles(op: Op, call: Call): boolean {
    if ('source' in op && op.source === 'fallback') {
      call.resolve([this.#local.apply(op)], 0)
      return true
    }
    if (op.type === 'reset' && this.#local.isInUse) this.#local.apply(op)
    return false
  }

  #decide(
    op: ConsumeOp | PeekOp,
    policy: Exclude<OnStoreError, 'throw'>,
    nowMs: number,
    pauseMs: number,
  ): ConsumeOutcome {
    const overrides = this.#overrides?.of(op.parts, nowMs)
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
  const numbers = { atMs: Date.now(), limits: zerosFor(parts) }
  return isAllowed
    ? { source: 'failOpen', ...numbers, admitted: count, waitMs: 0 }
    : { source: 'failClosed', ...numbers, admitted: 0, waitMs: pauseMs }
}

/** Maximum keys in this process. */
const MAX_LOCAL_KEYS = 100_000

/**
 * Decides in this process by an equal share of the limits, at least 1.
 *
 * Each of `instances` processes has one share. The counts of the store aren't known here.
 */
export class LocalShare {
  readonly #instances: number
  readonly #createStore: () => MemoryStore
  readonly #shares = new WeakMap<LimitSet, LimitSet>()
  #store: MemoryStore | undefined

  /** @param createStore creates the store when it is first needed */
  constructor(
    instances = 1,
    createStore = (): MemoryStore => memoryStore({ maxKeys: MAX_LOCAL_KEYS, onFull: 'deny' }),
  ) {
    this.#instances = instances
    this.#createStore = createStore
  }

  /** @param pauseMs until requests may be sent to the store again */
  decide(op: ConsumeOp | PeekOp, pauseMs: number): ConsumeOutcome {
    const outcome = this.apply(op) as ConsumeOutcome
    // This process has no room for another key, but the store does.
    if (outcome.source !== 'store') return { ...outcome, waitMs: pauseMs }
    const limits = outcome.limits.slice()
    const shares = limitsOf(this.#partsOf(op))
    limitsOf(op.parts).forEach(({ limit }, i) => {
      // Reports the remaining units of the share as those of the declared limit.
      setUsed(limits, i, usedOf(limits, i) + limit - shares[i]!.limit)
      // The cost exceeds the share, but the store may have room for it.
      if (waitOf(limits, i) === Number.POSITIVE_INFINITY && op.cost <= limit) setWait(limits, i, pauseMs)
    })
    return { ...outcome, source: 'fallback', limits }
  }

  /** Counts units that were already used. There may be no room for the key. */
  charge(op: Op): void {
    try {
      this.apply(op)
    } catch {
      // The charge fails in any case, because the store didn't record it.
    }
  }

  /** Applies an op to the decisions made here. */
  apply(op: Op): Outcome {
    this.#store ??= this.#createStore()
    return this.#store.applySync([{ ...op, parts: this.#partsOf(op) }])[0]
  }

  /** Whether this process has decided anything. */
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
