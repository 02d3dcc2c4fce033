// Learns an upstream's limits from its responses and applies them.
//
// While a learned limit is being written, no request for its key is sent, and requests that were already admitted return to the
// queue.

import type { Decision, LimitDecision } from '../decision.ts'
import type { Limiter } from '../limiter.ts'
import type { Quota, ResponseHeaders } from './response-headers.ts'
import { setLearnedLimits, type Terms } from './upstream-limiter.ts'

/** The values that a response reports for one limit. */
interface LearnedLimit {
  /** Units per window. */
  readonly units?: number | undefined
  readonly remaining?: number | undefined
}

/** The values that a response reports for its request's key. */
export interface Learned {
  /** Milliseconds to wait before sending the request again. */
  readonly requestedMs: number
  /** Milliseconds to wait before sending any request for the key. */
  readonly holdMs: number
  readonly limits: readonly LearnedLimit[]
}

/** Milliseconds to wait after the first 429 that has no wait time. Doubles with each consecutive 429. */
const REFUSED_MS = 1000

/** Maximum rounding error, in milliseconds, of a time that is reported in whole seconds. */
const ROUNDED_MS = 1000

/** Maximum margin added to the wait that an upstream requests. */
const MAX_ADDED_MS = 1000

/** Whether the upstream rejected the request because of a limit. */
export function isRefusal(status: number): boolean {
  return status === 429 || status === 503
}

/**
 * Returns the values that a response reports.
 *
 * @param terms `undefined` if the limiter isn't an upstreamLimiter
 * @param refusals the number of consecutive 429s, including this one
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
  let requestedMs = 0
  let emptyMs: number | undefined
  for (const quota of quotas) {
    const { limit, remaining, resetMs = 0 } = quota
    const place = placeOf(quota, terms)
    if (place >= 0) limits[place] = tighter(limits[place]!, { units: limit || undefined, remaining })
    if (remaining !== 0 && limit !== 0) continue
    emptyMs = Math.max(emptyMs ?? 0, resetMs)
    // A quota that stays empty for longer than the window isn't one of the limiter's limits.
    const isOurs = place >= 0 && limit !== 0 && resetMs <= terms!.windowsMs[place]! + ROUNDED_MS
    if (!isOurs) requestedMs = Math.max(requestedMs, resetMs)
  }
  if (isRefusal(status)) {
    const unknownMs =
      status === 429 ? emptyMs || Math.min(REFUSED_MS * 2 ** Math.max(0, refusals - 1), maxHoldMs) : 0
    requestedMs = Math.max(requestedMs, retryAfterMs ?? unknownMs)
  }
  const addedMs = Math.min(terms?.marginMs ?? 0, MAX_ADDED_MS)
  if (requestedMs > 0) requestedMs = Math.ceil(requestedMs + addedMs * (1 + random()))
  return { requestedMs, holdMs: Math.min(requestedMs, maxHoldMs), limits }
}

/** Returns the index of the limit that matches a quota, or -1. */
function placeOf({ limit, windowMs }: Quota, terms: Terms | undefined): number {
  if (terms === undefined) return -1
  const { windowsMs, limits } = terms
  if (windowMs !== undefined) {
    const distances = windowsMs.map((ours) => Math.abs(ours - windowMs))
    const nearest = Math.min(...distances)
    return nearest < ROUNDED_MS ? distances.indexOf(nearest) : -1
  }
  // Without a window, a reported limit above the declared one isn't matched, because it could be for any window.
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
 * Returns whether a response reports anything new about the budget.
 *
 * @param then the decision that admitted the request
 * @param latest the latest decision
 */
export function isNews(learned: Learned, terms: Terms, then: Decision, latest: Decision): boolean {
  const { isLower, isHigher, excess } = planOf(learned, terms, then, latest)
  return learned.holdMs > 0 || isLower || isHigher || excess > 0
}

interface Plan {
  /** The new units per window, for each limit. */
  readonly units: readonly number[]
  readonly isLower: boolean
  readonly isHigher: boolean
  /** Units that the upstream has counted but the limiter hasn't. */
  readonly excess: number
}

/**
 * Plans how to apply the values of a response.
 *
 * The excess is how many fewer units remain upstream than in the limiter. The
 * limiter's number is the lower of the remaining units in `then` and `now`, because other requests may have been
 * admitted or may have left the window in between.
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

/** Returns the units that would remain if the limit were `units`. */
function remainingOf(units: number, { limit, remaining }: LimitDecision): number {
  return Math.max(0, units - (limit - remaining))
}

/** Applies learned limits, for all processes that share the budget. */
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

/** A key's state in this process. Holds back the key's requests while learned limits are being written. */
export class KeyGate {
  /** Consecutive rejections. */
  refusals = 0
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

  /** Returns whether a decision requested at this time was based on all learned limits. */
  isInformed(askedAtMs: number): boolean {
    return this.#learning === undefined && askedAtMs >= this.#learntAtMs
  }

  /** Resolves when the limits have been written. `undefined` if nothing is being written. */
  get learning(): Promise<void> | undefined {
    return this.#learning
  }

  /** Writes learned limits one after another. Ignores failures, since the next response reports the limits again. */
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

/** Returns the gate for a limiter's key. All requests for the key share it while any of them is in flight. */
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
