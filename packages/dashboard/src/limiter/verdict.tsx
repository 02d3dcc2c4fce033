// A guess from the denials: abuse, or a limit that is too low.

import type { History } from '../../../server/src/admin/api-types.ts'
import type { TopKey, TopKeyList } from '../api-types.ts'
import { Notice, type Tone } from '../components/status.tsx'
import { count, duration, share } from '../format.ts'

/** What is known of a limiter over the last minutes. */
export interface Evidence {
  readonly spanMs: number
  readonly requests: number
  readonly denied: number
  /** Different callers, estimated. */
  readonly callers: number
  /** The keys that were denied most, the first first. */
  readonly denials: readonly TopKey[]
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
export function verdictOf({ spanMs, requests, denied, callers, denials }: Evidence): Verdict {
  const span = `the last ${duration(Math.round(spanMs / 1000) * 1000)}`
  if (denied === 0) return { kind: 'none', text: `Nothing was denied in ${span}.` }
  const ofAll = `${count(denied)} of ${count(requests)} requests in ${span} were denied`
  if (denied < ENOUGH_DENIALS) {
    return { kind: 'few', text: `${ofAll}: too few to tell why (fewer than ${ENOUGH_DENIALS}).` }
  }
  const asMany = callers > 0 ? requests / callers : requests
  if (callers >= VERY_MANY && asMany < SELDOM) {
    return {
      kind: 'distributed',
      text: `${ofAll}. Some ${count(callers)} callers came, with ${asMany.toFixed(1)} requests each on average: so many who ask so seldom may be one who asks from many addresses. (The lines are drawn at ${count(VERY_MANY)} callers and ${SELDOM} requests each.)`,
    }
  }
  // Of limiters with dimensions: that whose keys explain most. A few have at least so much, one has at most so much.
  const dimensions = new Set(denials.map(({ dimension }) => dimension))
  const heads = Array.from(dimensions, (dimension) => {
    const keys = denials.filter((each) => each.dimension === dimension)
    const least = keys.slice(0, FEW).reduce((sum, { count, error }) => sum + count - error, 0)
    return { few: Math.min(1, least / denied), first: Math.min(1, (keys[0]?.count ?? 0) / denied) }
  })
  const few = Math.max(0, ...heads.map((head) => head.few))
  const first = Math.max(0, ...heads.map((head) => head.first))
  if (callers < ENOUGH_CALLERS) {
    return {
      kind: 'unclear',
      text: `${ofAll}. ${callers === 1 ? 'One caller' : `Some ${count(callers)} callers`} came: too few to tell abuse from a limit that is too low by who was denied. (The line is drawn at ${ENOUGH_CALLERS}.)`,
    }
  }
  if (few >= MOST) {
    return {
      kind: 'concentrated',
      text: `${ofAll}. ${few === 1 ? 'All' : `At least ${share(few)}`} of the denials are those of ${FEW} keys, among some ${count(callers)} callers: that looks like a few who ask for far more than the others, rather than like a limit that is too low. (The line is drawn at ${share(MOST)}.)`,
    }
  }
  if (first < LITTLE) {
    return {
      kind: 'spread',
      text: `${ofAll}. No key has more than ${share(first)} of the denials: many callers are denied a little, so the limit may be too low for what they usually do. (The line is drawn at ${share(LITTLE)} for each key.)`,
    }
  }
  return {
    kind: 'unclear',
    text: `${ofAll}. ${FEW} keys have ${share(few)} of the denials, the first ${share(first)}: neither a few who stand out (from ${share(MOST)} on) nor many who are denied a little (below ${share(LITTLE)} each). Look at the keys below.`,
  }
}

const TONES: Readonly<Record<ReturnType<typeof verdictOf>['kind'], Tone>> = {
  none: 'good',
  few: 'plain',
  concentrated: 'warn',
  spread: 'warn',
  distributed: 'warn',
  unclear: 'plain',
}

/** Abuse, or a limit set too low. */
export function VerdictNotice({
  history,
  denials,
}: {
  readonly history: History | undefined
  readonly denials: TopKeyList | undefined
}) {
  if (history === undefined || denials === undefined) return null
  const { distinct: callers = 0, spanMs, keys } = denials
  // The same time as that of the keys, or all that is known where nobody was denied.
  const seconds = spanMs === 0 ? history.seconds.length : Math.ceil(spanMs / 1000)
  const sum = (column: readonly number[]) => column.slice(-seconds).reduce((all, each) => all + each, 0)
  const denied = sum(history.denied)
  const requests = denied + sum(history.allowed)
  const verdict = verdictOf({ spanMs: 1000 * seconds, requests, denied, callers, denials: keys })
  return (
    <Notice tone={TONES[verdict.kind]}>
      <p data-verdict={verdict.kind}>
        <strong>Abuse, or a limit that is too low?</strong> {verdict.text}
      </p>
    </Notice>
  )
}
