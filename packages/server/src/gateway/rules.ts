// The rules of forwardAuth. Finds the matching rule and its charge.

import type { AnyKey } from 'slidegate'
import { clientAddress } from 'slidegate/http'
import type { Config, LimiterConfig, RuleConfig } from '../config/schema.ts'
import { fits } from '../service/pattern.ts'
import { ServiceError } from '../service/service-error.ts'
import type { OriginalRequest } from './original-request.ts'
import { lowerCase } from './path.ts'
import { compileTemplate, type Template, type Value } from './template.ts'

/** The limiter, key and cost of a request. */
export interface Charge {
  readonly limiter: string
  readonly key: AnyKey
  readonly cost: number | undefined
  readonly plan: string | undefined
  readonly deniedStatus: number
}

/** The result of a rule: a charge, or admission without a charge. */
export type Ruling = Charge | 'allow'

/** Reports a problem at a place in the configuration. */
type ReportProblem = (path: readonly (string | number)[], message: string) => void

interface Rule {
  fits(request: OriginalRequest, path: string): boolean
  rule(request: OriginalRequest): Ruling
}

const DEFAULT_KEY = '{address}'
const DENIED = 429
const DIGITS = /^[1-9]\d{0,15}$/

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
   * Applies the first matching rule.
   *
   * @throws {ServiceError} `ambiguous_path` if readings of the path match different rules; `no_rule` if no rule matches
   */
  rulingOf(request: OriginalRequest): Ruling {
    const [first, ...others] = new Set(
      request.readings.map((path) => this.#rules.find((rule) => rule.fits(request, path))),
    )
    if (others.length > 0) {
      throw new ServiceError(
        403,
        'ambiguous_path',
        'servers may interpret this path in several ways, which match different rules',
      )
    }
    if (first !== undefined) return first.rule(request)
    const charge = this.#fromHeaders ? chargeInHeaders(request, this.#addressOf) : undefined
    if (charge !== undefined) return charge
    throw new ServiceError(
      403,
      'no_rule',
      'no rule in forwardAuth matches; to allow all other requests, add "allow: true" as the last rule',
    )
  }
}

/** Reports problems in `forwardAuth` that the schema can't find. */
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
    if (limiter !== undefined)
      problem(['allow'], 'both limiter and allow: true are set; set only one of them')
    return { fits: isFitting, rule: () => 'allow' }
  }
  if (limiter === undefined) problem([], 'limiter is missing; set limiter or allow: true')
  if (countsValues(limiters[limiter ?? ''])) {
    problem(
      ['limiter'],
      "this limiter has a limit of the kind 'distinct', but a gateway can't send the values to count; choose another limiter",
    )
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
    if (dimensions) problem([], `the limiter has dimensions; set a key for each: ${dimensions.join(', ')}`)
    const template = compileTemplate(key, addressOf, (m) => problem([], m))
    return (request) => template.text(request)
  }
  if (limiter !== undefined && dimensions === undefined)
    problem([], 'the limiter has no dimensions; write the key as text')
  const templates = Object.entries(key).map(([dimension, text]): readonly [string, Template] => {
    if (dimensions?.includes(dimension) === false)
      problem([dimension], `unknown dimension; expected one of: ${dimensions.join(', ')}`)
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

/** Converts a pattern to the form of decoded paths: lowercase, with one character per byte. */
function pathPattern(path: string, problem: (message: string) => void): string {
  if (!/^[/*]/.test(path)) problem('a path must start with a slash or *')
  if (/[?#]/.test(path)) problem('a path must not contain ? or #: queries and fragments are not compared')
  return lowerCase(Buffer.from(path).toString('latin1'))
}

/** GET includes HEAD, because most servers handle both alike. */
function methodsOf(methods: string | readonly string[]): ReadonlySet<string> {
  const names = [methods].flat().map((method) => method.toUpperCase())
  return new Set(names.includes('GET') ? [...names, 'HEAD'] : names)
}

/** Adds or removes the trailing slash. */
function otherEnd(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : `${path}/`
}

function chargeInHeaders(request: OriginalRequest, addressOf: Value): Charge | undefined {
  const limiter = request.gatewayHeader('x-slidegate-limiter', '')
  if (limiter === '') return undefined
  const key = request.gatewayHeader('x-slidegate-key', '') || addressOf(request)!
  const cost = costOf(request.gatewayHeader('x-slidegate-cost', '') || undefined)
  return { limiter, key, cost, plan: undefined, deniedStatus: DENIED }
}

/** Parses a cost. Returns undefined for a missing cost, which means a cost of 1. */
function costOf(text: string | undefined): number | undefined {
  if (text === undefined || DIGITS.test(text)) return text === undefined ? undefined : Number(text)
  throw new ServiceError(400, 'invalid_cost', 'the cost must be a positive integer')
}
