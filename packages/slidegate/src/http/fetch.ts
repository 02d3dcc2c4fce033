// Shared by frameworks whose handlers take a Request and return a Response, in any runtime.
import { invalidOption, type SlidegateError } from '../errors.ts'
import { mayBeCut } from './client-address.ts'
import type { Binding, Denial, Verdict } from './guard.ts'
import { type HeaderAccess, placeHeadersBefore } from './headers.ts'
import { promised } from './maybe-async.ts'
import { type NodeRequest, type NodeResponse, whenOver } from './node.ts'
import type { FinishedResponse, HandlerArguments, HandlerResponse } from './options.ts'

/** What a runtime passes to a handler about the connection, beside the request. */
export interface Connection {
  /** Node, as @hono/node-server has it. */
  readonly incoming?: NodeRequest
  readonly outgoing?: NodeResponse
  /** Deno. */
  readonly remoteAddr?: { readonly hostname?: string }
  /** Bun. */
  requestIP?(request: Request): { readonly address: string } | null
}

/** The part of a binding that is the same for all of them. `connectionOf` may return something else: platforms differ. */
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
    isCut(...args) {
      const { incoming } = asConnection(connectionOf(...args))
      return incoming !== undefined && mayBeCut(incoming)
    },
    signal: (...args) => requestOf(...args).signal,
  }
}

export function asConnection(given: unknown): Connection {
  return typeof given === 'object' && given !== null ? given : {}
}

/** Finds how the platform reports the address of the connection's other end; undefined if it doesn't. */
function addressSourceOf(connection: Connection): ((request: Request) => string | undefined) | undefined {
  const { incoming, remoteAddr, requestIP } = connection
  if (incoming?.socket !== undefined) return () => incoming.socket.remoteAddress
  if (remoteAddr !== undefined) return () => remoteAddr.hostname
  if (typeof requestIP === 'function') return (request) => requestIP.call(connection, request)?.address
  return undefined
}

/** Without it all callers would share one key. */
function unknownAddress(): SlidegateError {
  return invalidOption(
    "the client's address is not known here; give a key function, or say in address who tells it, such as { trust: 1, header: 'cf-connecting-ip' }",
  )
}

/** Answers a denied request. What the user's function returns is passed on as it is. */
export async function denialResponse(
  denial: Exclude<Denial, { action: 'drop' }>,
  respond: (body: string, init: { status: number; headers: Record<string, string> }) => Response,
): Promise<unknown> {
  if (denial.action === 'custom') return await promised(denial.answer)
  const headers = Object.fromEntries(denial.headers.map(({ name, value }) => [name, value]))
  return respond(denial.body, { status: denial.status, headers })
}

/** For a connection that is closed: only logs see it, which know the status from nginx. */
export function droppedResponse(): Response {
  return new Response(null, { status: 499 })
}

/** Sets a verdict's headers on a response, which may have those of later limiters. Returns a copy if it is immutable. */
export function withHeaders<R extends HandlerResponse>(
  { headers, denial }: Verdict,
  answer: R,
): R | Response {
  // Upgrades, and errors of the network.
  if (!answer || answer.status < 200) return answer
  const on = new ResponseFields(answer)
  placeHeadersBefore(headers, on, denial === undefined && isDenial(answer))
  for (const { name, value } of denial?.action === 'custom' ? denial.headers : []) {
    if (on.get(name) === undefined) on.set(name, value)
  }
  return on.response
}

class ResponseFields implements HeaderAccess {
  /** A copy once a header was set on an immutable one. */
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
      // It was fetched, or is a redirect.
      this.response = new Response(this.response.body, this.response)
      this.response.headers.set(name, value)
    }
  }
}

/** Whether a later limiter has denied the request, by its response. */
function isDenial({ status, headers }: Response): boolean {
  return (status === 429 || status === 503) && headers.has('retry-after')
}

/** Handles a request, and calls back once the response is over: sent by Node, or elsewhere read to its end. */
export async function watchResponse<R extends HandlerResponse>(
  over: (response: FinishedResponse) => void,
  request: Request,
  { outgoing }: Connection,
  handle: () => Promise<R>,
): Promise<R | Response> {
  let answer: R | undefined
  const header = (name: string) => answer?.headers.get(name) ?? undefined
  if (outgoing !== undefined) {
    // The headers that were sent can't be read from it.
    whenOver(outgoing, (sent) => over({ ...sent, header }))
    answer = await handle()
    return answer
  }
  try {
    answer = await handle()
  } catch (error) {
    over({ status: 500, isComplete: true, header })
    throw error
  }
  const { status = 200, body = null } = answer ?? {}
  const finish = (isComplete: boolean) => over({ status, isComplete, header })
  if (body === null || status < 200 || request.method === 'HEAD') {
    finish(!request.signal.aborted)
    return answer
  }
  return new Response(watchBody(body, finish), answer as Response)
}

/** The same stream, read only on demand. */
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
