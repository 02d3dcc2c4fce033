import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import type { Answered, Binding, HandlerArguments } from './binding.ts'
import { mayBeCut, textOf } from './client-address.ts'
import { gate } from './gate.ts'
import type { Guard } from './guard.ts'
import type { HeaderAccess } from './headers.ts'

// What frameworks that are built on node:http share.

export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** What of a binding is the same for all of them, given their way to what they are built on. */
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

/** Tells what became of the response, once it has been sent or the client is gone. */
export function whenOver(
  res: NodeResponse,
  over: (response: Answered) => void,
  fields: HeaderAccess = new NodeFields(res),
): void {
  const isComplete = completeness(res)
  whenClosed(res, () =>
    over({ status: res.statusCode, isComplete: isComplete(), header: (name) => fields.get(name) }),
  )
}

/** Responses that were cut off, or never begun, are finished for Node, too. */
function completeness(res: NodeResponse): () => boolean {
  if ('stream' in res) return () => res.writableFinished && !res.stream.aborted
  let isSent = false
  // First, since those of Node part the response from its connection.
  res.prependOnceListener('finish', () => {
    isSent = !res.socket?.destroyed && !res.socket?.errored
  })
  return () => isSent
}

function whenClosed(res: NodeResponse, tell: () => void): void {
  const isStream = 'stream' in res
  const socket = isStream ? undefined : res.req.socket
  if (isStream ? res.stream.destroyed : res.destroyed || socket?.destroyed) {
    tell()
    return
  }
  const stops: (() => void)[] = []
  const once = () => {
    for (const stop of stops) stop()
    tell()
  }
  stops.push(onClose(res, once))
  // Of pipelined requests those whose turn has not come are not told that the connection closes.
  if (socket !== undefined) stops.push(onClose(socket, once))
}

/** One listener for each, however many limiters and requests there are: more than ten look like a leak to Node. */
const listeners = new WeakMap<NodeResponse | Socket, Set<() => void>>()

/** Calls back when it closes; answers what ends that. */
function onClose(closing: NodeResponse | Socket, tell: () => void): () => void {
  let all = listeners.get(closing)
  if (all === undefined) {
    const those = new Set<() => void>()
    all = those
    listeners.set(closing, those)
    closing.once('close', () => {
      for (const each of [...those]) each()
    })
  }
  all.add(tell)
  return () => all.delete(tell)
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

/** Closes the connection; of HTTP/2 only the stream, for others share the connection. */
export function drop(res: NodeResponse): void {
  if ('stream' in res && res.stream !== undefined) res.stream.close(HTTP2_CANCEL)
  else res.destroy()
}

/** RFC 9113, section 7. */
const HTTP2_CANCEL = 8

type Connected<Req, Res, Next> = [req: Req, res: Res, next: Next]

/** A middleware as Connect has it: `next` is called for admitted requests, and with errors. */
export function connect<Req, Res extends NodeResponse, Next extends (error?: unknown) => void>(
  guard: Guard<Connected<Req, Res, Next>>,
): (req: Req, res: Res, next: Next) => void {
  const enter = gate<Connected<Req, Res, Next>>({
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
