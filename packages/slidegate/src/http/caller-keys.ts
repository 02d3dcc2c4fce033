// Limiter keys of callers: their address, user id, session, API key or email.
//
// All but addresses have a prefix, so they never collide. Callers without a value share a key, the bare prefix: leaving it out
// doesn't bypass a limit. Use verified values only, or callers choose a new key for each request: limit unknown ones by address.
import ipaddr from 'ipaddr.js'
import { invalidOption, show } from '../errors.ts'
import { sha256 } from '../runtime/platform.ts'
import { isIPv4, readAddress } from './addresses.ts'

/** The shared key of callers whose address is missing or invalid. */
export const UNKNOWN_ADDRESS = 'unknown'

/** Options of {@link addressKey}. */
export interface AddressKeyOptions {
  /**
   * Leading bits of an IPv6 address that make the key, from 1 to 128: within their network, callers pick addresses at will.
   * Choose 56 or 48 if callers own larger networks. IPv4 addresses are never masked. Default: 64, the smallest network.
   */
  readonly ipv6Prefix?: number
}

/**
 * Returns the limiter key of a client address: `203.0.113.7`, or for IPv6 its network, `2001:db8:1:2::/64`.
 *
 * All spellings of an address have one key. IPv4 that is mapped into IPv6, or translated by NAT64 (`64:ff9b::/96`), is IPv4.
 * Anything else, such as an address with a port, returns {@link UNKNOWN_ADDRESS}.
 */
export function addressKey(address: string | undefined, options: AddressKeyOptions = {}): string {
  const { ipv6Prefix = 64 } = options
  checkPrefix(ipv6Prefix)
  if (typeof address !== 'string') return UNKNOWN_ADDRESS
  if (isIPv4(address)) return address
  // How a server that listens on IPv6 sees IPv4 callers.
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

/** A cache: parsing an address takes longer than deciding a request. */
const keysOf = new Map<string, string>()
const MAX_KEPT = 4096

function networkOf(address: string, prefix: number): string {
  const cacheKey = `${address}/${prefix}`
  let key = keysOf.get(cacheKey)
  if (key === undefined) {
    key = readNetwork(address, prefix)
    // A flood of new addresses empties the cache; it can't grow it.
    if (keysOf.size === MAX_KEPT) keysOf.clear()
    if (cacheKey.length <= MAX_CACHED_LENGTH) keysOf.set(cacheKey, key)
  }
  return key
}

/** Addresses are shorter. */
const MAX_CACHED_LENGTH = 64

function readNetwork(address: string, prefix: number): string {
  const read = readAddress(address)
  if (read === undefined) return UNKNOWN_ADDRESS
  if (read instanceof ipaddr.IPv4) return read.toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${read}/${prefix}`)}/${prefix}`
}

/** `user:42` for a logged-in user, else `user`. */
export function userKey(id: string | number | bigint | null | undefined): string {
  return id === null || id === undefined || id === '' ? 'user' : `user:${id}`
}

/** `session:` and a hash of the session id, so no store has the secret; `session` without one. */
export function sessionKey(id: string | null | undefined): string {
  return secretKey('session', id)
}

/** `api-key:` and a hash of an API key or a bearer token; `api-key` without one. */
export function apiKeyKey(apiKey: string | null | undefined): string {
  return secretKey('api-key', apiKey)
}

const MAX_EMAIL = 320

/** `email:` and the address in NFKC, trimmed and in lower case; `email` if it is not a string, empty, or over 320 characters. */
export function emailKey(email: unknown): string {
  if (typeof email !== 'string' || email.length > MAX_EMAIL) return 'email'
  // Lower-casing may denormalize.
  const address = email.toWellFormed().normalize('NFKC').toLowerCase().normalize('NFKC').trim()
  return address === '' ? 'email' : `email:${address}`
}

/** A request that Express or Fastify has routed. */
export interface RoutedRequest {
  readonly route?: { readonly path?: unknown } | undefined
  readonly routeOptions?: { readonly url?: string | undefined } | undefined
}

/**
 * `route:/users/:id`, the matched route, however the URL is spelled (`//users/7`, `/USERS/7;x`); `route` if none matched.
 *
 * In Express, use it in middleware of the route, and pass the path of a mounted router as `mount`.
 */
export function routeKey({ route, routeOptions }: RoutedRequest, mount = ''): string {
  const path = routeOptions?.url ?? route?.path
  return path === undefined ? 'route' : `route:${mount}${String(path)}`
}

function secretKey(what: string, secret: string | null | undefined): string {
  if (typeof secret !== 'string' || secret === '') return what
  return `${what}:${sha256(secret)}`
}
