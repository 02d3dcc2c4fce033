// The store's own connection, created from URLs. It reconnects, and replaces a client that stops getting answers.

import {
  type Diagnosis,
  invalidOption,
  noConnection,
  plainError,
  SlidegateError,
  type StoreUnavailableError,
} from '../../errors.ts'
import { Start } from '../start.ts'
import { type Connection, diagnosisOf, failureOf, hostPort, type Send, saysOffline } from './clients.ts'
import { loadClients, type MakeClient, type OwnClient, type OwnSettings } from './create-client.ts'
import { runScript } from './transport.ts'
import { serversOf, type UrlOptions } from './url.ts'

/** How long a replaced connection can still receive replies. */
const REPLACED_MS = 1000

/** A connection that gets no answer for this long is replaced. The operating system would take minutes to close it. */
const SILENT_MS = 2000

const MOST_NAMED = 3

/**
 * Connects with node-redis or ioredis. The client reconnects, but never queues or resends commands.
 *
 * For one server, it connects immediately, but doesn't keep the process alive before its first use. For a
 * Cluster, it connects on first use, because a Cluster client would keep the process alive.
 */
export class OwnConnection implements Connection {
  readonly isCluster: boolean
  readonly resends = false
  scriptLoads = 0
  /** The server's name in messages: `Redis at 127.0.0.1:6379`. */
  readonly server: string
  readonly #settings: OwnSettings
  readonly #loading: Promise<MakeClient>
  /** The client in use, and its replacement. */
  readonly #open = new Set<OwnClient>()
  #inUse: OwnClient | undefined
  /** Pending until the script is loaded or the connection has failed. */
  #connecting: Start | undefined
  /** Pending until the first request has been answered or the connection has failed. */
  #start: Start | undefined
  #isUsed = false
  /** Whether the client has stopped trying to connect, because it wasn't used. */
  #hasStopped = false
  #isReplacing = false
  #isClosed = false
  #failure: unknown
  #lastError: Error | undefined

  constructor(options: UrlOptions, load: typeof loadClients = loadClients) {
    const servers = serversOf(options)
    const named = servers.addresses.slice(0, MOST_NAMED).map(({ host, port }) => hostPort(host, port))
    this.server = `Redis at ${named.join(', ')}`
    this.isCluster = servers.isCluster
    this.#settings = {
      ...servers,
      backoffMs: (attempts) => {
        this.#hasStopped = !this.#isUsed
        return this.#isUsed ? backoffMs(attempts) : undefined
      },
      onError: (error) => this.#failed(error),
    }
    this.#loading = load().then((make) => {
      if (make !== undefined) return make
      throw invalidOption('redisStore({ url }) needs a client; install redis or ioredis')
    })
    this.#loading.catch((error) => {
      this.#failure = error
      this.#warn()
    })
    if (!this.isCluster) this.#begin()
  }

  /** The first requests wait for the connection. Later requests that can't be sent are rejected immediately. */
  get isReady(): boolean {
    return this.#connecting?.isOver ?? true
  }

  whenStarted(): Promise<void> | undefined {
    return this.#start?.whenOver
  }

  diagnose(): Diagnosis {
    return diagnosisOf(this.server, this.#inUse !== undefined, this.#lastError)
  }

  answered(): void {
    this.#start?.end()
  }

  /** Keeps the process alive from now on, and keeps trying to connect. */
  use(): void {
    if (this.#isUsed || this.#isClosed) return
    this.#isUsed = true
    this.#warn()
    if (this.#start === undefined || this.#hasStopped) {
      this.#end()
      this.#begin()
    }
    for (const own of this.#open) own.hold()
  }

  sender(): Send {
    let pending = 0
    let answeredAtMs = 0
    const ended = (): void => {
      pending--
      answeredAtMs = performance.now()
    }
    const answered = (reply: unknown): unknown => {
      ended()
      return reply
    }
    const failed = (error: unknown): never => {
      ended()
      if (this.#isClosed) throw closed()
      throw saysOffline(error) ? this.failure(error) : error
    }
    const send = (inUse: OwnClient, command: Parameters<Send>): Promise<unknown> => {
      const nowMs = performance.now()
      if (pending === 0) answeredAtMs = nowMs
      else if (nowMs - answeredAtMs > SILENT_MS) this.#replace()
      const reply = inUse.send(...command)
      pending++
      return reply.then(answered, failed)
    }
    return (...command) => {
      this.use()
      if (this.#inUse !== undefined) return send(this.#inUse, command)
      return this.#first().then((inUse) => send(inUse, command))
    }
  }

  close(): void {
    this.#isClosed = true
    this.#end()
    this.#endStart()
  }

  #end(): void {
    for (const own of this.#open) own.close()
    this.#open.clear()
    this.#inUse = undefined
  }

  /** Connects and loads the script, so that the first request doesn't have to. */
  #begin(): void {
    const connecting = new Start()
    this.#connecting = connecting
    this.#start = new Start()
    const load = () => runScript(this, this.#inUse!.send, 0, [])
    this.#openOne()
      .then(load)
      .then(
        () => connecting.end(),
        () => this.#endStart(),
      )
  }

  #endStart(): void {
    this.#connecting?.end()
    this.#start?.end()
  }

  async #openOne(): Promise<void> {
    const make = await this.#loading
    if (this.#isClosed) throw closed()
    const own = make(this.#settings)
    this.#open.add(own)
    if (this.#isUsed) own.hold()
    await own.connected
    if (!this.#open.has(own)) throw closed()
    const before = this.#inUse
    this.#inUse = own
    if (before === undefined) return
    // In a Cluster, other servers may still answer commands from the previous client.
    const close = () => {
      if (this.#open.delete(before)) before.close()
    }
    setTimeout(close, REPLACED_MS).unref()
  }

  /** Warns, because a limiter that fails open would hide the failure. */
  #warn(): void {
    if (this.#failure === undefined || !this.#isUsed) return
    process.emitWarning(plainError(this.#failure).message, {
      type: 'SlidegateWarning',
      code: 'SLIDEGATE_NO_CLIENT',
    })
  }

  #replace(): void {
    if (this.#isReplacing || this.#isClosed) return
    this.#isReplacing = true
    const done = () => {
      this.#isReplacing = false
    }
    this.#openOne().then(done, done)
  }

  #failed(error: unknown): void {
    this.#lastError = plainError(error)
    // A server that refuses a connection will refuse the next attempt, too. A slow server may still answer.
    if (!/timeout|timed out|ETIMEDOUT/i.test(this.#lastError.message)) this.#endStart()
  }

  failure(error: unknown): StoreUnavailableError {
    return failureOf(error, this.server, true, this.#lastError)
  }

  async #first(): Promise<OwnClient> {
    await this.#connecting?.whenOver
    if (this.#isClosed) throw closed()
    if (this.#failure !== undefined) throw this.#failure
    if (this.#inUse === undefined) {
      throw noConnection(this.server, this.#lastError ?? new Error('connecting is taking too long'))
    }
    return this.#inUse
  }
}

/** Half of the delay is random. Otherwise, all processes would reconnect at the same time. */
function backoffMs(attempts: number): number {
  const mostMs = Math.min(500, 25 * 2 ** Math.min(attempts, 5))
  return Math.round((mostMs * (1 + Math.random())) / 2)
}

function closed(): SlidegateError {
  return new SlidegateError('closed', 'the connection to Redis is closed')
}
