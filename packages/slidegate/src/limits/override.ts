import { adapt, adaptedFrom, declaredName, MAX_LIMIT } from './declare.ts'
import type { Limit } from './limit.ts'
import type { LimitSet } from './limit-set.ts'

// What an override is while it is in force. How it is stored: see override.lua.

/** Numbers in place of those that a limit was declared with. */
export interface LimitNumbers {
  /** Units per window, or whatever else the kind calls its limit. Not for token buckets. */
  readonly limit?: number
  /** Milliseconds. Only for sliding windows. */
  readonly windowMs?: number
  /** Only for token buckets: tokens that it holds. */
  readonly capacity?: number
  /** Only for token buckets: tokens that come back per interval. */
  readonly refill?: number
}

/** `''` for none, `exempt`, or JSON: numbers by the name of their limit. */
export type Rule = string

/** The rule of a key whose limits only count. */
export const EXEMPT: Rule = 'exempt'

/** The name of a limit that has no other beside it. */
export const ONLY = ''

/** What stands for a time that never comes. */
export const FOREVER: number = Number.MAX_SAFE_INTEGER

/** What is in force of an override, in milliseconds from now. */
export interface InForce {
  readonly rule: Rule
  /** Until the rule ends: {@link FOREVER} for never, 0 if there is none. */
  readonly ruleMs: number
  /** Until the block ends: {@link FOREVER} for never, 0 if the key isn't blocked. */
  readonly blockedMs: number
}

type Numbers = Readonly<Record<string, LimitNumbers>>

const NOTHING: Numbers = {}

/** The numbers that a rule has. */
export function numbersOf(rule: Rule): Numbers {
  return rule === '' || rule === EXEMPT ? NOTHING : (JSON.parse(rule) as Numbers)
}

const FIELDS: readonly string[] = ['limit', 'windowMs', 'capacity', 'refill']

/** Whether it can be stored and read: every number is an integer from 1 to 2^40. */
export function isRule(rule: string): boolean {
  if (rule === '' || rule === EXEMPT) return true
  try {
    const numbers: unknown = JSON.parse(rule)
    return isRecord(numbers) && Object.values(numbers).every(isNumbers)
  } catch {
    return false
  }
}

function isNumbers(value: unknown): boolean {
  if (!isRecord(value)) return false
  return Object.entries(value).every(([field, number]) => {
    const isNumber = Number.isInteger(number) && (number as number) >= 1 && (number as number) <= MAX_LIMIT
    return FIELDS.includes(field) && isNumber
  })
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The same set by other numbers, or one that only counts. Its logs stay. */
export function setInForce(set: LimitSet, rule: Rule): LimitSet {
  if (rule === '') return set
  let known = madeOf.get(set)
  if (known === undefined) {
    known = new Map()
    madeOf.set(set, known)
  }
  let made = known.get(rule)
  if (made === undefined) {
    if (known.size >= MAX_KNOWN) known.clear()
    made = makeSet(set, rule)
    known.set(rule, made)
  }
  return made
}

/** Rules that are remembered of each set. */
const MAX_KNOWN = 256

const madeOf = new WeakMap<LimitSet, Map<Rule, LimitSet>>()

function makeSet(set: LimitSet, rule: Rule): LimitSet {
  const isExempt = rule === EXEMPT
  const numbers = numbersOf(rule)
  const limits = set.limits.map((limit) => {
    const changed = isExempt ? { ...limit, shadow: true } : renumbered(limit, numbersFor(set, limit, numbers))
    return changed === undefined ? limit : adapt(changed, adaptedFrom(limit))
  })
  const logs = set.logs.map((log) => {
    if (log.role !== 'count') return log
    const params = log.kind.params(log.serves.map((i) => limits[i]!))
    return { ...log, params, shadow: log.shadow || isExempt }
  })
  return { ...set, limits, logs, isOverridable: false }
}

function numbersFor(set: LimitSet, limit: Limit, numbers: Numbers): LimitNumbers | undefined {
  const name = declaredName(limit)
  if (Object.hasOwn(numbers, name)) return numbers[name]
  return set.limits.length === 1 ? numbers[ONLY] : undefined
}

/** The limit by these numbers; nothing where they aren't for its kind, or its log has no room for them. */
export function renumbered(limit: Limit, numbers: LimitNumbers | undefined): Limit | undefined {
  if (numbers === undefined) return undefined
  const { kind } = limit
  if (kind.renumber !== undefined) return kind.renumber(limit, numbers)
  const { limit: units, ...others } = numbers
  if (units === undefined || Object.keys(others).length > 0) return undefined
  return units <= mostOf(limit) ? { ...limit, limit: units } : undefined
}

/** The greatest that it may become. */
export function mostOf(limit: Limit): number {
  return limit.kind.most?.(limit) ?? MAX_LIMIT
}

/** Names of a rule that change none of these limits. */
export function unusedNames(limits: readonly Limit[], rule: Rule): string[] {
  const numbers = numbersOf(rule)
  return Object.keys(numbers).filter(
    (name) =>
      !limits.some((limit) => {
        const isMeant = declaredName(limit) === name || (name === ONLY && limits.length === 1)
        return isMeant && renumbered(limit, numbers[name]) !== undefined
      }),
  )
}

/** What a rule calls these limits. */
export function namesOf(limits: readonly Limit[]): string[] {
  return limits.map(declaredName)
}
