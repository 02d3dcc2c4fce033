// The rules of forwardAuth: which one fits, and what it charges.

import type { AnyKey } from 'slidegate'
import { clientAddress } from 'slidegate/http'
import type { Config, LimiterConfig, RuleConfig } from '../config/schema.ts'
import { fits } from '../service/pattern.ts'
import { ServiceError } from '../service/service-error.ts'
import type { OriginalRequest } from './original-request.ts'
import { lowerCase } from './path.ts'
import { compileTemplate, type Template, type Value } from './template.ts'

/** What a request is counted by. */
export interface Charge {
  readonly limiter: string
  readonly key: AnyKey
  readonly cost: number | undefined
  readonly plan: string | undefined
  readonly deniedStatus: number
}

/** Of a request: what it is counted by, or that it passes uncounted. */
export type Ruling = Charge | 'allow'

/** What is wrong, where in the configuration, and what would be right. */
type ReportProblem = (path: readonly (string | number)[], message: string) => void

interface Rule {
  fits(request: OriginalRequest, path: string): boolean
  rule(request: OriginalRequest): Ruling
}

const DEFAULT_KEY = '{address}'
const DENIED = 429
const DIGITS = /^[1-9]\d{0,15}$/

/** The rules of `forwardAuth`, ready to be asked. */
export class Rules {
  readonly #rules: readonly Rule[]
  readonly #fromHeaders: boolean
  readonly #addressOf: Value

  constructor({ forwardAuth = {}, limiters }: Config, problem: ReportProblem) {
    const { rules = [], fromHeaders = false, trust = 1 } = forwardAuth
    this.#fromHeaders = fromHeaders
    this.#addressOf = addressReader(trust, (message) => problem(['forwardAuth', 'trust'], message))
    this.#rules = rules.map((rule, i) =>
      compileRule(rule, limiters, this.#addressOf, (path, message) =>
        problem(['forwardAuth', 'rules', i, ...path], message),
      ),
    )
  }

  /**
   * By the first rule that fits.
   *
   * @throws {ServiceError} `ambiguous_path`, where that depends on how the path is read; `no_rule`
   */
  rulingOf(request: OriginalRequest): Ruling {
    const [first, ...others] = new Set(
      request.readings.map((path) => this.#rules.find((rule) => rule.fits(request, path))),
    )
    if (others.length > 0) {
      throw new ServiceError(403, 'ambiguous_path', 'servers may take this path for others, of other rules')
    }
    if (first !== undefined) return first.rule(request)
    const charge = this.#fromHeaders ? chargeInHeaders(request, this.#addressOf) : undefined
    if (charge !== undefined) return charge
    throw new ServiceError(
      403,
      'no_rule',
      'no rule of forwardAuth fits; a last rule "allow: true" lets all others pass',
    )
  }
}

/** All that is wrong with `forwardAuth` beyond its form. */
export function checkRules(config: Config, problem: ReportProblem): void {
  new Rules(config, problem)
}

function compileRule(
  { when = {}, limiter, allow = false, key = DEFAULT_KEY, cost, plan, deniedStatus = DENIED }: RuleConfig,
  limiters: Config['limiters'],
  addressOf: Value,
  problem: ReportProblem,
): Rule {
  const hosts = when.host === undefined ? undefined : hostPattern(when.host)
  const paths =
    when.path === undefined ? undefined : pathPattern(when.path, (m) => problem(['when', 'path'], m))
  const methods = when.method === undefined ? undefined : methodsOf(when.method)
  const isFitting = (request: OriginalRequest, path: string) =>
    (hosts === undefined || fits(hosts, request.host)) &&
    (methods === undefined || methods.has(request.method)) &&
    (paths === undefined || fits(paths, path) || fits(paths, otherEnd(path)))
  if (allow) {
    if (limiter !== undefined) problem(['allow'], 'a rule has either a limiter or allow: true')
    return { fits: isFitting, rule: () => 'allow' }
  }
  if (limiter === undefined) problem([], 'a rule needs a limiter, or allow: true')
  if (countsValues(limiters[limiter ?? ''])) {
    problem(['limiter'], 'it has a distinct limit, which counts values that a gateway does not tell')
  }
  const keyOf = compileKey(key, addressOf, limiters[limiter ?? ''], (path, m) => problem(['key', ...path], m))
  const template = (text: string, name: string) => compileTemplate(text, addressOf, (m) => problem([name], m))
  const costs = typeof cost === 'string' ? template(cost, 'cost') : undefined
  const plans = plan === undefined ? undefined : template(plan, 'plan')
  return {
    fits: isFitting,
    rule: (request) => ({
      limiter: limiter!,
      key: keyOf(request),
      cost: costs === undefined ? (cost as number | undefined) : costOf(costs.whole(request)),
      plan: plans?.whole(request),
      deniedStatus,
    }),
  }
}

function compileKey(
  key: NonNullable<RuleConfig['key']>,
  addressOf: Value,
  limiter: LimiterConfig | undefined,
  problem: ReportProblem,
): (request: OriginalRequest) => AnyKey {
  const dimensions = limiter?.dimensions && Object.keys(limiter.dimensions)
  if (typeof key === 'string') {
    if (dimensions)
      problem([], `the limiter has dimensions; a key for each is needed: ${dimensions.join(', ')}`)
    const template = compileTemplate(key, addressOf, (m) => problem([], m))
    return (request) => template.text(request)
  }
  if (limiter !== undefined && dimensions === undefined)
    problem([], 'the limiter has no dimensions; a text is needed')
  const templates = Object.entries(key).map(([dimension, text]): readonly [string, Template] => {
    if (dimensions?.includes(dimension) === false)
      problem([dimension], `there is no such dimension; there are: ${dimensions.join(', ')}`)
    return [dimension, compileTemplate(text, addressOf, (m) => problem([dimension], m))]
  })
  const missing = dimensions?.filter((dimension) => !Object.hasOwn(key, dimension)) ?? []
  if (missing.length > 0) problem([], `dimensions without a key: ${missing.join(', ')}`)
  return (request) =>
    Object.fromEntries(templates.map(([dimension, each]) => [dimension, each.text(request)]))
}

function countsValues({ limits = [], plans = {} }: LimiterConfig = {}): boolean {
  const sets = [limits, ...Object.values(plans).map((plan) => plan.limits ?? [])]
  return sets.flat().some(({ kind }) => kind === 'distinct')
}

function addressReader(trust: number | string[], problem: (message: string) => void): Value {
  try {
    const read = clientAddress({ trust })
    return (request) => read(request.message)
  } catch (error) {
    problem((error as Error).message)
    return () => undefined
  }
}

function hostPattern(host: string): string {
  return host.toLowerCase().replace(/\.$/, '')
}

/** Patterns are written in the characters that paths have once they are decoded. */
function pathPattern(path: string, problem: (message: string) => void): string {
  if (!/^[/*]/.test(path)) problem('a path begins with a slash, or with *')
  if (/[?#]/.test(path)) problem('paths are compared without what follows ? or #')
  return lowerCase(Buffer.from(path).toString('latin1'))
}

/** Most servers answer HEAD as they do GET, but for the body. */
function methodsOf(methods: string | readonly string[]): ReadonlySet<string> {
  const names = [methods].flat().map((method) => method.toUpperCase())
  return new Set(names.includes('GET') ? [...names, 'HEAD'] : names)
}

/** With a slash at its end, or without. */
function otherEnd(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : `${path}/`
}

function chargeInHeaders(request: OriginalRequest, addressOf: Value): Charge | undefined {
  const limiter = request.told('x-slidegate-limiter', '')
  if (limiter === '') return undefined
  const key = request.told('x-slidegate-key', '') || addressOf(request)!
  const cost = costOf(request.told('x-slidegate-cost', '') || undefined)
  return { limiter, key, cost, plan: undefined, deniedStatus: DENIED }
}

/** One that is left out is 1. */
function costOf(text: string | undefined): number | undefined {
  if (text === undefined || DIGITS.test(text)) return text === undefined ? undefined : Number(text)
  throw new ServiceError(400, 'invalid_cost', 'the cost must be a whole number from 1')
}
