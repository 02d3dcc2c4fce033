// A kind of limit: a sliding window, estimated from the counts of two fixed windows.
//
//   used = current + previous - floor(previous * elapsed grains / grains)

import { startOf } from '../runtime/duration.ts'
import { declareLimit, finestPrecision, type LimitOptions, paramsOf, parseLimitOptions } from './declare.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import { RowLogs } from './logs.ts'

/** A limit and its window. */
export type SlidingCounterOptions = LimitOptions

/**
 * Limits the units in any window of this length, estimated from two counts.
 *
 * Stores four numbers per key. The units in the previous window count in proportion to that window's overlap with the
 * last `window` milliseconds, and the result is rounded up. In the worst case, `2 * limit - 1` units are admitted
 * within one window length. It may also deny requests that an exact count would allow. `slidingWindow` is exact.
 *
 * The limit's `precisionMs` is 1 ms if the limit times the window is at most 2^52, and otherwise 2, 5, 10, 20, 50, ... ms.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`
 */
export function slidingCounter(options: SlidingCounterOptions): Limit {
  const { limit, windowMs } = parseLimitOptions(options, {})
  const precisionMs = finestPrecision((ms) => limit * Math.ceil(windowMs / ms) <= MAX_PRODUCT)
  const made = { kind: slidingCounterKind, limit, windowMs, precisionMs }
  return declareLimit(made, slidingCounter, options, { kind: 'slidingCounter', limit, window: windowMs })
}

/** Maximum product of units and grains that keeps all arithmetic exact. */
const MAX_PRODUCT: number = 2 ** 52

interface CounterParams extends LogParams {
  readonly window: number
  /** Grains (steps of `precision`) per window. The last grain may be shorter. */
  readonly grains: number
  /** Maximum units counted per window. No limit exceeds it. */
  readonly mostUnits: number
}

interface TwoWindows {
  start: number
  current: number
  previous: number
  /** When the first of these units were charged. */
  since: number
}

const slidingCounterKind: Kind<TwoWindows, CounterParams> = {
  tag: 'c',
  logName: (limit) => `c${limit.windowMs}`,

  params(limits) {
    const { windowMs } = limits[0]!
    // The stored counts don't depend on the precision, so the coarsest one works for all limits.
    const precisionMs = Math.max(...limits.map((limit) => limit.precisionMs))
    const grains = Math.ceil(windowMs / precisionMs)
    const mostUnits = Math.floor(MAX_PRODUCT / grains)
    return { ...paramsOf(limits, precisionMs), window: windowMs, grains, mostUnits }
  },

  most: ({ windowMs, precisionMs }) => Math.floor(MAX_PRODUCT / Math.ceil(windowMs / precisionMs)),
  words: ({ window, precision, mostUnits, limits }) => [window, precision, mostUnits, ...limits],

  read(next, { window }, nowMs) {
    return { start: startOf(nowMs, window), current: next(), previous: next(), since: 0 }
  },

  createLogs: () => new RowLogs<TwoWindows>('start', 'current', 'previous', 'since'),
  newest: (counter) => counter.start,

  restamp(counter, params, nowMs) {
    counter.start = startOf(nowMs, params.window)
    counter.current = Math.min(counter.current + counter.previous, params.mostUnits)
    counter.previous = 0
    counter.since = Math.min(counter.since, nowMs)
  },

  check(counter, params, nowMs, used) {
    const start = startOf(nowMs, params.window)
    const previous = previousAt(counter, params, start)
    const elapsed = Math.floor((nowMs - start) / params.precision)
    const faded = Math.floor((previous * elapsed) / params.grains)
    const units = currentAt(counter, params, start) + previous - faded
    for (let i = 0; i < params.limits.length; i++) used[i] = units
  },

  commit(counter, params, nowMs, { units }) {
    roll(counter, params, startOf(nowMs, params.window))
    if (counter.current === 0 && counter.previous === 0) counter.since = nowMs
    counter.current = Math.min(counter.current + units, params.mostUnits)
  },

  retryAfter(counter, params, i, nowMs, cost) {
    const room = params.limits[i]! - cost
    if (room < 0) return Number.POSITIVE_INFINITY
    const start = startOf(nowMs, params.window)
    const current = currentAt(counter, params, start)
    if (current > room) return start + params.window + fadesIn(current, room, params) - nowMs
    return start + fadesIn(previousAt(counter, params, start), room - current, params) - nowMs
  },

  resetAfter(counter, params, _i, nowMs) {
    const start = startOf(nowMs, params.window)
    if (currentAt(counter, params, start) > 0) return start + 2 * params.window - nowMs
    return previousAt(counter, params, start) > 0 ? start + params.window - nowMs : 0
  },

  refund(counter, params, nowMs, atMs, units) {
    if (atMs < counter.since) return 0
    const start = startOf(nowMs, params.window)
    const chargedIn = startOf(atMs, params.window)
    const previous = chargedIn === start - params.window ? previousAt(counter, params, start) : 0
    const held = chargedIn === start ? currentAt(counter, params, start) : previous
    const returned = Math.min(units, held)
    if (returned === 0) return 0
    roll(counter, params, start)
    if (chargedIn === start) counter.current -= returned
    else counter.previous -= returned
    if (counter.current === 0 && counter.previous === 0) counter.start = 0
    return returned
  },

  expiresAt: (counter, params) => counter.start + (counter.current > 0 ? 2 : 1) * params.window,
}

function roll(counter: TwoWindows, params: CounterParams, start: number): void {
  if (counter.start === start) return
  counter.previous = previousAt(counter, params, start)
  counter.current = 0
  counter.start = start
}

/** Units charged in the window that begins at `start`. */
function currentAt(counter: TwoWindows, { mostUnits }: CounterParams, start: number): number {
  return counter.start === start ? Math.min(counter.current, mostUnits) : 0
}

function previousAt(counter: TwoWindows, { window, mostUnits }: CounterParams, start: number): number {
  if (counter.start === start) return Math.min(counter.previous, mostUnits)
  return counter.start === start - window ? Math.min(counter.current, mostUnits) : 0
}

/** Milliseconds into the current window until the previous window's `units` count as at most `room`. */
function fadesIn(units: number, room: number, { window, precision, grains }: CounterParams): number {
  const elapsed = grains - Math.floor((room * grains) / units)
  return elapsed < grains ? elapsed * precision : window
}
