// Parses IP addresses and networks in any spelling, and matches addresses against networks.

import { checkThat, invalidOption, wrongValue } from '../errors.ts'
import { ipaddr } from './ipaddr.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6

const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const IPV4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`)

/** Whether the text is an IPv4 address without leading zeros. Agrees with Node's `isIPv4`. */
export function isIPv4(text: string): boolean {
  return IPV4.test(text)
}

/** The well-known prefix of NAT64 (RFC 6052). */
const NAT64 = /* @__PURE__ */ ipaddr.IPv6.parse('64:ff9b::')

/** IPv4 ranges to which NAT64 addresses are never translated. Otherwise, an outside client could impersonate a trusted proxy. */
const NEVER_TRANSLATED: readonly string[] = ['private', 'loopback', 'linkLocal', 'carrierGradeNat']

/** Parses an address in any spelling. IPv4-mapped and NAT64 addresses become IPv4. */
export function readAddress(address: string): Address | undefined {
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
 * Removes the zone id from an IPv6 address and rewrites dotted bytes in hexadecimal.
 *
 * Otherwise, ipaddr.js would accept bytes such as `010` and `0x10`. It would also treat `::1.2.3.4` as IPv4-mapped, but not
 * `::102:304`, which is the same address.
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

/** An address and its prefix length. */
export type Network = readonly [Address, number]

/**
 * Parses a network such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
 *
 * @param of the name of the option, for error messages
 * @throws {SlidegateError} `invalid_option`
 */
export function parseNetwork(text: unknown, of: string): Network {
  checkThat(typeof text === 'string', `an entry in ${of}`, text, 'a string')
  const [address = '', bits, more] = text.split('/')
  const read = readAddress(address)
  const isMapped = read instanceof ipaddr.IPv4 && address.includes(':')
  const most = read instanceof ipaddr.IPv4 ? 32 : 128
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (read === undefined || isMapped || more !== undefined || !(prefix <= most) || address.includes('%')) {
    throw wrongValue(
      `an entry in ${of}`,
      text,
      'a network such as 10.0.0.0/8 or 2001:db8::/32, or an address',
    )
  }
  checkHost(text, of, [read, prefix])
  return [read, prefix]
}

/** Rejects a network like 10.0.0.1/8, because it may have been meant as a single address. */
function checkHost(text: string, of: string, [address, prefix]: Network): void {
  const Family = address instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const first = Family.networkAddressFromCIDR(`${address}/${prefix}`)
  if (first.toString() === address.toString()) return
  throw invalidOption(
    `a network in ${of} is ${text}, but its first address is ${first}; write ${first}/${prefix}, or the address alone`,
    text,
  )
}

/** A set of networks. A lookup takes one step per distinct prefix length, not per network. */
export class Networks {
  readonly #byPrefix = { ipv4: new Map<number, Set<string>>(), ipv6: new Map<number, Set<string>>() }

  constructor(networks: readonly Network[]) {
    for (const [address, prefix] of networks) {
      const byPrefix = this.#byPrefix[address.kind()]
      const known = byPrefix.get(prefix) ?? new Set<string>()
      byPrefix.set(prefix, known.add(leadingBits(address, prefix)))
    }
  }

  /** Whether an address is in one of the networks. `false` for text that isn't an address. */
  has(text: string | undefined): boolean {
    const address = text === undefined ? undefined : readAddress(text)
    if (address === undefined) return false
    for (const [prefix, networks] of this.#byPrefix[address.kind()]) {
      if (networks.has(leadingBits(address, prefix))) return true
    }
    return false
  }
}

function leadingBits(address: Address, prefix: number): string {
  const bytes = address.toByteArray().slice(0, Math.ceil(prefix / 8))
  if (prefix % 8 !== 0) bytes[bytes.length - 1]! &= 0xff << (8 - (prefix % 8))
  return String.fromCharCode(...bytes)
}
