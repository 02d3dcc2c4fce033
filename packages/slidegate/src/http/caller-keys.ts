import { sha256 } from '../runtime/platform.ts'

// Keys of callers who are known by something else than their address. Each says what it is, so that a user who is called
// like an address or a route is still somebody else. Where there is nothing to tell callers by, all share one key, which
// is the word alone: nobody gets around a limit by leaving something out.
//
// Only what was verified tells callers apart. Whoever may send any user, session or API key chooses a new key for each
// request: look it up first, and limit those whom you do not know by their address.

/** `user:42`, of a user who has logged in; all others are `user`. */
export function userKey(id: string | number | bigint | null | undefined): string {
  return id === null || id === undefined || id === '' ? 'user' : `user:${id}`
}

/** `session:` and a hash of the session's id, which is a secret and stands in no store; `session` without one. */
export function sessionKey(id: string | null | undefined): string {
  return secretKey('session', id)
}

/** `api-key:` and a hash of an API key or a bearer token, likewise; `api-key` without one. */
export function apiKeyKey(apiKey: string | null | undefined): string {
  return secretKey('api-key', apiKey)
}

/** As long as the whole address of RFC 5321, with room for what a form adds. */
const MAX_EMAIL = 320

/**
 * `email:` and the address in NFKC, without space around it and in lower case, so that it has one key in all its spellings;
 * `email` for what is none: not a string, empty, or longer than 320 characters.
 */
export function emailKey(email: unknown): string {
  if (typeof email !== 'string' || email.length > MAX_EMAIL) return 'email'
  // Lower case may compose anew.
  const address = email.toWellFormed().normalize('NFKC').toLowerCase().normalize('NFKC').trim()
  return address === '' ? 'email' : `email:${address}`
}

/** What the routers of Express and of Fastify leave on a request that they have matched. */
export interface RoutedRequest {
  readonly route?: { readonly path?: unknown } | undefined
  readonly routeOptions?: { readonly url?: string | undefined } | undefined
}

/**
 * `route:/users/:id`, the route that was matched, however the URL of the request is spelled (`//users/7`, `/USERS/7;x`);
 * `route` where none was. In Express that is known to middleware of the route only, and says nothing of where its router
 * is mounted, for of that just the caller's spelling is known: say it as `mount`, in your own words.
 */
export function routeKey({ route, routeOptions }: RoutedRequest, mount = ''): string {
  const path = routeOptions?.url ?? route?.path
  return path === undefined ? 'route' : `route:${mount}${String(path)}`
}

function secretKey(what: string, secret: string | null | undefined): string {
  if (typeof secret !== 'string' || secret === '') return what
  return `${what}:${sha256(secret)}`
}
