// Decides which requests are safe to send again, and when.
/** RFC 9110, section 9.2.2. */
const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']

export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.includes(method)
}

/** Whether a body can be sent more than once. */
export function isRepeatable(body: unknown): boolean {
  return (
    body === undefined ||
    body === null ||
    typeof body === 'string' ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof URLSearchParams ||
    body instanceof Blob ||
    body instanceof FormData
  )
}

/** Errors for connections that were never established. */
const UNCONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']

/** Errors after which the request may have reached the upstream. */
const BROKEN = [
  ...['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET'],
  ...['ENETDOWN', 'ENETUNREACH', 'EHOSTDOWN', 'EHOSTUNREACH'],
]

interface NetworkError {
  readonly code?: unknown
  readonly hostname?: unknown
  readonly address?: unknown
  readonly port?: unknown
}

/** Returns the error or its cause, whichever has a code. */
function networkError(error: unknown): NetworkError {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown }
  return (typeof code === 'string' ? error : (cause ?? {})) as NetworkError
}

export function isNetworkError(error: unknown): boolean {
  const { code } = networkError(error)
  return UNCONNECTED.includes(code as string) || BROKEN.includes(code as string)
}

/**
 * Whether the request definitely never reached the upstream.
 *
 * @param isFollowed whether redirects are followed, in which case the request may have failed at another host
 */
export function neverArrived(error: unknown, url: URL, isFollowed: boolean): boolean {
  const { code, hostname, address, port } = networkError(error)
  if (!UNCONNECTED.includes(code as string)) return false
  if (!isFollowed || hostname === url.hostname) return true
  const { protocol, hostname: host, port: given } = url
  return `${address}:${port}` === `${bare(host)}:${given || (protocol === 'https:' ? 443 : 80)}`
}

/** Removes the brackets around an IPv6 address, because sockets report it without them. */
function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

/** Maximum random delay before the second attempt. Doubles with each further attempt. */
const BACKOFF_MS = 500

/**
 * Returns the milliseconds until the next attempt, or `undefined` if there is none.
 *
 * Adds jitter to the delay that the upstream requests, so that requests rejected together aren't retried together.
 *
 * @param attempt how many times the request has been sent
 */
export function delayMs(
  { maxAttempts, maxDelayMs }: { readonly maxAttempts: number; readonly maxDelayMs: number },
  attempt: number,
  requestedMs: number,
  random: () => number,
): number | undefined {
  if (attempt >= maxAttempts || requestedMs > maxDelayMs) return undefined
  return requestedMs + random() * Math.min(BACKOFF_MS * 2 ** (attempt - 1), maxDelayMs - requestedMs)
}
