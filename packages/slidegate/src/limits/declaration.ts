// Limits as JSON: what they were made of, and limits made from that.

import { SlidegateError, show } from '../errors.ts'
import type { CalendarWindowOptions } from './calendar.ts'
import { type ConcurrencyOptions, concurrency } from './concurrency.ts'
import { isDeclared, originOf, showNoLimit } from './declare.ts'
import { type DistinctOptions, distinct } from './distinct.ts'
import { type FixedWindowOptions, fixedWindow } from './fixed-window.ts'
import type { Limit } from './limit.ts'
import { type SlidingCounterOptions, slidingCounter } from './sliding-counter.ts'
import { type SlidingWindowOptions, slidingWindow } from './sliding-window.ts'
import { type TokenBucketOptions, tokenBucket } from './token-bucket.ts'

/** A limit as plain JSON: the function that makes it, and its options. */
export type Declaration =
  | ({ readonly kind: 'slidingWindow' } & SlidingWindowOptions)
  | ({ readonly kind: 'fixedWindow' } & FixedWindowOptions)
  /** Needs an import of `slidegate/calendar`. */
  | ({ readonly kind: 'calendarWindow' } & CalendarWindowOptions)
  | ({ readonly kind: 'slidingCounter' } & SlidingCounterOptions)
  | ({ readonly kind: 'tokenBucket' } & TokenBucketOptions)
  | ({ readonly kind: 'concurrency' } & ConcurrencyOptions)
  | ({ readonly kind: 'distinct' } & DistinctOptions)

/**
 * The declaration of a limit as plain JSON.
 *
 * It is complete, with durations in milliseconds. So it makes the same limit even if a later version has other defaults.
 *
 * @throws {SlidegateError} `invalid_limit` if it isn't a declared limit
 */
export function declarationOf(limit: Limit): Declaration {
  if (isDeclared(limit)) return originOf(limit).options as Declaration
  const remedy = `it must be made by ${KINDS.join(', ')}`
  throw new SlidegateError('invalid_limit', `the limit is ${showNoLimit(limit, remedy)}`, limit)
}

/**
 * Makes the limit of a declaration. Checks it as if a stranger had written it.
 *
 * @throws {SlidegateError} `invalid_limit` for an unknown kind, and what the function that makes the limit throws
 */
export function limitOf(declaration: unknown): Limit {
  const { kind, ...options } = (typeof declaration === 'object' ? (declaration ?? {}) : {}) as Declaration
  const make = makers.get(kind)
  if (make !== undefined) return make(options)
  throw new SlidegateError(
    'invalid_limit',
    kind === 'calendarWindow'
      ? "the declared limit is a calendarWindow; import 'slidegate/calendar'"
      : `the declared limit is ${show(declaration)}; it must be an object whose kind is ${KINDS.join(', ')}`,
    declaration,
  )
}

type Maker = (options: object) => Limit

// By name, since bundlers rename functions.
const makers = new Map<string, Maker>(
  Object.entries({ slidingWindow, fixedWindow, slidingCounter, tokenBucket, concurrency, distinct }) as [
    string,
    Maker,
  ][],
)

/** Lets {@link limitOf} make limits of another kind. */
export function registerKind(kind: Declaration['kind'], make: (options: never) => Limit): void {
  makers.set(kind, make as Maker)
}

const KINDS = [...makers.keys(), 'calendarWindow']
