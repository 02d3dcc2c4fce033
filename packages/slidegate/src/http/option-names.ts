// Checks the names of rateLimit's options. For another package's option, the error names the replacement.
import { checkOptions, invalidOption, type Names, show } from '../errors.ts'
import { COMMON_NAMES } from '../limiter/create-limiter.ts'

const LIMITS = 'limits'
const KEY = 'key: (request) => ...'
const DENIED = 'onDenied: (decision, ...) => ...'
const ALLOW_ERRORS = "rateLimit({ limiter: createLimiter({ ..., onStoreError: 'allow' }) })"

/** Replacements for options of express-rate-limit, @fastify/rate-limit and @nestjs/throttler, by name. */
const INSTEAD: Readonly<Record<string, string>> = {
  ...{ windowMs: LIMITS, limit: LIMITS, max: LIMITS, timeWindow: LIMITS, ttl: LIMITS, throttlers: LIMITS },
  ...{ keyGenerator: KEY, getTracker: KEY, generateKey: KEY },
  ...{
    handler: DENIED,
    message: DENIED,
    statusCode: DENIED,
    errorResponseBuilder: DENIED,
    onExceeded: DENIED,
  },
  ...{ passOnStoreError: ALLOW_ERRORS, skipOnError: ALLOW_ERRORS },
  standardHeaders: "headers, such as headers: 'draft-7'",
  legacyHeaders: "headers, such as headers: 'legacy'",
  skipSuccessfulRequests: "refundIf: 'successful'",
  skipFailedRequests: "refundIf: 'failed'",
  requestWasSuccessful: 'refundIf: (response) => ...',
  requestPropertyName: 'onAllowed: (decision, ...) => ...',
  identifier: 'slidingWindow({ name, ... })',
  ipv6Subnet: 'address: { trust, ipv6Prefix }',
  validate: 'warnings',
  allowList: 'allow (for networks) or skip',
  redis: 'store: redisStore(client)',
  storage: 'store: redisStore(client)',
  nameSpace: 'name',
  skipIf: 'skip',
}

const OF_LIMITERS: Readonly<Record<string, true>> = { ...COMMON_NAMES, dimensions: true, ban: true }

/** @throws {SlidegateError} `invalid_option` if the options aren't an object or have an unknown name */
export function checkRateLimit<Options extends object>(
  options: Options,
  names: Names<Options>,
  what = 'rateLimit',
): void {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || Object.hasOwn(names, name)) continue
    const instead = insteadOf(name, options as Readonly<Record<string, unknown>>)
    if (instead === undefined) continue
    throw invalidOption(`unknown option ${show(name)} for ${what}; use ${instead}`, name)
  }
  checkOptions(options, what, names)
}

function insteadOf(name: string, options: Readonly<Record<string, unknown>>): string | undefined {
  if (Object.hasOwn(OF_LIMITERS, name)) return `rateLimit({ limiter: createLimiter({ ..., ${name} }) })`
  if (!Object.hasOwn(INSTEAD, name)) return undefined
  if (INSTEAD[name] !== LIMITS) return INSTEAD[name]
  const [limit = 100] = [options.limit, options.max].filter((value) => typeof value === 'number')
  const [window = "'1m'"] = [options.windowMs, options.ttl].filter((value) => typeof value === 'number')
  return `limits: [slidingWindow({ limit: ${limit}, window: ${window} })]`
}
