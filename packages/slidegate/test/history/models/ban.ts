import type { Timed } from '../oracle.ts'

/** When denials block a key. Times are in milliseconds. */
export interface BanRule {
  readonly after: number
  readonly within: number
  readonly for: readonly number[]
  readonly forgetAfter: number
}

/** The state of a key's bans. */
export interface BanState {
  readonly blockedMs: number
  readonly sinceMs?: number
  readonly level: number
  readonly denials: number
}

/** The bans of one key. All times are relative to its last write, so that the clock may be set back. */
export class BanModel implements Timed {
  readonly #rule: BanRule
  #atMs = 0
  #blockedMs = 0
  #level = 0
  #levelMs = 0
  #denialAgesMs: readonly number[] = []

  constructor(rule: BanRule) {
    this.#rule = rule
  }

  copy(): BanModel {
    const copied = new BanModel(this.#rule)
    copied.#atMs = this.#atMs
    copied.#blockedMs = this.#blockedMs
    copied.#level = this.#level
    copied.#levelMs = this.#levelMs
    copied.#denialAgesMs = this.#denialAgesMs
    return copied
  }

  newest(): number {
    return this.#atMs
  }

  restamp(nowMs: number): void {
    this.#atMs = nowMs
  }

  look(nowMs: number): BanState {
    const sinceMs = nowMs - this.#atMs
    const { within } = this.#rule
    const blockedMs = Math.max(0, this.#blockedMs - sinceMs)
    return {
      blockedMs,
      ...(blockedMs > 0 && { sinceMs: this.#atMs }),
      level: sinceMs < this.#levelMs ? this.#level : 0,
      denials: this.#denialAgesMs.filter((ageMs) => ageMs + sinceMs < within).length,
    }
  }

  /** Counts a denial. Returns how long it blocks the key, in milliseconds. */
  denied(nowMs: number): number {
    const rule = this.#rule
    this.#age(nowMs)
    this.#denialAgesMs = [...this.#denialAgesMs, 0]
    if (this.#denialAgesMs.length < rule.after) return 0
    this.#denialAgesMs = []
    this.#blockedMs = rule.for[Math.min(this.#level, rule.for.length - 1)]!
    this.#level++
    this.#levelMs = this.#blockedMs + rule.forgetAfter
    return this.#blockedMs
  }

  /** Unblocks the key, and clears its denials and earlier bans. */
  unblock(): void {
    this.#blockedMs = 0
    this.#level = 0
    this.#levelMs = 0
    this.#denialAgesMs = []
    this.#atMs = 0
  }

  #age(nowMs: number): void {
    const { blockedMs, level } = this.look(nowMs)
    const sinceMs = nowMs - this.#atMs
    const { within } = this.#rule
    this.#denialAgesMs = this.#denialAgesMs.map((age) => age + sinceMs).filter((age) => age < within)
    this.#levelMs = Math.max(0, this.#levelMs - sinceMs)
    this.#level = level
    this.#blockedMs = blockedMs
    this.#atMs = nowMs
  }
}
