// Learns the limits of an upstream from its answers, and puts them in force.
//
// While a learned limit is being written, no request of its key is sent; requests admitted before go back into the queue.

import type { Decision, LimitDecision } from '../decision.ts'
import type { Limiter } from '../limiter.ts'
import type { Quota, ResponseHeaders } from './response-headers.ts'
import { setLearnedLimits, type Terms } from './upstream-limiter.ts'

/** What an answer reports about one limit. */
interface LearnedLimit {
  /** Units per window. */
  readonly units?: number | undefined
  readonly remaining?: number | undefined
}

/** What an answer reports about the budget of its request. */
export interface Learned {
  /** Milliseconds to wait before sending the request again. */
  readonly askedMs: number
  /** Milliseconds to wait before sending any request of the key. */
  readonly holdMs: number
  /** One for each limit. */
  readonly limits: readonly LearnedLimit[]
}

/** Milliseconds of the first hold if the upstream gives no time; doubled for each further one. */
const REFUSED_MS = 1000

/** Times in whole seconds may be rounded by this much. */
const ROUNDED_MS = 1000

/** The maximum margin added to the time that an upstream asks for. */
const MAX_ADDED_MS = 1000

/** Whether the upstream refused the request because of its limits. */
export function isRefusal(status: number): boolean {
  return status === 429 || status === 503
}

/**
 * Reads what an answer reports about the limits.
 *
 * @param terms undefined if the limiter isn't an upstreamLimiter
 * @param refusals 429s in a row, including this one
 * @param random from 0 to less than 1
 */
export function learnedFrom(
  { quotas, retryAfterMs }: ResponseHeaders,
  status: number,
  terms: Terms | undefined,
  {
    refusals,
    maxHoldMs,
    random,
  }: { readonly refusals: number; readonly maxHoldMs: number; random(): number },
): Learned {
  const limits: LearnedLimit[] = (terms?.limits ?? []).map(() => ({}))
  let askedMs = 0
  let emptyMs: number | undefined
  for (const quota of quotas) {
    const { limit, remaining, resetMs = 0 } = quota
    const place = placeOf(quota, terms)
    if (place >= 0) limits[place] = tighter(limits[place]!, { units: limit || undefined, remaining })
    if (remaining !== 0 && limit !== 0) continue
    emptyMs = Math.max(emptyMs ?? 0, resetMs)
    // We don't count a quota that stays empty for longer than our window.
    const isOurs = place >= 0 && limit !== 0 && resetMs <= terms!.windowsMs[place]! + ROUNDED_MS
    if (!isOurs) askedMs = Math.max(askedMs, resetMs)
  }
  if (isRefusal(status)) {
    const unknownMs =
      status === 429 ? emptyMs || Math.min(REFUSED_MS * 2 ** Math.max(0, refusals - 1), maxHoldMs) : 0
    askedMs = Math.max(askedMs, retryAfterMs ?? unknownMs)
  }
  const addedMs = Math.min(terms?.marginMs ?? 0, MAX_ADDED_MS)
  if (askedMs > 0) askedMs = Math.ceil(askedMs + addedMs * (1 + random()))
  return { askedMs, holdMs: Math.min(askedMs, maxHoldMs), limits }
}

/** The index of the limit that a quota belongs to, or -1. */
function placeOf({ limit, windowMs }: Quota, terms: Terms | undefined): number {
  if (terms === undefined) return -1
  const { windowsMs, limits } = terms
  if (windowMs !== undefined) {
    const distances = windowsMs.map((ours) => Math.abs(ours - windowMs))
    const nearest = Math.min(...distances)
    return nearest < ROUNDED_MS ? distances.indexOf(nearest) : -1
  }
  // A limit above the declared one may have any window.
  if (limits.length === 1) return limit === undefined || limit <= limits[0]!.limit ? 0 : -1
  return limits.findIndex((ours) => ours.limit === limit)
}

function tighter(one: LearnedLimit, other: LearnedLimit): LearnedLimit {
  return { units: least(one.units, other.units), remaining: least(one.remaining, other.remaining) }
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
}

/**
 * Whether what was learned changes anything that is known of the budget.
 *
 * @param then when its request was admitted
 * @param latest and last
 */
export function isNews(learned: Learned, terms: Terms, then: Decision, latest: Decision): boolean {
  const { isLower, isHigher, excess } = planOf(learned, terms, then, latest)
  return learned.holdMs > 0 || isLower || isHigher || excess > 0
}

interface Plan {
  /** Of each limit: units per window from now on. */
  readonly units: readonly number[]
  readonly isLower: boolean
  readonly isHigher: boolean
  /** Units that the upstream has counted, and we have not. */
  readonly excess: number
}

/**
 * The excess is by how much less remains upstream than here: the smaller difference of when the request was admitted and now,
 * since other requests were admitted or left the window in between.
 */
function planOf(learned: Learned, { limits }: Terms, then: Decision, now: Decision): Plan {
  const plan = { units: [] as number[], isLower: false, isHigher: false, excess: 0 }
  limits.forEach((declared, i) => {
    const before = limitIn(then, declared.windowMs)
    const present = limitIn(now, declared.windowMs)
    const { units, remaining } = learned.limits[i]!
    const inForce = present?.limit ?? declared.limit
    const wanted = Math.min(declared.limit, Math.max(1, units ?? inForce))
    plan.units.push(wanted)
    if (wanted < inForce) plan.isLower = true
    if (wanted > inForce) plan.isHigher = true
    if (remaining === undefined || before === undefined || present === undefined) return
    const believed = Math.min(remainingOf(wanted, before), remainingOf(wanted, present))
    plan.excess = Math.max(plan.excess, believed - remaining)
  })
  return plan
}

function limitIn({ limits }: Decision, windowMs: number): LimitDecision | undefined {
  return limits.find((limit) => limit.windowMs === windowMs)
}

/** The remaining units if the limit were `units`. */
function remainingOf(units: number, { limit, remaining }: LimitDecision): number {
  return Math.max(0, units - (limit - remaining))
}

/** Puts learned limits in force, for all processes that share the budget. */
export async function putInForce(
  learned: Learned,
  terms: Terms,
  limiter: Limiter,
  key: string,
  then: Decision,
): Promise<void> {
  const now = await limiter.peek(key)
  const { units, isLower, isHigher, excess } = planOf(learned, terms, then, now)
  const { holdMs } = learned
  if (holdMs > (now.blockedMs ?? 0)) await limiter.block(key, Math.max(10, holdMs))
  if (isLower || isHigher) await setLearnedLimits(limiter, terms, key, units)
  if (excess > 0) await limiter.charge(key, excess)
}

/** Holds back a key's requests while learned limits are written, and keeps the key's state in this process. */
export class KeyGate {
  /** Refusals in a row. */
  refusals = 0
  /** The last decision. */
  latest: Decision | undefined
  readonly #emptied: () => void
  #users = 0
  #learning: Promise<void> | undefined
  #learntAtMs = Number.NEGATIVE_INFINITY

  constructor(emptied: () => void) {
    this.#emptied = emptied
  }

  enter(): void {
    this.#users++
  }

  leave(): void {
    if (--this.#users === 0) this.#emptied()
  }

  /** Whether a decision requested at this time took all learned limits into account. */
  isInformed(askedAtMs: number): boolean {
    return this.#learning === undefined && askedAtMs >= this.#learntAtMs
  }

  /** Undefined if nothing is being written. */
  get learning(): Promise<void> | undefined {
    return this.#learning
  }

  /** Writes one after the other. Ignores failures: the next answer reports the same again. */
  learn(putInForce: () => Promise<void>): void {
    this.enter()
    const learning = (this.#learning ?? Promise.resolve())
      .then(putInForce)
      .catch(() => {})
      .then(() => {
        this.#learntAtMs = performance.now()
        if (this.#learning === learning) this.#learning = undefined
        this.leave()
      })
    this.#learning = learning
  }
}

const gatesOf = new WeakMap<object, Map<string, KeyGate>>()

/** The gate of a limiter's key. It exists while requests of the key are in flight, which share it. */
export function keyGateOf(limiter: object, key: string): KeyGate {
  const gates = gatesOf.get(limiter) ?? new Map<string, KeyGate>()
  gatesOf.set(limiter, gates)
  let gate = gates.get(key)
  if (gate === undefined) {
    gate = new KeyGate(() => gates.delete(key))
    gates.set(key, gate)
  }
  return gate
}
