import { invalidOption, type SlidegateError, show } from '../../errors.ts'

/** Where a server is, and as whom it is spoken to. */
export interface Address {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  readonly username?: string
  readonly password?: string
  readonly database: number
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
