// slidegate/metrics: counts decisions by limit, outcome and source, and how full limits are found.
import { bansIn, type Decision, isDecided, type LimitDecision, type Source } from '../decision.ts'
import { mapKey } from '../runtime/hash.ts'
import { Histogram, type HistogramCounts } from '../runtime/histogram.ts'
import { UTILIZATION } from './attributes.ts'

export { Histogram, type HistogramCounts } from '../runtime/histogram.ts'

/** Limits that are counted by their names; the others are counted together. */
const MAX_LIMITS = 64

/** The name under which these are. */
const OTHER = 'other'

/** Who is admitted with this share of a limit used, or more, is near it. */
const NEAR = 0.8

/** What one limit has said of the requests that it was asked about. */
export interface LimitCounts {
  /** Its name; `other` for all beyond the first 64. */
  readonly name: string
  /** Requests that it had no room for, enforced. */
  readonly denials: number
  /** Requests that it had no room for, as a shadow limit. */
  readonly shadowDenials: number
  /** Requests that were admitted, with 80% of it or more used then; none of `fallback`, which knows of a share only. */
  readonly near: number
  /** Share of the limit that was used after each decision but those of `fallback`, from 0 to 1; where it had no room, 1. */
  readonly utilization: HistogramCounts
}

/** Decisions of a limiter in numbers, since the counting began. */
export interface DecisionCountsRead {
  /** All of them, by who has decided. */
  readonly decisions: Readonly<Record<Source, { readonly allowed: number; readonly denied: number }>>
  /** Requests denied by a ban that was in force. They count for no limit. */
  readonly blocked: number
  /** Denials that have brought a ban about. */
  readonly bans: number
  /** In the order in which they were first seen. */
  readonly limits: readonly LimitCounts[]
}

type Outcomes = { allowed: number; denied: number }

/**
 * Counts decisions, in bounded memory and without any key:
 * `limiter.on('decision', ({ decision }) => counts.add(decision))`. Adding one allocates nothing and takes some tens of
 * nanoseconds. Decisions without knowledge (`failOpen`, `failClosed`) and denials by a ban in force count for no limit,
 * only among the decisions.
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
  /** In the order in which limits were first seen: mostly that of every decision. */
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

  /** A copy of the counts so far. */
  read(): DecisionCountsRead {
    const { store, lease, denyCache, fallback, failOpen, failClosed } = this.#decisions
    return {
      decisions: {
        store: { ...store },
        lease: { ...lease },
        denyCache: { ...denyCache },
        fallback: { ...fallback },
        failOpen: { ...failOpen },
        failClosed: { ...failClosed },
      },
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
  #near = 0

  constructor(name: string) {
    this.name = name
  }

  /**
   * @param admitted whether the request was, by all limits
   * @param isShare whether it was decided by a share of the limits: of the whole, nobody knows what is used
   */
  add({ limit, remaining, shadow, allowed }: LimitDecision, admitted: boolean, isShare: boolean): void {
    if (!allowed) {
      if (shadow) this.#shadowDenials++
      else this.#denials++
    }
    if (isShare) return
    const used = allowed ? (limit - remaining) / limit : 1
    if (admitted && allowed && used >= NEAR) this.#near++
    this.#utilization.observe(used)
  }

  read(): LimitCounts {
    return {
      name: this.name,
      denials: this.#denials,
      shadowDenials: this.#shadowDenials,
      near: this.#near,
      utilization: this.#utilization.read(),
    }
  }
}
