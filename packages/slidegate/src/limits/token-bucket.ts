// A kind of limit: a bucket of tokens that refills evenly. GCRA, the generic cell rate algorithm (ITU-T I.371).
//
// Each unit takes a token, and `refill` tokens come back per interval. A log has the debt: what the bucket lacked of being full
// when it was last charged. Debts are counted in parts of a token, as many as the interval has milliseconds. So `refill` parts come
// back each millisecond, and all arithmetic is exact.
//
// Two more numbers make refunds safe: since when the bucket wasn't full, and the refill at the last charge. A refund never returns
// tokens that may have come back by themselves.

import { SlidegateError, show } from '../errors.ts'
import { type Duration, formatDuration, MAX_WINDOW_MS, parseWindow } from '../runtime/duration.ts'
import {
  checkDeclaration,
  declareLimit,
  MAX_UNITS,
  type NameOptions,
  nameOf,
  paramsOf,
  parseLimit,
} from './declare.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import { RowLogs } from './logs.ts'
import { mostOf } from './override.ts'

/** How many tokens a bucket holds, and how fast they come back. */
export interface TokenBucketOptions extends NameOptions {
  /**
   * Tokens that the bucket holds, and so the largest burst: an integer from 1 to 2^40. The capacity times the
   * interval in milliseconds is at most 2^52: 52 million at an interval of a day.
   */
  readonly capacity: number
  /** Tokens that come back per interval, evenly over it and not at its end: an integer from 1 to 2^40. */
  readonly refill: number
  /** The interval of `refill`, from 10 ms to 366 days. An empty bucket must be full again within 366 days. */
  readonly interval: Duration
}

/**
 * A bucket of `capacity` tokens. Each unit takes one, and `refill` come back per `interval`, evenly.
 *
 * A key has four numbers, however large the limit. In any `T` milliseconds the bucket admits at most
 * `capacity + floor(T * refill / interval)` units: with a capacity of 100 and a refill of 100 a minute, up to 200 in
 * one minute, and 100 in each one after it.
 *
 * - `retryAfterMs` is when the tokens are there, to the millisecond.
 * - The limit's `limit` is the capacity. Its `windowMs` is the time in which an empty bucket fills.
 * - A refund returns what can't have come back by itself since the charge.
 * - `charge` may leave the bucket in debt, for up to 366 days.
 * - The capacity and the refill can change at any time, and tokens that were taken stay taken. A lower refill counts from the
 *   next charge on. A bucket whose interval changes begins full.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`
 */
export function tokenBucket(options: TokenBucketOptions): Limit {
  checkDeclaration(options, '{ capacity, refill, interval }', {
    capacity: true,
    refill: true,
    interval: true,
  })
  const capacity = parseLimit(options.capacity, 'the capacity')
  const refill = parseLimit(options.refill, 'the refill')
  const intervalMs = parseWindow(options.interval, 'the interval')
  const rate: Rate = { refill, parts: intervalMs }
  const most = Math.floor(MAX_PARTS / intervalMs)
  if (capacity > most) {
    const right = `with an interval of ${formatDuration(intervalMs)} it must be an integer from 1 to ${most}`
    throw new SlidegateError(
      'invalid_limit',
      `the capacity is ${capacity}; ${right}. A shorter interval allows a larger one`,
      capacity,
    )
  }
  const windowMs = Math.ceil((capacity * rate.parts) / rate.refill)
  if (windowMs > MAX_WINDOW_MS) {
    throw new SlidegateError(
      'invalid_duration',
      `the interval is ${show(options.interval)}, with which a bucket of ${capacity} takes ` +
        `${formatDuration(windowMs)} to fill; it must do so within 366d`,
      options.interval,
    )
  }
  return declareLimit(
    { kind: tokenBucketKind, limit: capacity, windowMs, precisionMs: 1, rule: rate },
    tokenBucket,
    options,
    { kind: 'tokenBucket', capacity, refill, interval: intervalMs },
    nameOf(refill, intervalMs),
  )
}

/** The most parts in a debt: all sums and differences are exact. */
const MAX_PARTS: number = 2 ** 52

/** Each millisecond `refill` parts of a token come back. A token has as many parts as the interval has milliseconds. */
interface Rate {
  readonly refill: number
  readonly parts: number
}

interface BucketParams extends LogParams, Rate {
  /** The largest debt: whole tokens, and at least the capacity. */
  readonly mostDebt: number
}

interface Bucket {
  /** When it was last charged. */
  stamp: number
  /** What it then lacked of being full, in parts of a token. */
  debt: number
  /** The first charge since it was full, or since its refill changed. */
  since: number
  /** The refill when it was last charged. */
  refill: number
}

const tokenBucketKind: Kind<Bucket, BucketParams> = {
  tag: 't',

  isOneByOne: true,

  isUnshared: true,

  // Parts keep their meaning when the capacity or the refill changes.
  logName: (limit) => `t${(limit.rule as Rate).parts}`,

  params(limits) {
    const { refill, parts } = limits[0]!.rule as Rate
    const most = Math.min(MAX_PARTS, MAX_UNITS * parts, refill * MAX_WINDOW_MS)
    return {
      ...paramsOf(limits, 1),
      refill,
      parts,
      mostDebt: Math.max(most - (most % parts), ...limits.map(({ limit }) => limit * parts)),
    }
  },

  most: (limit) => Math.floor(MAX_PARTS / (limit.rule as Rate).parts),

  renumber(limit, { capacity = limit.limit, refill = (limit.rule as Rate).refill, ...others }) {
    const { parts } = limit.rule as Rate
    const windowMs = Math.ceil((capacity * parts) / refill)
    if (Object.keys(others).length > 0 || capacity > mostOf(limit)) return undefined
    return windowMs > MAX_WINDOW_MS
      ? undefined
      : { ...limit, limit: capacity, windowMs, rule: { refill, parts } satisfies Rate }
  },

  share(limit, processes) {
    const { refill, parts } = limit.rule as Rate
    const capacity = Math.max(1, Math.floor(limit.limit / processes))
    // Less comes back, too. At the bound of parts it comes back a little sooner.
    const rule: Rate = { refill, parts: Math.min(parts * processes, Math.floor(MAX_PARTS / capacity)) }
    return { ...limit, limit: capacity, rule }
  },

  words: ({ refill, parts, mostDebt, limits }) => [refill, parts, mostDebt, ...limits],

  read(next, { refill }, nowMs) {
    const debt = next()
    return debt < 0
      ? { stamp: nowMs, debt: -1 - debt, since: 0, refill: next() }
      : { stamp: nowMs, debt, since: 0, refill }
  },

  createLogs: () => new RowLogs<Bucket>('stamp', 'debt', 'since', 'refill'),

  newest: (bucket) => bucket.stamp,

  restamp(bucket, _params, nowMs) {
    bucket.stamp = nowMs
    bucket.since = Math.min(bucket.since, nowMs)
  },

  check(bucket, params, nowMs, used) {
    const tokens = Math.ceil(debtAt(bucket, params, nowMs) / params.parts)
    for (let i = 0; i < params.limits.length; i++) used[i] = tokens
  },

  commit(bucket, params, nowMs, { units }) {
    const debt = debtAt(bucket, params, nowMs)
    if (debt === 0 || bucket.refill !== params.refill) bucket.since = nowMs
    bucket.debt = Math.min(debt + units * params.parts, params.mostDebt)
    bucket.stamp = nowMs
    bucket.refill = params.refill
  },

  retryAfter(bucket, params, i, nowMs, cost) {
    const left = params.limits[i]! - cost
    if (left < 0) return Number.POSITIVE_INFINITY
    return Math.ceil((debtAt(bucket, params, nowMs) - left * params.parts) / refillOf(bucket, params))
  },

  resetAfter: (bucket, params, _i, nowMs) =>
    Math.ceil(debtAt(bucket, params, nowMs) / refillOf(bucket, params)),

  refund(bucket, params, nowMs, atMs, units) {
    // If the clock was set back or the refill changed since, nobody knows what came back.
    if (atMs > bucket.stamp || atMs < bucket.since || bucket.refill !== params.refill) return 0
    // Without the charge the bucket might have been full since then, and no token would have come back.
    const owed = units * params.parts - Math.max(0, nowMs - atMs) * params.refill
    const debt = debtAt(bucket, params, nowMs)
    const returned = Math.max(0, Math.min(owed, debt))
    if (returned === 0) return 0
    bucket.debt = debt - returned
    bucket.stamp = bucket.debt === 0 ? 0 : Math.max(bucket.stamp, nowMs)
    return Math.ceil(returned / params.parts)
  },

  // The current refill may be greater, never less.
  expiresAt: ({ stamp, debt, refill }) => (debt === 0 ? stamp : stamp + Math.ceil(debt / refill)),
}

/** The debt at a time. Refunds may come before a restamp, so the stamp may be later. */
function debtAt(bucket: Bucket, params: BucketParams, nowMs: number): number {
  return Math.max(0, bucket.debt - Math.max(0, nowMs - bucket.stamp) * refillOf(bucket, params))
}

/** The refill since the last charge. */
function refillOf(bucket: Bucket, params: BucketParams): number {
  return Math.max(bucket.refill, params.refill)
}
