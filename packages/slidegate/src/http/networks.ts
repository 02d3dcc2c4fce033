import ipaddr from 'ipaddr.js'
import { invalidOption, show } from '../errors.ts'
import { readAddress } from './address.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** An address, and how many of its leading bits name the network. */
export type Network = readonly [Address, number]

/**
 * A network such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
 *
 * @throws {SlidegateError} `invalid_option`; `of` says what the text belongs to
 */
export function parseNetwork(text: unknown, of: string): Network {
  if (typeof text !== 'string')
    throw invalidOption(`a network of ${of} is ${show(text)}; it must be a string`, text)
  const [address = '', bits, more] = text.split('/')
  const read = readAddress(address)
  const isMapped = read instanceof ipaddr.IPv4 && address.includes(':')
  const most = read instanceof ipaddr.IPv4 ? 32 : 128
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (read === undefined || isMapped || more !== undefined || !(prefix <= most) || address.includes('%')) {
    throw invalidOption(
      `a network of ${of} is ${show(text)}; it must be like 10.0.0.0/8 or 2001:db8::/32, or an address`,
      text,
    )
  }
  checkHost(text, of, [read, prefix])
  return [read, prefix]
}

/** Whoever writes 10.0.0.1/8 may have meant one address. */
function checkHost(text: string, of: string, [address, prefix]: Network): void {
  const Family = address instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const first = Family.networkAddressFromCIDR(`${address}/${prefix}`)
  if (first.toString() === address.toString()) return
  throw invalidOption(
    `a network of ${of} is ${text}, which is an address within ${first}/${prefix}; give the one or the other`,
    text,
  )
}

/** Whether an address is in one of many networks: a look-up for each length of their prefixes, however many there are. */
export class Networks {
  readonly #byPrefix = new Map<number, Set<string>>()

  constructor(networks: readonly Network[]) {
    for (const [address, prefix] of networks) {
      const length = prefixOf(address, prefix)
      const known = this.#byPrefix.get(length)
      const bits = leadingBits(address, prefix)
      if (known === undefined) this.#byPrefix.set(length, new Set([bits]))
      else known.add(bits)
    }
  }

  /** What is no address is in none. */
  has(text: string | undefined): boolean {
    const address = text === undefined ? undefined : readAddress(text)
    if (address === undefined) return false
    for (const [length, networks] of this.#byPrefix) {
      const isIPv4 = length < 0
      if (isIPv4 !== address instanceof ipaddr.IPv4) continue
      if (networks.has(leadingBits(address, isIPv4 ? -1 - length : length))) return true
    }
    return false
  }
}

/** Those of IPv4 are below 0: no network of the one family holds addresses of the other. */
function prefixOf(address: Address, prefix: number): number {
  return address instanceof ipaddr.IPv4 ? -1 - prefix : prefix
}

function leadingBits(address: Address, prefix: number): string {
  const bytes = address.toByteArray().slice(0, Math.ceil(prefix / 8))
  if (prefix % 8 !== 0) bytes[bytes.length - 1]! &= 0xff << (8 - (prefix % 8))
  return String.fromCharCode(...bytes)
}
