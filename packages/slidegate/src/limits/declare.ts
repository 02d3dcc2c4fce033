import { type Duration, formatDuration, parseWindow } from '../duration.ts'
import { SlidegateError, show } from '../errors.ts'
import type { Kind, Limit } from './limit.ts'

/** Units that a window may admit at most: 2^40. */
export const MAX_LIMIT: number = 2 ** 40

/** Units that a log can hold: 2^46. Charges beyond it push out the oldest. No limit comes near it. */
export const MAX_UNITS: number = 2 ** 46

const NAME = /^[A-Za-z0-9._-]{1,64}$/

/** The options that every kind of limit has. */
export interface LimitOptions {
  /** Units admitted per window: an integer from 1 to 2^40. */
  readonly limit: number
  /** Length of the window, from 10 ms to 366 days. */
  readonly window: Duration
  /**
   * What decisions, headers and metrics call the limit: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: like
   * `100-per-1m`. Give one where two limits of a limiter would otherwise have the same.
   */
  readonly name?: string
  /** Count and report, but never deny: to try a limit on live traffic. Default: false. */
  readonly shadow?: boolean
}

/** What has been checked; a copy with other numbers has not. */
const declared = new WeakSet<object>()

export function isDeclared(limit: unknown): limit is Limit {
  return typeof limit === 'object' && limit !== null && declared.has(limit)
}

/** Checks what was declared and completes it. */
export function declareLimit(
  kind: Kind,
  options: LimitOptions,
  precisionOf: (limit: number, windowMs: number) => number,
): Limit {
  if (typeof options !== 'object' || options === null) {
    throw new SlidegateError(
      'invalid_limit',
      `the limit is ${show(options)}; it must be { limit, window }`,
      options,
    )
  }
  const { limit, window, shadow = false } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw new SlidegateError(
      'invalid_limit',
      `the limit is ${show(limit)}; it must be an integer from 1 to 2^40`,
      limit,
    )
  }
  const windowMs = parseWindow(window)
  if (typeof shadow !== 'boolean') {
    throw new SlidegateError('invalid_limit', `shadow is ${show(shadow)}; it must be true or false`, shadow)
  }
  const name = parseName(options.name ?? `${limit}-per-${formatDuration(windowMs)}`)
  const made: Limit = Object.freeze({
    name,
    limit,
    windowMs,
    precisionMs: precisionOf(limit, windowMs),
    shadow,
    kind,
  })
  declared.add(made)
  return made
}

/** The name of a limit or limiter; `invalid_name` unless it is 1 to 64 of `A-Z a-z 0-9 . _ -`. */
export function parseName(name: unknown): string {
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new SlidegateError(
      'invalid_name',
      `the name is ${show(name)}; it must be 1 to 64 of A-Z a-z 0-9 . _ -`,
      name,
    )
  }
  return name
}
