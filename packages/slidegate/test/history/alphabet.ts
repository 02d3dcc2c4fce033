import type { Declaration, KindName } from './declarations.ts'
import type { Event } from './histories.ts'
import type { Asking } from './result.ts'

/** Something that happens to one of two keys, or to both: time passes. */
export interface Step {
  readonly key: 0 | 1
  readonly event: Exclude<Event, { readonly type: 'waitWindow' }>
}

/** Two limits of each of two limiters that have one name, as while a change of limits is rolled out. */
export type Limiters = readonly [readonly Declaration[], readonly Declaration[]]

/** How long a step of time is. By the real clock permits are renewed each third of their time: not during a history. */
function unitOf(kinds: readonly KindName[]): number {
  return kinds.includes('concurrency') ? 10_000 : 1
}

/** The first limit has a window that most steps of time are shorter than, the second one that is longer. */
export function limitersOf(kind: KindName, other: KindName): Limiters {
  const unit = unitOf([kind, other])
  const [short, long] = [20 * unit, 50 * unit]
  // Such a limit has a limiter of its own.
  if (kind === 'distinct') return [[declarationOf(kind, 3, short)], [declarationOf(kind, 2, short)]]
  return [
    [declarationOf(kind, 3, short), declarationOf(other, 4, long, 7 * unit)],
    [declarationOf(kind, 2, short), declarationOf(other, 5, long, 7 * unit)],
  ]
}

function declarationOf(kind: KindName, limit: number, window: number, precision?: number): Declaration {
  const numbers = { limit, window, shadow: false }
  switch (kind) {
    case 'sliding':
      return { kind, precision, ...numbers }
    case 'bucket':
      return { kind, refill: 2, ...numbers }
    case 'calendar':
      return { kind, limit, shadow: false, unit: limit > 3 ? 'day' : 'hour', timeZone: 'UTC' }
    default:
      return { kind, ...numbers }
  }
}

/** 15 ms before midnight, and so before the edge of the short window and of the long one. */
export const START_MS: number = Date.parse('2024-02-29T23:59:59.985Z')

/** Two keys, all costs, all that a limiter does; the limits are changed for the first key. */
export function wide(kinds: readonly KindName[]): Step[] {
  const unit = unitOf(kinds)
  const costs = [1, 2, 3]
  const asked = [0, 1].flatMap((who) => costs.map((cost) => on(0, consume(who, cost))))
  asked.push(...costs.map((cost) => on(1, consume(0, cost))))
  const returned = [refund(-1, 3), refund(0, 1)].map((event) => on(0, event))
  // Back by what is taken for an unsteady clock, and by more.
  const times = [10 * unit, 20 * unit, -7, -1100].map(wait)
  return [...asked, ...special(kinds), ...returned, ...times]
}

/** One key, and so few things that more of them may follow each other. */
export function deep(kinds: readonly KindName[]): Step[] {
  const asked = [consume(0, 1), consume(0, 3), consume(1, 2), refund(0, 3)].map((event) => on(0, event))
  const times = [10 * unitOf(kinds), -1100].map(wait)
  return [...asked, ...special(kinds).slice(0, kinds.includes('concurrency') ? 2 : 1), ...times]
}

/** What only some kinds tell apart. */
function special(kinds: readonly KindName[]): Step[] {
  const isAny = (...some: KindName[]) => some.some((kind) => kinds.includes(kind))
  const steps: Asking[] = []
  if (isAny('concurrency')) {
    steps.push({ type: 'acquire', who: 0, cost: 2, value: 1 }, { type: 'release', which: -1 })
    steps.push({ type: 'extend', which: -1 })
  }
  if (isAny('zset')) steps.push({ ...consume(0, 1), id: 0 })
  return steps.map((event) => on(0, event))
}

function on(key: 0 | 1, event: Asking): Step {
  return { key, event }
}

function consume(who: number, cost: number): Extract<Event, { type: 'consume' }> {
  return { type: 'consume', who, cost, times: 1, id: undefined, value: cost }
}

/** Of the oldest admission (0) or the newest (-1). */
function refund(which: number, units: number): Asking {
  return { type: 'refund', which, units }
}

function wait(ms: number): Step {
  return { key: 0, event: { type: 'wait', ms } }
}
