// Warns about likely mistakes in an app: a proxy that isn't trusted, and a request that is charged twice.
import type { AnyKey } from '../key.ts'
import { warn } from '../runtime/platform.ts'
import { addressKey } from './caller-keys.ts'
import type { GuardOptions, HandlerArguments } from './options.ts'

/** How many requests each guard checks. Later requests aren't slowed down. */
const CHECKED = 10_000

const FORWARDING = ['x-forwarded-for', 'forwarded']

/** The part of a binding that the checks need. */
export interface SetupBinding<Args extends HandlerArguments> {
  /** Returns a header by its lowercase name. The values of a repeated header are joined. */
  header(name: string, ...args: Args): string | undefined
  /**
   * Returns the proxy setting to change, or `undefined` if a proxy is trusted. Bindings for frameworks without such a
   * setting omit this method.
   */
  proxySetting?(...args: Args): string | undefined
  /** Whether a request may intentionally pass the guard several times, as with GraphQL resolvers. Default: false. */
  readonly sharesRequests?: boolean
}

/** Checks a guard's first requests. */
export interface SetupChecks<Args extends HandlerArguments> {
  /** @param address the client's address, as the framework reports it */
  addressed(address: string | undefined, args: Args): void
  /** @param key the key that a request is charged to */
  charged(key: AnyKey, args: Args): void
}

/** Returns the checks for a guard, or `undefined` if warnings are off. */
export function setupChecks<Args extends HandlerArguments>(
  limiter: { readonly name: string },
  options: GuardOptions<Args>,
  binding: SetupBinding<Args>,
): SetupChecks<Args> | undefined {
  if (options.warnings === false) return undefined
  let addresses = CHECKED
  let charges = options.cost !== undefined || binding.sharesRequests === true ? 0 : CHECKED
  return {
    addressed(address, args) {
      if (addresses === 0) return
      addresses--
      const header = FORWARDING.find((name) => binding.header(name, ...args) !== undefined)
      if (header === undefined) return
      addresses = 0
      const setting = binding.proxySetting?.(...args)
      if (setting === undefined && binding.proxySetting !== undefined) return
      warn(
        'SLIDEGATE_UNTRUSTED_PROXY',
        limiter.name,
        `a request has the header ${header}, but no proxy is trusted, so all clients behind a proxy share the key ${addressKey(address)}. ` +
          `Use ${setting === undefined ? '' : `${setting} or `}address: { trust: n }, where n is the number of your proxies, or 0 if you have none.`,
      )
    },
    charged(key, [request]) {
      if (charges === 0) return
      charges--
      if (typeof request !== 'object' || request === null) return
      if (!isChargedAgain(request, options.store ?? limiter, JSON.stringify([limiter.name, key]))) return
      charges = 0
      warn(
        'SLIDEGATE_CHARGED_TWICE',
        limiter.name,
        'a request was charged twice. Use the limiter once per request, give each limiter its own name, or set cost.',
      )
    },
  }
}

/** The charges of each request. `by` is the limiter or store; `what` is the name and key. */
const chargesOf = new WeakMap<object, (readonly [by: object, what: string])[]>()

function isChargedAgain(request: object, by: object, what: string): boolean {
  const charges = chargesOf.get(request) ?? []
  const isAgain = charges.some((charge) => charge[0] === by && charge[1] === what)
  chargesOf.set(request, [...charges, [by, what]])
  return isAgain
}
