// The adapter for ws: limits the messages on connections.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { RawData, WebSocket } from 'ws'
import { mayBeTruncated, textOf } from '../http/client-address.ts'
import { limitMessages, type MessageOptions } from '../http/messages.ts'

export type { DenialMessage } from '../http/denial-message.ts'

/** A connection and the request that opened it. */
export interface Connection<
  Socket extends WebSocket = WebSocket,
  Request extends IncomingMessage = IncomingMessage,
> {
  readonly socket: Socket
  readonly request: Request
  /** A random id, which is the default key. */
  readonly connectionId: string
}

export interface Message<
  Socket extends WebSocket = WebSocket,
  Request extends IncomingMessage = IncomingMessage,
> extends Connection<Socket, Request> {
  readonly data: RawData
  readonly isBinary: boolean
}

/**
 * The options shared by all message adapters. Default `maxPending`: 100.
 *
 * When this many messages are pending, reading pauses, so TCP slows the client down. Each message can be as large as
 * `maxPayload`.
 */
export interface RateLimitOptions<
  Socket extends WebSocket = WebSocket,
  Request extends IncomingMessage = IncomingMessage,
> extends MessageOptions<Message<Socket, Request>> {}

type Handler = (this: WebSocket, data: RawData, isBinary: boolean) => unknown

/** RFC 6455, section 7.4.1. */
const POLICY_VIOLATION = 1008
const INTERNAL_ERROR = 1011

/**
 * Limits messages and handles them in order, for each connection to a `WebSocketServer`:
 *
 *     const limit = rateLimit({ limits: [slidingWindow({ limit: 20, window: '10s' })] })
 *     wss.on('connection', (socket, request) => {
 *       socket.on('message', limit(socket, request, (data) => broadcast(data)))
 *     })
 *
 * A denied message isn't handled. Unless you set `onDenied`, the client receives a {@link DenialMessage} as JSON.
 * `denied: 'drop'` terminates the connection. Reading pauses while the limiter decides on a message. But if a message
 * has to wait until its limits allow it, reading continues up to `maxPending` messages, because a paused socket doesn't
 * report a disconnect. Messages that are unhandled when the connection closes aren't charged.
 *
 * Connections from clients in `deny` are closed with code 1008. An error, such as `StoreUnavailableError`, closes the connection
 * with code 1011. The socket emits the error as `error`. If there is no listener, the error is logged.
 *
 * To limit new connections, use `slidegate/node` for the server's `upgrade` event.
 */
export function rateLimit<
  Socket extends WebSocket = WebSocket,
  Request extends IncomingMessage = IncomingMessage,
>(
  options: RateLimitOptions<Socket, Request>,
): (socket: Socket, request: Request, handler: Handler) => (data: RawData, isBinary: boolean) => void {
  const open = limitMessages<Connection<Socket, Request>, Message<Socket, Request>>(options, {
    id: ({ connectionId }) => connectionId,
    peer: ({ request }) => request.socket.remoteAddress,
    header: (name, { request }) => textOf(request.headers[name]),
    isTruncated: ({ request }) => mayBeTruncated(request),
  })
  const { maxPending = 100 } = options
  return (socket, request, handler) => {
    let isPaused = false
    const connection = { socket, request, connectionId: randomUUID() }
    const queue = open(connection, {
      handle: ({ data, isBinary }) => handler.call(socket, data, isBinary),
      notify: (denial) => new Promise<void>((sent) => socket.send(JSON.stringify(denial), () => sent())),
      drop: () => socket.terminate(),
      fail: (error) => {
        queue?.close()
        socket.close(INTERNAL_ERROR)
        if (socket.listenerCount('error') > 0) socket.emit('error', error)
        else console.error('slidegate:', error)
      },
      pace: (held, isWaiting) => {
        const isFull = held > (isWaiting ? maxPending : 0)
        if (isFull) socket.pause()
        else if (isPaused) socket.resume()
        isPaused = isFull
      },
    })
    if (queue === undefined) {
      socket.close(POLICY_VIOLATION)
      return () => {}
    }
    socket.once('close', () => queue.close())
    return (data, isBinary) => queue.push({ ...connection, data, isBinary })
  }
}
