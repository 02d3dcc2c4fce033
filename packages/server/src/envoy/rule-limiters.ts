// Limiters for sets of rules that are decided together.

import {
  createLimiter,
  type Decision,
  type DimensionOptions,
  declarationOf,
  type Keys,
  type Limit,
  type Limiter,
  limitOf,
  memoryStore,
  type Store,
} from 'slidegate'
import type { ServiceObserver } from '../service/service.ts'
import type { Question } from './question.ts'

export type FailurePolicy = Pick<DimensionOptions<string>, 'onStoreError' | 'timeoutMs' | 'instances'>

/** Maximum number of limiters per domain. Gateways can request any combination of rules, each with its own limiter. */
const MAX_LIMITERS = 1024

/** Maximum number of keys while this process decides without the store. */
const MAX_LOCAL_KEYS = 100_000

/** A limiter, and the number of groups that use it. */
interface InUse {
  readonly limiter: Limiter<Keys>
  users: number
  isRetired: boolean
}

/** Descriptors that are decided in one step. Their rules differ, and their costs are equal. Release it after use. */
export interface Group {
  readonly inUse: InUse
  readonly questions: readonly Question[]
  readonly key: Keys
  readonly cost: number
  readonly limits: Readonly<Record<string, readonly Limit[]>>
  decision?: Decision
  /** The group that decides in this process while the store is down. */
  local?: Group
}

/**
 * The limiters of a domain, one per combination of rules.
 *
 * A limiter has a dimension for each rule. State is stored by domain, rule and key, so that a rule's count is the same
 * in all combinations.
 */
export class RuleLimiters {
  readonly #name: string
  readonly #store: Store
  readonly #policy: FailurePolicy
  readonly #observer: ServiceObserver
  readonly #limiters = new Map<string, InUse>()
  readonly #shares = new WeakMap<readonly Limit[], readonly Limit[]>()
  #local: RuleLimiters | undefined
  readonly #down = new Set<Limiter<Keys>>()

  constructor(name: string, store: Store, policy: FailurePolicy, observer: ServiceObserver) {
    this.#name = name
    this.#store = store
    this.#policy = policy
    this.#observer = observer
  }

  /** @param questions up to 16, with different rules */
  group(questions: readonly Question[]): Group {
    const sorted = questions.length === 1 ? questions : questions.toSorted(byRule)
    let name = ''
    const key: Record<string, string> = {}
    const limits: Record<string, readonly Limit[]> = {}
    for (const question of sorted) {
      const { id } = question.rule
      key[id] = question.key
      limits[id] = question.rule.limits!
      name = name === '' ? id : `${name},${id}`
    }
    const inUse = this.#limiterOf(name, key)
    inUse.users++
    return { inUse, questions: sorted, key, cost: sorted[0]!.cost, limits }
  }

  async consume(group: Group): Promise<Decision> {
    const { inUse, key, cost, limits } = group
    const decision = await inUse.limiter.consume(key, { cost, request: limits })
    group.decision = decision
    if (!isLocal(decision)) return decision
    const shared = await this.#localOf(group).consume(group.local!)
    if (!shared.allowed) await this.#refund(group)
    return asFallback(shared)
  }

  async peek(group: Group): Promise<Decision> {
    const { inUse, key, cost, limits } = group
    const decision = await inUse.limiter.peek(key, { cost, request: limits })
    if (!isLocal(decision)) return decision
    return asFallback(await this.#localOf(group).peek(group.local!))
  }

  charge({ inUse, key, cost, limits, local }: Group): Promise<void> {
    if (local !== undefined) return this.#local!.charge(local)
    return inUse.limiter.charge(key, cost, { request: limits })
  }

  /** Undoes an admission. If the store fails, the charge is kept, which errs on the safe side. */
  async undo(group: Group): Promise<void> {
    for (const question of group.questions) question.restore()
    await this.#refund(group)
    if (group.local !== undefined) await this.#local!.#refund(group.local)
  }

  async #refund({ inUse, key, decision }: Group): Promise<void> {
    try {
      await inUse.limiter.refund(key, decision!)
    } catch {
      // Ignored, because the store is down or never counted the charge.
    }
  }

  /** Ends the use of a group. */
  release({ inUse, local }: Group): void {
    inUse.users--
    if (inUse.isRetired) this.#closeUnused(inUse)
    if (local !== undefined) this.#local!.release(local)
  }

  close(): void {
    for (const { limiter } of this.#limiters.values()) limiter.close()
    this.#local?.close()
  }

  /** Closes each limiter after its last request. */
  retire(): void {
    for (const inUse of this.#limiters.values()) this.#retireLimiter(inUse)
    this.#limiters.clear()
    this.#local?.retire()
  }

  /** Returns the limiters that decide while the store is down. They enforce this process's share of each rule. */
  #localOf(group: Group): RuleLimiters {
    const store = () => memoryStore({ maxKeys: MAX_LOCAL_KEYS, onFull: 'deny' })
    this.#local ??= new RuleLimiters(this.#name, store(), {}, {})
    if (group.local === undefined) {
      const limits = Object.fromEntries(
        Object.entries(group.limits).map(([id, each]) => [id, this.#shareOf(each)]),
      )
      group.local = { ...this.#local.group(group.questions), limits }
    }
    return this.#local
  }

  #shareOf(limits: readonly Limit[]): readonly Limit[] {
    const known = this.#shares.get(limits)
    if (known !== undefined) return known
    const { instances = 1 } = this.#policy
    const share = limits.map((limit) =>
      limitOf({ ...declarationOf(limit), limit: Math.max(1, Math.floor(limit.limit / instances)) }),
    )
    this.#shares.set(limits, share)
    return share
  }

  #limiterOf(name: string, key: Keys): InUse {
    const known = this.#limiters.get(name)
    const inUse = known ?? { limiter: this.#made(Object.keys(key)), users: 0, isRetired: false }
    // Moves the limiter to the end of the eviction order.
    if (known !== undefined) this.#limiters.delete(name)
    this.#limiters.set(name, inUse)
    if (this.#limiters.size > MAX_LIMITERS) {
      const [oldest, unused] = this.#limiters.entries().next().value!
      this.#limiters.delete(oldest)
      this.#retireLimiter(unused)
    }
    return inUse
  }

  #retireLimiter(inUse: InUse): void {
    inUse.isRetired = true
    this.#closeUnused(inUse)
  }

  #closeUnused({ users, limiter }: InUse): void {
    if (users > 0) return
    this.#down.delete(limiter)
    limiter.close()
    this.#observer.closed?.(limiter)
  }

  #made(ids: readonly string[]): Limiter<Keys> {
    const dimensions = Object.fromEntries(
      ids.map((id) => [id, (_key: string, request: unknown) => (request as Group['limits'])[id]!]),
    )
    const made = createLimiter({
      ...this.#policy,
      name: this.#name,
      store: this.#store,
      dimensions,
      logger: this.#observer.logger ?? false,
      warnings: false,
    })
    const limiter = this.#observer.around?.(made) ?? made
    this.#observer.opened?.(limiter)
    limiter.on('storeError', ({ error }) => this.#observer.storeFailed?.(this.#name, error))
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

function byRule({ rule: a }: Question, { rule: b }: Question): number {
  return a.id < b.id ? -1 : 1
}

/** Whether the request was admitted by this process instead of the store. */
function isLocal({ allowed, source }: Decision): boolean {
  return allowed && source === 'fallback'
}

function asFallback(decision: Decision): Decision {
  return decision.source === 'store' ? { ...decision, source: 'fallback' } : decision
}

/** Sets the verdict for each descriptor. */
export function setVerdicts({ questions }: Group, { source, retryAfterMs, limits }: Decision): void {
  for (let i = 0; i < questions.length; i++) {
    const verdict = limits[i]!
    // If the store is down and the limiter fails closed, the request is denied although no limit denies it.
    questions[i]!.verdict =
      source === 'failClosed'
        ? { allowed: false, remaining: 0, retryAfterMs, resetAfterMs: verdict.resetAfterMs }
        : verdict
  }
}
