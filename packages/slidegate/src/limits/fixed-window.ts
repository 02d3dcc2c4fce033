import { Slab } from '../slab.ts'
import { parseWindow } from '../duration.ts'
import { checkDeclaration, declareLimit, type LimitOptions, MAX_UNITS, nameOf, parseLimit } from './declare.ts'
import type { Kind, Limit, LogParams, Logs } from './limit.ts'

export type FixedWindowOptions = LimitOptions

/**
 * At most `limit` units in each window of this length, the windows aligned to the epoch by the store's
 * clock: one number per key. At worst `2 * limit` pass within the length of one window, around the edge
 * between two: with 100 a minute, 100 at 0:59.9 and 100 more at 1:00.0.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window`, `invalid_name`
 */
export function fixedWindow(options: FixedWindowOptions): Limit {
  checkDeclaration(options, '{ limit, window }')
  const limit = parseLimit(options.limit)
  const windowMs = parseWindow(options.window)
  return declareLimit(
    { kind: fixedWindowKind, limit, windowMs, precisionMs: windowMs },
    options,
    nameOf(limit, windowMs),
  )
}

/** The units charged in the window that began at `start`. */
class FixedCounter {
  row: Float64Array = new Float64Array(2)
  at = 0

  get start(): number {
    return this.row[this.at]!
  }
  set start(start: number) {
    this.row[this.at] = start
  }

  get units(): number {
    return this.row[this.at + 1]!
  }
  set units(units: number) {
    this.row[this.at + 1] = units
  }
}

class FixedCounters implements Logs<FixedCounter> {
  readonly #rows = new Slab(2)
  readonly #counter = new FixedCounter()

  constructor() {
    // Number 0, in which all is 0.
    this.#rows.create()
  }

  create(): number {
    const log = this.#rows.create()
    clear(this.at(log))
    return log
  }

  at(log: number): FixedCounter {
    const counter = this.#counter
    counter.row = this.#rows.doubles[log >>> this.#rows.shift]!
    counter.at = (log & this.#rows.mask) * this.#rows.width
    return counter
  }

  copy(log: number): number {
    const copied = this.#rows.create()
    const { start, units } = this.at(log)
    const counter = this.at(copied)
    counter.start = start
    counter.units = units
    return copied
  }

  delete(log: number): void {
    this.#rows.delete(log)
  }
}

function clear(counter: FixedCounter): void {
  counter.start = 0
  counter.units = 0
}

const fixedWindowKind: Kind<FixedCounter> = {
  tag: 'f',

  logName: (limit) => `f${limit.windowMs}`,

  params: (limits) => ({
    precision: limits[0]!.windowMs,
    records: 1,
    windows: limits.map((limit) => limit.windowMs),
    limits: limits.map((limit) => limit.limit),
  }),

  createLogs: () => new FixedCounters(),

  newest: (counter) => counter.start,

  restamp(counter, params, nowMs) {
    counter.start = startOf(nowMs, params.precision)
  },

  check(counter, params, nowMs, used) {
    const units = counter.start === startOf(nowMs, params.precision) ? counter.units : 0
    for (let i = 0; i < params.limits.length; i++) used[i] = units
  },

  commit(counter, params, nowMs, { units }) {
    charge(counter, params, nowMs, units)
  },

  admit(counter, params, nowMs, cost, used) {
    this.check(counter, params, nowMs, used)
    for (let i = 0; i < params.limits.length; i++) if (used[i]! + cost > params.limits[i]!) return false
    charge(counter, params, nowMs, cost)
    return true
  },

  retryAfter(_counter, params, i, nowMs, cost) {
    return cost > params.limits[i]! ? Number.POSITIVE_INFINITY : params.precision - (nowMs % params.precision)
  },

  resetAfter(counter, params, _i, nowMs) {
    const start = startOf(nowMs, params.precision)
    return counter.units > 0 && counter.start === start ? start + params.precision - nowMs : 0
  },

  refund(counter, params, nowMs, atMs, units) {
    const isGone = nowMs >= counter.start + params.precision
    if (isGone || startOf(atMs, params.precision) !== counter.start) return 0
    const returned = Math.min(units, counter.units)
    counter.units -= returned
    if (counter.units === 0) counter.start = 0
    return returned
  },

  expiresAt: (counter, params) => counter.start + params.precision,
}

function charge(counter: FixedCounter, params: LogParams, nowMs: number, units: number): void {
  const start = startOf(nowMs, params.precision)
  if (counter.start !== start) {
    counter.start = start
    counter.units = 0
  }
  counter.units = Math.min(counter.units + units, MAX_UNITS)
}

function startOf(nowMs: number, windowMs: number): number {
  return nowMs - (nowMs % windowMs)
}
