import type { Limit } from '../../../src/index.ts'
import type { LogModel, Request } from './log-model.ts'

const YEAR_MS = 366n * 86_400_000n

/**
 * The debt of a bucket, in fractions of a token.
 * A fraction is so small that a whole number of them is refilled per millisecond.
 */
export class TokenBucketModel implements LogModel {
  readonly #intervalMs: bigint
  /** The refill now, and at the last charge. */
  #refill = 1n
  #chargedAt = 0n
  #capacity = 1n
  #debt = 0n
  #stampMs = 0
  #sinceMs = 0

  constructor(intervalMs: number) {
    this.#intervalMs = BigInt(intervalMs)
  }

  under([bucket]: readonly Limit[]): void {
    this.#capacity = BigInt(bucket!.limit)
    this.#refill = BigInt((bucket!.rule as { readonly refill: number }).refill)
  }

  copy(): TokenBucketModel {
    const copied = new TokenBucketModel(Number(this.#intervalMs))
    copied.#refill = this.#refill
    copied.#chargedAt = this.#chargedAt
    copied.#capacity = this.#capacity
    copied.#debt = this.#debt
    copied.#stampMs = this.#stampMs
    copied.#sinceMs = this.#sinceMs
    return copied
  }

  newest(): number {
    return this.#stampMs
  }

  restamp(nowMs: number): void {
    this.#stampMs = nowMs
    this.#sinceMs = Math.min(this.#sinceMs, nowMs)
  }

  used(_limit: Limit, nowMs: number): number {
    return Number(wholeTokens(this.#debtAt(nowMs), this.#intervalMs))
  }

  need(_nowMs: number, request: Request): number {
    return request.units
  }

  charge(_limits: readonly Limit[], nowMs: number, { units }: Request): void {
    const debt = this.#debtAt(nowMs)
    if (debt === 0n || this.#chargedAt !== this.#refill) this.#sinceMs = nowMs
    const owed = debt + BigInt(units) * this.#intervalMs
    const most = this.#mostDebt()
    this.#debt = owed < most ? owed : most
    this.#stampMs = nowMs
    this.#chargedAt = this.#refill
  }

  refund(nowMs: number, atMs: number, { units }: Request): number {
    // The charge was made by a clock that was set back since, before a reset, or at another refill.
    if (atMs > this.#stampMs || atMs < this.#sinceMs || this.#chargedAt !== this.#refill) return 0
    const refilled = BigInt(Math.max(0, nowMs - atMs)) * this.#refill
    const owed = this.#debtAt(nowMs)
    const missing = BigInt(units) * this.#intervalMs - refilled
    const back = missing < owed ? missing : owed
    if (back <= 0n) return 0
    this.#debt = owed - back
    this.#stampMs = this.#debt === 0n ? 0 : Math.max(this.#stampMs, nowMs)
    return Number(wholeTokens(back, this.#intervalMs))
  }

  #debtAt(nowMs: number): bigint {
    const refill = this.#refill > this.#chargedAt ? this.#refill : this.#chargedAt
    const left = this.#debt - BigInt(Math.max(0, nowMs - this.#stampMs)) * refill
    return left > 0n ? left : 0n
  }

  #mostDebt(): bigint {
    const bounds = [2n ** 52n, 2n ** 46n * this.#intervalMs, this.#refill * YEAR_MS]
    const least = bounds.reduce((a, b) => (a < b ? a : b))
    const whole = least - (least % this.#intervalMs)
    const needed = this.#capacity * this.#intervalMs
    return whole > needed ? whole : needed
  }
}

function wholeTokens(parts: bigint, inToken: bigint): bigint {
  return (parts + inToken - 1n) / inToken
}
