// What all kinds share: common options, checked, and the limits made of them.

import { checkNames, isBranded, type Names, SlidegateError, show } from '../errors.ts'
import { type Duration, formatDuration } from '../runtime/duration.ts'
import type { Limit } from './limit.ts'

/** Units that a window may admit at most: 2^40. */
export const MAX_LIMIT: number = 2 ** 40

/** Units that a log can hold: 2^46. Charges beyond it push out the oldest. No limit comes near it. */
export const MAX_UNITS: number = 2 ** 46

const NAME = /^[A-Za-z0-9._-]{1,64}$/

/** The options that every kind of limit has. */
export interface NameOptions {
  /**
   * What decisions, headers and metrics call the limit: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: like
   * `100-per-1m`. Give one where two limits of a limiter would otherwise have the same.
   */
  readonly name?: string
  /** Count and report, but never deny: to try a limit on live traffic. Default: false. */
  readonly shadow?: boolean
}

/** The options of kinds that admit so much per window. */
export interface LimitOptions extends NameOptions {
  /** Units admitted per window: an integer from 1 to 2^40. */
  readonly limit: number
  /** Length of the window, from 10 ms to 366 days. */
  readonly window: Duration
}

/** The function that made a limit, and its options: complete, plain JSON, with the function's name as `kind`. */
interface Declared {
  readonly make: (options: never) => Limit
  readonly options: object
}

/** Of each limit that was declared. Copies with other numbers aren't in it. */
const declared = new WeakMap<object, Declared>()

export function isDeclared(limit: unknown): limit is Limit {
  return declared.has(limit as object)
}

// A registered symbol, by which a limit of another copy of the package is known. No copy of the limit has it.
const MADE = Symbol.for('slidegate.Limit')

/** Shows a value that isn't a limit, and what to do about it. */
export function showNoLimit(value: unknown, remedy: string): string {
  return isBranded(value, MADE)
    ? 'a limit of another copy of slidegate; npm ls slidegate shows the copies'
    : `${show(value)}; ${remedy}`
}

/** The options that a limit was declared with, complete. `undefined` for all else. */
export function declaredOptions(limit: unknown): object | undefined {
  return declared.get(limit as object)?.options
}

/**
 * Declares a limit once more, with other options in place of some.
 *
 * @throws {SlidegateError} what the function that made it throws
 */
export function redeclare(limit: Limit, changes: object): Limit {
  const { make, options } = declared.get(limit)!
  const { kind: _, ...own } = options as MadeOf
  return make({ ...own, ...changes } as never)
}

/** More than a log holds: what is added is never denied. */
const NO_LIMIT: number = 2 ** 50

/** What a limiter has made of a limit for itself. */
export interface Adapted {
  /** As it was declared. */
  readonly limit: Limit
  /** Whether it only counts. */
  readonly isCount?: true
}

const adapted = new WeakMap<Limit, Adapted>()

export function adapt(made: Limit, from: Adapted): Limit {
  adapted.set(made, from)
  return made
}

/** What it was made of, if of another limit. */
export function adaptedFrom(limit: Limit): Adapted {
  return adapted.get(limit) ?? { limit }
}

/** The name that it was declared with, without that of a dimension. */
export function declaredName(limit: Limit): string {
  return adaptedFrom(limit).limit.name
}

/** Whether it was given a name: the default one holds its numbers. */
export function isNamed(limit: Limit): boolean {
  return !unnamed.has(adaptedFrom(limit).limit)
}

const unnamed = new WeakSet<Limit>()

/** The same limit for the keys of a dimension. */
export function limitIn(dimension: string, limit: Limit): Limit {
  return adapt({ ...limit, name: `${dimension}.${limit.name}` }, { limit })
}

/** The same, which counts and never denies. */
export function countBy(limit: Limit): Limit {
  return adapt({ ...limit, limit: NO_LIMIT }, { limit, isCount: true })
}

/** What a kind has found out about a limit: all but what {@link NameOptions} say. */
export type Unnamed = Omit<Limit, 'name' | 'shadow'>

/** Which function has made a limit, and of what: completed, durations in milliseconds, all but {@link NameOptions}. */
export interface MadeOf {
  readonly kind: string
  readonly [option: string]: string | number | boolean
}

/** Makes a limit of what its kind has checked, and of the options that all kinds share. `make` is the function that does so. */
export function declareLimit(
  limit: Unnamed,
  make: Declared['make'],
  madeOf: MadeOf,
  { name, shadow = false }: NameOptions,
  defaultName: string,
): Limit {
  if (typeof shadow !== 'boolean') {
    throw new SlidegateError('invalid_limit', `shadow is ${show(shadow)}; it must be true or false`, shadow)
  }
  const made: Limit = { ...limit, name: parseName(name ?? defaultName), shadow }
  Object.freeze(Object.defineProperty(made, MADE, { value: true }))
  if (name === undefined) unnamed.add(made)
  declared.set(made, { make, options: Object.freeze({ ...madeOf, name: made.name, shadow }) })
  return made
}

/** `invalid_limit` unless the options are an object, of which `form` says what must be in it, and that has no other names. */
export function checkDeclaration<Options extends object>(
  options: Options,
  form: string,
  names: Names<Options>,
): void {
  if (typeof options !== 'object' || options === null) {
    throw new SlidegateError('invalid_limit', `the limit is ${show(options)}; it must be ${form}`, options)
  }
  checkNames(options, names, 'invalid_limit', 'this limit')
}

/** Limits that a key is held to at most. */
const MAX_LIMITS = 64

/** `invalid_limit` for more limits than a key may be held to. */
export function checkCount(limits: readonly unknown[], what: string): void {
  if (limits.length <= MAX_LIMITS) return
  throw new SlidegateError(
    'invalid_limit',
    `${what} has ${limits.length} limits; there must be at most ${MAX_LIMITS}`,
    limits,
  )
}

/** A number of units as it was declared; `invalid_limit` unless it is an integer from 1 to `most`. */
export function parseLimit(limit: unknown, what = 'the limit', most: number = MAX_LIMIT): number {
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > most) {
    throw new SlidegateError(
      'invalid_limit',
      `${what} is ${show(limit)}; it must be an integer from 1 to ${most === MAX_LIMIT ? '2^40' : most}`,
      limit,
    )
  }
  return limit
}

/** Of 1, 2, 5, 10, 20, 50, ... ms the first that fits. */
export function finestPrecision(fits: (precisionMs: number) => boolean): number {
  for (let decade = 1; ; decade *= 10) {
    for (const step of [1, 2, 5]) if (fits(decade * step)) return decade * step
  }
}

/** What a limit is called unless told. */
export function nameOf(limit: number, windowMs: number): string {
  return `${limit}-per-${formatDuration(windowMs)}`
}

/** Whether it can be the name of a limit or limiter. */
export function isName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name)
}

/** The name of a limit or limiter; `invalid_name` unless it is 1 to 64 of `A-Z a-z 0-9 . _ -`. */
export function parseName(name: unknown): string {
  if (!isName(name)) {
    throw new SlidegateError(
      'invalid_name',
      `the name is ${show(name)}; it must be 1 to 64 of A-Z a-z 0-9 . _ -`,
      name,
    )
  }
  return name
}
