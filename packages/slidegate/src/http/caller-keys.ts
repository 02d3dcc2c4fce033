// Keys of callers, by their address or by something else that was verified. Each other kind has a prefix, so a user with the
// name of an address is still somebody else. Callers without one share a key, the bare prefix: nobody gets around a limit by
// leaving something out.
//
// Use verified values only. A caller who may send any user, session or API key chooses a new key for each request: look it up
// first, and limit those that are unknown by their address.
import ipaddr from 'ipaddr.js'
import { invalidOption, show } from '../errors.ts'
import { sha256 } from '../runtime/platform.ts'
import { isIPv4, readAddress } from './addresses.ts'

/** The one key of all callers whose address is missing or cannot be read: limited together, never let past. */
export const UNKNOWN_ADDRESS = 'unknown'

/** How much of an address names a caller. */
export interface AddressKeyOptions {
  /**
   * Leading bits of an IPv6 address that name a caller, from 1 to 128. Within its network a caller picks addresses at will.
   * Choose 56 or 48 if callers own larger ones. IPv4 addresses are never masked. Default: 64, the smallest network.
   */
  readonly ipv6Prefix?: number
}

/**
 * The limiter key of a client address: `203.0.113.7`, or the network of an IPv6 address, `2001:db8:1:2::/64`.
 *
 * All spellings of an address have one key. IPv4 that is mapped into IPv6, or translated by NAT64 (`64:ff9b::/96`), is IPv4.
 * Anything else, such as an address with a port, shares {@link UNKNOWN_ADDRESS}.
 */
export function addressKey(address: string | undefined, options: AddressKeyOptions = {}): string {
  const { ipv6Prefix = 64 } = options
  checkPrefix(ipv6Prefix)
  if (typeof address !== 'string') return UNKNOWN_ADDRESS
  if (isIPv4(address)) return address
  // A server that listens on IPv6 too sees IPv4 callers like this.
  if (address.startsWith(MAPPED) && isIPv4(address.slice(MAPPED.length))) return address.slice(MAPPED.length)
  return networkOf(address, ipv6Prefix)
}

/** @throws {SlidegateError} `invalid_option` */
export function checkPrefix(ipv6Prefix: unknown): void {
  if (!Number.isInteger(ipv6Prefix) || (ipv6Prefix as number) < 1 || (ipv6Prefix as number) > 128) {
    throw invalidOption(
      `ipv6Prefix is ${show(ipv6Prefix)}; it must be a whole number of bits from 1 to 128`,
      ipv6Prefix,
    )
  }
}

const MAPPED = '::ffff:'

/** A cache: reading an address takes longer than deciding a request. */
const keysOf = new Map<string, string>()
const MAX_KEPT = 4096

function networkOf(address: string, prefix: number): string {
  const spelling = `${address}/${prefix}`
  let key = keysOf.get(spelling)
  if (key === undefined) {
    key = readNetwork(address, prefix)
    // New addresses without end empty the cache; they can't make it grow.
    if (keysOf.size === MAX_KEPT) keysOf.clear()
    if (spelling.length <= MAX_SPELLING) keysOf.set(spelling, key)
  }
  return key
}

/** No address is longer. */
const MAX_SPELLING = 64

function readNetwork(address: string, prefix: number): string {
  const read = readAddress(address)
  if (read === undefined) return UNKNOWN_ADDRESS
  if (read instanceof ipaddr.IPv4) return read.toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${read}/${prefix}`)}/${prefix}`
}

/** `user:42`, for a user who is logged in; `user` for all others. */
export function userKey(id: string | number | bigint | null | undefined): string {
  return id === null || id === undefined || id === '' ? 'user' : `user:${id}`
}

/** `session:` and a hash of the session's id, so the secret is in no store; `session` without one. */
export function sessionKey(id: string | null | undefined): string {
  return secretKey('session', id)
}

/** `api-key:` and a hash of an API key or a bearer token; `api-key` without one. */
export function apiKeyKey(apiKey: string | null | undefined): string {
  return secretKey('api-key', apiKey)
}

const MAX_EMAIL = 320

/** `email:` and the address in NFKC, trimmed and in lower case; `email` if it's no string, empty, or over 320 characters. */
export function emailKey(email: unknown): string {
  if (typeof email !== 'string' || email.length > MAX_EMAIL) return 'email'
  // Lower case may compose anew.
  const address = email.toWellFormed().normalize('NFKC').toLowerCase().normalize('NFKC').trim()
  return address === '' ? 'email' : `email:${address}`
}

/** A request whose route the router of Express or Fastify has matched. */
export interface RoutedRequest {
  readonly route?: { readonly path?: unknown } | undefined
  readonly routeOptions?: { readonly url?: string | undefined } | undefined
}

/**
 * `route:/users/:id`, the matched route, however the URL is spelled (`//users/7`, `/USERS/7;x`); `route` if none matched.
 *
 * Express knows it only in middleware of the route, and without the path where the router is mounted: pass that as `mount`.
 */
export function routeKey({ route, routeOptions }: RoutedRequest, mount = ''): string {
  const path = routeOptions?.url ?? route?.path
  return path === undefined ? 'route' : `route:${mount}${String(path)}`
}

function secretKey(what: string, secret: string | null | undefined): string {
  if (typeof secret !== 'string' || secret === '') return what
  return `${what}:${sha256(secret)}`
}
