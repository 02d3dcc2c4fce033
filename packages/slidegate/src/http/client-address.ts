import { checkOptions, invalidOption, show } from '../errors.ts'
import { type AddressKeyOptions, addressKey, checkPrefix } from './address.ts'
import { forwardedFor } from './forwarded.ts'
import { MAX_HOPS, type Trust, trustOf } from './trust.ts'

/**
 * Headers in which a platform, or a proxy of one's own, tells the one address that it knows. Others pass on what the caller
 * has sent, by default or always: `fastly-client-ip`, `true-client-ip`, `x-azure-clientip`, `x-envoy-external-address`.
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

/** Where proxies tell whom they have a request from. */
export type AddressHeader = 'x-forwarded-for' | 'forwarded' | (typeof PLATFORM_HEADERS)[number]

const HEADERS: readonly string[] = ['x-forwarded-for', 'forwarded', ...PLATFORM_HEADERS]

/** Who is believed, and where the address is said. */
export interface ClientAddressOptions extends AddressKeyOptions {
  /** Which proxies are yours, see {@link Trust}. Nobody else is believed. */
  readonly trust: Trust
  /**
   * The header that they tell it in, in lower case. Lists (`x-forwarded-for`, and `forwarded` of RFC 7239) are read from
   * the right, as far as there are trusted proxies. Any other is one address that the platform in front of you sets: choose
   * it only where the platform removes what the caller has sent under that name, and nobody comes around it. Default:
   * `x-forwarded-for`.
   */
  readonly header?: AddressHeader
}

/** What is read of a request: that of `node:http` and of all that is built on it, or of the Fetch API, which has no socket. */
export interface AddressedRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>> | Pick<Headers, 'get'>
  readonly socket?: { readonly remoteAddress?: string | undefined }
  readonly rawHeaders?: readonly string[]
  /** Where the framework has a request of its own. */
  readonly raw?: { readonly rawHeaders?: readonly string[] }
}

/**
 * Of requests with more headers Node drops the last, unless it is one that refuses them (CVE-2026-58044): what is missing
 * may be what a proxy has added.
 */
const MAX_HEADERS = 1000

/** Whether headers of a request may be missing. */
export function mayBeCut({ rawHeaders, raw }: Pick<AddressedRequest, 'rawHeaders' | 'raw'>): boolean {
  const namesAndValues = rawHeaders ?? raw?.rawHeaders ?? []
  return namesAndValues.length >= 2 * MAX_HEADERS
}

/** A `Forwarded` header is read as a whole: a longer one is not read. */
const MAX_FORWARDED = 4096

/**
 * A key function that tells callers apart by their address, behind proxies too:
 *
 *     rateLimit({ limits, key: clientAddress({ trust: 1 }) })
 *     rateLimit({ limits, key: clientAddress({ trust: ['10.0.0.0/8'], header: 'forwarded' }) })
 *
 * The peer of the connection is the first; where it is trusted, the one from whom it has the request, as it tells, and so on.
 * The first that is not trusted is the client, its key that of {@link addressKey}; where all are, the farthest. Whatever a
 * caller sends himself stands farther away, and is not read. An address that is missing or cannot be read is
 * `UNKNOWN_ADDRESS`; so is a whole `Forwarded` header that breaks its grammar, and whatever a request with 1,000 headers or
 * more tells. A server on a Unix socket knows no peer: count proxies there.
 *
 * A number trusts whoever connects: use it only where nobody can connect but your proxies.
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

/** The client's address, from the connection's other end and what a request tells; undefined where it cannot be known. */
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
  const tellOf = tellerOf(name ?? 'x-forwarded-for')
  return (peer, header, isCut) => {
    let address = peer
    let tell: Teller | undefined
    for (let hop = 0; isTrusted(address, hop); hop++) {
      if (hop === MAX_HOPS) return undefined
      tell ??= isCut() ? UNREADABLE : tellOf(header)
      const next = tell()
      if (next === undefined) break
      address = withoutPort(next)
    }
    return address
  }
}

/** Answers the next address, the nearest first; nothing after the last. */
type Teller = () => string | undefined

const UNREADABLE: Teller = () => ''

function tellerOf(name: AddressHeader): (header: (name: string) => string | undefined) => Teller {
  switch (name) {
    case 'x-forwarded-for':
      return (header) => fromTheRight(header(name))
    case 'forwarded':
      return (header) => forwarded(header(name))
    default:
      return (header) => once(header(name))
  }
}

/** Lines of one name are one list. */
export function textOf(value: string | readonly string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : (value as string | undefined)
}

function isHeaders(headers: AddressedRequest['headers']): headers is Pick<Headers, 'get'> {
  return typeof headers.get === 'function'
}

/** Only as much of a list is read as is asked for: the rest may be anything. */
function fromTheRight(list: string | undefined): Teller {
  let end = list?.length ?? -1
  return () => {
    if (end < 0) return undefined
    const comma = end === 0 ? -1 : list!.lastIndexOf(',', end - 1)
    const entry = list!.slice(comma + 1, end)
    end = comma
    return entry.trim()
  }
}

/** RFC 7239. Each proxy adds an element: that one is missing says no more than that it tells no address. */
function forwarded(header: string | undefined): Teller {
  if (header === undefined) return () => undefined
  if (header.length > MAX_FORWARDED) return UNREADABLE
  const elements = forwardedFor(header)
  return elements === undefined ? UNREADABLE : () => elements.pop()
}

/** What a platform tells is the client's address, and nothing goes before it. Without it there is none. */
function once(address: string | undefined): Teller {
  let isTold = false
  return () => {
    if (isTold) return undefined
    isTold = true
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
