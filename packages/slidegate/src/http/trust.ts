import ipaddr from 'ipaddr.js'
import { SlidegateError, show } from '../errors.ts'
import { readAddress } from './address.ts'

/**
 * Which of the addresses that a request has passed are those of proxies of yours: how many, counted from this server, from 0
 * to 16; or their networks, such as `10.0.0.0/8` or `2001:db8::/32`, single addresses, or one of `loopback`, `linklocal`
 * and `uniquelocal`, which are the private networks of both families.
 */
export type Trust = number | readonly string[]

/** Whether the address, so many hops from this server, is that of a proxy whose word counts. */
export type IsTrusted = (address: string | undefined, hop: number) => boolean

/** No chain of proxies is longer; it bounds what is read of a request, too. */
export const MAX_HOPS = 16

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** Networks of a shorter prefix are nobody's own: whoever trusts them trusts strangers. */
const MIN_PREFIX = { ipv4: 8, ipv6: 16 }

/** These are nobody else's, however large. */
const PRIVATE = ['fc00::/7', 'fe80::/10'].map((network) => ipaddr.IPv6.parseCIDR(network))

type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** @throws {SlidegateError} `invalid_option` for what is no such setting, or would trust strangers */
export function trustOf(trust: unknown): IsTrusted {
  if (Number.isInteger(trust) && (trust as number) >= 0 && (trust as number) <= MAX_HOPS) {
    return (_, hop) => hop < (trust as number)
  }
  if (!Array.isArray(trust)) {
    throw invalid(
      `trust is ${show(trust)}; it must be the number of your proxies, from 0 to ${MAX_HOPS}, or an array of their networks`,
      trust,
    )
  }
  const networks = trust.flatMap(networksOf)
  return (address) => {
    const read = address === undefined ? undefined : readAddress(address)
    return read !== undefined && networks.some((network) => holds(network, read))
  }
}

function holds([network, prefix]: Network, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return network.kind() === address.kind() && address.match([network, prefix] as [ipaddr.IPv4, number])
}

function networksOf(text: unknown): readonly Network[] {
  if (typeof text !== 'string')
    throw invalid(`a network of trust is ${show(text)}; it must be a string`, text)
  if (Object.hasOwn(NAMED, text)) return NAMED[text]!.flatMap(networksOf)
  const [address = '', bits, more] = text.split('/')
  const read = readAddress(address)
  const isMapped = read instanceof ipaddr.IPv4 && address.includes(':')
  const most = read instanceof ipaddr.IPv4 ? 32 : 128
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (read === undefined || isMapped || more !== undefined || !(prefix <= most) || address.includes('%')) {
    throw invalid(
      `a network of trust is ${show(text)}; it must be like 10.0.0.0/8 or 2001:db8::/32, an address, or one of ${Object.keys(NAMED).join(', ')}`,
      text,
    )
  }
  const network = [read, prefix] as const
  checkHost(text, network)
  if (prefix < MIN_PREFIX[read.kind()] && !isPrivate(network)) {
    throw invalid(
      `trust holds ${text}, which strangers are in too: whoever is believed about others chooses his own key; give the networks of your proxies`,
      text,
    )
  }
  return [network]
}

/** Whoever writes 10.0.0.1/8 may have meant one address. */
function checkHost(text: string, [address, prefix]: Network): void {
  const Family = address instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const first = Family.networkAddressFromCIDR(`${address}/${prefix}`)
  if (first.toString() === address.toString()) return
  throw invalid(
    `a network of trust is ${text}, which is an address within ${first}/${prefix}; give the one or the other`,
    text,
  )
}

function isPrivate([address, prefix]: Network): boolean {
  return (
    address instanceof ipaddr.IPv6 &&
    PRIVATE.some((network) => prefix >= network[1] && address.match(network))
  )
}

/** Why addresses are no keys where the framework is set to believe whatever anybody says about them. */
export function spoofableAddress(setting: string): SlidegateError {
  return invalid(
    `with ${setting} set to trust everybody the client's address is whatever the client says; set it to the addresses of your proxies, or give a key function`,
    true,
  )
}

/** Addresses that are nobody's. */
export const STRANGERS: readonly string[] = ['192.0.2.1', '2001:db8::1']

/** So many strangers in a row are more than there are proxies in any. */
export const MANY: number = 4 * MAX_HOPS

/** Whether strangers are believed, however many there are in a row. */
export function believesAnybody(isTrusted: IsTrusted): boolean {
  return STRANGERS.some((address) => {
    for (let hop = 0; hop <= MANY; hop++) if (!isTrusted(address, hop)) return false
    return true
  })
}

function invalid(message: string, value: unknown): SlidegateError {
  return new SlidegateError('invalid_option', message, value)
}
