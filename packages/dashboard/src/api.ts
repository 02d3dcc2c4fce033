// Sends requests to the service with this tab's token.

/** An error response from the service: a problem (RFC 9457). */
export class ApiError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, detail: string) {
    super(detail)
    this.status = status
    this.code = code
  }
}

const TOKEN = 'slidegate.token'

/** The current token. It is kept until the tab is closed. */
export function token(): string | null {
  return sessionStorage.getItem(TOKEN)
}

export function keepToken(text: string | null): void {
  if (text === null) sessionStorage.removeItem(TOKEN)
  else sessionStorage.setItem(TOKEN, text)
}

/** Moves the token from an admin link's URL into session storage. */
export function takeTokenOfLink(): void {
  const url = new URL(location.href)
  const text = url.searchParams.get('token')
  if (text === null) return
  keepToken(text)
  url.searchParams.delete('token')
  history.replaceState(history.state, '', url)
}

/**
 * Sends a request and returns the parsed response. JSON lines become an array.
 *
 * @throws {ApiError} if the service rejects the request, or the error from `fetch` if the service is unreachable
 */
export async function request<Answer>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await send(method, path, body, signal)
  if (response.headers.get('content-type') !== 'application/x-ndjson')
    return (await response.json()) as Answer
  const lines = (await response.text()).split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line)) as Answer
}

/** Downloads a large response that isn't JSON. Throws like {@link request}. */
export async function requestBlob(path: string): Promise<Blob> {
  const response = await send('GET', path)
  return await response.blob()
}

/** The name of the `window` event that reports a rejected token. */
export const UNAUTHORIZED = 'slidegate:unauthorized'

/** Yields server-sent events until the signal aborts. Uses `fetch`, because an EventSource can't send a token. */
export async function* events(
  path: string,
  signal: AbortSignal,
): AsyncGenerator<{ readonly event: string; readonly data: string }> {
  const response = await send('GET', path, undefined, signal)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      // Split at line feeds only: JSON may contain other line separators.
      const lines = block.split('\n')
      const field = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length)
      const [event, data] = [field('event: '), field('data: ')]
      if (event !== undefined && data !== undefined) yield { event, data }
    }
  }
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const bearer = token()
  // Paths are relative to the page, because the service may be mounted at any path.
  const url = new URL(`.${path}`, new URL('.', location.href))
  const response = await fetch(url, {
    method,
    signal: signal ?? null,
    headers: {
      ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (response.ok) return response
  const { code = 'failed', detail = `HTTP ${response.status}` } = await response.json().catch(() => ({}))
  if (response.status === 401 && bearer === token()) dispatchEvent(new Event(UNAUTHORIZED))
  throw new ApiError(response.status, code, detail)
}
