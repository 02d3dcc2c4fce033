// Overrides: they change a key's limits, exempt the key, or block it. For the stored form, see override.lua.

import { adapt, isLimit, isName, MAX_LIMIT, originOf } from './declare.ts'
import type { Limit, LimitNumbers } from './limit.ts'
import { derived, type LimitSet } from './limit-set.ts'

/** The rule in an override: `''` for none, {@link EXEMPT}, or JSON with numbers by limit name. */
export type Rule = string

export const EXEMPT: Rule = 'exempt'

/** In a rule, the name that stands for a set's only limit. */
export const ONLY = ''

/** A time that is never reached. Not 2^53 - 1, which node-redis misreads. */
export const FOREVER: number = 2 ** 52

/** An override's rule and block, if they are in force now. */
export interface InForce {
  readonly rule: Rule
  /** Milliseconds until the rule ends. {@link FOREVER} if it never does, 0 without a rule. */
  readonly ruleMs: number
  /** Milliseconds until the block ends. {@link FOREVER} if it never does, 0 if the key isn't blocked. */
  readonly blockedMs: number
}

/** A stored override. A time is {@link FOREVER} if there is no end, and 0 if there is no rule or block. */
export interface Kept {
  readonly rule: Rule
  readonly endsAtMs: number
  readonly blockedUntilMs: number
}

/** Returns the rule and the block, if they haven't ended. `undefined` if both have. */
export function inForceAt({ rule, endsAtMs, blockedUntilMs }: Kept, nowMs: number): InForce | undefined {
  const ruleMs = rule === '' ? 0 : leftOf(endsAtMs, nowMs)
  const blockedMs = leftOf(blockedUntilMs, nowMs)
  if (ruleMs === 0 && blockedMs === 0) return undefined
  return { rule: ruleMs === 0 ? '' : rule, ruleMs, blockedMs }
}

function leftOf(endsAtMs: number, nowMs: number): number {
  return endsAtMs === FOREVER ? FOREVER : Math.max(0, endsAtMs - nowMs)
}

type Numbers = Readonly<Record<string, LimitNumbers>>

export function numbersOf(rule: Rule): Numbers {
  return rule === '' || rule === EXEMPT ? {} : (JSON.parse(rule) as Numbers)
}

/** Maximum characters in a rule. Even 64 limits need fewer. */
export const MAX_RULE = 8192

/** Whether a limiter could have written this rule. Lua might parse other JSON differently. */
export function isRule(rule: string): boolean {
  if (rule.length > MAX_RULE || !isReadable(rule)) return false
  const numbers = numbersOf(rule)
  const isPlain = rule === '' || rule === EXEMPT || JSON.stringify(numbers) === rule
  return isPlain && Object.keys(numbers).every((name) => name === ONLY || isName(name))
}

/** Whether {@link numbersOf} can read this rule. */
export function isReadable(rule: string): boolean {
  try {
    const isNumber = (one: unknown, name: string) => FIELDS.includes(name) && isLimit(one)
    return isRecordOf(numbersOf(rule), (numbers) => isRecordOf(numbers, isNumber))
  } catch {
    return false
  }
}

const FIELDS: readonly string[] = ['limit', 'windowMs', 'capacity', 'refill'] satisfies (keyof LimitNumbers)[]

function isRecordOf(value: unknown, isRight: (one: unknown, name: string) => boolean): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.entries(value).every(([name, one]) => isRight(one, name))
}

/** Applies a rule to a limit set: other numbers, or an exemption. The limits keep their logs. */
export function setInForce(set: LimitSet, rule: Rule): LimitSet {
  if (rule === '' || set.limits.length === 0) return set
  return derived(set, `rule ${rule}`, () => {
    const isExempt = rule === EXEMPT
    const numbers = numbersOf(rule)
    const limits = set.limits.map((limit) => {
      const changed = isExempt ? { ...limit, shadow: true } : renumber(limit, numbersFor(set, limit, numbers))
      return changed === undefined ? limit : adapt(changed, originOf(limit))
    })
    const logs = set.logs.map((log) => {
      if (log.role !== 'count') return log
      const params = log.kind.params(log.serves.map((i) => limits[i]!))
      return { ...log, params, shadow: log.shadow || isExempt }
    })
    return { ...set, limits, logs, isOverridable: false }
  })
}

/** Returns the limit's declared name, without the dimension. Rules use this name. */
export function declaredName(limit: Limit): string {
  return originOf(limit).limit.name
}

function numbersFor(set: LimitSet, limit: Limit, numbers: Numbers): LimitNumbers | undefined {
  const name = declaredName(limit)
  if (Object.hasOwn(numbers, name)) return numbers[name]
  return set.limits.length === 1 ? numbers[ONLY] : undefined
}

/** Returns the limit with these numbers. `undefined` if they don't apply to its kind or don't fit its log. */
export function renumber(limit: Limit, numbers: LimitNumbers | undefined): Limit | undefined {
  if (numbers === undefined) return undefined
  const { kind } = limit
  if (kind.renumber !== undefined) return kind.renumber(limit, numbers)
  const { limit: units, ...others } = numbers
  if (units === undefined || Object.keys(others).length > 0) return undefined
  return units <= mostOf(limit) ? { ...limit, limit: units } : undefined
}

export function mostOf(limit: Limit): number {
  return limit.kind.most?.(limit) ?? MAX_LIMIT
}

/** Returns the names in a rule that change none of these limits. */
export function unusedNames(limits: readonly Limit[], rule: Rule): string[] {
  const isMeant = (limit: Limit, name: string) =>
    declaredName(limit) === name || (name === ONLY && limits.length === 1)
  return Object.entries(numbersOf(rule))
    .filter(
      ([name, to]) => !limits.some((limit) => isMeant(limit, name) && renumber(limit, to) !== undefined),
    )
    .map(([name]) => name)
}
