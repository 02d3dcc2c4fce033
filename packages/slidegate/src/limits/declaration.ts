// Converts limits to JSON and back.

import { checkThat, SlidegateError, show } from '../errors.ts'
import type { Duration } from '../runtime/duration.ts'
import type { CalendarWindowOptions } from './calendar.ts'
import { type ConcurrencyOptions, concurrency } from './concurrency.ts'
import { isDeclared, originOf, showNoLimit } from './declare.ts'
import { type DistinctOptions, distinct } from './distinct.ts'
import { type FixedWindowOptions, fixedWindow } from './fixed-window.ts'
import type { Limit } from './limit.ts'
import { type SlidingCounterOptions, slidingCounter } from './sliding-counter.ts'
import { type SlidingWindowOptions, slidingWindow } from './sliding-window.ts'
import { type TokenBucketOptions, tokenBucket } from './token-bucket.ts'

/** A limit as plain JSON: the function that creates it, and its options. */
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
 * Returns the declaration of a limit as plain JSON.
 *
 * The declaration is complete, so it creates the same limit even if a later version has other defaults. Durations are
 * in milliseconds.
 *
 * @throws {SlidegateError} `invalid_limit` if the value isn't a declared limit
 */
export function declarationOf(limit: Limit): Declaration {
  if (isDeclared(limit)) return originOf(limit).options as Declaration
  const remedy = `create it with one of ${KINDS.join(', ')}`
  throw new SlidegateError('invalid_limit', `the limit is ${showNoLimit(limit, remedy)}`, limit)
}

const TEXT = /^(?:([^=]*)=)?(\d{1,16})\/(\w+)$/

/**
 * Creates sliding windows from text: `10/1s, 600/1h` or, with names, `burst=10/1s, hourly=600/1h`.
 *
 * ```ts
 * const limiter = createLimiter({ limits: limitsOf('10/1s, 600/1h') })
 * ```
 *
 * @throws {SlidegateError} `invalid_limit` for other text, and the errors that `slidingWindow` throws
 */
export function limitsOf(text: string): readonly Limit[] {
  checkThat(typeof text === 'string', 'the text', text, "text such as '10/1s, 600/1h'", 'invalid_limit')
  return text.split(',').map(limitIn)
}

function limitIn(text: string): Limit {
  const [, name, limit, window] = TEXT.exec(text.trim()) ?? []
  const right = "text such as '100/1m' or 'login=100/1m'"
  checkThat(window !== undefined, 'the limit', text, right, 'invalid_limit')
  return slidingWindow({ limit: Number(limit), window: window as Duration, name })
}

/**
 * Creates a limit from its declaration, or a sliding window from text such as `100/1m`. The input is validated.
 *
 * @throws {SlidegateError} `invalid_limit` for an unknown kind, and the errors from the function that creates the limit
 */
export function limitOf(declaration: unknown): Limit {
  if (typeof declaration === 'string') return limitIn(declaration)
  const { kind, ...options } = (typeof declaration === 'object' ? (declaration ?? {}) : {}) as Declaration
  const make = makers.get(kind)
  if (make !== undefined) return make(options)
  const right =
    kind === 'calendarWindow'
      ? "a calendarWindow; import 'slidegate/calendar'"
      : `${show(declaration)}; it must be an object whose kind is one of ${KINDS.join(', ')}`
  throw new SlidegateError('invalid_limit', `the declared limit is ${right}`, declaration)
}

type Maker = (options: object) => Limit

// Listed by name, because bundlers rename functions.
const own = { slidingWindow, fixedWindow, slidingCounter, tokenBucket, concurrency, distinct }
const makers = new Map(Object.entries(own) as [string, Maker][])

/** Lets {@link limitOf} create limits of another kind. */
export function registerKind(kind: Declaration['kind'], make: (options: never) => Limit): void {
  makers.set(kind, make as Maker)
}

const KINDS = [...makers.keys(), 'calendarWindow']
