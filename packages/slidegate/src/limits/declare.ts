// Declares limits: shared options and their checks, and the origin of each limit.

import {
  checkNames,
  isBranded,
  type Names,
  SlidegateError,
  type SlidegateErrorCode,
  show,
  wrongValue,
} from '../errors.ts'
import { type Duration, formatDuration, parseWindow } from '../runtime/duration.ts'
import type { Limit, LogParams } from './limit.ts'

/** Maximum units per window: 2^40. */
export const MAX_LIMIT: number = 2 ** 40

/** Maximum units in a log. No limit comes near it. */
export const MAX_UNITS: number = 2 ** 46

const NAME = /^[A-Za-z0-9._-]{1,64}$/

/** Options shared by all kinds of limits. */
export interface NameOptions {
  /**
   * The limit's name in decisions, headers and metrics: 1 to 64 characters from `A-Z a-z 0-9 . _ -`.
   *
   * Default: a name such as `100-per-1m`. Required if two limits in a limiter would have the same name.
   */
  readonly name?: string
  /** Counts and reports but never denies, to try out a limit on live traffic. Default: false. */
  readonly shadow?: boolean
}

/** Options for limits on units per window. */
export interface LimitOptions extends NameOptions {
  /** Units allowed per window, an integer from 1 to 2^40. */
  readonly limit: number
  /** Length of the window, from 10 ms to 366 days. */
  readonly window: Duration
}

/** How a limit was created. */
export interface Origin {
  /** The limit as it was declared. */
  readonly limit: Limit
  readonly make?: (options: never) => Limit
  /** The limit's complete options as plain JSON, with the name of `make` as `kind`. */
  readonly options?: object
  /** Whether the limit has its default name, which contains its numbers. */
  readonly isUnnamed?: boolean
  /** Whether the limit only counts and never denies. */
  readonly isCount?: true
}

const origins = new WeakMap<Limit, Origin>()

// Marks declared limits, even for other copies of the package. Adapted limits don't have the mark.
const MADE = Symbol.for('slidegate.Limit')

export function originOf(limit: Limit): Origin {
  return origins.get(limit) ?? { limit }
}

/** Marks a limit as a variant of the limit with this origin. */
export function adapt(adapted: Limit, origin: Origin): Limit {
  origins.set(adapted, origin)
  return adapted
}

export function isDeclared(limit: unknown): limit is Limit {
  return limit !== undefined && origins.get(limit as Limit)?.limit === limit
}

/** Describes a value that isn't a limit, and how to fix it. */
export function showNoLimit(value: unknown, remedy: string): string {
  return isBranded(value, MADE)
    ? 'a limit from another copy of slidegate; list the copies with npm ls slidegate'
    : `${show(value)}; ${remedy}`
}

/** Declares a limit again with other options. Throws the same errors as the function that created it. */
export function redeclare(limit: Limit, changes: object): Limit {
  const { make, options } = originOf(limit)
  const { kind: _, ...own } = options as { readonly kind: string }
  return make!({ ...own, ...changes } as never)
}

export function limitIn(dimension: string, limit: Limit): Limit {
  return adapt({ ...limit, name: `${dimension}.${limit.name}` }, originOf(limit))
}

/** More units than a log can hold, so nothing is denied. */
const NO_LIMIT: number = 2 ** 50

export function countBy(limit: Limit): Limit {
  return adapt({ ...limit, limit: NO_LIMIT }, { ...originOf(limit), isCount: true })
}

/** @param given `kind` (the name of `make`) and all options except the shared ones; durations in milliseconds */
export function declareLimit<Options extends NameOptions>(
  limit: Omit<Limit, 'name' | 'shadow'>,
  make: (options: Options) => Limit,
  { name, shadow = false }: Options,
  given: { readonly kind: string } & { readonly [option: string]: string | number | boolean },
  defaultName: string = nameOf(limit.limit, limit.windowMs),
): Limit {
  const made: Limit = { ...limit, name: parseName(name ?? defaultName), shadow: parseFlag(shadow, 'shadow') }
  Object.freeze(Object.defineProperty(made, MADE, { value: true }))
  const options = Object.freeze({ ...given, name: made.name, shadow })
  return adapt(made, { limit: made, make, options, isUnnamed: name === undefined })
}

export function paramsOf(limits: readonly Limit[], precision: number, records = 1): LogParams {
  return {
    precision,
    records,
    windows: limits.map(({ windowMs }) => windowMs),
    limits: limits.map(({ limit }) => limit),
  }
}

export function checkForm<Options extends object>(
  options: Options,
  form: string,
  names: Names<Options>,
): void {
  if (typeof options !== 'object' || options === null) throw wrong('the limit', options, form)
  checkNames(options, names, 'invalid_limit', 'this limit')
}

export function checkDeclaration<Options extends NameOptions>(
  options: Options,
  form: string,
  names: Names<Omit<Options, keyof NameOptions>>,
): void {
  checkForm(options, form, { ...names, name: true, shadow: true } as Names<Options>)
}

/** Checks the options for a limit on units per window. `names` lists the options that only this kind has. */
export function parseLimitOptions<Options extends LimitOptions>(
  options: Options,
  names: Names<Omit<Options, keyof LimitOptions>>,
  most?: number,
): { readonly limit: number; readonly windowMs: number } {
  checkDeclaration<LimitOptions>(options, '{ limit, window }', { limit: true, window: true, ...names })
  return { limit: parseLimit(options.limit, 'the limit', most), windowMs: parseWindow(options.window) }
}

export function wrong(
  what: string,
  value: unknown,
  right: string,
  code: SlidegateErrorCode = 'invalid_limit',
): SlidegateError {
  return wrongValue(what, value, right, code)
}

/** Maximum limits per key. */
const MAX_LIMITS = 64

export function checkCount(limits: readonly unknown[]): void {
  if (limits.length <= MAX_LIMITS) return
  const message = `there are ${limits.length} limits; at most ${MAX_LIMITS} are allowed`
  throw new SlidegateError('invalid_limit', message, limits)
}

export function isLimit(limit: unknown, most: number = MAX_LIMIT): limit is number {
  return typeof limit === 'number' && Number.isInteger(limit) && limit >= 1 && limit <= most
}

export function parseLimit(limit: unknown, what = 'the limit', most: number = MAX_LIMIT): number {
  if (isLimit(limit, most)) return limit
  throw wrong(what, limit, `an integer from 1 to ${most === MAX_LIMIT ? '2^40' : most}`)
}

export function parseFlag(flag: unknown, what: string, code?: SlidegateErrorCode): boolean {
  if (typeof flag === 'boolean') return flag
  throw wrong(what, flag, 'true or false', code)
}

/** The first of 1, 2, 5, 10, 20, 50, ... ms that fits. */
export function finestPrecision(fits: (precisionMs: number) => boolean): number {
  for (let decade = 1; ; decade *= 10) {
    for (const step of [1, 2, 5]) if (fits(decade * step)) return decade * step
  }
}

export function nameOf(limit: number, windowMs: number): string {
  return `${limit}-per-${formatDuration(windowMs)}`
}

export function isName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name)
}

export function parseName(name: unknown): string {
  if (isName(name)) return name
  throw wrong('the name', name, '1 to 64 of A-Z a-z 0-9 . _ -', 'invalid_name')
}
