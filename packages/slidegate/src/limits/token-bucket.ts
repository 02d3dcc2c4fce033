// A kind of limit: a bucket of tokens that refills evenly. It is GCRA, the generic cell rate algorithm (ITU-T I.371).
//
// A log stores the debt: how far the bucket was from full after its last charge. Debts are counted in parts of a token.
// A token has as many parts as the interval has milliseconds, so each millisecond adds `refill` parts, and all
// arithmetic is exact.

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

/** The capacity of a token bucket, and its refill rate. */
export interface TokenBucketOptions extends NameOptions {
  /**
   * Maximum tokens in the bucket, and the largest burst: an integer from 1 to 2^40.
   *
   * The capacity times the interval in milliseconds is at most 2^52. For an interval of one day, that is 52 million tokens.
   */
  readonly capacity: number
  /** Tokens added per interval, spread evenly over it: an integer from 1 to 2^40. */
  readonly refill: number
  /** The interval for `refill`, from 10 ms to 366 days. An empty bucket must fill within 366 days. */
  readonly interval: Duration
}

/**
 * A bucket of `capacity` tokens. Each unit takes one token. Over each `interval`, `refill` tokens are added evenly.
 *
 * Stores four numbers per key. In any `T` milliseconds, it allows at most `capacity + floor(T * refill / interval)` units. The
 * limit's `limit` is the capacity. Its `windowMs` is the time in which an empty bucket fills.
 *
 * - A refund returns only tokens that can't have been refilled since the charge.
 * - `charge` may leave the bucket in debt for up to 366 days.
 * - If the capacity or the refill changes, tokens that were taken stay taken. A lower refill takes effect from the next charge.
 *   If the interval changes, the bucket starts full.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`
 */
export function tokenBucket(options: TokenBucketOptions): Limit {
  const names = { capacity: true, refill: true, interval: true } as const
  checkDeclaration(options, '{ capacity, refill, interval }', names)
  const capacity = parseLimit(options.capacity, 'the capacity')
  const refill = parseLimit(options.refill, 'the refill')
  const intervalMs = parseWindow(options.interval, 'the interval')
  const most = Math.floor(MAX_PARTS / intervalMs)
  if (capacity > most) {
    const right = `with an interval of ${formatDuration(intervalMs)} it must be an integer from 1 to ${most}`
    const message = `the capacity is ${capacity}; ${right}. Use a shorter interval for a larger capacity`
    throw new SlidegateError('invalid_limit', message, capacity)
  }
  const windowMs = Math.ceil((capacity * intervalMs) / refill)
  if (windowMs > MAX_WINDOW_MS) {
    const fills = `a bucket of ${capacity} takes ${formatDuration(windowMs)} to fill; it must fill within 366d`
    const message = `the interval is ${show(options.interval)}, so ${fills}`
    throw new SlidegateError('invalid_duration', message, options.interval)
  }
  const rule: Rate = { refill, parts: intervalMs }
  const made = { kind: tokenBucketKind, limit: capacity, windowMs, precisionMs: 1, rule }
  const given = { kind: 'tokenBucket', capacity, refill, interval: intervalMs }
  return declareLimit(made, tokenBucket, options, given, nameOf(refill, intervalMs))
}

/** Maximum parts in a debt, so that all arithmetic is exact. */
const MAX_PARTS: number = 2 ** 52

/** Each millisecond adds `refill` parts. One token consists of `parts` parts. */
interface Rate {
  readonly refill: number
  readonly parts: number
}

interface BucketParams extends LogParams, Rate {
  /** The largest possible debt: a whole number of tokens, at least the capacity. */
  readonly mostDebt: number
}

interface Bucket {
  /** When the bucket was last charged. */
  stamp: number
  /** How far the bucket was from full at that time, in parts of a token. */
  debt: number
  /** The time of the first charge since the bucket was full or its refill changed. */
  since: number
  /** The refill at the last charge. */
  refill: number
}

const tokenBucketKind: Kind<Bucket, BucketParams> = {
  tag: 't',
  isOneByOne: true,
  isUnshared: true,

  // The size of a part doesn't depend on the capacity or the refill.
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
    if (Object.keys(others).length > 0 || capacity > mostOf(limit) || windowMs > MAX_WINDOW_MS)
      return undefined
    return { ...limit, limit: capacity, windowMs, rule: { refill, parts } satisfies Rate }
  },

  share(limit, processes) {
    const { refill, parts } = limit.rule as Rate
    const capacity = Math.max(1, Math.floor(limit.limit / processes))
    // The refill is divided, too. If the number of parts is capped, the bucket refills slightly faster.
    const rule: Rate = { refill, parts: Math.min(parts * processes, Math.floor(MAX_PARTS / capacity)) }
    return { ...limit, limit: capacity, rule }
  },

  words: ({ refill, parts, mostDebt, limits }) => [refill, parts, mostDebt, ...limits],

  read(next, { refill }, nowMs) {
    const debt = next()
    const isOther = debt < 0
    return { stamp: nowMs, debt: isOther ? -1 - debt : debt, since: 0, refill: isOther ? next() : refill }
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
    // If the clock or the refill was changed after the charge, the number of refilled tokens is unknown.
    if (atMs > bucket.stamp || atMs < bucket.since || bucket.refill !== params.refill) return 0
    // Doesn't return tokens that were refilled since the charge: without the charge, the bucket might have been full all along.
    const owed = units * params.parts - Math.max(0, nowMs - atMs) * params.refill
    const debt = debtAt(bucket, params, nowMs)
    const returned = Math.max(0, Math.min(owed, debt))
    if (returned === 0) return 0
    bucket.debt = debt - returned
    bucket.stamp = bucket.debt === 0 ? 0 : Math.max(bucket.stamp, nowMs)
    return Math.ceil(returned / params.parts)
  },

  // The refill in force may be higher, but never lower: see `refillOf`.
  expiresAt: ({ stamp, debt, refill }) => (debt === 0 ? stamp : stamp + Math.ceil(debt / refill)),
}

/** Returns the debt at `nowMs`. The stamp may be later than that, because refunds don't restamp logs. */
function debtAt(bucket: Bucket, params: BucketParams, nowMs: number): number {
  return Math.max(0, bucket.debt - Math.max(0, nowMs - bucket.stamp) * refillOf(bucket, params))
}

function refillOf(bucket: Bucket, params: BucketParams): number {
  return Math.max(bucket.refill, params.refill)
}
