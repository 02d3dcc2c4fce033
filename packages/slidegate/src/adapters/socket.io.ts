// Socket.IO: the events of each connection.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'socket.io'
import { mayBeCut, textOf } from '../http/client-address.ts'
import { limitMessages, type MessageOptions } from '../http/messages.ts'

export type { DenialMessage } from '../http/denial-message.ts'

/** A socket of a server with whatever types of events. */
export type AnySocket = Pick<Socket, 'id' | 'connected' | 'handshake' | 'data'> & {
  readonly request: IncomingMessage
}

/** What a client has emitted. */
export interface ClientEvent<S extends AnySocket = Socket> {
  readonly socket: S
  readonly name: string
  readonly args: readonly unknown[]
  /** Answers the client, where it has asked for an acknowledgement. */
  readonly acknowledge: ((...args: unknown[]) => void) | undefined
}

/**
 * Default `maxPending`: 1,000. With one more the connection is closed, since Socket.IO can't read slower. Each may be as large
 * as the server's `maxHttpBufferSize`.
 */
export type RateLimitOptions<S extends AnySocket = Socket> = MessageOptions<ClientEvent<S>>

interface PendingEvent<S extends AnySocket> extends ClientEvent<S> {
  readonly next: (error?: Error) => void
}

/**
 * Limits the events of each connection to a namespace, in their order, as a middleware of its sockets:
 *
 *     io.on('connection', rateLimit({ limits: [slidingWindow({ limit: 20, window: '10s' })] }))
 *     io.of('/admin').on('connection', rateLimit({ limits: [slidingWindow({ limit: 5, window: '10s' })] }))
 *
 * A denied event is not handled. A client that has asked for an acknowledgement gets `{ error }`, a {@link DenialMessage}; any
 * other the event `rate_limited` with it, unless `onDenied` does something else. `denied: 'drop'` disconnects the client, as
 * does the list `deny`. Once the client is disconnected nothing is handled, and what was not handled is not charged.
 *
 * Errors, `StoreUnavailableError` among them, are those of a middleware: the event is not handled, and the socket
 * emits `error`. Listeners of `onAny` come before all middleware: they see denied events, too.
 */
export function rateLimit<S extends AnySocket = Socket>(options: RateLimitOptions<S>): (socket: S) => void {
  const open = limitMessages<Pick<ClientEvent<S>, 'socket'>, PendingEvent<S>>(options, {
    id: ({ socket }) => socket.id,
    peer: ({ socket }) => socket.handshake.address,
    header: (name, { socket }) => textOf(socket.handshake.headers[name]),
    isCut: ({ socket }) => mayBeCut(socket.request),
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
          // In the same turn Socket.IO looks whether the client is still there.
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

/** For those who wait for one connection together: its namespaces are as many as a client likes. */
const drains = new WeakMap<Socket['conn'], Promise<void>>()

/** Sends something; a promise where the client has not taken all that was sent before. */
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
