// Finds the client's address behind proxies, in the headers that trusted ones set.
import { checkOptions, invalidOption, show } from '../errors.ts'
import { type AddressKeyOptions, addressKey, checkPrefix } from './caller-keys.ts'
import { MAX_HOPS, type Trust, trustOf } from './trust.ts'

/**
 * Headers that a platform, or your own proxy, sets to the client's address. Left out are those that may pass on the caller's
 * own value: `fastly-client-ip`, `true-client-ip`, `x-azure-clientip`, `x-envoy-external-address`.
 */
const PLATFORM_HEADERS = [
  'cf-connecting-ip',
  'do-connecting-ip',
  'fly-client-ip',
  'x-appengine-user-ip',
  'x-azure-socketip',
  'x-nf-client-connection-ip',
  'x-real-ip',
  'x-vercel-forwarded-for',
] as const

/** A header in which proxies report whom a request is from. */
export type AddressHeader = 'x-forwarded-for' | 'forwarded' | (typeof PLATFORM_HEADERS)[number]

const HEADERS: readonly string[] = ['x-forwarded-for', 'forwarded', ...PLATFORM_HEADERS]

/** Which proxies are trusted, and which header they set. */
export interface ClientAddressOptions extends AddressKeyOptions {
  /** Which proxies are yours, see {@link Trust}. No others are trusted. */
  readonly trust: Trust
  /**
   * The header, in lower case. Lists (`x-forwarded-for`, and `forwarded` of RFC 7239) are read from the right, as far as
   * proxies are trusted. Any other holds one address: choose it only if the platform in front of you overwrites the header,
   * and nobody can get around the platform. Default: `x-forwarded-for`.
   */
  readonly header?: AddressHeader
}

/** A request of `node:http`, of a framework on it, or of the Fetch API, which has no socket. */
export interface AddressedRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>> | Pick<Headers, 'get'>
  readonly socket?: { readonly remoteAddress?: string | undefined }
  readonly rawHeaders?: readonly string[]
  /** The request of Node, if the framework has one of its own. */
  readonly raw?: { readonly rawHeaders?: readonly string[] }
}

/** Versions of Node with CVE-2026-58044 drop headers beyond these, perhaps those that a proxy has added. */
const MAX_HEADERS = 1000

/** Whether headers of a request may be missing. */
export function mayBeCut({ rawHeaders, raw }: Pick<AddressedRequest, 'rawHeaders' | 'raw'>): boolean {
  const namesAndValues = rawHeaders ?? raw?.rawHeaders ?? []
  return namesAndValues.length >= 2 * MAX_HEADERS
}

/** A longer `Forwarded` header is not read. */
const MAX_FORWARDED = 4096

/**
 * Makes a key function by the client's address, behind proxies too:
 *
 *     rateLimit({ limits, key: clientAddress({ trust: 1 }) })
 *     rateLimit({ limits, key: clientAddress({ trust: ['10.0.0.0/8'], header: 'forwarded' }) })
 *
 * Starts at the other end of the connection. While an address is trusted, the next one is whom it has the request from, as
 * the header says. The first that isn't trusted is the client, or the farthest if all are. Its key is {@link addressKey}.
 *
 * The key is `UNKNOWN_ADDRESS` if an address is missing or can't be read, if a `Forwarded` header breaks its grammar, and for
 * requests with 1,000 headers or more. On a Unix socket there is no address of the connection: count proxies there.
 *
 * A number trusts anybody who connects: use it only if nobody but your proxies can connect.
 *
 * @throws {SlidegateError} `invalid_option`, also for settings by which callers could choose their key
 */
export function clientAddress(options: ClientAddressOptions): (request: AddressedRequest) => string {
  const read = addressReader(options, 'clientAddress')
  return (request) => {
    const { headers } = request
    const header = isHeaders(headers)
      ? (name: string) => headers.get(name) ?? undefined
      : (name: string) => textOf(headers[name])
    const address = read(request.socket?.remoteAddress, header, () => mayBeCut(request))
    return addressKey(address, options)
  }
}

/** Finds the client's address from the connection's other end and the headers; undefined if it can't be known. */
export type AddressReader = (
  peer: string | undefined,
  header: (name: string) => string | undefined,
  isCut: () => boolean,
) => string | undefined

/** @throws {SlidegateError} `invalid_option`; `caller` is who was given the options */
export function addressReader(options: ClientAddressOptions, caller: string): AddressReader {
  checkOptions(options, caller, { trust: true, header: true, ipv6Prefix: true })
  const { trust, header: name, ipv6Prefix = 64 } = options
  checkPrefix(ipv6Prefix)
  const isTrusted = trustOf(trust)
  if (name !== undefined && !HEADERS.includes(name)) {
    throw invalidOption(
      `header is ${show(name)}; it must be one of ${HEADERS.join(', ')}: any other may come from the caller`,
      name,
    )
  }
  if (name !== undefined && (trust === 0 || (trust as readonly string[]).length === 0)) {
    throw invalidOption(
      `header is ${show(name)}, but nobody is trusted to set it; say in trust which proxies do`,
      name,
    )
  }
  const sourceOf = addressSourceOf(name ?? 'x-forwarded-for')
  return (peer, header, isCut) => {
    let address = peer
    let next: AddressSource | undefined
    for (let hop = 0; isTrusted(address, hop); hop++) {
      if (hop === MAX_HOPS) return undefined
      next ??= isCut() ? UNREADABLE : sourceOf(header)
      const found = next()
      if (found === undefined) break
      address = withoutPort(found)
    }
    return address
  }
}

/** Returns the next address, the nearest first; undefined after the last. */
type AddressSource = () => string | undefined

const UNREADABLE: AddressSource = () => ''

function addressSourceOf(
  name: AddressHeader,
): (header: (name: string) => string | undefined) => AddressSource {
  switch (name) {
    case 'x-forwarded-for':
      return (header) => fromTheRight(header(name))
    case 'forwarded':
      return (header) => forwarded(header(name))
    default:
      return (header) => once(header(name))
  }
}

/** Fields of one name are one list. */
export function textOf(value: string | readonly string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : (value as string | undefined)
}

function isHeaders(headers: AddressedRequest['headers']): headers is Pick<Headers, 'get'> {
  return typeof headers.get === 'function'
}

/** Reads no more of a list than is asked for: the rest may be anything. */
function fromTheRight(list: string | undefined): AddressSource {
  let end = list?.length ?? -1
  return () => {
    if (end < 0) return undefined
    const comma = end === 0 ? -1 : list!.lastIndexOf(',', end - 1)
    const entry = list!.slice(comma + 1, end)
    end = comma
    return entry.trim()
  }
}

/** RFC 7239. Each proxy adds an element, perhaps without an address. */
function forwarded(header: string | undefined): AddressSource {
  if (header === undefined) return () => undefined
  if (header.length > MAX_FORWARDED) return UNREADABLE
  const elements = forwardedFor(header)
  return elements === undefined ? UNREADABLE : () => elements.pop()
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const QUOTED = '"(?:[\\t !#-[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"'

/** A parameter, and what comes after it: `;` one more of the same element, `,` one of the next, or the end. */
const PARAMETER = new RegExp(`(${TOKEN})=(?:(${TOKEN})|(${QUOTED}))(?:[\\t ]*([;,])[\\t ]*|$)`, 'y')

/**
 * The `for` of each element of a `Forwarded` header, '' for an element without one. If a parameter comes twice in an element,
 * the last counts. Undefined if the header breaks the grammar of RFC 7239.
 */
export function forwardedFor(header: string): string[] | undefined {
  const elements: string[] = ['']
  PARAMETER.lastIndex = 0
  for (let separator: string | undefined = ';'; separator !== undefined; ) {
    const match = PARAMETER.exec(header)
    if (match === null) return undefined
    const [, name, token, quoted] = match
    if (name!.toLowerCase() === 'for') {
      elements[elements.length - 1] = token ?? quoted!.slice(1, -1).replace(/\\(.)/g, '$1')
    }
    separator = match[4]
    if (separator === ',') elements.push('')
  }
  return elements
}

/** A platform's header is the client's address, and the last. Without it there is none. */
function once(address: string | undefined): AddressSource {
  let isRead = false
  return () => {
    if (isRead) return undefined
    isRead = true
    return address ?? ''
  }
}

const PORT = ':(?:\\d{1,5}|_[\\w.-]{1,64})'
const IPV4_AND_PORT = new RegExp(`^(\\d+\\.\\d+\\.\\d+\\.\\d+)${PORT}$`)
const BRACKETS = new RegExp(`^\\[([^\\]]*)\\](?:${PORT})?$`)

/** Some proxies add the port, and `Forwarded` has IPv6 in brackets. */
function withoutPort(address: string): string {
  return IPV4_AND_PORT.exec(address)?.[1] ?? bracketed(address) ?? address
}

/** Brackets are of IPv6 only. */
function bracketed(address: string): string | undefined {
  const inner = BRACKETS.exec(address)?.[1]
  return inner?.includes(':') ? inner : undefined
}
