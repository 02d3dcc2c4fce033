// Reads the URLs of Redis servers.

import type { ConnectionOptions } from 'node:tls'
import { checkOptions, invalidOption, type SlidegateError, show } from '../../errors.ts'
import { dialectOf } from './clients.ts'

/** Where Redis is, for a store that makes its own client. */
export interface UrlOptions {
  /**
   * `redis://user:password@host:port/database`, or `rediss://` for TLS; `valkey://` and `valkeys://` are the same. Of a
   * Cluster one server or several, from which the others are found.
   */
  readonly url: string | readonly string[]
  /** Whether it is a Redis Cluster. Default: whether several URLs are given. */
  readonly cluster?: boolean
  /** With `rediss://`: certificates, and whatever else `tls.connect` takes. */
  readonly tls?: ConnectionOptions
}

export function isUrlOptions(source: unknown): source is UrlOptions {
  return typeof source === 'object' && source !== null && 'url' in source && dialectOf(source) === undefined
}

/** Where a server is, and its credentials. */
export interface Address {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  readonly username?: string
  readonly password?: string
  readonly database: number
}

/** One server, or some of a Cluster. */
export interface Servers {
  readonly addresses: readonly [Address, ...Address[]]
  readonly isCluster: boolean
  readonly tls: ConnectionOptions
}

/** @throws {SlidegateError} `invalid_option` */
export function serversOf(options: UrlOptions): Servers {
  const { url, cluster, tls } = options
  const [first, ...others] = (Array.isArray(url) ? url : [url]).map(addressOf)
  if (first === undefined) throw invalidOption('url is an empty list; give one URL at least', url)
  const isCluster = cluster ?? others.length > 0
  const addresses: readonly [Address, ...Address[]] = [first, ...others]
  if (typeof isCluster !== 'boolean') throw invalidOption('cluster must be true or false', cluster)
  if (!isCluster && others.length > 0)
    throw invalidOption(`there are ${addresses.length} URLs; without cluster: true there must be one`)
  if (isCluster && addresses.some(({ database }) => database !== 0))
    throw invalidOption('a url names a database; a Cluster has none but 0')
  if (others.some(({ isTls }) => isTls !== first.isTls))
    throw invalidOption('some URLs are with TLS and some without; they must be alike')
  if (tls !== undefined && !first.isTls)
    throw invalidOption('tls is given, and the url is without TLS; it must be rediss://')
  checkOptions(options, 'redisStore({ url })', { url: true, cluster: true, tls: true })
  return { addresses, isCluster, tls: tls ?? {} }
}

/** Whether each is TLS. */
const SCHEMES: Readonly<Record<string, boolean>> = {
  'redis:': false,
  'valkey:': false,
  'rediss:': true,
  'valkeys:': true,
}

/**
 * A URL is not repeated in any error: there may be a password in it.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function addressOf(url: unknown): Address {
  if (typeof url !== 'string') throw refused(`it is ${show(url)}`)
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined) throw refused('it cannot be read as a URL')
  const isTls = SCHEMES[parsed.protocol]
  if (isTls === undefined) throw refused(`it begins with ${parsed.protocol}//`)
  if (parsed.hostname === '') throw refused('it names no host')
  if (parsed.search !== '' || parsed.hash !== '') throw refused('it goes on behind the database')
  const database = parsed.pathname.replace(/^\//, '')
  if (!/^\d*$/.test(database)) throw refused('what stands behind the host is not the number of a database')
  return {
    // Brackets are how a URL spells an IPv6 address, not part of it.
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: Number(parsed.port || 6379),
    isTls,
    ...(parsed.username && { username: decoded(parsed.username) }),
    ...(parsed.password && { password: decoded(parsed.password) }),
    database: Number(database || 0),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refused('its user or password has a % that encodes nothing')
  }
}

function refused(why: string): SlidegateError {
  return invalidOption(
    `the url of redisStore cannot be used: ${why}; it must be redis://, rediss://, valkey:// or valkeys://[user:password@]host[:port][/database]`,
  )
}
