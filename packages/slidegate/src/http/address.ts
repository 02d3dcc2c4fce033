import ipaddr from 'ipaddr.js'
import { invalidOption, show } from '../errors.ts'

/** The one key of all callers whose address is missing or cannot be read: limited together, never let past. */
export const UNKNOWN_ADDRESS = 'unknown'

/** How much of an address names a caller. */
export interface AddressKeyOptions {
  /**
   * Leading bits of an IPv6 address that name a caller, from 1 to 128; 64 unless told, the least that a
   * network hands out, for within it the caller picks addresses at will. Choose 56 or 48 where callers own
   * more. IPv4 addresses are never masked.
   */
  readonly ipv6Prefix?: number
}

/**
 * The limiter key of a client address, the same for every spelling of it: `203.0.113.7`, or the network of an
 * IPv6 address as `2001:db8:1:2::/64`. IPv4-mapped IPv6 is IPv4, and so is an IPv4 address that NAT64 shows as one of
 * `64:ff9b::/96`. A zone id is dropped, IPv4 is read in its strict form of four decimal parts only. Anything else
 * shares {@link UNKNOWN_ADDRESS}. Ports and brackets are not part of an address.
 */
export function addressKey(address: string | undefined, options: AddressKeyOptions = {}): string {
  const { ipv6Prefix = 64 } = options
  checkPrefix(ipv6Prefix)
  if (typeof address !== 'string') return UNKNOWN_ADDRESS
  if (isIPv4(address)) return address
  // How a server that listens on IPv6 too knows all callers by IPv4.
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

const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const IPV4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`)

/** Four decimal parts without leading zeros, as Node has it, too. */
export function isIPv4(text: string): boolean {
  return IPV4.test(text)
}

const MAPPED = '::ffff:'

/** The keys of addresses that were read before: to read one takes longer than to decide a request. */
const keysOf = new Map<string, string>()
const MAX_KEPT = 4096

function networkOf(address: string, prefix: number): string {
  const spelling = `${address}/${prefix}`
  let key = keysOf.get(spelling)
  if (key === undefined) {
    key = readNetwork(address, prefix)
    // Whoever sends ever new addresses makes all of them be read again, and nothing grow.
    if (keysOf.size === MAX_KEPT) keysOf.clear()
    if (spelling.length <= MAX_SPELLING) keysOf.set(spelling, key)
  }
  return key
}

/** No address is longer, and no text of a stranger that is should be kept. */
const MAX_SPELLING = 64

function readNetwork(address: string, prefix: number): string {
  const read = readAddress(address)
  if (read === undefined) return UNKNOWN_ADDRESS
  if (read instanceof ipaddr.IPv4) return read.toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${read}/${prefix}`)}/${prefix}`
}

/** The well-known prefix of NAT64 (RFC 6052). */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::')

/** Ranges that no translator may embed there. Reading them could turn a stranger into a trusted proxy. */
const NEVER_TRANSLATED: readonly string[] = ['private', 'loopback', 'linkLocal', 'carrierGradeNat']

/** Reads an address in any spelling. IPv4 that is mapped or translated into IPv6 is read as IPv4. */
export function readAddress(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (isIPv4(address)) return ipaddr.IPv4.parse(address)
  const hex = hexadecimal(address)
  if (hex === undefined || !ipaddr.IPv6.isValid(hex)) return undefined
  const ipv6 = ipaddr.IPv6.parse(hex)
  if (ipv6.isIPv4MappedAddress()) return ipv6.toIPv4Address()
  if (!ipv6.match(NAT64, 96)) return ipv6
  const ipv4 = new ipaddr.IPv4(ipv6.toByteArray().slice(12))
  return NEVER_TRANSLATED.includes(ipv4.range()) ? ipv6 : ipv4
}

/**
 * An IPv6 address without its zone id, its last four bytes in hexadecimal if they were dotted. The parser
 * reads dotted bytes as more than they are: it takes octal and hexadecimal parts, and `::1.2.3.4` for
 * IPv4-mapped although `::102:304`, the same address, is not.
 */
function hexadecimal(address: string): string | undefined {
  const [bare = ''] = address.split('%', 1)
  const lastPart = bare.lastIndexOf(':') + 1
  const dotted = bare.slice(lastPart)
  if (!dotted.includes('.')) return bare
  if (!ipaddr.IPv4.isValidFourPartDecimal(dotted)) return undefined
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return `${bare.slice(0, lastPart)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}
