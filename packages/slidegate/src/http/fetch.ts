// Code shared by the adapters for Fetch API handlers, in any runtime.
import { invalidOption, type SlidegateError } from '../errors.ts'
import { mayBeTruncated } from './client-address.ts'
import type { Binding, Denial, Verdict } from './guard.ts'
import { type HeaderAccess, placeHeadersBefore } from './headers.ts'
import { promised } from './maybe-async.ts'
import { type NodeRequest, type NodeResponse, whenOver } from './node.ts'
import type { FinishedResponse, HandlerArguments, HandlerResponse } from './options.ts'

/** The connection as a runtime passes it to a handler. */
export interface Connection {
  /** Set by @hono/node-server on Node. */
  readonly incoming?: NodeRequest
  readonly outgoing?: NodeResponse
  /** Set by Deno. */
  readonly remoteAddr?: { readonly hostname?: string }
  /** Set by Bun. */
  requestIP?(request: Request): { readonly address: string } | null
}

/** The part of the binding that all Fetch API adapters share. `connectionOf` may return any value, since platforms differ. */
export function fetchBinding<Args extends HandlerArguments>(
  requestOf: (...args: Args) => Request,
  connectionOf: (...args: Args) => unknown,
): Omit<Binding<Args>, 'canDrop'> {
  const addressIn = (args: Args) => addressSourceOf(asConnection(connectionOf(...args)))
  return {
    address(...args) {
      const read = addressIn(args)
      if (read === undefined) throw unknownAddress()
      return read(requestOf(...args))
    },
    peer: (...args) => addressIn(args)?.(requestOf(...args)),
    header: (name, ...args) => requestOf(...args).headers.get(name) ?? undefined,
    isTruncated(...args) {
      const { incoming } = asConnection(connectionOf(...args))
      return incoming !== undefined && mayBeTruncated(incoming)
    },
    signal: (...args) => requestOf(...args).signal,
  }
}

export function asConnection(given: unknown): Connection {
  return typeof given === 'object' && given !== null ? given : {}
}

/** Returns a function that reads the peer's address, or `undefined` if the platform has none. */
function addressSourceOf(connection: Connection): ((request: Request) => string | undefined) | undefined {
  const { incoming, remoteAddr, requestIP } = connection
  if (incoming?.socket !== undefined) return () => incoming.socket.remoteAddress
  if (remoteAddr !== undefined) return () => remoteAddr.hostname
  if (typeof requestIP === 'function') return (request) => requestIP.call(connection, request)?.address
  return undefined
}

/** The error for a missing address. Without an error, all callers would share one key. */
function unknownAddress(): SlidegateError {
  return invalidOption(
    "the platform reports no client address; set key or address (such as { trust: 1, header: 'cf-connecting-ip' })",
  )
}

/** Returns the response to a denied request, or the result of `onDenied`. */
export async function denialResponse(
  denial: Exclude<Denial, { action: 'drop' }>,
  respond: (body: string, init: { status: number; headers: Record<string, string> }) => Response,
): Promise<unknown> {
  if (denial.action === 'custom') return await promised(denial.answer)
  const headers = Object.fromEntries(denial.headers.map(({ name, value }) => [name, value]))
  return respond(denial.body, { status: denial.status, headers })
}

/** The response for a closed connection. It appears only in logs, and has the status that nginx uses. */
export function droppedResponse(): Response {
  return new Response(null, { status: 499 })
}

/** Sets a verdict's headers on a response, which may already have headers from later limiters. Copies an immutable response. */
export function withHeaders<R extends HandlerResponse>(
  { headers, denial }: Verdict,
  answer: R,
): R | Response {
  // An upgrade or a network error has no headers.
  if (!answer || answer.status < 200) return answer
  const on = new ResponseFields(answer)
  placeHeadersBefore(headers, on, denial === undefined && isDenial(answer))
  for (const { name, value } of denial?.action === 'custom' ? denial.headers : []) {
    if (on.get(name) === undefined) on.set(name, value)
  }
  return on.response
}

class ResponseFields implements HeaderAccess {
  /** A copy, if the original was immutable. */
  response: Response

  constructor(response: Response) {
    this.response = response
  }

  get(name: string): string | undefined {
    return this.response.headers.get(name) ?? undefined
  }

  set(name: string, value: string): void {
    try {
      this.response.headers.set(name, value)
    } catch {
      // Fetched responses and redirects are immutable.
      this.response = new Response(this.response.body, this.response)
      this.response.headers.set(name, value)
    }
  }
}

/** Whether a later limiter denied the request. */
function isDenial({ status, headers }: Response): boolean {
  return (status === 429 || status === 503) && headers.has('retry-after')
}

/**
 * Handles a request and calls back when the response has ended. On Node, a response ends when it has been
 * sent; elsewhere, when its body has been read.
 */
export async function watchResponse<R extends HandlerResponse>(
  onFinished: (response: FinishedResponse) => void,
  request: Request,
  { outgoing }: Connection,
  handle: () => Promise<R>,
): Promise<R | Response> {
  let answer: R | undefined
  const header = (name: string) => answer?.headers.get(name) ?? undefined
  if (outgoing !== undefined) {
    // Reads headers from the Response, because Node no longer returns them after they are sent.
    whenOver(outgoing, (sent) => onFinished({ ...sent, header }))
    answer = await handle()
    return answer
  }
  try {
    answer = await handle()
  } catch (error) {
    onFinished({ status: 500, isComplete: true, header })
    throw error
  }
  const { status = 200, body = null } = answer ?? {}
  const finish = (isComplete: boolean) => onFinished({ status, isComplete, header })
  if (body === null || status < 200 || request.method === 'HEAD') {
    finish(!request.signal.aborted)
    return answer
  }
  return new Response(watchBody(body, finish), answer as Response)
}

/** Wraps a stream and calls back when it ends. The stream is still read on demand. */
function watchBody(body: ReadableStream, finish: (isComplete: boolean) => void): ReadableStream {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          finish(false)
          throw error
        }
        controller.close()
        finish(true)
      },
      cancel(reason) {
        finish(false)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
