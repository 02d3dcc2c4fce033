// Limiter keys for callers: their address, user id, session, API key or email.
//
// All keys except addresses have a prefix, so they never collide. Callers without a value share one key, the bare prefix, so that
// omitting the value doesn't bypass a limit. Only use verified values. Otherwise, callers could choose a new key for each
// request. Limit unverified callers by address.

import { checkInteger, checkThat } from '../errors.ts'
import { sha256 } from '../runtime/platform.ts'
import { isIPv4, readAddress } from './addresses.ts'
import { ipaddr } from './ipaddr.ts'

/** The shared key for callers whose address is missing or invalid. */
export const UNKNOWN_ADDRESS = 'unknown'

/** Options for {@link addressKey}. */
export interface AddressKeyOptions {
  /**
   * How many leading bits of an IPv6 address the key includes, from 1 to 128. A client can use any address in its network, so
   * the key is the network, not the address. Use 56 or 48 if clients own larger networks. Has no effect on IPv4. Default: 64, a
   * single subnet.
   */
  readonly ipv6Prefix?: number
}

/**
 * Returns the limiter key for a client address, such as `203.0.113.7` or the network `2001:db8:1:2::/64`.
 *
 * All spellings of an address give the same key. IPv4-mapped and NAT64 addresses (`64:ff9b::/96`) are treated as IPv4. Anything
 * else, such as an address with a port, returns {@link UNKNOWN_ADDRESS}.
 */
export function addressKey(address: string | undefined, options: AddressKeyOptions = {}): string {
  const { ipv6Prefix = 64 } = options
  checkPrefix(ipv6Prefix)
  if (typeof address !== 'string') return UNKNOWN_ADDRESS
  if (isIPv4(address)) return address
  // On an IPv6 socket, an IPv4 caller has an address like ::ffff:203.0.113.7.
  if (address.startsWith(MAPPED) && isIPv4(address.slice(MAPPED.length))) return address.slice(MAPPED.length)
  return networkOf(address, ipv6Prefix)
}

/** @throws {SlidegateError} `invalid_option` */
export function checkPrefix(ipv6Prefix: unknown): void {
  checkInteger('ipv6Prefix', ipv6Prefix, 1, 128)
}

const MAPPED = '::ffff:'

/** A cache, since parsing an address takes longer than a decision. */
const keysOf = new Map<string, string>()
const MAX_KEPT = 4096

function networkOf(address: string, prefix: number): string {
  const cacheKey = `${address}/${prefix}`
  let key = keysOf.get(cacheKey)
  if (key === undefined) {
    key = readNetwork(address, prefix)
    // A flood of new addresses clears the cache instead of making it grow.
    if (keysOf.size === MAX_KEPT) keysOf.clear()
    if (cacheKey.length <= MAX_CACHED_LENGTH) keysOf.set(cacheKey, key)
  }
  return key
}

/** Longer than any address. */
const MAX_CACHED_LENGTH = 64

function readNetwork(address: string, prefix: number): string {
  const read = readAddress(address)
  if (read === undefined) return UNKNOWN_ADDRESS
  if (read instanceof ipaddr.IPv4) return read.toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${read}/${prefix}`)}/${prefix}`
}

/** Returns `user:42` for a logged-in user, otherwise `user`. @throws {SlidegateError} `invalid_key` for an object */
export function userKey(id: string | number | bigint | null | undefined): string {
  // Rejects a user object passed instead of its id, because all objects would share one key.
  const isPlain = typeof id !== 'object' || id === null
  checkThat(isPlain, 'the user id', id, 'a string or a number', 'invalid_key')
  return id === null || id === undefined || id === '' ? 'user' : `user:${id}`
}

/** Returns `session:` and a hash of the session id, or `session` without an id. The hash keeps the secret out of the store. */
export function sessionKey(id: string | null | undefined): string {
  return secretKey('session', id)
}

/** Returns `api-key:` and a hash of an API key or bearer token. Returns `api-key` without one. */
export function apiKeyKey(apiKey: string | null | undefined): string {
  return secretKey('api-key', apiKey)
}

const MAX_EMAIL = 320

/**
 * Returns `email:` and the address, trimmed, lowercased and normalized to NFKC. Returns `email` if the address is empty, longer
 * than 320 characters or not a string.
 */
export function emailKey(email: unknown): string {
  if (typeof email !== 'string' || email.length > MAX_EMAIL) return 'email'
  // Normalizes twice, because lowercasing can undo the first normalization.
  const address = email.toWellFormed().normalize('NFKC').toLowerCase().normalize('NFKC').trim()
  return address === '' ? 'email' : `email:${address}`
}

/** A request that Express or Fastify has matched to a route. */
export interface RoutedRequest {
  readonly route?: { readonly path?: unknown } | undefined
  readonly routeOptions?: { readonly url?: string | undefined } | undefined
}

/**
 * Returns the matched route, such as `route:/users/:id`, or `route` if none matched.
 *
 * The spelling of the URL, such as `//users/7` or `/USERS/7;x`, has no effect. In Express, call this function in the route's own
 * middleware, and pass the path of a mounted router as `mount`.
 */
export function routeKey({ route, routeOptions }: RoutedRequest, mount = ''): string {
  const path = routeOptions?.url ?? route?.path
  return path === undefined ? 'route' : `route:${mount}${String(path)}`
}

function secretKey(what: string, secret: string | null | undefined): string {
  if (typeof secret !== 'string' || secret === '') return what
  return `${what}:${sha256(secret)}`
}
