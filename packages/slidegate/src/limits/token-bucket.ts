// A kind of limit: a bucket of tokens that refills evenly.

import { SlidegateError, show } from '../errors.ts'
import { type Duration, formatDuration, MAX_WINDOW_MS, parseWindow } from '../runtime/duration.ts'
import { checkDeclaration, declareLimit, MAX_UNITS, type NameOptions, nameOf, parseLimit } from './declare.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import { Row, RowLogs, rowOf } from './logs.ts'
import { mostOf } from './override.ts'

/** How much may come at once, and how fast it comes back. */
export interface TokenBucketOptions extends NameOptions {
  /**
   * Tokens that the bucket holds, and so units that may come at once: an integer from 1 to 2^40. The capacity times the
   * interval in milliseconds is at most 2^52: 52 million at an interval of a day.
   */
  readonly capacity: number
  /** Tokens that come back per interval, evenly over it and not at its end: an integer from 1 to 2^40. */
  readonly refill: number
  /** What `refill` is for, from 10 ms to 366 days. An empty bucket has to be full again within 366 days. */
  readonly interval: Duration
}

/**
 * A bucket of `capacity` tokens, of which each unit takes one; `refill` of them come back per `interval`, evenly.
 * Four numbers per key, however large the limit. In any `T` milliseconds it admits at most
 * `capacity + floor(T * refill / interval)` units: with a capacity of 100 and a refill of 100 a minute, up to 200 in
 * one minute, and 100 in each one after it.
 *
 * A request waits until its tokens are there, to the millisecond. The limit's `limit` is the capacity, its `windowMs`
 * the time in which an empty bucket fills. A refund returns what cannot have come back by itself since the charge. What is
 * charged without asking may leave the bucket in debt, for as long as 366 days at most. The capacity and the refill can
 * change at any time: tokens that were taken stay taken. Since the last charge the greater of the refill then and the refill
 * now counts, so a lower one counts from the next charge on. A bucket whose interval changes begins full.
 *
 * The algorithm is GCRA, the generic cell rate algorithm (ITU-T I.371). Its one number, the theoretical arrival time, is
 * kept as two, the time of the last charge and the debt at that time, so that a clock that was set back is noticed. Two more
 * say since when it was charged and at which refill, so a refund never returns refilled tokens.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window`, `invalid_name`
 */
export function tokenBucket(options: TokenBucketOptions): Limit {
  checkDeclaration(options, '{ capacity, refill, interval }', {
    capacity: true,
    refill: true,
    interval: true,
    name: true,
    shadow: true,
  })
  const capacity = parseLimit(options.capacity, 'the capacity')
  const refill = parseLimit(options.refill, 'the refill')
  const intervalMs = parseWindow(options.interval, 'the interval')
  const rate: Rate = { refill, parts: intervalMs }
  const most = Math.floor(MAX_PARTS / intervalMs)
  if (capacity > most) {
    throw new SlidegateError(
      'invalid_limit',
      `the capacity is ${capacity}; with an interval of ${formatDuration(intervalMs)} it must be an integer from 1 to ` +
        `${most}. A shorter interval allows a larger one`,
      capacity,
    )
  }
  const windowMs = Math.ceil((capacity * rate.parts) / rate.refill)
  if (windowMs > MAX_WINDOW_MS) {
    throw new SlidegateError(
      'invalid_window',
      `the interval is ${show(options.interval)}, with which a bucket of ${capacity} takes ` +
        `${formatDuration(windowMs)} to fill; it must do so within 366d`,
      options.interval,
    )
  }
  return declareLimit(
    { kind: tokenBucketKind, limit: capacity, windowMs, precisionMs: 1, rule: rate },
    tokenBucket,
    { kind: 'tokenBucket', capacity, refill, interval: intervalMs },
    options,
    nameOf(refill, intervalMs),
  )
}

/** Parts of tokens that any bucket may be counted in: all of their sums and differences are exact. */
const MAX_PARTS: number = 2 ** 52

/** Each millisecond `refill` parts of a token come back. A token has as many parts as the interval has milliseconds. */
interface Rate {
  readonly refill: number
  readonly parts: number
}

interface BucketParams extends LogParams, Rate {
  /** The debt at which a charge saturates: whole tokens, and more than the bucket holds. */
  readonly mostDebt: number
}

class Bucket extends Row {
  /** When it was last charged. */
  get stamp(): number {
    return this.numbers[this.at]!
  }
  set stamp(stamp: number) {
    this.numbers[this.at] = stamp
  }

  /** What it then lacked of being full, in parts of a token. */
  get debt(): number {
    return this.numbers[this.at + 1]!
  }
  set debt(debt: number) {
    this.numbers[this.at + 1] = debt
  }

  /** The first charge since it was full, or since its refill changed. */
  get since(): number {
    return this.numbers[this.at + 2]!
  }
  set since(since: number) {
    this.numbers[this.at + 2] = since
  }

  /** At which refill it was last charged. */
  get refill(): number {
    return this.numbers[this.at + 3]!
  }
  set refill(refill: number) {
    this.numbers[this.at + 3] = refill
  }
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
      precision: 1,
      records: 1,
      windows: limits.map((limit) => limit.windowMs),
      limits: limits.map((limit) => limit.limit),
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
    // Less comes back, too. For a time beyond all bounds it comes back a little sooner.
    const rule: Rate = { refill, parts: Math.min(parts * processes, Math.floor(MAX_PARTS / capacity)) }
    return { ...limit, limit: capacity, rule }
  },

  words: ({ refill, parts, mostDebt, limits }) => [refill, parts, mostDebt, ...limits],

  read(next, { refill }, nowMs) {
    const debt = next()
    return debt < 0
      ? rowOf(new Bucket(), [nowMs, -1 - debt, 0, next()])
      : rowOf(new Bucket(), [nowMs, debt, 0, refill])
  },

  createLogs: () => new RowLogs(4, new Bucket()),

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
    charge(bucket, params, nowMs, units)
  },

  retryAfter(bucket, params, i, nowMs, cost) {
    const left = params.limits[i]! - cost
    if (left < 0) return Number.POSITIVE_INFINITY
    return Math.ceil((debtAt(bucket, params, nowMs) - left * params.parts) / refillOf(bucket, params))
  },

  resetAfter: (bucket, params, _i, nowMs) =>
    Math.ceil(debtAt(bucket, params, nowMs) / refillOf(bucket, params)),

  refund(bucket, params, nowMs, atMs, units) {
    // A charge by a clock that was set back since counts from another time than it says, and nobody knows what came back
    // at another refill.
    if (atMs > bucket.stamp || atMs < bucket.since || bucket.refill !== params.refill) return 0
    // Had it not been made, the bucket might have been full for all the time since, and no token come back.
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

// Debts are at most 2^52 parts. What is above 2^53 is rounded, but stays above it: it is then only compared.

function charge(bucket: Bucket, params: BucketParams, nowMs: number, units: number): void {
  const debt = debtAt(bucket, params, nowMs)
  if (debt === 0 || bucket.refill !== params.refill) bucket.since = nowMs
  bucket.debt = Math.min(debt + units * params.parts, params.mostDebt)
  bucket.stamp = nowMs
  bucket.refill = params.refill
}

/** Parts of tokens that the bucket lacks. A refund may come before a restamp, and so before the stamp. */
function debtAt(bucket: Bucket, params: BucketParams, nowMs: number): number {
  return Math.max(0, bucket.debt - Math.max(0, nowMs - bucket.stamp) * refillOf(bucket, params))
}

/** The refill since the last charge. */
function refillOf(bucket: Bucket, params: BucketParams): number {
  return Math.max(bucket.refill, params.refill)
}
