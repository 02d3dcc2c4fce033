import { invalidOption, type SlidegateError } from '../errors.ts'
import { promised } from './at-once.ts'
import type { Answer, Answered, Binding, HandlerArguments } from './binding.ts'
import { mayBeCut } from './client-address.ts'
import type { Denial, Verdict } from './guard.ts'
import { type HeaderAccess, placeHeadersBefore } from './headers.ts'
import { type NodeRequest, type NodeResponse, whenOver } from './node.ts'

// What frameworks share whose handlers are given a Request and return a Response, in any runtime: nothing here is Node's.

/** What a runtime tells a handler of the connection, beside the request. */
export interface Connection {
  /** Node, as @hono/node-server has it. */
  readonly incoming?: NodeRequest
  readonly outgoing?: NodeResponse
  /** Deno. */
  readonly remoteAddr?: { readonly hostname?: string }
  /** Bun. */
  requestIP?(request: Request): { readonly address: string } | null
}

/** What of a binding is the same for all of them. What is handed in may be no connection: each platform has its own. */
export function fetchBinding<Args extends HandlerArguments>(
  requestOf: (...args: Args) => Request,
  connectionOf: (...args: Args) => unknown,
): Omit<Binding<Args>, 'canDrop'> {
  const tellerIn = (args: Args) => tellerOf(asConnection(connectionOf(...args)))
  return {
    address(...args) {
      const tell = tellerIn(args)
      if (tell === undefined) throw unknownAddress()
      return tell(requestOf(...args))
    },
    peer: (...args) => tellerIn(args)?.(requestOf(...args)),
    header: (name, ...args) => requestOf(...args).headers.get(name) ?? undefined,
    isCut(...args) {
      const { incoming } = asConnection(connectionOf(...args))
      return incoming !== undefined && mayBeCut(incoming)
    },
    signal: (...args) => requestOf(...args).signal,
  }
}

export function asConnection(told: unknown): Connection {
  return typeof told === 'object' && told !== null ? told : {}
}

/** Who tells the address of the connection's other end: nobody where a platform does not. */
function tellerOf(connection: Connection): ((request: Request) => string | undefined) | undefined {
  const { incoming, remoteAddr, requestIP } = connection
  if (incoming?.socket !== undefined) return () => incoming.socket.remoteAddress
  if (remoteAddr !== undefined) return () => remoteAddr.hostname
  if (typeof requestIP === 'function') return (request) => requestIP.call(connection, request)?.address
  return undefined
}

/** All callers would share one bucket, and nobody would know why. */
function unknownAddress(): SlidegateError {
  return invalidOption(
    "the client's address is not known here; give a key function, or say in address who tells it, such as { trust: 1, header: 'cf-connecting-ip' }",
  )
}

/** Answers a request that is not handled. What the user's function returns is not looked at. */
export async function answerTo(
  denial: Exclude<Denial, { action: 'drop' }>,
  respond: (body: string, init: { status: number; headers: Record<string, string> }) => Response,
): Promise<unknown> {
  if (denial.action === 'custom') return await promised(denial.answer)
  const headers = Object.fromEntries(denial.headers.map(({ name, value }) => [name, value]))
  return respond(denial.body, { status: denial.status, headers })
}

/** Where the connection is closed: nobody sees it but logs, which know the number from nginx. */
export function answerToNobody(): Response {
  return new Response(null, { status: 499 })
}

/** The response with the fields of a verdict, those of limiters behind it being there: a copy where it cannot be written to. */
export function placed<R extends Answer>({ headers, denial }: Verdict, answer: R): R | Response {
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
  /** A copy once a field was set where it cannot be written to. */
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

/** Whether a limiter behind has denied the request, as far as its response says. */
function isDenial({ status, headers }: Response): boolean {
  return (status === 429 || status === 503) && headers.has('retry-after')
}

/** Has a request handled, and tells what became of the response: by what Node has sent, elsewhere by how its body is read. */
export async function overseen<R extends Answer>(
  over: (response: Answered) => void,
  request: Request,
  { outgoing }: Connection,
  handle: () => Promise<R>,
): Promise<R | Response> {
  let answer: R | undefined
  const header = (name: string) => answer?.headers.get(name) ?? undefined
  if (outgoing !== undefined) {
    // The fields that were sent cannot be read off it.
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
  const tell = (isComplete: boolean) => over({ status, isComplete, header })
  if (body === null || status < 200 || request.method === 'HEAD') {
    tell(!request.signal.aborted)
    return answer
  }
  return new Response(watched(body, tell), answer as Response)
}

/** The same stream: nothing is read before it is asked for. */
function watched(body: ReadableStream, tell: (isComplete: boolean) => void): ReadableStream {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          tell(false)
          throw error
        }
        controller.close()
        tell(true)
      },
      cancel(reason) {
        tell(false)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
