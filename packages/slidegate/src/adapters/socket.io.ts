// Limits the events of Socket.IO connections.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'socket.io'
import { mayBeTruncated, textOf } from '../http/client-address.ts'
import { limitMessages, type MessageOptions } from '../http/messages.ts'

export type { DenialMessage } from '../http/denial-message.ts'

/** A socket of a server with any types of events. */
export type AnySocket = Pick<Socket, 'id' | 'connected' | 'handshake' | 'data'> & {
  readonly request: IncomingMessage
}

/** An event that a client emitted. */
export interface ClientEvent<S extends AnySocket = Socket> {
  readonly socket: S
  readonly name: string
  readonly args: readonly unknown[]
  /** Answers the client, if it asked for an acknowledgement. */
  readonly acknowledge: ((...args: unknown[]) => void) | undefined
}

/**
 * Default `maxPending`: 1,000. One more closes the connection, since Socket.IO can't pause reading. Each event may be as large as
 * the server's `maxHttpBufferSize`.
 */
export type RateLimitOptions<S extends AnySocket = Socket> = MessageOptions<ClientEvent<S>>

interface PendingEvent<S extends AnySocket> extends ClientEvent<S> {
  readonly next: (error?: Error) => void
}

/**
 * Limits the events of each connection to a namespace, in order, as middleware of its sockets:
 *
 *     io.on('connection', rateLimit({ limits: [slidingWindow({ limit: 20, window: '10s' })] }))
 *     io.of('/admin').on('connection', rateLimit({ limits: [slidingWindow({ limit: 5, window: '10s' })] }))
 *
 * A denied event isn't handled. If the client asked for an acknowledgement, it gets `{ error }`, a {@link DenialMessage}; else the
 * event `rate_limited` with it. `onDenied` replaces both. `denied: 'drop'` and the list `deny` disconnect the client. After a
 * disconnect, events that weren't handled aren't charged.
 *
 * Errors, such as `StoreUnavailableError`, fail the middleware: the event isn't handled, and the socket emits `error`. Listeners
 * of `onAny` run before middleware, so they see denied events, too.
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
          // Socket.IO handles the event in this turn, unless the client is gone.
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

/** Shared by all namespaces of a connection: a client may open any number. */
const drains = new WeakMap<Socket['conn'], Promise<void>>()

/** Sends something. Returns a promise if the client still has to read what was sent before. */
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
