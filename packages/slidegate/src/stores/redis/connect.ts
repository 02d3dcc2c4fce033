import type { ConnectionOptions } from 'node:tls'
import { checkOptions, invalidOption } from '../../errors.ts'
import type { CallCounts } from './call-counts.ts'
import { type Connection, type ScriptRunner, scriptRunner } from './client.ts'
import { type Dialect, dialectOf, type Send } from './dialects.ts'
import { loadClients, type OwnClient, type OwnSettings } from './own-clients.ts'
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
  close(): void
}

/** A request that comes before the connection stands waits for it: so long where an attempt has failed. */
const REFUSED_MS = 1000

/** And so long where none has: it may be this process that is slow, as many are when they start. */
const SLOW_MS = 5000

/** A connection that was replaced may still be answered. */
const REPLACED_MS = 1000

/** Without an answer for so long a connection is replaced: the system would take minutes to find that it is dead. */
const SILENT_MS = 2000

/**
 * Connects at once, by node-redis or ioredis, whichever is installed, with settings under which nothing is queued, sent
 * twice or given up for good.
 *
 * @throws {SlidegateError} `invalid_option` for what cannot be used
 */
export function connectionTo(options: UrlOptions, load: typeof loadClients = loadClients): OwnConnection {
  const lasting = new LastingClient(settingsOf(options), load)
  return {
    isCluster: lasting.isCluster,
    resends: false,
    get isReady() {
      return lasting.isReady
    },
    scriptRunner: (counts) => lasting.scriptRunner(counts),
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
  readonly #settings: OwnSettings
  readonly #load: typeof loadClients
  #make: ((settings: OwnSettings) => OwnClient) | undefined
  /** All that are open: the one in use, and the one that is to take its place. */
  readonly #open = new Set<OwnClient>()
  #inUse: { readonly own: OwnClient; readonly dialect: Dialect } | undefined
  /** Until the first is connected, or all is over. */
  readonly #connected: Promise<void>
  #end!: () => void
  readonly #madeAtMs: number = performance.now()
  #isReplacing = false
  #isClosed = false
  /** Why there will never be a client. */
  #failure: unknown
  #lastError: string | undefined

  constructor(settings: Settings, load: typeof loadClients) {
    this.isCluster = settings.isCluster
    this.#load = load
    this.#settings = {
      ...settings,
      onError: (error) => {
        // Only the text: what hangs on errors of ioredis are commands, AUTH with the password among them.
        if (error instanceof Error && error.message !== '') this.#lastError = error.message
      },
    }
    const ended = new Promise<never>((_, reject) => {
      this.#end = () => reject(closed())
    })
    this.#connected = Promise.race([this.#connect(), ended])
    this.#connected.catch(() => {})
  }

  /** The first requests wait for the connection. After that, what cannot be sent is refused at once. */
  get isReady(): boolean {
    const isStarting = this.#inUse === undefined && this.#failure === undefined && !this.#isClosed
    return !isStarting || this.#leftMs() === 0
  }

  scriptRunner(counts?: CallCounts): ScriptRunner {
    let pending = 0
    let heardMs = 0
    const send: Send = async (...command) => {
      const { dialect } = this.#inUse ?? (await this.#first())
      const nowMs = performance.now()
      if (pending === 0) heardMs = nowMs
      else if (nowMs - heardMs > SILENT_MS) this.#replace()
      pending++
      try {
        return await dialect.send(...command)
      } catch (error) {
        throw saysOffline(error) ? this.#unconnected() : error
      } finally {
        pending--
        heardMs = performance.now()
      }
    }
    return scriptRunner(send, counts)
  }

  close(): void {
    this.#isClosed = true
    this.#end()
    for (const own of this.#open) own.close()
    this.#open.clear()
  }

  async #connect(): Promise<void> {
    try {
      this.#make = await this.#load()
      if (this.#make === undefined)
        throw invalidOption('redisStore({ url }) needs a client: install redis, or ioredis')
    } catch (error) {
      this.#failure = error
      // A limiter that lets everybody pass without its store would say nothing of it.
      process.emitWarning(error instanceof Error ? error.message : String(error), {
        type: 'SlidegateWarning',
        code: 'SLIDEGATE_NO_CLIENT',
      })
      throw error
    }
    await this.#openOne()
  }

  async #openOne(): Promise<void> {
    if (this.#isClosed) throw closed()
    const own = this.#make!(this.#settings)
    this.#open.add(own)
    await own.connected
    const before = this.#inUse
    this.#inUse = { own, dialect: dialectOf(own.client)! }
    if (before === undefined) return
    // Of a Cluster, other servers may still answer what it was asked.
    const close = () => {
      if (this.#open.delete(before.own)) before.own.close()
    }
    setTimeout(close, REPLACED_MS).unref()
  }

  #replace(): void {
    if (this.#isReplacing || this.#isClosed) return
    this.#isReplacing = true
    const done = () => {
      this.#isReplacing = false
    }
    this.#openOne().then(done, done)
  }

  /** What a client says of a command that it cannot send tells nobody why. */
  #unconnected(): Error {
    return new Error(`no connection to Redis: ${this.#lastError ?? 'it takes too long'}`)
  }

  /** Until a request is refused rather than made to wait for the first connection. */
  #leftMs(): number {
    const mostMs = this.#lastError === undefined ? SLOW_MS : REFUSED_MS
    return Math.max(0, this.#madeAtMs + mostMs - performance.now())
  }

  async #first(): Promise<{ readonly dialect: Dialect }> {
    if (this.#isClosed) throw closed()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const look = () => {
        const leftMs = this.#leftMs()
        if (leftMs === 0) reject(this.#unconnected())
        else timer = setTimeout(look, Math.min(leftMs, REFUSED_MS))
      }
      look()
    })
    try {
      await Promise.race([this.#connected, late])
    } finally {
      clearTimeout(timer)
    }
    return this.#inUse!
  }
}

function closed(): Error {
  return new Error('the connection to Redis has been closed')
}

/** What clients say of a command that they could not send. */
function saysOffline(error: unknown): boolean {
  return (
    error instanceof Error && /enableOfflineQueue|client is offline|Connection is closed/i.test(error.message)
  )
}
