import { limitsOf } from '../decision.ts'
import type { Limit } from '../limits/limit.ts'
import { type LimitSet, limitSet } from '../limits/limit-set.ts'
import type {
  ChargeOp,
  ConsumeOp,
  ConsumeOutcome,
  Op,
  Outcome,
  Part,
  PeekOp,
  RefundOp,
  RefundOutcome,
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
    const parts = this.#partsOf(op)
    if (op.type === 'refund') return refunded(this.#store, { ...op, parts }, op)
    return this.#store.applySync([{ ...op, parts }])[0]
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
    const counting = limitSet(
      set.limiter,
      set.limits.map((limit) => shareOf(limit, this.#instances)),
    )
    // In the same order as those of the set.
    const others = set.logs.filter(({ role }) => role !== 'count')
    const share = { ...counting, logs: [...counting.logs, ...others] }
    this.#shares.set(set, share)
    return share
  }
}

/** Of a key's logs, there are only those here that count. */
function refunded(store: LocalStore, here: RefundOp, { parts, charged }: RefundOp): RefundOutcome {
  const logs = parts.flatMap(({ set }) => set.logs)
  const counting = charged.filter((_, i) => logs[i]!.role === 'count')
  const { returned } = store.applySync([{ ...here, charged: counting }])[0] as RefundOutcome
  let next = 0
  return { returned: logs.map(({ role }) => (role === 'count' ? returned[next++]! : 0)) }
}

function shareOf(limit: Limit, instances: number): Limit {
  if (limit.kind.share !== undefined) return limit.kind.share(limit, instances)
  return { ...limit, limit: Math.max(1, Math.floor(limit.limit / instances)) }
}
