import type { Decision, LimitDecision } from '../decision.ts'
import type { Limiter } from '../limiter.ts'
import type { Advice, Quota } from './advice.ts'
import { learn, type Terms } from './upstream-limiter.ts'

/** What an answer says of one of the limits, as far as it does. */
interface Told {
  /** Units per window. */
  readonly units?: number | undefined
  readonly remaining?: number | undefined
}

/** What an answer teaches of the budget of its request. */
export interface Lesson {
  /** Milliseconds for which its request is not to be sent again. */
  readonly askedMs: number
  /** Milliseconds for which nobody of its key is to be sent. */
  readonly holdMs: number
  /** Of each limit. */
  readonly told: readonly Told[]
}

/** Milliseconds of a hold that the upstream gives no time for, the first time; then twice as much, and so on. */
const REFUSED_MS = 1000

/** Whole seconds may be rounded. */
const ROUNDED_MS = 1000

/** The margin that is added to what an upstream asks for, at most: that of a day is an hour. */
const MAX_ADDED_MS = 1000

/** How an upstream says that it is asked too much. */
export function isRefusal(status: number): boolean {
  return status === 429 || status === 503
}

/**
 * @param terms those of the limiter, where it was made for an upstream
 * @param refusals how many 429 there were in a row, with this one
 * @param random from 0 to less than 1
 */
export function lessonOf(
  { quotas, retryAfterMs }: Advice,
  status: number,
  terms: Terms | undefined,
  {
    refusals,
    maxHoldMs,
    random,
  }: { readonly refusals: number; readonly maxHoldMs: number; random(): number },
): Lesson {
  const told: Told[] = (terms?.limits ?? []).map(() => ({}))
  let askedMs = 0
  let emptyMs: number | undefined
  for (const quota of quotas) {
    const { limit, remaining, resetMs = 0 } = quota
    const place = placeOf(quota, terms)
    if (place >= 0) told[place] = tighter(told[place]!, { units: limit || undefined, remaining })
    if (remaining !== 0 && limit !== 0) continue
    emptyMs = Math.max(emptyMs ?? 0, resetMs)
    // What is empty for longer than our own window is none that we count.
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
  return { askedMs, holdMs: Math.min(askedMs, maxHoldMs), told }
}

/** The limit of which an upstream tells, or -1. */
function placeOf({ limit, windowMs }: Quota, terms: Terms | undefined): number {
  if (terms === undefined) return -1
  const { windowsMs, limits } = terms
  if (windowMs !== undefined) {
    const distances = windowsMs.map((ours) => Math.abs(ours - windowMs))
    const nearest = Math.min(...distances)
    return nearest < ROUNDED_MS ? distances.indexOf(nearest) : -1
  }
  // One that is larger than what was declared may be of any window.
  if (limits.length === 1) return limit === undefined || limit <= limits[0]!.limit ? 0 : -1
  return limits.findIndex((ours) => ours.limit === limit)
}

function tighter(one: Told, other: Told): Told {
  return { units: least(one.units, other.units), remaining: least(one.remaining, other.remaining) }
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
}

/**
 * Whether a lesson changes anything of what is known of the budget.
 *
 * @param then when its request was admitted
 * @param latest and last
 */
export function isNews(lesson: Lesson, terms: Terms, then: Decision, latest: Decision): boolean {
  const { isLower, isHigher, excess } = planOf(lesson, terms, then, latest)
  return lesson.holdMs > 0 || isLower || isHigher || excess > 0
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
 * What is missing in our count is the least by which the upstream says that less remains, when its request was admitted and
 * now: in between others were admitted, and others have left the window.
 */
function planOf({ told }: Lesson, { limits }: Terms, then: Decision, now: Decision): Plan {
  const plan = { units: [] as number[], isLower: false, isHigher: false, excess: 0 }
  limits.forEach((declared, i) => {
    const before = limitIn(then, declared.windowMs)
    const present = limitIn(now, declared.windowMs)
    const { units, remaining } = told[i]!
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

/** What would remain if the limit were this. */
function remainingOf(units: number, { limit, remaining }: LimitDecision): number {
  return Math.max(0, units - (limit - remaining))
}

/** Puts what was learnt in force, for all processes that share the budget. */
export async function heed(
  lesson: Lesson,
  terms: Terms,
  limiter: Limiter,
  key: string,
  then: Decision,
): Promise<void> {
  const now = await limiter.peek(key)
  const { units, isLower, isHigher, excess } = planOf(lesson, terms, then, now)
  const { holdMs } = lesson
  if (holdMs > (now.blockedMs ?? 0)) await limiter.block(key, Math.max(10, holdMs))
  if (isLower || isHigher) await learn(limiter, terms, key, units)
  if (excess > 0) await limiter.charge(key, excess)
}
