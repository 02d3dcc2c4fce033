// Validates a request, and finds the rule for each descriptor.

import type { EnvoyConfig } from '../config/schema.ts'
import { fits } from '../service/pattern.ts'
import { ServiceError } from '../service/service-error.ts'
import type { Uncounted } from './answer.ts'
import type { Ignored } from './counters.ts'
import { type Domain, type Entry, type Match, partOf, type Rule, ruleOf, UNITS, type Unit } from './domain.ts'
import type { Descriptor, RateLimitRequest } from './protocol.ts'
import { Question } from './question.ts'

/** Maximum number of hits per request. No limit allows more. */
const MAX_HITS = 2 ** 40

/** Maximum number of cached rules for limit overrides in requests. */
const MAX_OVERRIDES = 1024

const UNIT_OF = new Map<number, Unit>(
  Object.entries(UNITS).map(([unit, { number }]) => [number, unit as Unit]),
)

type Checked = Required<Pick<RateLimitRequest, 'domain' | 'descriptors'>>

/** Validates requests and matches their descriptors to rules. */
export class Requests {
  readonly #maxDescriptors: number
  readonly #ignored: Ignored
  readonly #overrides = new Map<string, Rule>()

  constructor(maxDescriptors: number, ignored: Ignored) {
    this.#maxDescriptors = maxDescriptors
    this.#ignored = ignored
  }

  /** @throws {ServiceError} `invalid_request` */
  checked({ domain = '', descriptors = [] }: RateLimitRequest): Checked {
    if (domain === '') throw invalid('the domain is empty; it must be a domain that a file declares')
    if (descriptors.length === 0) throw invalid('there are no descriptors; at least one is required')
    if (descriptors.length > this.#maxDescriptors) {
      throw invalid(
        `there are ${descriptors.length} descriptors; at most ${this.#maxDescriptors} are allowed`,
      )
    }
    descriptors.forEach(({ entries = [] }, index) => {
      if (entries.length === 0) throw invalid(`descriptor ${index} has no entries; at least one is required`)
      if (entries.some(({ key = '' }) => key === ''))
        throw invalid(`an entry in descriptor ${index} has no key`)
    })
    return { domain, descriptors }
  }

  /** Returns the rule for each descriptor. A rule can replace other rules in the same request. */
  described(
    { descriptors = [], hits_addend: hits = 0 }: RateLimitRequest,
    domain: Domain,
    config: EnvoyConfig,
  ): readonly (Question | Uncounted)[] {
    const isSettled = isOneOf(config.chargeOnStreamDone, domain.name)
    const found = descriptors.map((descriptor) => this.#match(domain, descriptor, config))
    const replaced = found.flatMap((match) => match?.rule.replaces ?? [])
    return found.map((match, index) => {
      if (match === undefined) return 'none'
      const { rule } = match
      if (rule.isUnlimited) return 'unlimited'
      if (rule.name !== '' && replaced.includes(rule.name)) return 'none'
      return this.#questionFor(match, descriptors[index]!, hits, isSettled)
    })
  }

  #questionFor(match: Match, descriptor: Descriptor, hitsOfAll: number, isSettled: boolean): Question {
    const { hits_addend: own, is_negative_hits: isNegative = false } = descriptor
    const hits = Math.min(own === undefined ? Math.max(1, hitsOfAll) : (own.value ?? 0), MAX_HITS)
    if (isNegative)
      this.#ignored.note(
        'negative_hits',
        'a request has negative hits, which are neither charged nor refunded',
      )
    if (isNegative || hits === 0) return new Question(match, 0, 'check')
    return new Question(match, hits, isSettled && own !== undefined ? 'settle' : 'charge')
  }

  #match(domain: Domain, { entries = [], limit }: Descriptor, config: EnvoyConfig): Match | undefined {
    const given = entries.every(isStorable) ? (entries as readonly Entry[]) : entries.map(storable)
    if (limit === undefined) return domain.match(given)
    if (config.limitOverrides) return this.#overridden(given, limit)
    this.#ignored.note(
      'limit',
      'a request has a limit override, which is ignored; set envoy.limitOverrides to apply it',
    )
    return domain.match(given)
  }

  #overridden(entries: readonly Entry[], limit: NonNullable<Descriptor['limit']>): Match {
    const { requests_per_unit: requestsPerUnit = 0, unit: number = 0 } = limit
    const unit = UNIT_OF.get(number)
    if (unit === undefined)
      throw invalid(`a limit has the unit ${number}; it must be a value of RateLimitUnit`)
    const keys = entries.map(({ key }) => key)
    const word = JSON.stringify([requestsPerUnit, unit, keys])
    const rule =
      this.#overrides.get(word) ??
      ruleOf(
        keys,
        {
          ...{ unit, requestsPerUnit, isUnlimited: false, isShadow: false, isQuota: false, name: '' },
          ...{ replaces: [], hasDetailedMetric: false, metadata: undefined },
        },
        'override',
      )
    this.#overrides.set(word, rule)
    if (this.#overrides.size > MAX_OVERRIDES) this.#overrides.delete(this.#overrides.keys().next().value!)
    return { rule, key: entries.map(({ key, value }) => partOf(key, value)).join('|'), metric: rule.path }
  }
}

function isOneOf(patterns: readonly string[] | undefined, domain: string): boolean {
  return patterns?.some((pattern) => fits(pattern, domain)) === true
}

type Given = NonNullable<Descriptor['entries']>[number]

function isStorable({ key, value }: Given): boolean {
  return key !== undefined && value !== undefined && key.isWellFormed() && value.isWellFormed()
}

/** Makes any entry countable by replacing characters that keys can't contain. */
function storable({ key = '', value = '' }: Given): Entry {
  return { key: key.toWellFormed(), value: value.toWellFormed() }
}

function invalid(message: string): ServiceError {
  return new ServiceError(400, 'invalid_request', message)
}
