// The public entry point slidegate/metrics: counts decisions and measures the utilization of limits.
import { bansIn, type Decision, isDecided, type LimitDecision, type Source } from '../decision.ts'
import { mapKey } from '../runtime/hash.ts'
import { Histogram, type HistogramCounts } from '../runtime/histogram.ts'
import { UTILIZATION } from './attributes.ts'

export { Histogram, type HistogramCounts } from '../runtime/histogram.ts'

/** Maximum number of limits counted by name. Further limits are counted together. */
const MAX_LIMITS = 64

/** The name under which further limits are counted. */
const OTHER = 'other'

/** A request is near a limit if this share of it is used. */
const NEAR = 0.8

/** Counts of one limit's decisions. */
export interface LimitCounts {
  /** The limit's name; `other` for all limits after the first 64. */
  readonly name: string
  /** Requests that the limit denied. */
  readonly denials: number
  /** Requests that the limit would have denied if it weren't a shadow limit. */
  readonly shadowDenials: number
  /**
   * Requests admitted with at least 80% of the limit used. Excludes `fallback` decisions, which see only part of the usage.
   */
  readonly nearLimit: number
  /** Share of the limit in use after each decision, from 0 to 1. Denials count as 1. Excludes `fallback` decisions. */
  readonly utilization: HistogramCounts
}

/** Counts of a limiter's decisions since counting began. */
export interface DecisionCountsSnapshot {
  /** Counts of all decisions, by source. */
  readonly decisions: Readonly<Record<Source, { readonly allowed: number; readonly denied: number }>>
  /** Requests denied by an active ban or block. They aren't counted under `limits`. */
  readonly blocked: number
  /** Denials that caused a ban. */
  readonly bans: number
  /** Counts per limit, in order of first appearance. */
  readonly limits: readonly LimitCounts[]
}

type Outcomes = { allowed: number; denied: number }

/**
 * Counts decisions in bounded memory, without storing keys:
 *
 *     limiter.on('decision', ({ decision }) => counts.add(decision))
 *
 * Adding a decision allocates nothing and takes a few dozen nanoseconds. Decisions made without the store (`failOpen`,
 * `failClosed`) and denials by an active ban are counted under `decisions`, but not under `limits`.
 */
export class DecisionCounts {
  readonly #decisions: Record<Source, Outcomes> = {
    store: { allowed: 0, denied: 0 },
    lease: { allowed: 0, denied: 0 },
    denyCache: { allowed: 0, denied: 0 },
    fallback: { allowed: 0, denied: 0 },
    failOpen: { allowed: 0, denied: 0 },
    failClosed: { allowed: 0, denied: 0 },
  }
  #blocked = 0
  #bans = 0
  /** One row per limit, in order of first appearance. Decisions usually list limits in the same order. */
  readonly #rows: LimitRow[] = []
  readonly #rowOf = new Map<string, LimitRow>()

  /** Counts a decision. */
  add(decision: Decision): void {
    const { allowed, source, blockedMs, limits } = decision
    const outcomes = this.#decisions[source]
    if (allowed) outcomes.allowed++
    else outcomes.denied++
    if (!isDecided(source)) return
    if (blockedMs !== undefined) {
      if (bansIn(decision).length > 0) {
        this.#blocked++
        return
      }
      this.#bans++
    }
    const isShare = source === 'fallback'
    for (let i = 0; i < limits.length; i++) {
      const verdict = limits[i]!
      const row = this.#rows[i]
      if (row !== undefined && row.name === verdict.name) row.add(verdict, allowed, isShare)
      else this.#named(verdict.name).add(verdict, allowed, isShare)
    }
  }

  /** Returns a copy of the counts so far. */
  read(): DecisionCountsSnapshot {
    return {
      decisions: structuredClone(this.#decisions),
      blocked: this.#blocked,
      bans: this.#bans,
      limits: this.#rows.map((row) => row.read()),
    }
  }

  #named(name: string): LimitRow {
    const key = mapKey(name)
    const known = this.#rowOf.get(key)
    if (known !== undefined) return known
    if (this.#rowOf.size >= MAX_LIMITS && name !== OTHER) return this.#named(OTHER)
    const row = new LimitRow(name)
    this.#rowOf.set(key, row)
    this.#rows.push(row)
    return row
  }
}

class LimitRow {
  readonly name: string
  readonly #utilization = new Histogram(UTILIZATION)
  #denials = 0
  #shadowDenials = 0
  #nearLimit = 0

  constructor(name: string) {
    this.name = name
  }

  /**
   * @param admitted whether all limits admitted the request
   * @param isShare whether the decision used this process's share of the limits, without knowing the total usage
   */
  add({ limit, remaining, shadow, allowed }: LimitDecision, admitted: boolean, isShare: boolean): void {
    if (!allowed) {
      if (shadow) this.#shadowDenials++
      else this.#denials++
    }
    if (isShare) return
    const used = allowed ? (limit - remaining) / limit : 1
    if (admitted && allowed && used >= NEAR) this.#nearLimit++
    this.#utilization.observe(used)
  }

  read(): LimitCounts {
    return {
      name: this.name,
      denials: this.#denials,
      shadowDenials: this.#shadowDenials,
      nearLimit: this.#nearLimit,
      utilization: this.#utilization.read(),
    }
  }
}
