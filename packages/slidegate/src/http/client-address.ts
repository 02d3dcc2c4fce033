// Finds the client's address behind proxies, from the headers that trusted proxies set.
import { checkOptions, checkThat, invalidOption, show } from '../errors.ts'
import { type AddressKeyOptions, addressKey, checkPrefix } from './caller-keys.ts'
import { MAX_HOPS, type Trust, trustOf } from './trust.ts'

/**
 * Headers that a platform or your own proxy sets to the client's address. Excludes headers that callers may be able to set:
 * `fastly-client-ip`, `true-client-ip`, `x-azure-clientip`, `x-envoy-external-address`.
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

/** A header that contains the client's address. */
export type AddressHeader = 'x-forwarded-for' | 'forwarded' | (typeof PLATFORM_HEADERS)[number]

const HEADERS: readonly string[] = ['x-forwarded-for', 'forwarded', ...PLATFORM_HEADERS]

/** Options for {@link clientAddress}: the trusted proxies and the header that they set. */
export interface ClientAddressOptions extends AddressKeyOptions {
  /** Your proxies (see {@link Trust}). No other address is trusted. */
  readonly trust: Trust
  /**
   * The header that your proxies set, in lower case. Default: `x-forwarded-for`.
   *
   * The lists `x-forwarded-for` and `forwarded` (RFC 7239) are read from the right until an address isn't trusted. All other
   * headers contain a single address. Only use such a header if the platform in front of your server overwrites it and can't be
   * bypassed.
   */
  readonly header?: AddressHeader
}

/** A request from `node:http`, a framework on top of it, or the Fetch API. */
export interface AddressedRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>> | Pick<Headers, 'get'>
  readonly socket?: { readonly remoteAddress?: string | undefined }
  readonly rawHeaders?: readonly string[]
  /** Node's request, if the framework wraps it. */
  readonly raw?: { readonly rawHeaders?: readonly string[] }
}

/** Node versions with CVE-2026-58044 drop headers beyond this number, which may include a proxy's. */
const MAX_HEADERS = 1000

/** Whether Node may have dropped headers from the request. */
export function mayBeTruncated({ rawHeaders, raw }: Pick<AddressedRequest, 'rawHeaders' | 'raw'>): boolean {
  const namesAndValues = rawHeaders ?? raw?.rawHeaders ?? []
  return namesAndValues.length >= 2 * MAX_HEADERS
}

/** Maximum length of a `Forwarded` header; a longer one is rejected. */
const MAX_FORWARDED = 4096

/**
 * Returns a key function that uses the client's address, for servers behind proxies:
 *
 *     rateLimit({ limits, key: clientAddress({ trust: 1 }) })
 *     rateLimit({ limits, key: clientAddress({ trust: ['10.0.0.0/8'], header: 'forwarded' }) })
 *
 * The search starts with the connection's peer and follows the header as long as the addresses are trusted. The client is the
 * first address that isn't trusted, or the last one if all are. The key is {@link addressKey} of that address.
 *
 * The key is `UNKNOWN_ADDRESS` if an address is missing or invalid, if a `Forwarded` header is malformed, or if the request has
 * 1,000 headers or more. Connections over a Unix socket have no address, so `trust` must be a number for them.
 *
 * If `trust` is a number, every peer is trusted. Use a number only if no one except your proxies can connect.
 *
 * @throws {SlidegateError} `invalid_option`, including for settings that let callers choose their key
 */
export function clientAddress(options: ClientAddressOptions): (request: AddressedRequest) => string {
  const read = addressReader(options, 'clientAddress')
  return (request) => {
    const { headers } = request
    const header = isHeaders(headers)
      ? (name: string) => headers.get(name) ?? undefined
      : (name: string) => textOf(headers[name])
    const address = read(request.socket?.remoteAddress, header, () => mayBeTruncated(request))
    return addressKey(address, options)
  }
}

/** Finds the client's address from the peer's address and the headers. Returns `undefined` if it's unknown. */
export type AddressReader = (
  peer: string | undefined,
  header: (name: string) => string | undefined,
  isTruncated: () => boolean,
) => string | undefined

/** @throws {SlidegateError} `invalid_option`, with a message that names `caller` */
export function addressReader(options: ClientAddressOptions, caller: string): AddressReader {
  checkOptions(options, caller, { trust: true, header: true, ipv6Prefix: true })
  const { trust, header: given, ipv6Prefix = 64 } = options
  checkPrefix(ipv6Prefix)
  const isTrusted = trustOf(trust)
  const right = `one of ${HEADERS.join(', ')}: callers could set any other header`
  checkThat(given === undefined || HEADERS.includes(given), 'header', given, right)
  if (given !== undefined && (trust === 0 || (trust as readonly string[]).length === 0)) {
    throw invalidOption(
      `header is ${show(given)}, but no proxy is trusted to set it; list your proxies in the trust option`,
      given,
    )
  }
  const name = given ?? 'x-forwarded-for'
  const sourceOf = LISTS.get(name) ?? once
  return (peer, header, isTruncated) => {
    let address = peer
    let next: AddressSource | undefined
    for (let hop = 0; isTrusted(address, hop); hop++) {
      if (hop === MAX_HOPS) return undefined
      next ??= isTruncated() ? UNREADABLE : sourceOf(header(name))
      const found = next()
      if (found === undefined) break
      address = withoutPort(found)
    }
    return address
  }
}

/** Returns the next address, or `undefined` after the last one. Starts with the one nearest to the server. */
type AddressSource = () => string | undefined

const UNREADABLE: AddressSource = () => ''

const LISTS: ReadonlyMap<AddressHeader, (header: string | undefined) => AddressSource> = new Map([
  ['x-forwarded-for', fromTheRight],
  ['forwarded', forwarded],
])

/** Joins the values of a repeated header. */
export function textOf(value: string | readonly string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : (value as string | undefined)
}

function isHeaders(headers: AddressedRequest['headers']): headers is Pick<Headers, 'get'> {
  return typeof headers.get === 'function'
}

/** Reads a list from the right. Stops as early as possible, since the rest may be forged. */
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

/** Reads a `Forwarded` header (RFC 7239). Each proxy adds an element, which may have no address. */
function forwarded(header: string | undefined): AddressSource {
  if (header === undefined) return () => undefined
  if (header.length > MAX_FORWARDED) return UNREADABLE
  const elements = forwardedFor(header)
  return elements === undefined ? UNREADABLE : () => elements.pop()
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const QUOTED = '"(?:[\\t !#-[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"'

/** A parameter and its separator: `;` within an element, `,` before the next element, or the end. */
const PARAMETER = new RegExp(`(${TOKEN})=(?:(${TOKEN})|(${QUOTED}))(?:[\\t ]*([;,])[\\t ]*|$)`, 'y')

/**
 * Returns the `for` parameter of each element of a `Forwarded` header.
 *
 * An element without `for` gives ''. An element with several `for` parameters gives the last one. Returns
 * `undefined` if the header is malformed (RFC 7239).
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

/** Returns the only address in a platform's header. A missing header is invalid. */
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

/** Removes the port that some proxies add, and the brackets around IPv6 addresses in `Forwarded`. */
function withoutPort(address: string): string {
  return IPV4_AND_PORT.exec(address)?.[1] ?? bracketed(address) ?? address
}

/** Only IPv6 addresses have brackets. */
function bracketed(address: string): string | undefined {
  const inner = BRACKETS.exec(address)?.[1]
  return inner?.includes(':') ? inner : undefined
}
