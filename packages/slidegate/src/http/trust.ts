import ipaddr from 'ipaddr.js'
import { invalidOption, type SlidegateError, show } from '../errors.ts'
import { type Network, Networks, parseNetwork } from './networks.ts'

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

/** Why addresses are no keys where the framework is set to believe whatever anybody says about them. */
export function spoofableAddress(
  setting: string,
  remedy = 'set it to the addresses of your proxies',
): SlidegateError {
  return invalidOption(
    `with ${setting} set to trust everybody the client's address is whatever the client says; ${remedy}, or give a key function`,
    true,
  )
}

/** Addresses that are nobody's. */
const STRANGERS: readonly string[] = ['192.0.2.1', '2001:db8::1']

/** So many strangers in a row are more than there are proxies in any. */
const MANY: number = 4 * MAX_HOPS

/** Whether strangers are believed, however many there are in a row. */
export function believesAnybody(isTrusted: IsTrusted): boolean {
  return STRANGERS.some((address) => {
    for (let hop = 0; hop <= MANY; hop++) if (!isTrusted(address, hop)) return false
    return true
  })
}

/**
 * The address that a framework tells, where it shows whom it trusts: refused where that is everybody. The setting may change
 * while an app is put together.
 */
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
 * The address that a framework tells of its `raw` request, where its setting cannot be seen: a chain of strangers is tried,
 * and where it is believed up to its far end, the address is refused. Once for all requests of a prototype: they are of one
 * setting.
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

/** What is read of a request to know its address. */
function chainOf(stranger: string): object {
  const chain = [CHAIN_END, ...Array<string>(MANY).fill(stranger)].join(', ')
  return { headers: { 'x-forwarded-for': chain }, socket: { remoteAddress: stranger } }
}
