// Decides which proxies are trusted, and rejects framework settings that trust any client.

import { checkThat, invalidOption, type SlidegateError } from '../errors.ts'
import { type Network, Networks, parseNetwork } from './addresses.ts'
import { ipaddr } from './ipaddr.ts'

/**
 * Your proxies: their number (0 to 16), or their networks.
 *
 * An array may contain networks such as `10.0.0.0/8` or `2001:db8::/32`, single addresses, and the names `loopback`, `linklocal`
 * and `uniquelocal`.
 */
export type Trust = number | readonly string[]

/** Whether the address at this hop, counted from the server, belongs to a trusted proxy. */
export type IsTrusted = (address: string | undefined, hop: number) => boolean

/** Maximum number of proxies in a chain. */
export const MAX_HOPS = 16

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** Minimum prefix lengths for trusted networks. Shorter prefixes would include public addresses. */
const MIN_PREFIX = { ipv4: 8, ipv6: 16 }

/** Private networks with prefixes shorter than `MIN_PREFIX`. */
const PRIVATE = /* @__PURE__ */ ['fc00::/7', 'fe80::/10'].map((network) => ipaddr.IPv6.parseCIDR(network))

/** @throws {SlidegateError} `invalid_option`, including for public ranges */
export function trustOf(trust: unknown): IsTrusted {
  if (Number.isInteger(trust) && (trust as number) >= 0 && (trust as number) <= MAX_HOPS) {
    return (_, hop) => hop < (trust as number)
  }
  const right = `the number of your proxies, from 0 to ${MAX_HOPS}, or an array of their networks`
  checkThat(Array.isArray(trust), 'trust', trust, right)
  const networks = new Networks(trust.flatMap(networksOf))
  return (address) => networks.has(address)
}

function networksOf(text: unknown): readonly Network[] {
  if (typeof text === 'string' && Object.hasOwn(NAMED, text)) return NAMED[text]!.flatMap(networksOf)
  const network = parseNetwork(text, `trust (which also accepts ${Object.keys(NAMED).join(', ')})`)
  if (network[1] < MIN_PREFIX[network[0].kind()] && !isPrivate(network)) {
    throw invalidOption(
      `trust includes ${text}, a public range: clients in it could spoof their address; list only your proxies`,
      text,
    )
  }
  return [network]
}

function isPrivate([address, prefix]: Network): boolean {
  return (
    address instanceof ipaddr.IPv6 &&
    PRIVATE.some((network) => prefix >= network[1] && address.match(network))
  )
}

/** The error for a framework setting that trusts every client and so allows spoofed addresses. */
export function spoofableAddress(
  setting: string,
  remedy = 'set it to the addresses of your proxies',
): SlidegateError {
  return invalidOption(
    `${setting} trusts every client, so clients can spoof their address; ${remedy}, or set key`,
    true,
  )
}

/** Addresses reserved for documentation, which no proxy can have. */
const STRANGERS: readonly string[] = ['192.0.2.1', '2001:db8::1']

/** This is longer than any real chain of proxies. */
const MANY: number = 4 * MAX_HOPS

/** Whether a chain of unknown addresses is trusted. */
export function trustsEveryone(isTrusted: IsTrusted): boolean {
  return STRANGERS.some((address) => {
    for (let hop = 0; hop <= MANY; hop++) if (!isTrusted(address, hop)) return false
    return true
  })
}

/**
 * Returns the address that the framework reports. Throws if the framework's trust setting, which may change, trusts every client.
 */
export function unlessTrustsEveryone<Request>(
  setting: string,
  isTrustedOf: (request: Request) => IsTrusted,
  addressOf: (request: Request) => string | undefined,
): (request: Request) => string | undefined {
  let checked: IsTrusted | undefined
  return (request) => {
    const isTrusted = isTrustedOf(request)
    if (isTrusted !== checked) {
      if (trustsEveryone(isTrusted)) throw spoofableAddress(setting)
      checked = isTrusted
    }
    return addressOf(request)
  }
}

/**
 * Returns the address that a framework with an unreadable trust setting reports.
 *
 * Throws if the framework trusts a forged chain of unknown addresses. This is checked once per request
 * prototype, because requests with the same prototype share the setting.
 */
export function unlessSpoofed<Request extends { readonly ip?: string | undefined }>(
  setting: string,
): (request: Request) => string | undefined {
  const checked = new WeakSet<object>()
  return (request) => {
    const prototype: object = Object.getPrototypeOf(request)
    if (!checked.has(prototype)) {
      for (const stranger of STRANGERS) {
        const forged: Request = Object.create(request, { raw: { value: chainOf(stranger) } })
        if (forged.ip === CHAIN_END) throw spoofableAddress(setting)
      }
      checked.add(prototype)
    }
    return request.ip
  }
}

const CHAIN_END = '198.51.100.1'

function chainOf(stranger: string): object {
  const chain = [CHAIN_END, ...Array<string>(MANY).fill(stranger)].join(', ')
  return { headers: { 'x-forwarded-for': chain }, socket: { remoteAddress: stranger } }
}

/** Implements a binding's `proxySetting`. */
export function expressProxySetting(app: { get(setting: 'trust proxy'): unknown }): string | undefined {
  return app.get('trust proxy') === false ? "app.set('trust proxy', 1)" : undefined
}

/** Fastify sets `ips` on a request only if it trusts a proxy. */
export function fastifyProxySetting(request: object): string | undefined {
  return (request as { readonly ips?: unknown }).ips === undefined ? "Fastify's trustProxy: 1" : undefined
}
