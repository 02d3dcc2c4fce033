// Parses the URLs of Redis servers.

import type { ConnectionOptions } from 'node:tls'
import { checkOptions, checkThat, invalidOption, type SlidegateError, show } from '../../errors.ts'
import { dialectOf } from './clients.ts'

/** The server, for a store with its own client. */
export interface UrlOptions {
  /**
   * `redis://user:password@host:port/database`, or `rediss://` for TLS.
   *
   * You can also write `valkey://` and `valkeys://`. For a Cluster, pass one or more of its servers; the client finds the others.
   */
  readonly url: string | readonly string[]
  /** Whether the server belongs to a Redis Cluster. Default: true if several URLs are given. */
  readonly cluster?: boolean
  /** With `rediss://`: certificates and other options of `tls.connect`. */
  readonly tls?: ConnectionOptions
}

/** Returns the options if the source is a URL or has one. Ignores the `url` of a client. */
export function urlOptionsOf(source: unknown): UrlOptions | undefined {
  if (typeof source === 'string') return { url: source }
  const isUrl = typeof source === 'object' && source !== null && 'url' in source
  return isUrl && dialectOf(source) === undefined ? (source as UrlOptions) : undefined
}

export interface Address {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  readonly username?: string
  readonly password?: string
  readonly database: number
}

export interface Servers {
  readonly addresses: readonly [Address, ...Address[]]
  readonly isCluster: boolean
  readonly tls: ConnectionOptions
}

export function serversOf(options: UrlOptions): Servers {
  const { url, cluster, tls } = options
  const [first, ...others] = (Array.isArray(url) ? url : [url]).map(addressOf)
  if (first === undefined) throw invalidOption('url is an empty array; pass at least one URL', url)
  const isCluster = cluster ?? others.length > 0
  checkThat(typeof isCluster === 'boolean', 'cluster', cluster, 'true or false')
  if (!isCluster && others.length > 0)
    throw invalidOption(`url has ${others.length + 1} URLs; pass only one, or set cluster: true`)
  if (isCluster && [first, ...others].some(({ database }) => database !== 0))
    throw invalidOption('a url selects a database; a Cluster supports only database 0')
  if (others.some(({ isTls }) => isTls !== first.isTls))
    throw invalidOption("some URLs use TLS and some don't; use TLS in all of them or in none")
  if (tls !== undefined && !first.isTls) throw invalidOption('the tls option needs a rediss:// url')
  checkOptions(options, 'the first argument of redisStore', { url: true, cluster: true, tls: true })
  return { addresses: [first, ...others], isCluster, tls: tls ?? {} }
}

const SCHEMES: Readonly<Record<string, boolean>> = {
  'redis:': false,
  'valkey:': false,
  'rediss:': true,
  'valkeys:': true,
}

export function addressOf(url: unknown): Address {
  if (typeof url !== 'string') throw refused(`is ${show(url)}`)
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const isTls = SCHEMES[parsed?.protocol ?? '']
  const [, database] = /^\/?(\d*)$/.exec(parsed?.pathname ?? '/') ?? []
  // Errors must not contain the URL, because it may have a password.
  if (!parsed?.hostname || isTls === undefined || database === undefined || parsed.search || parsed.hash) {
    throw refused('has an unknown format')
  }
  return {
    // A URL has brackets around an IPv6 address.
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
    throw refused('has an invalid % in its user name or password')
  }
}

function refused(why: string): SlidegateError {
  return invalidOption(
    `the url for redisStore ${why}; it must be redis://, rediss://, valkey:// or valkeys://[user:password@]host[:port][/database]`,
  )
}
