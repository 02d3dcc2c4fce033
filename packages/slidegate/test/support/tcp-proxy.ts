import { createServer, type Socket } from 'node:net'
import { freePort } from './ports.ts'
import { type Faults, ProxiedConnection } from './proxied-connection.ts'

/**
 * A proxy before a Redis, with faults that are set at any time, for connections that exist and for those to come.
 * One at a time: each takes the place of the one before. A connection that has lost something is silent from then on,
 * whatever is set, since replies would reach the wrong requests; {@link TcpProxy.heal} ends it.
 *
 * It counts requests and replies, and knows which reply belongs to which request, if it can read them: not with TLS.
 */
export interface TcpProxy {
  readonly port: number
  /** Connections that are open now. */
  readonly connections: number
  /** Connections that are open and have lost something. */
  readonly lossy: number
  /** Connections so far, those that were refused among them. */
  readonly accepted: number
  /** Requests that were handed to the server so far. */
  readonly requests: number
  /** Replies that the server has sent so far, whether or not they were handed on. */
  readonly replies: number
  /** Hands on replies so much later, and requests too where that is given. */
  delay(repliesMs: number, requestsMs?: number): void
  /** Swallows what either side sends; connections stay open, even if the server ends them. */
  blackHole(): void
  /**
   * Requests reach the server and are executed; no reply comes back. With `thenClose` a connection is destroyed when
   * all its requests have been answered.
   */
  dropReplies(options?: { readonly thenClose?: boolean }): void
  /** Hands on the first half of what the server sends next, and destroys that connection; once. */
  cutMidReply(): void
  /**
   * Lets the next requests of any connection reach the server, and destroys that connection when they have been
   * executed, before a byte of their replies has come back; once.
   */
  cutAfterRequest(): void
  /** Destroys all connections, and new ones as they come. */
  refuse(): void
  /**
   * From now on all passes. Connections that have lost something are destroyed, or, with `leaveSilent`, stay as they
   * are: open, and never answered again.
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
    /** A fault that happens once is over as soon as a connection has met it. */
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
