import {
  createLimiter,
  type Decision,
  type DimensionOptions,
  type Keys,
  type Limit,
  type Limiter,
  type Store,
} from 'slidegate'
import type { ServiceObserver } from '../service/service.ts'
import type { Ask } from './ask.ts'

export type FailurePolicy = Pick<DimensionOptions<string>, 'onStoreError' | 'timeoutMs' | 'instances'>

/** Those of one domain at most: what requests combine is up to the gateways' routes. */
const MAX_LIMITERS = 1024

/** For how long one that was put away goes on for what it has decided. */
const RETIRING_MS = 60_000

/** Descriptors that are asked together: all rules differ, all costs are the same. */
export interface Group {
  readonly limiter: Limiter<Keys>
  readonly asks: readonly Ask[]
  readonly key: Keys
  readonly cost: number
  /** What each rule is held to, by its id. */
  readonly limits: Readonly<Record<string, readonly Limit[]>>
}

/**
 * The limiters of a domain: one for each set of rules that were asked together, with a dimension for each rule. State is
 * found by domain, rule and key, so that a rule is the same in whatever company.
 */
export class RuleLimiters {
  readonly #name: string
  readonly #store: Store
  readonly #policy: FailurePolicy
  readonly #observer: ServiceObserver
  /** Limits of rules in force before, where what they were charged is found elsewhere. */
  readonly #formerly: ReadonlyMap<string, readonly (readonly Limit[])[]>
  readonly #limiters = new Map<string, Limiter<Keys>>()
  readonly #down = new Set<Limiter<Keys>>()

  constructor(
    name: string,
    store: Store,
    policy: FailurePolicy,
    observer: ServiceObserver,
    formerly: ReadonlyMap<string, readonly (readonly Limit[])[]> = new Map(),
  ) {
    this.#name = name
    this.#store = store
    this.#policy = policy
    this.#observer = observer
    this.#formerly = formerly
  }

  /** @param asks of different rules, 16 at most */
  group(asks: readonly Ask[]): Group {
    const sorted = asks.length === 1 ? asks : asks.toSorted(byRule)
    let name = ''
    const key: Record<string, string> = {}
    const limits: Record<string, readonly Limit[]> = {}
    for (const ask of sorted) {
      const { id } = ask.rule
      key[id] = ask.key
      limits[id] = ask.rule.limits!
      name = name === '' ? id : `${name},${id}`
    }
    const limiter = this.#limiterOf(name, key)
    return { limiter, asks: sorted, key, cost: sorted[0]!.cost, limits }
  }

  consume({ limiter, key, cost, limits }: Group): Promise<Decision> {
    return limiter.consume(key, { cost, request: limits })
  }

  peek({ limiter, key, cost, limits }: Group): Promise<Decision> {
    return limiter.peek(key, { cost, request: limits })
  }

  charge({ limiter, key, cost, limits }: Group): Promise<void> {
    return limiter.charge(key, cost, { request: limits })
  }

  /** As if it had not been admitted. What cannot be returned stays charged: nobody is let in by that. */
  async giveBack({ limiter, key, asks }: Group, decision: Decision): Promise<void> {
    for (const ask of asks) ask.restore()
    try {
      await limiter.refund(key, decision)
    } catch {
      // The store is gone, or has not counted it.
    }
  }

  close(): void {
    for (const limiter of this.#limiters.values()) limiter.close()
  }

  /** Ends after what is under way. */
  retire(): void {
    setTimeout(() => this.close(), RETIRING_MS).unref()
  }

  #limiterOf(name: string, key: Keys): Limiter<Keys> {
    const known = this.#limiters.get(name)
    const limiter = known ?? this.#made(Object.keys(key))
    // The last used is the last to be put away.
    if (known !== undefined) this.#limiters.delete(name)
    this.#limiters.set(name, limiter)
    if (this.#limiters.size > MAX_LIMITERS) this.#putAwayOldest()
    return limiter
  }

  #putAwayOldest(): void {
    for (const [name, limiter] of this.#limiters) {
      this.#limiters.delete(name)
      setTimeout(() => limiter.close(), RETIRING_MS).unref()
      return
    }
  }

  #made(ids: readonly string[]): Limiter<Keys> {
    const dimensions = Object.fromEntries(
      ids.map((id) => [id, (_key: string, request: unknown) => (request as Group['limits'])[id]!]),
    )
    const formerly = Object.fromEntries(
      ids.flatMap((id) => {
        const before = this.#formerly.get(id)
        return before === undefined ? [] : [[id, before]]
      }),
    )
    const limiter = createLimiter({
      ...this.#policy,
      name: this.#name,
      store: this.#store,
      dimensions,
      formerly,
      logger: false,
    })
    limiter.on('storeError', ({ error }) => this.#observer.storeFailed?.(this.#name, error))
    limiter.on('clockStep', ({ byMs }) => this.#observer.clockStep?.(this.#name, byMs))
    limiter.on('storeDown', ({ error }) => {
      if (this.#down.size === 0) this.#observer.storeDown?.(this.#name, error)
      this.#down.add(limiter)
    })
    limiter.on('storeUp', ({ downMs }) => {
      this.#down.delete(limiter)
      if (this.#down.size === 0) this.#observer.storeUp?.(this.#name, downMs)
    })
    return limiter
  }
}

function byRule({ rule: a }: Ask, { rule: b }: Ask): number {
  return a.id < b.id ? -1 : 1
}

/** Tells each descriptor what its limit has said. */
export function tell({ asks }: Group, { source, retryAfterMs, limits }: Decision): void {
  for (let i = 0; i < asks.length; i++) {
    const verdict = limits[i]!
    // Where nothing could be known, no limit is to blame, and yet all are closed.
    asks[i]!.verdict =
      source === 'failClosed'
        ? { allowed: false, remaining: 0, retryAfterMs, resetAfterMs: verdict.resetAfterMs }
        : verdict
  }
}
