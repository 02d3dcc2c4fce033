// Code shared by the adapters on node:http: reads requests, detects the end of a response, and carries out verdicts.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import { mayBeTruncated, textOf } from './client-address.ts'
import type { DenialResponse } from './denial-message.ts'
import type { Binding, Denial, Guard, Verdict } from './guard.ts'
import { type HeaderAccess, lowerCase, placeHeaders } from './headers.ts'
import { asError, isPending } from './maybe-async.ts'
import type { FinishedResponse, HandlerArguments } from './options.ts'

export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** The part of the binding that all adapters on node:http share. */
export function nodeBinding<Args extends HandlerArguments>(
  requestOf: (...args: Args) => NodeRequest,
  responseOf: (...args: Args) => NodeResponse,
): Omit<Binding<Args>, 'address'> {
  return {
    canDrop: true,
    peer: (...args) => requestOf(...args).socket?.remoteAddress,
    header: (name, ...args) => textOf(requestOf(...args).headers[name]),
    isTruncated: (...args) => mayBeTruncated(requestOf(...args)),
    signal: (...args) => hangUp(responseOf(...args)),
  }
}

/** Returns a signal that is aborted when the connection or HTTP/2 stream closes. */
function hangUp(res: NodeResponse): AbortSignal {
  const controller = new AbortController()
  whenClosed(res, () => controller.abort())
  return controller.signal
}

/** Calls back when the response has been sent or the client has disconnected. */
export function whenOver(
  res: NodeResponse,
  onFinished: (response: FinishedResponse) => void,
  fields: HeaderAccess = new NodeReply(res),
): void {
  const isComplete = completeness(res)
  whenClosed(res, () =>
    onFinished({ status: res.statusCode, isComplete: isComplete(), header: (name) => fields.get(name) }),
  )
}

/** Returns a function that checks whether the response is complete. The `finish` event alone doesn't guarantee that. */
function completeness(res: NodeResponse): () => boolean {
  if ('stream' in res) return () => res.writableFinished && !res.stream.aborted
  let isSent = false
  // Must run before Node's own listener, which detaches the socket.
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
  // If a connection closes, only the first of its pipelined responses emits `close`.
  if (socket !== undefined) stops.push(onClose(socket, once))
}

/** The callbacks for each response or socket. They share one listener, because Node warns about more than ten. */
const listeners = new WeakMap<NodeResponse | Socket, Set<() => void>>()

/** Calls back on `close`. Returns a function that unsubscribes. */
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

/** A response that hasn't been sent. Its methods set its headers, answer the request or close the connection. */
export interface Reply extends HeaderAccess {
  /** Calls back when the response has been sent or the client has disconnected. */
  whenOver(onFinished: (response: FinishedResponse) => void): void
  /** Responds to a denied request. The headers are already set. */
  answer(answer: DenialResponse): unknown
  /** Closes the connection without a response. */
  drop(): unknown
}

export class NodeReply implements Reply {
  readonly #res: NodeResponse

  constructor(res: NodeResponse) {
    this.#res = res
  }

  get(name: string): string | undefined {
    return this.#res.getHeader(lowerCase(name))?.toString()
  }

  set(name: string, value: string): void {
    this.#res.setHeader(name, value)
  }

  whenOver(onFinished: (response: FinishedResponse) => void): void {
    whenOver(this.#res, onFinished, this)
  }

  answer({ status, body }: DenialResponse): void {
    this.#res.statusCode = status
    this.#res.end(body)
  }

  drop(): void {
    drop(this.#res)
  }
}

interface Fields {
  getHeader(name: string): number | string | string[] | undefined
  header(name: string, value: string): unknown
}

/** A Fastify reply or a Nest response. */
export abstract class FrameworkReply<Own extends Fields> implements Reply {
  protected readonly own: Own

  constructor(own: Own) {
    this.own = own
  }

  get(name: string): string | undefined {
    return this.own.getHeader(lowerCase(name))?.toString()
  }

  set(name: string, value: string): void {
    this.own.header(name, value)
  }

  whenOver(onFinished: (response: FinishedResponse) => void): void {
    whenOver(this.raw, onFinished, this)
  }

  drop(): void {
    drop(this.raw)
  }

  abstract get raw(): NodeResponse
  abstract answer(answer: DenialResponse): unknown
}

/** Closes the connection. With HTTP/2, closes only the stream, because other streams share the connection. */
export function drop(res: NodeResponse): void {
  if ('stream' in res && res.stream !== undefined) res.stream.close(HTTP2_CANCEL)
  else res.destroy()
}

/** RFC 9113, section 7. */
const HTTP2_CANCEL = 8

type Next = (error?: Error) => void

/**
 * Calls the guard and carries out its verdict. Calls `next()` for admitted requests, and `next(error)` after an error.
 *
 * Returns no promise, because Express 5 would pass its rejection to `next` again.
 */
export function enter<Args extends HandlerArguments>(
  guard: Guard<Args>,
  args: Args,
  reply: Reply,
  next: Next,
): void {
  let verdict: ReturnType<Guard<Args>>
  try {
    verdict = guard(...args)
  } catch (reason) {
    next(asError(reason))
    return
  }
  if (isPending(verdict)) carryOutLater(verdict, reply, next)
  else carryOut(verdict, reply, next)
}

/** Separate from `enter`: a function with closures allocates memory even if it never creates them. */
function carryOutLater(verdict: PromiseLike<Verdict>, reply: Reply, next: Next): void {
  verdict.then((known) => carryOut(known, reply, next), failing(next))
}

function carryOut({ headers, denial, onFinished }: Verdict, reply: Reply, next: Next): void {
  let answered: unknown
  try {
    placeHeaders(headers, reply)
    if (onFinished !== undefined) reply.whenOver(onFinished)
    if (denial !== undefined) answered = deny(denial, reply)
  } catch (reason) {
    next(asError(reason))
    return
  }
  // Called outside the `try`, because an error from next() isn't the guard's.
  if (denial === undefined) next()
  // onDenied may return a Fastify reply, which is a thenable.
  else if (isPending(answered)) answered.then(ignore, failing(next))
}

function deny(denial: Denial, reply: Reply): unknown {
  if (denial.action === 'drop') return reply.drop()
  for (const { name, value } of denial.headers) reply.set(name, value)
  return denial.action === 'custom' ? denial.answer() : reply.answer(denial)
}

function failing(next: Next): (reason: unknown) => void {
  return (reason) => next(asError(reason))
}

function ignore(): void {}

/** Returns Connect middleware. It calls `next()` for admitted requests, and `next(error)` after an error. */
export function connect<Req, Res extends NodeResponse, Next extends (error?: unknown) => void>(
  guard: Guard<[req: Req, res: Res, next: Next]>,
): (req: Req, res: Res, next: Next) => void {
  return (req, res, next) => enter(guard, [req, res, next], new NodeReply(res), next)
}
