// A kind of limit: about how many different values came, by sketches.

import { startOf } from '../runtime/duration.ts'
import { mapKey } from '../runtime/hash.ts'
import type { Kind, LogParams } from './limit.ts'
import { ObjectLogs } from './logs.ts'

/** The greatest limit, and how many values the memory store keeps per key at most. */
export const MAX_VALUES = 1_000_000

/** Sub-windows that touch a window: the current one, and ten before it. */
const SUB_WINDOWS = 11

interface Values {
  /** When the newest sub-window began. */
  stamp: number
  /** Its number. They are numbered as they come, so that a clock set back changes no number. */
  turn: number
  /** By {@link mapKey}, the sub-window that each value was last added in; oldest first. */
  turns: Map<string, number>
  /** Values per sub-window, in the place of its number modulo {@link SUB_WINDOWS}. */
  counts: number[]
}

/** Bytes of a value of the usual length. */
const VALUE_BYTES = 160

/**
 * Estimated distinct values in sub-windows of a tenth. Redis keeps a HyperLogLog per sub-window, of all values from then
 * on; here they are kept themselves. A key at its limit is denied altogether, since a sketch can't distinguish a known
 * value from a new one. Only admitted values are added.
 */
export const distinctSketchKind: Kind<Values> = {
  tag: 'e',

  logName: (limit) => `e${limit.windowMs}`,

  params: (limits) => ({
    precision: tenthOf(limits[0]!.windowMs),
    records: 1,
    windows: limits.map(({ windowMs }) => windowMs),
    limits: limits.map(({ limit }) => limit),
  }),

  most: () => MAX_VALUES,

  words: ({ precision, limits }) => [precision, limits[0]!],

  createLogs: () =>
    new ObjectLogs<Values>(
      () => ({ stamp: 0, turn: 0, turns: new Map(), counts: new Array(SUB_WINDOWS).fill(0) }),
      (values) => ({ ...values, turns: new Map(values.turns), counts: [...values.counts] }),
      ({ turns }) => 256 + VALUE_BYTES * turns.size,
    ),

  newest: ({ stamp }) => stamp,

  restamp(values, { precision }, nowMs) {
    values.stamp = startOf(nowMs, precision)
  },

  check(values, params, nowMs, used) {
    used[0] = countSince(values, oldestAge(values, params, nowMs))
  },

  commit(values, params, nowMs, { entry }) {
    begin(values, params, nowMs)
    const { turns, counts, turn } = values
    const own = mapKey(entry)
    if (turns.has(own)) forget(values, own)
    else if (turns.size === MAX_VALUES) forget(values, turns.keys().next().value!)
    turns.set(own, turn)
    counts[turn % SUB_WINDOWS]! += 1
  },

  retryAfter(values, params, _i, nowMs, cost) {
    const limit = params.limits[0]!
    if (cost > limit) return Number.POSITIVE_INFINITY
    let age = oldestAge(values, params, nowMs) - 1
    while (age >= 0 && countSince(values, age) + cost > limit) age--
    return values.stamp + (SUB_WINDOWS - 1 - age) * params.precision - nowMs
  },

  resetAfter: ({ stamp, turns }, { precision }, _i, nowMs) =>
    turns.size === 0 ? 0 : Math.max(0, stamp + SUB_WINDOWS * precision - nowMs),

  refund: () => 0,

  expiresAt: ({ stamp }, { precision }) => stamp + SUB_WINDOWS * precision,

  entries: { are: 'value', find: () => undefined, renew: () => false, list: () => [] },
}

/** Length of a sub-window: ten of them are no shorter than the window. */
export function tenthOf(windowMs: number): number {
  return Math.ceil(windowMs / 10)
}

/** Sub-windows from the newest one to the current one. */
function passed({ stamp }: Values, { precision }: LogParams, nowMs: number): number {
  return (startOf(nowMs, precision) - stamp) / precision
}

/** Age of the oldest sub-window that counts, from the newest one. Below 0 if none counts. */
function oldestAge(values: Values, params: LogParams, nowMs: number): number {
  return SUB_WINDOWS - 1 - passed(values, params, nowMs)
}

/** Values that were added since the sub-window `age` before the newest began. */
function countSince({ counts, turn }: Values, age: number): number {
  let count = 0
  for (let back = 0; back <= age; back++) count += counts[(turn + SUB_WINDOWS - back) % SUB_WINDOWS]!
  return count
}

/** Lets the current sub-window be the newest, and forgets what no longer counts. */
function begin(values: Values, params: LogParams, nowMs: number): void {
  values.turn += passed(values, params, nowMs)
  values.stamp = startOf(nowMs, params.precision)
  for (const [value, turn] of values.turns) {
    if (values.turn - turn < SUB_WINDOWS) return
    forget(values, value)
  }
}

function forget({ turns, counts }: Values, value: string): void {
  counts[turns.get(value)! % SUB_WINDOWS]! -= 1
  turns.delete(value)
}
