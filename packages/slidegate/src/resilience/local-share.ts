import type { Limit } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { limitsOf } from '../stores/outcome.ts'
import type {
  ChargeOp,
  ConsumeOp,
  ConsumeOutcome,
  Op,
  Outcome,
  Part,
  PeekOp,
  Store,
} from '../stores/store.ts'

/** A store in this process. */
export type LocalStore = Store & Required<Pick<Store, 'applySync'>>

/**
 * Decides in this process while the store does not: each of `instances` processes holds callers to an equal share of their
 * limits, at least 1. It knows nothing of what the store has counted.
 */
export class LocalShare {
  readonly #instances: number
  readonly #createStore: () => LocalStore
  readonly #shares = new WeakMap<LimitSet, LimitSet>()
  #store: LocalStore | undefined

  /** @param createStore makes a store in this process, when it is first needed */
  constructor(instances: number, createStore: () => LocalStore) {
    this.#instances = instances
    this.#createStore = createStore
  }

  /** @param pauseMs after which the store may be asked again */
  decide(op: ConsumeOp | PeekOp, pauseMs: number): ConsumeOutcome {
    const parts = this.#partsOf(op)
    const outcome = this.apply(op) as ConsumeOutcome
    // There was no room for one more key; the store has some.
    if (outcome.source !== 'store') return { ...outcome, waitMs: pauseMs }
    const limits = outcome.limits.slice()
    const shares = limitsOf(parts)
    limitsOf(op.parts).forEach(({ limit }, i) => {
      // As the caller has declared them: what is left of the share is what is left.
      limits[3 * i]! += limit - shares[i]!.limit
      // More than the share, but the store has room for it perhaps.
      if (limits[3 * i + 1] === Number.POSITIVE_INFINITY && op.cost <= limit) limits[3 * i + 1] = pauseMs
    })
    return { ...outcome, source: 'fallback', limits }
  }

  /** What has happened counts here, too, where there is room for it. It fails in any case: the store knows nothing of it. */
  charge(op: ChargeOp): void {
    try {
      this.apply(op)
    } catch {
      // One more key than there is room for.
    }
  }

  /** Does here what the store should have done, or did to what was decided here. */
  apply(op: Op): Outcome {
    this.#store ??= this.#createStore()
    return this.#store.applySync([{ ...op, parts: this.#partsOf(op) }])[0]
  }

  /** Whether anything was decided here, so that there may be something to forget. */
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
