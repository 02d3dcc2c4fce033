import { createServer, type Socket } from 'node:net'
import { freePort } from './ports.ts'
import { type Faults, ProxiedConnection } from './proxied-connection.ts'

/**
 * A proxy in front of Redis that injects faults into current and new connections.
 * Only one fault is active at a time: a new one replaces the one before. A connection that has dropped data stays
 * silent, whichever fault is set, since replies would reach the wrong requests. {@link TcpProxy.heal} destroys it.
 *
 * It counts requests and replies, and matches them, unless the connection uses TLS.
 */
export interface TcpProxy {
  readonly port: number
  /** Connections that are open now. */
  readonly connections: number
  /** Open connections that have dropped data. */
  readonly lossy: number
  /** Connections accepted so far, including refused ones. */
  readonly accepted: number
  /** Requests forwarded to the server so far. */
  readonly requests: number
  /** Replies that the server has sent so far, whether forwarded or not. */
  readonly replies: number
  /** Delays replies by this time, and requests too if `requestsMs` is given. */
  delay(repliesMs: number, requestsMs?: number): void
  /** Drops data in both directions. Connections stay open, even if the server closes them. */
  blackHole(): void
  /**
   * Forwards requests to the server, which executes them, but drops all replies.
   * With `thenClose`, destroys a connection once all its requests have been answered.
   */
  dropReplies(options?: { readonly thenClose?: boolean }): void
  /** Forwards the first half of the server's next chunk, then destroys that connection. Happens once. */
  cutMidReply(): void
  /**
   * Destroys the next connection that sends a request, after the server has executed it.
   * No byte of the reply is forwarded. Happens once.
   */
  cutAfterRequest(): void
  /** Destroys all connections, and new ones as they come. */
  refuse(): void
  /**
   * Removes all faults, and destroys connections that have dropped data.
   * With `leaveSilent`, those connections stay open and are never answered again.
   */
  heal(options?: { readonly leaveSilent?: boolean }): void
  stop(): Promise<void>
}

const NONE: Faults = { kind: 'none', repliesMs: 0, requestsMs: 0 }

export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const port = await freePort()
  const connections = new Set<ProxiedConnection>()
  const totals = { accepted: 0, requests: 0, replies: 0 }
  let faults = NONE

  const context = {
    totals,
    faults: () => faults,
    /** Removes a fault that happens once, as soon as one connection has met it. */
    spend: () => {
      faults = NONE
    },
  }
  const set = (kind: Faults['kind'], repliesMs = 0, requestsMs = 0) => {
    faults = { kind, repliesMs, requestsMs }
  }
  const destroyAll = () => {
    for (const connection of connections) connection.destroy()
  }

  function accept(client: Socket): void {
    totals.accepted++
    if (faults.kind === 'refuse') {
      client.on('error', () => {})
      client.destroy()
      return
    }
    const connection = new ProxiedConnection(client, targetPort, context)
    connections.add(connection)
    client.once('close', () => connections.delete(connection))
  }

  const server = createServer({ noDelay: true }, accept)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })

  return {
    port,
    get connections() {
      return connections.size
    },
    get lossy() {
      return [...connections].filter(({ hasLost }) => hasLost).length
    },
    get accepted() {
      return totals.accepted
    },
    get requests() {
      return totals.requests
    },
    get replies() {
      return totals.replies
    },
    delay: (repliesMs, requestsMs = 0) => set('none', repliesMs, requestsMs),
    blackHole: () => set('blackHole'),
    dropReplies: ({ thenClose = false } = {}) => set(thenClose ? 'dropRepliesThenClose' : 'dropReplies'),
    cutMidReply: () => set('cutMidReply'),
    cutAfterRequest: () => set('cutAfterRequest'),
    refuse() {
      set('refuse')
      destroyAll()
    },
    heal({ leaveSilent = false } = {}) {
      faults = NONE
      if (leaveSilent) return
      for (const connection of connections) if (connection.hasLost) connection.destroy()
    },
    async stop() {
      destroyAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
