// Declares limits: the options that all kinds share, their checks, and where each limit comes from.

import {
  checkNames,
  isBranded,
  type Names,
  SlidegateError,
  type SlidegateErrorCode,
  show,
} from '../errors.ts'
import { type Duration, formatDuration } from '../runtime/duration.ts'
import type { Limit, LogParams } from './limit.ts'

/** Units that a window may admit at most: 2^40. */
export const MAX_LIMIT: number = 2 ** 40

/** Units that a log can hold: 2^46. More push out the oldest. No limit comes near it. */
export const MAX_UNITS: number = 2 ** 46

const NAME = /^[A-Za-z0-9._-]{1,64}$/

/** The options that every kind of limit has. */
export interface NameOptions {
  /**
   * The name of the limit in decisions, headers and metrics: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: like
   * `100-per-1m`. Required if two limits of a limiter would have the same name.
   */
  readonly name?: string
  /** Counts and reports, but never denies: to try a limit on live traffic. Default: false. */
  readonly shadow?: boolean
}

/** The options of kinds that limit units per window. */
export interface LimitOptions extends NameOptions {
  /** Units admitted per window: an integer from 1 to 2^40. */
  readonly limit: number
  /** Length of the window, from 10 ms to 366 days. */
  readonly window: Duration
}

/** Where a limit comes from. */
export interface Origin {
  /** The limit as it was declared. */
  readonly limit: Limit
  /** The function that made it. */
  readonly make?: (options: never) => Limit
  /** Its options: complete, plain JSON, with the name of `make` as `kind`. */
  readonly options?: object
  /** Whether it has its default name, which holds its numbers. */
  readonly isUnnamed?: boolean
  /** Whether it only counts. */
  readonly isCount?: true
}

const origins = new WeakMap<Limit, Origin>()

// A registered symbol, by which a limit of another copy of the package is known. No copy of the limit has it.
const MADE = Symbol.for('slidegate.Limit')

/** The origin of a limit, or of the one that it was adapted from. */
export function originOf(limit: Limit): Origin {
  return origins.get(limit) ?? { limit }
}

/** Marks a limit as another one with other numbers, or for another use. */
export function adapt(adapted: Limit, origin: Origin): Limit {
  origins.set(adapted, origin)
  return adapted
}

export function isDeclared(limit: unknown): limit is Limit {
  return limit !== undefined && origins.get(limit as Limit)?.limit === limit
}

/** Shows a value that isn't a limit, and what to do about it. */
export function showNoLimit(value: unknown, remedy: string): string {
  return isBranded(value, MADE)
    ? 'a limit of another copy of slidegate; npm ls slidegate shows the copies'
    : `${show(value)}; ${remedy}`
}

/** The name that it was declared with, without that of a dimension. */
export function declaredName(limit: Limit): string {
  return originOf(limit).limit.name
}

/**
 * Declares a limit once more, with some options changed.
 *
 * @throws {SlidegateError} what the function that made it throws
 */
export function redeclare(limit: Limit, changes: object): Limit {
  const { make, options } = originOf(limit)
  const { kind: _, ...own } = options as { readonly kind: string }
  return make!({ ...own, ...changes } as never)
}

/** The same limit for the keys of a dimension. */
export function limitIn(dimension: string, limit: Limit): Limit {
  return adapt({ ...limit, name: `${dimension}.${limit.name}` }, originOf(limit))
}

/** More than a log holds: nothing is denied. */
const NO_LIMIT: number = 2 ** 50

/** The same limit, which counts and never denies. */
export function countBy(limit: Limit): Limit {
  return adapt({ ...limit, limit: NO_LIMIT }, { ...originOf(limit), isCount: true })
}

/**
 * Makes a limit of what its kind has checked, and of the options that all kinds share.
 *
 * @param make the function that is called to declare such a limit
 * @param given `make`'s name as `kind`, and its own options: complete, with durations in milliseconds
 */
export function declareLimit<Options extends NameOptions>(
  limit: Omit<Limit, 'name' | 'shadow'>,
  make: (options: Options) => Limit,
  { name, shadow = false }: Options,
  given: { readonly kind: string } & { readonly [option: string]: string | number | boolean },
  defaultName: string = nameOf(limit.limit, limit.windowMs),
): Limit {
  const made: Limit = {
    ...limit,
    name: parseName(name ?? defaultName),
    shadow: parseFlag(shadow, 'shadow'),
  }
  Object.freeze(Object.defineProperty(made, MADE, { value: true }))
  const options = Object.freeze({ ...given, name: made.name, shadow })
  return adapt(made, { limit: made, make, options, isUnnamed: name === undefined })
}

/** Parameters of limits that share a log. */
export function paramsOf(limits: readonly Limit[], precision: number, records = 1): LogParams {
  return {
    precision,
    records,
    windows: limits.map(({ windowMs }) => windowMs),
    limits: limits.map(({ limit }) => limit),
  }
}

/** @throws {SlidegateError} `invalid_limit` unless the options are an object of this form, with no other names */
export function checkForm<Options extends object>(
  options: Options,
  form: string,
  names: Names<Options>,
): void {
  if (typeof options !== 'object' || options === null) throw wrong('the limit', options, form)
  checkNames(options, names, 'invalid_limit', 'this limit')
}

/** The same for a kind, with the names of its own options. */
export function checkDeclaration<Options extends NameOptions>(
  options: Options,
  form: string,
  names: Names<Omit<Options, keyof NameOptions>>,
): void {
  checkForm(options, form, { ...names, name: true, shadow: true } as Names<Options>)
}

/** The error for an option. */
export function wrong(
  what: string,
  value: unknown,
  right: string,
  code: SlidegateErrorCode = 'invalid_limit',
): SlidegateError {
  return new SlidegateError(code, `${what} is ${show(value)}; it must be ${right}`, value)
}

/** The most limits of a key. */
const MAX_LIMITS = 64

/** @throws {SlidegateError} `invalid_limit` if a key would have too many limits */
export function checkCount(limits: readonly unknown[], what: string): void {
  if (limits.length <= MAX_LIMITS) return
  throw new SlidegateError(
    'invalid_limit',
    `${what} has ${limits.length} limits; there must be at most ${MAX_LIMITS}`,
    limits,
  )
}

export function isLimit(limit: unknown, most: number = MAX_LIMIT): limit is number {
  return typeof limit === 'number' && Number.isInteger(limit) && limit >= 1 && limit <= most
}

/** A number of units. @throws {SlidegateError} `invalid_limit` unless it is an integer from 1 to `most` */
export function parseLimit(limit: unknown, what = 'the limit', most: number = MAX_LIMIT): number {
  if (isLimit(limit, most)) return limit
  throw wrong(what, limit, `an integer from 1 to ${most === MAX_LIMIT ? '2^40' : most}`)
}

/** @throws {SlidegateError} `invalid_limit` unless it is true or false */
export function parseFlag(flag: unknown, what: string): boolean {
  if (typeof flag === 'boolean') return flag
  throw wrong(what, flag, 'true or false')
}

/** The first of 1, 2, 5, 10, 20, 50, ... ms that fits. */
export function finestPrecision(fits: (precisionMs: number) => boolean): number {
  for (let decade = 1; ; decade *= 10) {
    for (const step of [1, 2, 5]) if (fits(decade * step)) return decade * step
  }
}

/** The default name of a limit. */
export function nameOf(limit: number, windowMs: number): string {
  return `${limit}-per-${formatDuration(windowMs)}`
}

/** Whether it can be the name of a limit or limiter. */
export function isName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name)
}

/** The name of a limit or limiter. @throws {SlidegateError} `invalid_name` unless it is 1 to 64 of `A-Z a-z 0-9 . _ -` */
export function parseName(name: unknown): string {
  if (isName(name)) return name
  throw wrong('the name', name, '1 to 64 of A-Z a-z 0-9 . _ -', 'invalid_name')
}
