import type { BanState } from '../../src/limits/limit.ts'
import type { ConsumeOutcome, ExplainOutcome } from '../../src/stores/store.ts'

/** A bucket of so many tokens, of which one comes back in so many milliseconds. */
export const CAPACITY = 3
export const TOKEN_MS = 100

/** What is to be known of bans; all in milliseconds but `after`. */
export interface BanRule {
  readonly after: number
  readonly withinMs: number
  readonly forMs: readonly number[]
  readonly forgetAfterMs: number
}

/**
 * A key that is held to a token bucket, with bans, as plainly as it can be written: what is left of a ban, and
 * how old denials are, as of the last time that anything of it was written. So a clock that was set back changes nothing
 * but that time.
 */
export class KeyModel {
  readonly #rule: BanRule
  #bucket = { atMs: 0, owedMs: 0 }
  #ban = { atMs: 0, blockedMs: 0, level: 0, levelMs: 0, agesMs: [] as number[] }

  constructor(rule: BanRule) {
    this.#rule = rule
  }

  consume(clockMs: number, cost: number, count: number, isWaiting = false): ConsumeOutcome {
    const nowMs = this.#settle(clockMs)
    const blocked = this.#whileBlocked(nowMs, cost, count)
    if (blocked !== undefined) return blocked
    const used = this.#used(nowMs)
    const admitted = Math.min(count, Math.floor(Math.max(0, CAPACITY - used) / cost))
    const charged = admitted * cost
    if (admitted > 0) this.#bucket = { atMs: nowMs, owedMs: this.#owed(nowMs) + charged * TOKEN_MS }
    const limits = this.#limits(nowMs, used, charged, cost, count)
    const outcome = { source: 'store', atMs: nowMs, admitted, limits, waitMs: 0 } as const
    if (admitted === count || isWaiting) return outcome
    const blockedMs = this.#deny(nowMs, count - admitted)
    return blockedMs > 0 ? { ...outcome, ban: { ms: blockedMs, parts: [] } } : outcome
  }

  /** Writes nothing. */
  peek(clockMs: number, cost: number): ConsumeOutcome {
    return this.#aside(() => {
      const nowMs = this.#settle(clockMs)
      const blocked = this.#whileBlocked(nowMs, cost, 1)
      if (blocked !== undefined) return blocked
      const used = this.#used(nowMs)
      const limits = this.#limits(nowMs, used, 0, cost, 1)
      return { source: 'store', atMs: nowMs, admitted: used + cost <= CAPACITY ? 1 : 0, limits, waitMs: 0 }
    })
  }

  /** Writes nothing. */
  explain(clockMs: number, cost: number): ExplainOutcome {
    return this.#aside(() => {
      const nowMs = this.#settle(clockMs)
      const used = this.#used(nowMs)
      const ban = this.#look(nowMs)
      const limits = this.#limits(nowMs, used, 0, cost, 1)
      const tenths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((tenth) => Math.ceil((used * tenth) / 10))
      const stays = used === 0 ? [] : [1, ...tenths].map((freed) => used - freed)
      return {
        source: 'store',
        atMs: nowMs,
        admitted: ban.blockedMs === 0 && used + cost <= CAPACITY ? 1 : 0,
        limits,
        waitMs: 0,
        ...(ban.blockedMs > 0 && { ban: { ms: ban.blockedMs, parts: [0] } }),
        frees: [stays.map((units) => this.#owed(nowMs) - units * TOKEN_MS)],
        bans: [ban],
      }
    })
  }

  reset(): void {
    this.#bucket = { atMs: 0, owedMs: 0 }
    this.unblock()
  }

  unblock(): void {
    this.#ban = { atMs: 0, blockedMs: 0, level: 0, levelMs: 0, agesMs: [] }
  }

  #whileBlocked(nowMs: number, cost: number, count: number): ConsumeOutcome | undefined {
    const { blockedMs } = this.#look(nowMs)
    if (blockedMs === 0) return undefined
    const limits = this.#limits(nowMs, this.#used(nowMs), 0, cost, count)
    return {
      source: 'store',
      atMs: nowMs,
      admitted: 0,
      limits,
      waitMs: 0,
      ban: { ms: blockedMs, parts: [0] },
    }
  }

  #aside<T>(look: () => T): T {
    const [bucket, ban] = [this.#bucket, this.#ban]
    this.#bucket = { ...bucket }
    this.#ban = { ...ban }
    const seen = look()
    this.#bucket = bucket
    this.#ban = ban
    return seen
  }

  /** Time stands still until the clock has caught up, but not for a clock that was set back by more than a second. */
  #instant(clockMs: number, stamps: readonly number[]): number {
    return Math.max(clockMs, ...stamps.filter((stamp) => stamp <= clockMs + 1000))
  }

  #settle(clockMs: number): number {
    const nowMs = this.#instant(clockMs, [this.#bucket.atMs, this.#ban.atMs])
    this.#bucket.atMs = Math.min(this.#bucket.atMs, nowMs)
    this.#ban.atMs = Math.min(this.#ban.atMs, nowMs)
    return nowMs
  }

  #owed(nowMs: number): number {
    return Math.max(0, this.#bucket.owedMs - (nowMs - this.#bucket.atMs))
  }

  #used(nowMs: number): number {
    return Math.ceil(this.#owed(nowMs) / TOKEN_MS)
  }

  #limits(nowMs: number, used: number, charged: number, cost: number, count: number): readonly number[] {
    const owedMs = this.#owed(nowMs)
    let waitMs = 0
    if (charged < cost * count && used + charged + cost > CAPACITY) {
      waitMs = cost > CAPACITY ? Number.POSITIVE_INFINITY : owedMs - (CAPACITY - cost) * TOKEN_MS
    }
    return [used, waitMs, owedMs]
  }

  #look(nowMs: number): BanState {
    const { atMs, blockedMs, level, levelMs, agesMs } = this.#ban
    const since = nowMs - atMs
    return {
      blockedMs: Math.max(0, blockedMs - since),
      level: levelMs > since ? level : 0,
      denials: agesMs.filter((age) => age + since < this.#rule.withinMs).length,
    }
  }

  /** Writes all that is known as of now. */
  #age(nowMs: number): void {
    const { atMs, blockedMs, level, levelMs, agesMs } = this.#ban
    const since = nowMs - atMs
    this.#ban = {
      atMs: nowMs,
      blockedMs: Math.max(0, blockedMs - since),
      level: levelMs > since ? level : 0,
      levelMs: Math.max(0, levelMs - since),
      agesMs: agesMs.map((age) => age + since).filter((age) => age < this.#rule.withinMs),
    }
  }

  #deny(nowMs: number, count: number): number {
    const { after, forMs, forgetAfterMs } = this.#rule
    this.#age(nowMs)
    const ban = this.#ban
    for (let i = 0; i < count; i++) ban.agesMs.push(0)
    if (ban.agesMs.length < after) return 0
    ban.blockedMs = forMs[Math.min(ban.level, forMs.length - 1)]!
    ban.level++
    ban.levelMs = ban.blockedMs + forgetAfterMs
    ban.agesMs = []
    return ban.blockedMs
  }
}
