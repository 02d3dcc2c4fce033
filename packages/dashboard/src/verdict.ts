import { count, duration, share } from './format.ts'
import type { TopKeyTold } from './told.ts'

/** What is known of a limiter over the last minutes. */
export interface Evidence {
  readonly overMs: number
  readonly requests: number
  readonly denied: number
  /** Different callers, estimated. */
  readonly callers: number
  /** The keys that were denied most, the first first. */
  readonly denials: readonly TopKeyTold[]
}

export interface Verdict {
  readonly kind: 'none' | 'few' | 'concentrated' | 'spread' | 'distributed' | 'unclear'
  /** One sentence or two, with the numbers that it goes by. */
  readonly text: string
}

/** So few keys are "few", and so much of the denials makes them the cause. */
const FEW = 3
const MOST = 0.5
/** A key with less than this of the denials is one among many. */
const LITTLE = 0.05
/** Where fewer callers were seen, shares of them say nothing. */
const ENOUGH_CALLERS = 10
/** Many callers that ask so seldom each look like one who asks from many addresses. */
const VERY_MANY = 1000
const SELDOM = 3
const ENOUGH_DENIALS = 20

/** Abuse, or a limit set too low? What speaks for which, in careful words: what it was is for people to say. */
export function verdictOf({ overMs, requests, denied, callers, denials }: Evidence): Verdict {
  const span = `the last ${duration(Math.round(overMs / 1000) * 1000)}`
  if (denied === 0) return { kind: 'none', text: `Nothing was denied in ${span}.` }
  const ofAll = `${count(denied)} of ${count(requests)} requests of ${span} were denied`
  if (denied < ENOUGH_DENIALS) {
    return { kind: 'few', text: `${ofAll}: too few to tell why (fewer than ${ENOUGH_DENIALS}).` }
  }
  const asMany = callers > 0 ? requests / callers : requests
  if (callers >= VERY_MANY && asMany < SELDOM) {
    return {
      kind: 'distributed',
      text: `${ofAll}, from some ${count(callers)} callers with ${asMany.toFixed(1)} requests each on average. Very many callers that ask seldom may be one who asks from many addresses (from ${count(VERY_MANY)} callers on, with fewer than ${SELDOM} requests each).`,
    }
  }
  // Of limiters with dimensions: that whose keys explain most. What came at least counts, not what may have come.
  const dimensions = new Set(denials.map(({ dimension }) => dimension))
  const heads = Array.from(dimensions, (dimension) => {
    const least = denials
      .filter((each) => each.dimension === dimension)
      .map(({ count, error }) => (count - error) / denied)
    return {
      first: Math.min(1, least[0] ?? 0),
      few: Math.min(
        1,
        least.slice(0, FEW).reduce((sum, each) => sum + each, 0),
      ),
    }
  })
  const few = Math.max(0, ...heads.map((head) => head.few))
  const first = Math.max(0, ...heads.map((head) => head.first))
  if (callers < ENOUGH_CALLERS) {
    return {
      kind: 'unclear',
      text: `${ofAll}. Only some ${count(callers)} callers were seen: too few to tell abuse from a limit that is too low by how the denials are spread (fewer than ${ENOUGH_CALLERS}).`,
    }
  }
  if (few >= MOST) {
    return {
      kind: 'concentrated',
      text: `${ofAll}, ${few === 1 ? 'all' : `at least ${share(few)}`} of them of ${FEW} keys among some ${count(callers)} callers. That looks like a few callers who ask for far more than the others, rather than like a limit that is too low (${share(MOST)} or more of the denials from ${FEW} keys).`,
    }
  }
  if (first < LITTLE) {
    return {
      kind: 'spread',
      text: `${ofAll}, and no key has more than ${share(first)} of the denials. Many callers are denied a little: the limit may be too low for what they usually do (less than ${share(LITTLE)} for each key).`,
    }
  }
  return {
    kind: 'unclear',
    text: `${ofAll}. The denials are neither of a few keys (${FEW} have ${share(few)}, ${share(MOST)} would be much) nor spread evenly (the first has ${share(first)}, less than ${share(LITTLE)} would be little): look at the keys below.`,
  }
}
