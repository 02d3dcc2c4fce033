// Decides which proxies are trusted, and finds framework settings that trust everybody.
import ipaddr from 'ipaddr.js'
import { invalidOption, type SlidegateError, show } from '../errors.ts'
import { type Network, Networks, parseNetwork } from './addresses.ts'

/**
 * Your proxies: how many there are in front of this server, from 0 to 16; or their networks, such as `10.0.0.0/8` or
 * `2001:db8::/32`, single addresses, or the private networks `loopback`, `linklocal` and `uniquelocal`.
 */
export type Trust = number | readonly string[]

/** Whether the address, at this hop from the server, is a trusted proxy's. */
export type IsTrusted = (address: string | undefined, hop: number) => boolean

/** The longest chain of proxies that is read. */
export const MAX_HOPS = 16

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** Networks with a shorter prefix include strangers. */
const MIN_PREFIX = { ipv4: 8, ipv6: 16 }

/** Except these, which are private. */
const PRIVATE = ['fc00::/7', 'fe80::/10'].map((network) => ipaddr.IPv6.parseCIDR(network))

/** @throws {SlidegateError} `invalid_option` for what is no such setting, or would trust strangers */
export function trustOf(trust: unknown): IsTrusted {
  if (Number.isInteger(trust) && (trust as number) >= 0 && (trust as number) <= MAX_HOPS) {
    return (_, hop) => hop < (trust as number)
  }
  if (!Array.isArray(trust)) {
    throw invalidOption(
      `trust is ${show(trust)}; it must be the number of your proxies, from 0 to ${MAX_HOPS}, or an array of their networks`,
      trust,
    )
  }
  const networks = new Networks(trust.flatMap(networksOf))
  return (address) => networks.has(address)
}

function networksOf(text: unknown): readonly Network[] {
  if (typeof text === 'string' && Object.hasOwn(NAMED, text)) return NAMED[text]!.flatMap(networksOf)
  const network = parseNetwork(text, `trust (where ${Object.keys(NAMED).join(', ')} are known too)`)
  if (network[1] < MIN_PREFIX[network[0].kind()] && !isPrivate(network)) {
    throw invalidOption(
      `trust holds ${text}, which strangers are in too: whoever is believed about others chooses his own key; give the networks of your proxies`,
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

/** For a framework whose setting trusts everybody: its addresses are whatever callers say. */
export function spoofableAddress(
  setting: string,
  remedy = 'set it to the addresses of your proxies',
): SlidegateError {
  return invalidOption(
    `with ${setting} set to trust everybody the client's address is whatever the client says; ${remedy}, or give a key function`,
    true,
  )
}

/** Addresses of nobody, reserved for documentation. */
const STRANGERS: readonly string[] = ['192.0.2.1', '2001:db8::1']

/** More strangers in a row than there are proxies in any chain. */
const MANY: number = 4 * MAX_HOPS

/** Whether strangers are trusted, however many there are in a row. */
export function believesAnybody(isTrusted: IsTrusted): boolean {
  return STRANGERS.some((address) => {
    for (let hop = 0; hop <= MANY; hop++) if (!isTrusted(address, hop)) return false
    return true
  })
}

/** The address by a framework that shows its trust setting: an error if that trusts everybody. The setting may change. */
export function unlessAnybody<Request>(
  setting: string,
  isTrustedOf: (request: Request) => IsTrusted,
  addressOf: (request: Request) => string | undefined,
): (request: Request) => string | undefined {
  let checked: IsTrusted | undefined
  return (request) => {
    const isTrusted = isTrustedOf(request)
    if (isTrusted !== checked) {
      if (believesAnybody(isTrusted)) throw spoofableAddress(setting)
      checked = isTrusted
    }
    return addressOf(request)
  }
}

/**
 * The address by a framework that doesn't show its setting: an error if it trusts a forged chain of strangers to the end.
 * Tried once for all requests of a prototype, since they share the setting.
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
