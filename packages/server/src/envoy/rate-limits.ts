// START HERE: processes a rate limit request, from its rules to the response.

import type { Logger } from 'pino'
import type { Keys, Store } from 'slidegate'
import type { EnvoyConfig } from '../config/schema.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ServiceObserver } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import { decisionOf, headerWriterOf, responseOf } from './answer.ts'
import { Hits, Ignored } from './counters.ts'
import { decide } from './decide.ts'
import { type Domain, limiterNameOf } from './domain.ts'
import type { Domains } from './domains.ts'
import type { RateLimitRequest, RateLimitResponse } from './protocol.ts'
import type { Question } from './question.ts'
import { Requests } from './requests.ts'
import { type FailurePolicy, RuleLimiters } from './rule-limiters.ts'

interface RateLimitsOptions {
  readonly domains: Domains
  readonly config: EnvoyConfig
  readonly store: Store
  readonly observer: ServiceObserver
  readonly metrics: Metrics
  readonly log: Logger
  readonly maxDescriptors: number
}

/** Applies the rules of all domains to requests. */
export class RateLimits {
  readonly #store: Store
  readonly #observer: ServiceObserver
  readonly #hits: Hits
  readonly #ignored: Ignored
  readonly #requests: Requests
  readonly #limitersOf = new Map<string, RuleLimiters>()
  #domains: Domains
  #config: EnvoyConfig
  #headersOf: ReturnType<typeof headerWriterOf>

  constructor(options: RateLimitsOptions) {
    this.#store = options.store
    this.#observer = options.observer
    this.#hits = new Hits(options.metrics.registry)
    this.#ignored = new Ignored(options.metrics.registry, options.log)
    this.#requests = new Requests(options.maxDescriptors, this.#ignored)
    this.#domains = options.domains
    this.#config = options.config
    this.#headersOf = headerWriterOf(options.config.headers)
  }

  /** Replaces all rules at once. Earlier usage still counts. */
  reload(domains: Domains, config: EnvoyConfig): void {
    const isSamePolicy = JSON.stringify(policyOf(config)) === JSON.stringify(policyOf(this.#config))
    for (const before of this.#domains.all()) {
      const after = domains.get(before.name)
      if (isSamePolicy && after !== undefined) continue
      this.#limitersOf.get(before.name)?.retire()
      this.#limitersOf.delete(before.name)
    }
    this.#domains = domains
    this.#config = config
    this.#headersOf = headerWriterOf(config.headers)
  }

  close(): void {
    for (const limiters of this.#limitersOf.values()) limiters.close()
  }

  /**
   * @param isGone whether the client is no longer waiting for a response
   * @throws {ServiceError} {StoreUnavailableError} {SlidegateError}
   */
  async shouldRateLimit(
    request: RateLimitRequest,
    caller: Caller,
    isGone: () => boolean = () => false,
  ): Promise<RateLimitResponse | undefined> {
    const { domain: name, descriptors } = this.#requests.checked(request)
    const domain = this.#domains.get(name)
    mustReach(caller, name, domain)
    if (domain === undefined) {
      this.#ignored.note('domain', 'a request names a domain that no file declares; the request is allowed')
      return responseOf(
        descriptors.map(() => 'none'),
        false,
        [],
      )
    }
    const described = this.#requests.described(request, domain, this.#config)
    const questions = described.filter((each) => typeof each !== 'string')
    if (isGone()) return undefined
    const verdicts = await decide(this.#limiters(domain), questions)
    const decision = decisionOf(questions, verdicts)
    if (decision === undefined) return responseOf(described, false, [])
    this.#hits.count(domain.name, questions, verdicts.isDenied)
    if (verdicts.decision !== undefined) {
      this.#observer.decided?.(domain.limiterName, keysOf(questions), decision)
    }
    return responseOf(described, verdicts.isDenied, this.#headersOf(decision))
  }

  #limiters({ name, limiterName }: Domain): RuleLimiters {
    const known = this.#limitersOf.get(name)
    if (known !== undefined) return known
    const policy = policyOf(this.#config)
    const limiters = new RuleLimiters(limiterName, this.#store, policy, this.#observer)
    this.#limitersOf.set(name, limiters)
    return limiters
  }
}

function policyOf({ onStoreError, timeoutMs, instances }: EnvoyConfig): FailurePolicy {
  return {
    ...(onStoreError !== undefined && { onStoreError }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(instances !== undefined && { instances }),
  }
}

/** Rejects forbidden domains, with the same error whether or not they exist. */
function mustReach(caller: Caller, name: string, domain: Domain | undefined): void {
  const limiter = domain?.limiterName ?? limiterNameOf(name)
  if (caller.may(limiter)) return
  throw new ServiceError(403, 'forbidden', `${caller.name} is not allowed to use the limiter ${limiter}`)
}

function keysOf(questions: readonly Question[]): Keys {
  const keys: Record<string, string> = {}
  for (const { rule, key } of questions) keys[rule.id] = key
  return keys
}
