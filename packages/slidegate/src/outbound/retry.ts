// Decides which requests are safe to send again, and when.
/** Methods that may be repeated without more effect than once: RFC 9110, section 9.2.2. */
const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']

export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.includes(method)
}

/** Whether a body can be read more than once. */
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

/** Errors of a connection that was never made. */
const UNCONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']

/** Errors of a connection on which the request may have got through. */
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

/** The network error that this is, or is caused by. */
function networkError(error: unknown): NetworkError {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown }
  return (typeof code === 'string' ? error : (cause ?? {})) as NetworkError
}

export function isNetworkError(error: unknown): boolean {
  const { code } = networkError(error)
  return UNCONNECTED.includes(code as string) || BROKEN.includes(code as string)
}

/**
 * Whether the upstream has certainly seen nothing of the request.
 *
 * @param isFollowed whether it may have been sent elsewhere by then, by an upstream that has seen it
 */
export function isUnseen(error: unknown, url: URL, isFollowed: boolean): boolean {
  const { code, hostname, address, port } = networkError(error)
  if (!UNCONNECTED.includes(code as string)) return false
  if (!isFollowed || hostname === url.hostname) return true
  const { protocol, hostname: host, port: given } = url
  return `${address}:${port}` === `${bare(host)}:${given || (protocol === 'https:' ? 443 : 80)}`
}

/** An IPv6 address as sockets report it. */
function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

/** The maximum random delay of the second attempt, beyond what the upstream asks for; doubled for each further one. */
const BACKOFF_MS = 500

/**
 * Milliseconds until the next attempt: what the upstream asks for, and a random part, so that requests that were refused
 * together don't come back together. `undefined` if there is no next attempt.
 *
 * @param attempt how often it was sent
 */
export function delayMs(
  { attempts, maxDelayMs }: { readonly attempts: number; readonly maxDelayMs: number },
  attempt: number,
  askedMs: number,
  random: () => number,
): number | undefined {
  if (attempt >= attempts || askedMs > maxDelayMs) return undefined
  return askedMs + random() * Math.min(BACKOFF_MS * 2 ** (attempt - 1), maxDelayMs - askedMs)
}
