// What frameworks on node:http share: the binding, the end of a response, and middleware that carries verdicts out.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import { mayBeCut, textOf } from './client-address.ts'
import type { DenialAnswer } from './denial-message.ts'
import type { Binding, Denial, Guard, Verdict } from './guard.ts'
import { type HeaderAccess, placeHeaders } from './headers.ts'
import { asError, isPending, settle } from './maybe-async.ts'
import type { FinishedResponse, HandlerArguments } from './options.ts'

export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** The part of a binding that is the same for all of them. */
export function nodeBinding<Args extends HandlerArguments>(
  requestOf: (...args: Args) => NodeRequest,
  responseOf: (...args: Args) => NodeResponse,
): Omit<Binding<Args>, 'address'> {
  return {
    canDrop: true,
    peer: (...args) => requestOf(...args).socket?.remoteAddress,
    header: (name, ...args) => textOf(requestOf(...args).headers[name]),
    isCut: (...args) => mayBeCut(requestOf(...args)),
    signal: (...args) => hangUp(responseOf(...args)),
  }
}

/** Aborted when the connection, or the stream of HTTP/2, closes. */
function hangUp(res: NodeResponse): AbortSignal {
  const controller = new AbortController()
  whenClosed(res, () => controller.abort())
  return controller.signal
}

/** Calls back once the response has been sent or the client is gone. */
export function whenOver(
  res: NodeResponse,
  over: (response: FinishedResponse) => void,
  fields: HeaderAccess = new NodeFields(res),
): void {
  const isComplete = completeness(res)
  whenClosed(res, () =>
    over({ status: res.statusCode, isComplete: isComplete(), header: (name) => fields.get(name) }),
  )
}

/** Node calls responses finished that were cut off, or never begun. */
function completeness(res: NodeResponse): () => boolean {
  if ('stream' in res) return () => res.writableFinished && !res.stream.aborted
  let isSent = false
  // Before Node's own listeners, which separate the response from its connection.
  res.prependOnceListener('finish', () => {
    isSent = !res.socket?.destroyed && !res.socket?.errored
  })
  return () => isSent
}

function whenClosed(res: NodeResponse, callback: () => void): void {
  const isStream = 'stream' in res
  const socket = isStream ? undefined : res.req.socket
  if (isStream ? res.stream.destroyed : res.destroyed || socket?.destroyed) {
    callback()
    return
  }
  const stops: (() => void)[] = []
  const once = () => {
    for (const stop of stops) stop()
    callback()
  }
  stops.push(onClose(res, once))
  // Of pipelined requests, only the one whose turn it is gets an event when the connection closes.
  if (socket !== undefined) stops.push(onClose(socket, once))
}

/**
 * One listener for each, however many requests there are: more than ten look like a leak to Node. A connection that closes ends all
 * responses on it, but Node notifies only the one whose turn it is. So each response listens to the socket.
 */
const listeners = new WeakMap<NodeResponse | Socket, Set<() => void>>()

/** Calls back when it closes. Returns a function that stops this. */
function onClose(closing: NodeResponse | Socket, callback: () => void): () => void {
  let all = listeners.get(closing)
  if (all === undefined) {
    const those = new Set<() => void>()
    all = those
    listeners.set(closing, those)
    closing.once('close', () => {
      for (const each of [...those]) each()
    })
  }
  all.add(callback)
  return () => all.delete(callback)
}

/** The fields of a response, before it is sent. */
export class NodeFields implements HeaderAccess {
  readonly #res: NodeResponse

  constructor(res: NodeResponse) {
    this.#res = res
  }

  get(name: string): string | undefined {
    return this.#res.getHeader(name)?.toString()
  }

  set(name: string, value: string): void {
    this.#res.setHeader(name, value)
  }
}

/** The fields of a Fastify reply or a Nest response. */
export class ReplyFields implements HeaderAccess {
  readonly #reply: Reply

  constructor(reply: Reply) {
    this.#reply = reply
  }

  get(name: string): string | undefined {
    return this.#reply.getHeader(name)?.toString()
  }

  set(name: string, value: string): void {
    this.#reply.header(name, value)
  }
}

interface Reply {
  getHeader(name: string): number | string | string[] | undefined
  header(name: string, value: string): unknown
}

/** Closes the connection, or of HTTP/2 only the stream, since others share the connection. */
export function drop(res: NodeResponse): void {
  if ('stream' in res && res.stream !== undefined) res.stream.close(HTTP2_CANCEL)
  else res.destroy()
}

/** RFC 9113, section 7. */
const HTTP2_CANCEL = 8

/** How verdicts are carried out in a framework that goes on by a callback. */
export interface Responses<Args extends HandlerArguments> {
  fields(...args: Args): HeaderAccess
  /** Calls back once the response has been sent or the client is gone. */
  whenOver(over: (response: FinishedResponse) => void, ...args: Args): void
  /** Answers a denied request, after the headers were set. */
  answer(answer: DenialAnswer, ...args: Args): unknown
  /** Closes the connection without an answer. */
  drop(...args: Args): unknown
  /** Goes on to the handler, or to the error handler. */
  next(...args: Args): (error?: Error) => void
}

/** Calls `next` for requests that the guard admits. No promise is returned: Express 5 would pass its rejection to next once more. */
export function middleware<Args extends HandlerArguments>(
  responses: Responses<Args>,
): (guard: Guard<Args>, ...args: Args) => void {
  function carryOut({ headers, denial, over }: Verdict, args: Args): void {
    let answered: unknown
    try {
      placeHeaders(headers, responses.fields(...args))
      if (over !== undefined) responses.whenOver(over, ...args)
      if (denial !== undefined) answered = deny(denial, args)
    } catch (reason) {
      fail(reason, args)
      return
    }
    // What is thrown downstream of next() is not ours to handle.
    if (denial === undefined) responses.next(...args)()
    // A reply of Fastify has a then, too, which calls its callback later.
    else if (isPending(answered)) answered.then(ignore, (reason) => fail(reason, args))
  }

  function deny(denial: Denial, args: Args): unknown {
    if (denial.action === 'drop') return responses.drop(...args)
    const fields = responses.fields(...args)
    for (const { name, value } of denial.headers) fields.set(name, value)
    return denial.action === 'custom' ? denial.answer() : responses.answer(denial, ...args)
  }

  function fail(reason: unknown, args: Args): void {
    responses.next(...args)(asError(reason))
  }

  return (guard, ...args) => settle(guard, args, carryOut, fail)
}

function ignore(): void {}

type Connected<Req, Res, Next> = [req: Req, res: Res, next: Next]

/** Connect middleware: `next` is called for admitted requests, and with errors. */
export function connect<Req, Res extends NodeResponse, Next extends (error?: unknown) => void>(
  guard: Guard<Connected<Req, Res, Next>>,
): (req: Req, res: Res, next: Next) => void {
  const enter = middleware<Connected<Req, Res, Next>>({
    fields: (_, res) => new NodeFields(res),
    whenOver: (over, _, res) => whenOver(res, over),
    answer: ({ status, body }, _, res) => {
      res.statusCode = status
      res.end(body)
    },
    drop: (_, res) => drop(res),
    next: (_, __, next) => next,
  })
  return (req, res, next) => enter(guard, req, res, next)
}
