// limitedFetch(): wraps any fetch to stay within an upstream's limits.
import { invalidOption, show } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import { Attempts } from './attempts.ts'
import { type OutboundOptions, outboundSettings } from './options.ts'

/** The parts of a `Response` that are read. */
interface AnyResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
}

/** Any `fetch`: the platform's, undici's, or a wrapper. */
export type AnyFetch = (input: never, init?: never) => Promise<AnyResponse>

/** The parts of a `Request`, or of its options, that are read. */
interface RequestParts {
  readonly url?: string
  readonly method?: string
  readonly body?: unknown
  readonly signal?: AbortSignal | null
  readonly redirect?: string
}

/**
 * Wraps `fetch`: requests wait for the limiter and obey the upstream's rate limit headers.
 *
 * All processes with the same store share the budget. Redirects that `fetch` follows aren't counted. If the upstream redirects to
 * itself, use `redirect: 'manual'`.
 *
 * In addition to the errors from `fetch`, the promise rejects with:
 * - the signal's reason, if it is aborted
 * - a `WaitError` (`full`, `timeout`, `impossible`), if the limiter doesn't admit the request
 * - a `StoreUnavailableError`, if the store is unavailable
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function limitedFetch<Fetch extends AnyFetch>(
  fetch: Fetch,
  limiter: Limiter,
  options?: OutboundOptions,
): Fetch {
  if (typeof fetch !== 'function') {
    throw invalidOption(`fetch is ${show(fetch)}; it must be a function`, fetch)
  }
  const settings = outboundSettings(limiter, options)
  const send = fetch as unknown as (input: unknown, init?: RequestParts) => Promise<AnyResponse>

  async function limited(input: unknown, init?: RequestParts): Promise<AnyResponse> {
    const isRequest = typeof input === 'object' && input !== null && 'url' in input
    const request = (isRequest ? input : {}) as RequestParts
    const method = (init?.method ?? request.method ?? 'GET').toUpperCase()
    const attempts = new Attempts(settings, {
      url: new URL(request.url ?? `${input}`, pageUrl()),
      method,
      signal: init?.signal ?? request.signal ?? undefined,
      body: init?.body ?? request.body,
      isFollowed: (init?.redirect ?? request.redirect ?? 'follow') === 'follow',
    })
    for (;;) {
      await attempts.admitted()
      let response: AnyResponse
      try {
        response = await send(input, init)
      } catch (error) {
        if (attempts.failed(error)) continue
        throw error
      }
      const isDropped = attempts.answered(response.status, (name) => response.headers.get(name))
      await attempts.moved
      if (!isDropped) return response
      // Frees the connection.
      await response.body?.cancel().catch(() => {})
    }
  }

  return limited as unknown as Fetch
}

/** The base URL that browsers resolve relative URLs against. */
function pageUrl(): string | undefined {
  return (globalThis as { readonly location?: { readonly href: string } }).location?.href
}
