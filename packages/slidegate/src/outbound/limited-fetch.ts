// limitedFetch(): any fetch, within the limits of an upstream.
import { invalidOption, show } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import { Attempts } from './attempts.ts'
import { type OutboundOptions, outboundSettings } from './options.ts'

/** What is needed of a `Response`. */
interface AnyResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
}

/** Any `fetch`: that of the platform, of undici, or one that wraps it. */
export type AnyFetch = (input: never, init?: never) => Promise<AnyResponse>

/** What is read of a `Request` and of what goes with it. */
interface RequestParts {
  readonly url?: string
  readonly method?: string
  readonly body?: unknown
  readonly signal?: AbortSignal | null
  readonly redirect?: string
}

/**
 * A `fetch` whose requests wait for a slot within the limiter's budget, shared with all that use the same store, and heed
 * what the upstream answers. Redirects that it follows are requests of their own, of which it knows nothing: fetch with
 * `redirect: 'manual'` where the upstream redirects to itself.
 *
 * Rejects as `fetch` does, with the signal's reason when it is aborted, with a `WaitError` where there is no slot (`full`,
 * `late`, `never`), and with a `StoreUnavailableError` where the store gave no answer.
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
      // So that its connection is free.
      await response.body?.cancel().catch(() => {})
    }
  }

  return limited as unknown as Fetch
}

/** What URLs are relative to in browsers. */
function pageUrl(): string | undefined {
  return (globalThis as { readonly location?: { readonly href: string } }).location?.href
}
