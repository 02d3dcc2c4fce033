// Limit sets as JSON: written, and read once each.

import { invalidOption, SlidegateError, show } from '../../errors.ts'
import { type BanOptions, banLog, banOptionsOf } from '../../limits/ban.ts'
import { type Declaration, declarationOf, limitOf } from '../../limits/declaration.ts'
import { adaptedFrom, checkCount, countBy, limitIn } from '../../limits/declare.ts'
import type { Limit } from '../../limits/limit.ts'
import { type ExtraLog, type LimitSet, limitSet, withLog, withOverrides } from '../../limits/limit-set.ts'
import { reservationLog } from '../../limits/reservations.ts'
import { MAX_WINDOW_MS, MIN_WINDOW_MS } from '../../runtime/duration.ts'
import { at, fieldsIn, flagIn, integerIn, listIn, textIn, wrong } from './reading.ts'

// Limit sets as JSON, and back: what they were made of, so that the service makes them by the same functions.

/** Characters of sets that are remembered: some 20 MB of sets. */
const MAX_KNOWN = 2 ** 20

const LIMITER = /^[A-Za-z0-9._-]{1,64}(\/[A-Za-z0-9_-]{1,64})?$/

/** In the order of the set's additions. */
type WrittenAddition = { readonly ban: object } | { readonly reservations: number }

const written = new WeakMap<LimitSet, string>()

/** A limit set as JSON. */
export function textOfSet(set: LimitSet): string {
  let text = written.get(set)
  if (text === undefined) {
    const { limiter, limits, additions, isOverridable } = set
    text = JSON.stringify({
      limiter,
      limits: limits.map(writtenLimit),
      ...(additions.length > 0 && { additions: additions.map(writtenAddition) }),
      ...(isOverridable && { isOverridable }),
    })
    written.set(set, text)
  }
  return text
}

/** Its dimension is told by the name of the limiter. */
function writtenLimit(limit: Limit): Declaration & { readonly isCount?: true } {
  const { limit: declared, isCount } = adaptedFrom(limit)
  return { ...declarationOf(declared), ...(isCount && { isCount }) }
}

function writtenAddition(log: ExtraLog): WrittenAddition {
  switch (log.role) {
    case 'ban':
      return { ban: banOptionsOf(log) }
    case 'reservations':
      return { reservations: log.params.windows[0]! }
    default:
      throw new SlidegateError(
        'invalid_limit',
        `a log of ${show(log.name)} is none that a service knows`,
        log,
      )
  }
}

/** Counts the limits of a set and its additions, of one that was not read yet, too. */
export function declaredIn(set: unknown): number {
  const { limits, additions = [] } = (set ?? {}) as Partial<LimitSet>
  return lengthOf(limits) + lengthOf(additions)
}

function lengthOf(list: unknown): number {
  return Array.isArray(list) ? list.length : 1
}

/** The limiter whose set has this name: without any dimension. */
export function limiterOf(name: string): string {
  return name.split('/', 1)[0]!
}

/** Throws for a limiter that is not to be reached. */
export type Authorize = (limiter: string) => void

/** Limit sets of others, made once however often they are told. */
export class KnownSets {
  readonly #sets = new Map<string, LimitSet>()
  #characters = 0

  /**
   * @param authorize is given the limiter's name, without any dimension
   * @throws {SlidegateError} for what is no set, and what `authorize` throws
   */
  of(value: unknown, authorize: Authorize): LimitSet {
    const told = fieldsIn(value, 'the set', ['limiter', 'limits', 'additions', 'isOverridable'])
    const { limiter, limits, additions = [], isOverridable = false } = told
    const name = textIn(
      limiter,
      'limiter',
      (text) => LIMITER.test(text),
      'a name, perhaps with / and a dimension',
    )
    const dimension = name.split('/')[1]
    authorize(limiterOf(name))
    const text = JSON.stringify(value)
    const known = this.#sets.get(text)
    if (known !== undefined) return known
    const made = setOf(name, dimension, limits, additions)
    const set = flagIn(isOverridable, 'isOverridable') ? withOverrides(made) : made
    this.#keep(text, set)
    return set
  }

  #keep(text: string, set: LimitSet): void {
    this.#sets.set(text, set)
    this.#characters += text.length
    for (const oldest of this.#sets.keys()) {
      if (this.#characters <= MAX_KNOWN) return
      this.#sets.delete(oldest)
      this.#characters -= oldest.length
    }
  }
}

function setOf(
  limiter: string,
  dimension: string | undefined,
  limits: unknown,
  additions: unknown,
): LimitSet {
  const told = listIn(additions, 'additions', 0, 8).map(readAddition)
  let set = limitSet(limiter, readLimits(limits, dimension))
  for (const log of told) set = withNew(set, log)
  return set
}

function withNew(set: LimitSet, log: ExtraLog): LimitSet {
  if (!set.logs.some(({ role }) => role === log.role)) return withLog(set, log)
  throw invalidOption(`there are two logs of ${show(log.role)}; there must be one`, log.role)
}

const ADDITIONS = ['ban', 'reservations']

function readAddition(value: unknown): ExtraLog {
  const fields = fieldsIn(value, 'the addition', ADDITIONS)
  const [name, ...others] = Object.keys(fields)
  if (name === undefined || others.length > 0)
    throw wrong('the addition', value, `one of ${ADDITIONS.join(', ')}`)
  const told = fields[name]
  if (name === 'reservations') return reservationLog(integerIn(told, name, MIN_WINDOW_MS, MAX_WINDOW_MS))
  return banLog(fieldsIn(told, 'ban', ['after', 'within', 'for', 'forgetAfter']) as unknown as BanOptions)
}

function readLimits(value: unknown, dimension: string | undefined): readonly Limit[] {
  const limits = listIn(value, 'limits', 0, 1000)
  checkCount(limits, 'limits')
  return limits.map((each, i) => at(`limits[${i}]`, () => readLimit(each, dimension)))
}

function readLimit(value: unknown, dimension: string | undefined): Limit {
  const isLimit = typeof value === 'object' && value !== null
  const { isCount, ...declaration } = (isLimit ? value : {}) as { readonly isCount?: unknown }
  const limit = limitOf(isLimit ? declaration : value)
  if (isCount !== undefined && isCount !== true) throw wrong('isCount', isCount, 'true, or left out')
  const counting = isCount === true ? countBy(limit) : limit
  return dimension === undefined ? counting : limitIn(dimension, counting)
}
