import { SlidegateError, show } from '../errors.ts'
import { type ConcurrencyOptions, concurrency } from './concurrency.ts'
import { declaredOptions, showNoLimit } from './declare.ts'
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
  | ({ readonly kind: 'slidingCounter' } & SlidingCounterOptions)
  | ({ readonly kind: 'tokenBucket' } & TokenBucketOptions)
  | ({ readonly kind: 'concurrency' } & ConcurrencyOptions)
  | ({ readonly kind: 'distinct' } & DistinctOptions)

/**
 * What a limit was made of, in full: every option written out, durations in milliseconds, so that it makes the same limit
 * whatever the defaults are by then.
 *
 * @throws {SlidegateError} `invalid_limit` for what none of these functions has made
 */
export function declarationOf(limit: Limit): Declaration {
  const options = declaredOptions(limit)
  if (options === undefined) {
    throw new SlidegateError(
      'invalid_limit',
      `the limit is ${showNoLimit(limit, `it must be made by ${KINDS.join(', ')}`)}`,
      limit,
    )
  }
  return options as Declaration
}

/**
 * The limit of a declaration, perhaps one that others have written.
 *
 * @throws {SlidegateError} `invalid_limit` for an unknown kind, and what the function that makes the limit throws
 */
export function limitOf(declaration: unknown): Limit {
  const { kind, ...options } = (typeof declaration === 'object' ? (declaration ?? {}) : {}) as Declaration
  switch (kind) {
    case 'slidingWindow':
      return slidingWindow(options as SlidingWindowOptions)
    case 'fixedWindow':
      return fixedWindow(options as FixedWindowOptions)
    case 'slidingCounter':
      return slidingCounter(options as SlidingCounterOptions)
    case 'tokenBucket':
      return tokenBucket(options as TokenBucketOptions)
    case 'concurrency':
      return concurrency(options as ConcurrencyOptions)
    case 'distinct':
      return distinct(options as DistinctOptions)
    default:
      throw new SlidegateError(
        'invalid_limit',
        `the declared limit is ${show(declaration)}; it must be an object whose kind is ${KINDS.join(', ')}`,
        declaration,
      )
  }
}

const KINDS: readonly Declaration['kind'][] = [
  'slidingWindow',
  'fixedWindow',
  'slidingCounter',
  'tokenBucket',
  'concurrency',
  'distinct',
]
