// Limit sets as JSON. They contain declarations, from which the service creates the same limits.

import { invalidOption, show, wrongValue } from '../../errors.ts'
import { type BanOptions, banLog, banOptionsOf } from '../../limits/ban.ts'
import { reservationLog } from '../../limits/concurrency.ts'
import { type Declaration, declarationOf, limitOf } from '../../limits/declaration.ts'
import { checkCount, countBy, limitIn, originOf } from '../../limits/declare.ts'
import type { Limit } from '../../limits/limit.ts'
import { type LimitSet, type Log, limitSet, withLog, withOverrides } from '../../limits/limit-set.ts'
import { MAX_WINDOW_MS, MIN_WINDOW_MS } from '../../runtime/duration.ts'
import { at, type Fields, fieldsIn, flag, integer, listIn, text } from './reading.ts'

/** Maximum characters in all cached sets together, which take up approximately 20 MB. */
const MAX_KNOWN = 2 ** 20

const LIMITER = /^[A-Za-z0-9._-]{1,64}(\/[A-Za-z0-9_-]{1,64})?$/
const limiterName = text((name) => LIMITER.test(name), 'a name, or name/dimension')
const reservationTtl = integer(MIN_WINDOW_MS, MAX_WINDOW_MS)

const written = new WeakMap<LimitSet, string>()

export function textOfSet(set: LimitSet): string {
  const known = written.get(set)
  if (known !== undefined) return known
  const { limiter, limits, isOverridable } = set
  const additions = additionsOf(set)
  const text = JSON.stringify({
    limiter,
    limits: limits.map(writtenLimit),
    ...(additions.length > 0 && { additions: additions.map(writtenAddition) }),
    ...(isOverridable && { isOverridable }),
  })
  written.set(set, text)
  return text
}

/** Omits the dimension from the limit's name, because the limiter's name contains it. */
function writtenLimit(limit: Limit): Declaration & { readonly isCount?: true } {
  const { limit: declared, isCount } = originOf(limit)
  return { ...declarationOf(declared), ...(isCount && { isCount }) }
}

function additionsOf({ logs }: LimitSet): readonly Log[] {
  return logs.filter(({ role }) => role !== 'count')
}

function writtenAddition(log: Log): object {
  return log.role === 'ban' ? { ban: banOptionsOf(log) } : { [log.role]: log.params.windows[0]! }
}

/** The number of limits and additions in a set. */
export function declaredIn(set: LimitSet): number {
  return set.limits.length + additionsOf(set).length
}

/** The number of limits and additions in untrusted JSON. */
export function declaredInJson(value: unknown): number {
  const { limits, additions = [] } = (value ?? {}) as Fields
  const lengthOf = (list: unknown) => (Array.isArray(list) ? list.length : 1)
  return lengthOf(limits) + lengthOf(additions)
}

export function limiterOf(name: string): string {
  return name.split('/', 1)[0]!
}

/** Throws if the caller isn't allowed to use this limiter. */
export type Authorize = (limiter: string) => void

/** A cache for the limit sets that callers have sent. */
export class KnownSets {
  readonly #sets = new Map<string, LimitSet>()
  #characters = 0

  of(value: unknown, authorize: Authorize): LimitSet {
    const fields = fieldsIn(value, 'the set', ['limiter', 'limits', 'additions', 'isOverridable'])
    const { limits, additions = [], isOverridable = false } = fields
    const limiter = limiterName(fields.limiter, 'limiter')
    authorize(limiterOf(limiter))
    const json = JSON.stringify(value)
    const known = this.#sets.get(json)
    if (known !== undefined) return known
    const made = setOf(limiter, limits, additions)
    const set = flag(isOverridable, 'isOverridable') ? withOverrides(made) : made
    this.#sets.set(json, set)
    this.#characters += json.length
    for (const oldest of this.#sets.keys()) {
      if (this.#characters <= MAX_KNOWN) break
      this.#sets.delete(oldest)
      this.#characters -= oldest.length
    }
    return set
  }
}

function setOf(limiter: string, limits: unknown, additions: unknown): LimitSet {
  const added = listIn(additions, 'additions', 0, 8).map(readAddition)
  let set = limitSet(limiter, readLimits(limits, limiter.split('/')[1]))
  for (const log of added) {
    if (set.logs.some(({ role }) => role === log.role)) {
      throw invalidOption(`the set has ${show(log.role)} more than once`, log.role)
    }
    set = withLog(set, log)
  }
  return set
}

const ADDITIONS = ['ban', 'reservations']

function readAddition(value: unknown): Log {
  const [[name, options] = [], ...others] = Object.entries(fieldsIn(value, 'the addition', ADDITIONS))
  if (name === undefined || others.length > 0) {
    throw wrongValue('the addition', value, `one of ${ADDITIONS.join(', ')}`)
  }
  if (name === 'reservations') return reservationLog(reservationTtl(options, name))
  return banLog(fieldsIn(options, 'ban', ['after', 'within', 'for', 'forgetAfter']) as unknown as BanOptions)
}

function readLimits(value: unknown, dimension: string | undefined): readonly Limit[] {
  const limits = listIn(value, 'limits', 0, 1000)
  checkCount(limits)
  return limits.map((each, i) => at(`limits[${i}]`, () => readLimit(each, dimension)))
}

function readLimit(value: unknown, dimension: string | undefined): Limit {
  const isLimit = typeof value === 'object' && value !== null
  const { isCount, ...declaration } = (isLimit ? value : {}) as { readonly isCount?: unknown }
  const limit = limitOf(isLimit ? declaration : value)
  if (isCount !== undefined && isCount !== true) throw wrongValue('isCount', isCount, 'true or omitted')
  const counting = isCount === true ? countBy(limit) : limit
  return dimension === undefined ? counting : limitIn(dimension, counting)
}
