import type { ConnectionOptions } from 'node:tls'
import {
  checkOptions,
  invalidOption,
  plainError,
  type Silence,
  SlidegateError,
  StoreUnavailableError,
} from '../../errors.ts'
import { Start } from '../start.ts'
import type { CallCounts } from './call-counts.ts'
import { type Dialect, dialectOf, hostPort, type Send } from './clients.ts'
import { type Connection, type ScriptRunner, scriptRunner, serverOf, silenceOf } from './connection.ts'
import { loadClients, type OwnClient, type OwnSettings } from './create-client.ts'
import { type Address, addressOf } from './url.ts'

/** Where Redis is, for a store that makes its own client. */
export interface UrlOptions {
  /**
   * `redis://user:password@host:port/database`, or `rediss://` for TLS; `valkey://` and `valkeys://` are the same. Of a
   * Cluster one server or several, from which the others are found.
   */
  readonly url: string | readonly string[]
  /** Whether it is a Redis Cluster. Default: whether several URLs are given. */
  readonly cluster?: boolean
  /** With `rediss://`: certificates, and whatever else `tls.connect` takes. */
  readonly tls?: ConnectionOptions
}

export function isUrlOptions(source: unknown): source is UrlOptions {
  return typeof source === 'object' && source !== null && 'url' in source && dialectOf(source) === undefined
}

/** A connection of the store's own. */
export interface OwnConnection extends Connection {
  /** Keeps the process alive from now on, and connects for as long as it takes. */
  use(): void
  close(): void
}

/** A connection that was replaced may still be answered. */
const REPLACED_MS = 1000

/** Without an answer for so long a connection is replaced: the system would take minutes to find that it is dead. */
const SILENT_MS = 2000

/** Servers of a Cluster that a message names. */
const MOST_NAMED = 3

/**
 * Connects by node-redis or ioredis, whichever is installed.
 *
 * Its settings queue nothing, send nothing twice and always reconnect. To one server it connects at once, and does not keep
 * the process alive until it is used. To a Cluster it connects with the first use: its clients would keep the process alive.
 *
 * @throws {SlidegateError} `invalid_option` for what cannot be used
 */
export function connectionTo(options: UrlOptions, load: typeof loadClients = loadClients): OwnConnection {
  const lasting = new LastingClient(settingsOf(options), load)
  return {
    server: lasting.server,
    isCluster: lasting.isCluster,
    resends: false,
    get isReady() {
      return lasting.isReady
    },
    whenStarted: () => lasting.whenStarted(),
    silence: () => lasting.silence(),
    scriptRunner: (counts) => lasting.scriptRunner(counts),
    use: () => lasting.use(),
    close: () => lasting.close(),
  }
}

type Settings = Omit<OwnSettings, 'onError'>

function settingsOf(options: UrlOptions): Settings {
  const { url, cluster, tls } = options
  const [first, ...others] = (Array.isArray(url) ? url : [url]).map(addressOf)
  if (first === undefined) throw invalidOption('url is an empty list; give one URL at least', url)
  const isCluster = cluster ?? others.length > 0
  const addresses: readonly [Address, ...Address[]] = [first, ...others]
  if (typeof isCluster !== 'boolean') throw invalidOption('cluster must be true or false', cluster)
  if (!isCluster && others.length > 0)
    throw invalidOption(`there are ${addresses.length} URLs; without cluster: true there must be one`)
  if (isCluster && addresses.some(({ database }) => database !== 0))
    throw invalidOption('a url names a database; a Cluster has none but 0')
  if (others.some(({ isTls }) => isTls !== first.isTls))
    throw invalidOption('some URLs are with TLS and some without; they must be alike')
  if (tls !== undefined && !first.isTls)
    throw invalidOption('tls is given, and the url is without TLS; it must be rediss://')
  checkOptions(options, 'redisStore({ url })', { url: true, cluster: true, tls: true })
  return { addresses, isCluster, tls: tls ?? {}, backoffMs }
}

/** Half of it is chance, so that many processes do not come back all at the same time. */
function backoffMs(attempts: number): number {
  const mostMs = Math.min(500, 25 * 2 ** Math.min(attempts, 5))
  return Math.round((mostMs * (1 + Math.random())) / 2)
}

/** A client that is replaced when it has fallen silent. */
class LastingClient {
  readonly isCluster: boolean
  readonly server: string
  readonly #settings: OwnSettings
  readonly #loading: ReturnType<typeof loadClients>
  /** All that are open: the one in use, and the one that is to take its place. */
  readonly #open = new Set<OwnClient>()
  #inUse: { readonly own: OwnClient; readonly dialect: Dialect } | undefined
  /** Until it is connected and knows the script, or has failed. */
  #connecting: Start | undefined
  /** Until the first answer, or the failure. */
  #start: Start | undefined
  #isUsed = false
  /** Whether it stopped trying to connect, since it wasn't used. */
  #hasGivenUp = false
  #counts: CallCounts | undefined
  #isReplacing = false
  #isClosed = false
  /** Why there will never be a client. */
  #failure: unknown
  #lastError: Error | undefined

  constructor(settings: Settings, load: typeof loadClients) {
    this.isCluster = settings.isCluster
    const named = settings.addresses.slice(0, MOST_NAMED).map(({ host, port }) => hostPort(host, port))
    this.server = serverOf(named.join(', '))
    this.#settings = {
      ...settings,
      backoffMs: (attempts) => {
        this.#hasGivenUp = !this.#isUsed
        return this.#isUsed ? settings.backoffMs(attempts) : undefined
      },
      onError: (error) => this.#failed(error),
    }
    this.#loading = load()
    this.#loading.catch(() => {})
    if (!this.isCluster) this.#begin()
  }

  /** The first requests wait for the connection. After that, what cannot be sent is refused at once. */
  get isReady(): boolean {
    return this.#connecting?.isOver ?? true
  }

  whenStarted(): Promise<void> | undefined {
    return this.#start?.whenOver
  }

  silence(): Silence {
    return silenceOf(this.server, this.#inUse !== undefined, this.#lastError)
  }

  use(): void {
    if (this.#isUsed || this.#isClosed) return
    this.#isUsed = true
    if (this.#failure !== undefined) this.#warn()
    if (this.#start === undefined || this.#hasGivenUp) {
      this.#end()
      this.#begin()
    }
    for (const own of this.#open) own.hold()
  }

  scriptRunner(counts?: CallCounts): ScriptRunner {
    this.#counts ??= counts
    let pending = 0
    let heardMs = 0
    const send: Send = async (...command) => {
      this.use()
      const { dialect } = this.#inUse ?? (await this.#first())
      const nowMs = performance.now()
      if (pending === 0) heardMs = nowMs
      else if (nowMs - heardMs > SILENT_MS) this.#replace()
      pending++
      try {
        return await dialect.send(...command)
      } catch (error) {
        if (this.#isClosed) throw closed()
        throw saysOffline(error) ? this.#unconnected() : error
      } finally {
        pending--
        heardMs = performance.now()
      }
    }
    return scriptRunner(send, counts, { end: () => this.#start?.end() })
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

  /** Connects, and loads the script: the first request need not. */
  #begin(): void {
    const connecting = new Start()
    this.#connecting = connecting
    this.#start = new Start()
    const load = () => scriptRunner(this.#inUse!.dialect.send, this.#counts).run([], [])
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
    const own = (await this.#make())(this.#settings)
    this.#open.add(own)
    if (this.#isUsed) own.hold()
    await own.connected
    if (!this.#open.has(own)) throw closed()
    const before = this.#inUse
    this.#inUse = { own, dialect: dialectOf(own.client)! }
    if (before === undefined) return
    // Of a Cluster, other servers may still answer what it was asked.
    const close = () => {
      if (this.#open.delete(before.own)) before.own.close()
    }
    setTimeout(close, REPLACED_MS).unref()
  }

  async #make(): Promise<(settings: OwnSettings) => OwnClient> {
    let make: Awaited<ReturnType<typeof loadClients>>
    try {
      make = await this.#loading
      if (make === undefined)
        throw invalidOption('redisStore({ url }) needs a client: install redis, or ioredis')
    } catch (error) {
      this.#failure = error
      if (this.#isUsed) this.#warn()
      throw error
    }
    if (this.#isClosed) throw closed()
    return make
  }

  /** Without it, a limiter that fails open would hide that. */
  #warn(): void {
    const error = this.#failure
    process.emitWarning(error instanceof Error ? error.message : String(error), {
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
    // A server that refuses will refuse the next attempt too. One that is slow may still answer.
    if (!/timeout|timed out|ETIMEDOUT/i.test(this.#lastError.message)) this.#endStart()
  }

  /** The errors of clients for commands that they cannot send lack the reason. */
  #unconnected(): StoreUnavailableError {
    const cause = this.#lastError
    // The address is there already.
    const [, address = ''] = this.server.split(' at ')
    const why = cause?.message.replace(` ${address}`, '') ?? 'it takes too long'
    return new StoreUnavailableError('error', `no connection to ${this.server} (${why})`, cause && { cause })
  }

  async #first(): Promise<{ readonly dialect: Dialect }> {
    await this.#connecting?.whenOver
    if (this.#isClosed) throw closed()
    if (this.#failure !== undefined) throw this.#failure
    if (this.#inUse === undefined) throw this.#unconnected()
    return this.#inUse
  }
}

function closed(): SlidegateError {
  return new SlidegateError('closed', 'the connection to Redis has been closed')
}

/** What clients say of a command that they could not send. */
function saysOffline(error: unknown): boolean {
  return (
    error instanceof Error && /enableOfflineQueue|client is offline|Connection is closed/i.test(error.message)
  )
}
