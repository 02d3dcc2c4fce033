// The adapter for Socket.IO: limits the events that clients emit.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'socket.io'
import { mayBeTruncated, textOf } from '../http/client-address.ts'
import { limitMessages, type MessageOptions } from '../http/messages.ts'

export type { DenialMessage } from '../http/denial-message.ts'

/** A server-side socket with any event types. */
export type AnySocket = Pick<Socket, 'id' | 'connected' | 'handshake' | 'data'> & {
  readonly request: IncomingMessage
}

/** An event that a client emitted. */
export interface ClientEvent<S extends AnySocket = Socket> {
  readonly socket: S
  readonly name: string
  readonly args: readonly unknown[]
  /** Sends the acknowledgement, if the client requested one. */
  readonly acknowledge: ((...args: unknown[]) => void) | undefined
}

/**
 * The options shared by all message adapters. Default `maxPending`: 1,000.
 *
 * Socket.IO can't pause reading, so a connection that exceeds `maxPending` is closed. Each event can be as large as the server's
 * `maxHttpBufferSize`.
 */
export interface RateLimitOptions<S extends AnySocket = Socket> extends MessageOptions<ClientEvent<S>> {}

interface PendingEvent<S extends AnySocket> extends ClientEvent<S> {
  readonly next: (error?: Error) => void
}

/**
 * Limits events and handles them in order, for each connection to a namespace:
 *
 *     io.on('connection', rateLimit({ limits: [slidingWindow({ limit: 20, window: '10s' })] }))
 *     io.of('/admin').on('connection', rateLimit({ limits: [slidingWindow({ limit: 5, window: '10s' })] }))
 *
 * A denied event isn't handled. The client receives a {@link DenialMessage}: as `{ error }` if it requested an acknowledgement,
 * otherwise in a `rate_limited` event. `onDenied` replaces this response. `denied: 'drop'` and the `deny` list disconnect the
 * client. Events that are still unhandled when the client disconnects aren't charged.
 *
 * Errors, such as `StoreUnavailableError`, are passed to the middleware's `next`, so the socket emits `error` instead of the
 * event. `onAny` listeners run before middleware, so they see denied events, too.
 */
export function rateLimit<S extends AnySocket = Socket>(options: RateLimitOptions<S>): (socket: S) => void {
  const open = limitMessages<Pick<ClientEvent<S>, 'socket'>, PendingEvent<S>>(options, {
    id: ({ socket }) => socket.id,
    peer: ({ socket }) => socket.handshake.address,
    header: (name, { socket }) => textOf(socket.handshake.headers[name]),
    isTruncated: ({ socket }) => mayBeTruncated(socket.request),
  })
  const { maxPending = 1000 } = options
  return (limited) => {
    const socket = limited as unknown as Socket
    const disconnect = () => {
      socket.disconnect(true)
    }
    const queue = open(
      { socket: limited },
      {
        handle: ({ next }, undo) => {
          // Socket.IO handles the event in this tick, unless the client has disconnected.
          process.nextTick(() => {
            if (!socket.connected) undo()
          })
          next()
        },
        notify: (denial, { acknowledge }) =>
          flushed(socket, () => {
            if (acknowledge === undefined) socket.emit('rate_limited', denial)
            else acknowledge({ error: denial })
          }),
        drop: disconnect,
        fail: (error, { next }) => next(error),
        pace: (held) => {
          if (held > maxPending) disconnect()
        },
      },
    )
    if (queue === undefined) return disconnect()
    socket.once('disconnect', () => queue.close())
    socket.use(([name, ...args], next) => {
      const last = args.at(-1)
      const acknowledge = typeof last === 'function' ? last : undefined
      if (acknowledge !== undefined) args.pop()
      queue.push({ socket: limited, name, args, acknowledge, next })
    })
  }
}

/** One entry per connection. On a connection, a client can join any number of namespaces. */
const drains = new WeakMap<Socket['conn'], Promise<void>>()

/** Sends a message. Returns a promise if the client hasn't read earlier messages yet. */
function flushed({ conn }: Socket, send: () => void): PromiseLike<void> | undefined {
  if (!drains.has(conn)) {
    const drained = new Promise<void>((resolve) => {
      conn.once('drain', () => {
        drains.delete(conn)
        resolve()
      })
    })
    drains.set(conn, drained)
  }
  send()
  return drains.get(conn)
}
