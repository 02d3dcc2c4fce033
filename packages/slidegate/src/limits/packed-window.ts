// A kind of limit: sliding windows whose log consists of records.
//
// A record is a stamp and the running total of units up to and including it. The units in a window are the newest total minus the
// total before the window. Limits with the same precision share a log, which keeps records for the longest window
// (`keepMs`). Another process may spend leased units later, so they count longer in every window, by the length of the
// lease.

import { isWindow, startOf } from '../runtime/duration.ts'
import { MAX_UNITS, paramsOf } from './declare.ts'
import type { Kind } from './limit.ts'
import {
  MAX_RECORDS,
  refundable,
  STAMP_COLUMN,
  TOTAL_COLUMN,
  type WindowLog,
  WindowLogs,
} from './window-log.ts'

/** Maximum records that a limit can fill. */
function recordsOf(limit: number, windowMs: number, precisionMs: number): number {
  return Math.min(limit, Math.ceil(windowMs / precisionMs) + 1)
}

export function fits(limit: number, windowMs: number, precisionMs: number): boolean {
  return recordsOf(limit, windowMs, precisionMs) <= MAX_RECORDS
}

export const packedWindowKind: Kind<WindowLog> = {
  tag: 'w',
  logName: (limit) => `w${limit.precisionMs}`,

  params(limits) {
    const precision = limits[0]!.precisionMs
    const longest = limits.reduce((a, b) => (b.windowMs > a.windowMs ? b : a))
    const params = paramsOf(limits, precision, recordsOf(longest.limit, longest.windowMs, precision))
    // A stamp is the start of its grain, so the last charge in a grain may come up to `precision - 1` ms later.
    return { ...params, windows: params.windows.map((windowMs) => windowMs + precision - 1) }
  },

  renumber(limit, { limit: units = limit.limit, windowMs = limit.windowMs, ...others }) {
    const { precisionMs } = limit
    if (Object.keys(others).length > 0 || !isWindow(windowMs) || windowMs < precisionMs) return undefined
    return fits(units, windowMs, precisionMs) ? { ...limit, limit: units, windowMs } : undefined
  },

  words: ({ precision, windows, limits }) => [
    precision,
    ...windows.flatMap((window, i) => [window, limits[i]!]),
  ],

  createLogs: () => new WindowLogs(),
  newest: (log) => log.stamp,

  restamp(log, params, nowMs) {
    log.merge(grainOf(nowMs, params.precision))
    log.since = Math.min(log.since, nowMs)
    const { leaseMs, leasedUntil } = log.lease
    if (leaseMs > 0) log.lease = { leaseMs, leasedUntil: Math.min(leasedUntil, nowMs + leaseMs) }
  },

  check(log, params, nowMs, used) {
    for (let i = 0; i < params.windows.length; i++) {
      used[i] = log.total - log.totalUpTo(nowMs - spanOf(log, params.windows[i]!, nowMs))
    }
  },

  commit(log, params, nowMs, { units, leaseMs }) {
    log.trim(nowMs)
    // Other limits may read the log over longer windows. It keeps records for the longest window, plus the lease.
    const longestMs = Math.max(log.keepMs - log.lease.leaseMs, ...params.windows)
    if (leaseMs > 0) {
      const { lease } = log
      const inForce = nowMs < lease.leasedUntil + log.keepMs
      log.lease = {
        leaseMs: inForce ? Math.max(lease.leaseMs, leaseMs) : leaseMs,
        leasedUntil: Math.max(lease.leasedUntil, nowMs + leaseMs),
      }
    }
    log.keepMs = longestMs + log.lease.leaseMs
    log.append(nowMs, grainOf(nowMs, params.precision), Math.min(units, MAX_UNITS))
  },

  admit(log, params, nowMs, cost, used) {
    const { windows, limits } = params
    const { stamp, total, base, keepMs } = log
    let longestMs = 0
    let hasRoom = true
    let gone = 0
    for (let i = 0; i < windows.length; i++) {
      const windowMs = windows[i]!
      if (windowMs > longestMs) longestMs = windowMs
      const spanMs = windowMs < keepMs ? windowMs : keepMs
      const cut = nowMs - spanMs
      let before = base
      if (stamp <= cut) before = total
      else {
        const index = log.countUpTo(cut)
        if (index > 0) before = log.at(index - 1, TOTAL_COLUMN)
        // Records that have left the longest window are removed.
        if (spanMs === keepMs) gone = index
      }
      used[i] = total - before
      if (total - before + cost > limits[i]!) hasRoom = false
    }
    if (keepMs > longestMs || log.isLeased) return undefined
    if (!hasRoom) return false
    if (stamp <= nowMs - keepMs) log.clear()
    else log.drop(gone)
    log.keepMs = longestMs
    log.append(nowMs, grainOf(nowMs, params.precision), cost)
    return true
  },

  retryAfter(log, params, i, nowMs, cost) {
    const limit = params.limits[i]!
    if (cost > limit) return Number.POSITIVE_INFINITY
    // This record contains the last unit that must expire. There is room once it leaves the window.
    const index = log.firstAbove(TOTAL_COLUMN, log.total + cost - limit - 1)
    return expiryOf(log, params.windows[i]!, log.at(index, STAMP_COLUMN)) - nowMs
  },

  resetAfter: (log, params, i, nowMs) => Math.max(0, expiryOf(log, params.windows[i]!, log.stamp) - nowMs),

  refund(log, params, nowMs, atMs, units) {
    const stamp = grainOf(atMs, params.precision)
    if (atMs < log.since || stamp <= nowMs - log.keepMs) return 0
    return log.subtract(stamp, units, refundable(params.records))
  },

  expiresAt: (log) => log.stamp + log.keepMs,

  charges: (log, params, i, nowMs, most) =>
    log.newestAfter(nowMs - spanOf(log, params.windows[i]!, nowMs), most),
}

/** How long charges currently count in this window. */
function spanOf(log: WindowLog, windowMs: number, nowMs: number): number {
  const { leaseMs, leasedUntil } = log.lease
  const leased = nowMs < leasedUntil + windowMs
  return Math.min(log.keepMs, leased ? windowMs + leaseMs : windowMs)
}

/** When a charge made at `stamp` stops counting in this window. */
function expiryOf(log: WindowLog, windowMs: number, stamp: number): number {
  if (!log.isLeased) return stamp + Math.min(log.keepMs, windowMs)
  const { leaseMs, leasedUntil } = log.lease
  const lease = Math.min(leaseMs, Math.max(0, leasedUntil - stamp))
  return stamp + Math.min(log.keepMs, windowMs + lease)
}

function grainOf(ms: number, precision: number): number {
  return precision === 1 ? ms : startOf(ms, precision)
}
