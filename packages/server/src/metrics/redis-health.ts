// Reads the state of Redis servers, at most once a second.

import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { messageOf } from '../../../replay/src/errors.ts'
import type { RedisServerStatus } from '../admin/api-types.ts'
import type { RedisLink } from '../admin/redis-link.ts'

const SECTIONS = ['server', 'clients', 'memory', 'stats', 'replication', 'cpu', 'commandstats']

/** How long a result is reused, in milliseconds. */
const FRESH_MS = 1000

/** How long a server that left the Cluster is reported as down. */
const FORGET_MS = 300_000

/** Slow log entries per read: the default length of Redis's slow log. */
const SLOW_ENTRIES = 128

export interface ServerHealth {
  /** `host:port`. */
  readonly node: string
  readonly up: boolean
  /** Undefined if the user isn't allowed to run INFO. */
  readonly info?: RedisInfo | undefined
  /** Slow calls to our script since the first read. Undefined if the user isn't allowed to read the slow log. */
  readonly slowScripts?: number | undefined
}

interface Answer {
  readonly info: string | undefined
  readonly slow: readonly SlowEntry[] | undefined
}

/**
 * Reads the state of all Redis servers, at most once a second.
 *
 * Commands that the user isn't allowed to run are skipped, and each is logged once.
 */
export class RedisHealth {
  readonly #link: RedisLink
  readonly #log: Logger
  readonly #now: () => number
  readonly #slow = new Map<string, SlowScripts>()
  readonly #seenAtMs = new Map<string, number>()
  readonly #forbidden = new Set<string>()
  #read: { readonly atMs: number; readonly servers: Promise<readonly ServerHealth[]> } | undefined

  /** @param now a monotonic clock, in milliseconds */
  constructor(link: RedisLink, log: Logger, now: () => number = () => performance.now()) {
    this.#link = link
    this.#log = log
    this.#now = now
  }

  /** Reads all servers. Never rejects, and takes at most a second. */
  read(): Promise<readonly ServerHealth[]> {
    const nowMs = this.#now()
    if (this.#read === undefined || nowMs - this.#read.atMs >= FRESH_MS) {
      this.#read = { atMs: nowMs, servers: this.#ask(nowMs) }
    }
    return this.#read.servers
  }

  /** Returns the state of each server, for the dashboard. */
  async servers(): Promise<readonly RedisServerStatus[]> {
    return (await this.read()).map(({ node, up, info }) => ({ node, up, ...info?.status() }))
  }

  async #ask(nowMs: number): Promise<readonly ServerHealth[]> {
    const answers = await this.#link.askEach((server) => this.#askOne(server))
    for (const node of answers.keys()) this.#seenAtMs.set(node, nowMs)
    for (const [node, atMs] of this.#seenAtMs) {
      if (nowMs - atMs < FORGET_MS) continue
      this.#seenAtMs.delete(node)
      this.#slow.delete(node)
    }
    return Array.from(this.#seenAtMs.keys(), (node): ServerHealth => {
      const answer = answers.get(node)
      if (answer === undefined) return { node, up: false }
      const info = answer.info === undefined ? undefined : new RedisInfo(answer.info)
      return { node, up: true, info, slowScripts: answer.slow && this.#slowOf(node, answer.slow) }
    })
  }

  async #askOne(server: Redis): Promise<Answer> {
    const [info, slow] = await Promise.all([
      this.#unlessForbidden('INFO', server.call('INFO', ...SECTIONS) as Promise<string>),
      this.#unlessForbidden('SLOWLOG GET', server.slowlog('GET', SLOW_ENTRIES) as Promise<SlowEntry[]>),
    ])
    return { info, slow }
  }

  async #unlessForbidden<Reply>(command: string, reply: Promise<Reply>): Promise<Reply | undefined> {
    try {
      return await reply
    } catch (error) {
      // An error reply still shows that the server is up.
      if (!(error instanceof Error) || error.name !== 'ReplyError') throw error
      if (!this.#forbidden.has(command)) {
        this.#forbidden.add(command)
        this.#log.warn(
          { command, reason: messageOf(error) },
          'Redis rejected this command; its metrics are missing',
        )
      }
      return undefined
    }
  }

  #slowOf(node: string, entries: readonly SlowEntry[]): number {
    let known = this.#slow.get(node)
    if (known === undefined) {
      known = new SlowScripts(`${this.#link.prefix}:{`)
      this.#slow.set(node, known)
    }
    return known.count(entries)
  }
}

/** A parsed reply to `INFO`. Missing fields are undefined. */
export class RedisInfo {
  readonly #values = new Map<string, string>()

  constructor(text: string) {
    for (const line of text.split('\r\n')) {
      const colon = line.indexOf(':')
      if (colon > 0) this.#values.set(line.slice(0, colon), line.slice(colon + 1))
    }
  }

  text(name: string): string | undefined {
    return this.#values.get(name)
  }

  number(name: string): number | undefined {
    const text = this.#values.get(name)
    const value = text === undefined || text === '' ? Number.NaN : Number(text)
    return Number.isFinite(value) ? value : undefined
  }

  /** Converts from KiB. */
  #bytes(name: string): number | undefined {
    const kibibytes = this.number(name)
    return kibibytes && Math.round(1024 * kibibytes)
  }

  get cpuSeconds(): number | undefined {
    const [user, system] = [this.number('used_cpu_user'), this.number('used_cpu_sys')]
    return user === undefined || system === undefined ? undefined : user + system
  }

  /** Script calls by all clients, and their total time. */
  get scripts(): { readonly calls: number; readonly seconds: number } | undefined {
    // If INFO lists no commands at all, the server hides these statistics.
    if (!Array.from(this.#values.keys()).some((name) => name.startsWith('cmdstat_'))) return undefined
    const both = ['cmdstat_evalsha', 'cmdstat_eval'].map((name) => fieldsOf(this.#values.get(name) ?? ''))
    const sum = (field: string) => both.reduce((all, fields) => all + Number(fields.get(field) ?? 0), 0)
    return { calls: sum('calls'), seconds: sum('usec') / 1e6 }
  }

  /** Lag of the slowest replica in bytes, or undefined if there are no replicas. */
  get replicaLagBytes(): number | undefined {
    const end = this.number('master_repl_offset')
    if (end === undefined || this.#values.get('role') !== 'master') return undefined
    const lags = Array.from(this.#values).flatMap(([name, text]) => {
      const offset = /^slave\d+$/.test(name) ? fieldsOf(text).get('offset') : undefined
      return offset === undefined ? [] : [Math.max(0, end - Number(offset))]
    })
    return lags.length === 0 ? undefined : Math.max(...lags)
  }

  status(): Omit<RedisServerStatus, 'node' | 'up'> {
    const { scripts } = this
    const values = {
      version: this.#values.get('valkey_version') ?? this.#values.get('redis_version'),
      role: this.#values.get('role'),
      usedMemoryBytes: this.number('used_memory'),
      maxMemoryBytes: this.number('maxmemory'),
      commandsPerSecond: this.number('instantaneous_ops_per_sec'),
      receivedBytesPerSecond: this.#bytes('instantaneous_input_kbps'),
      sentBytesPerSecond: this.#bytes('instantaneous_output_kbps'),
      evictedKeys: this.number('evicted_keys'),
      connectedClients: this.number('connected_clients'),
      replicaLagBytes: this.replicaLagBytes,
      scriptMicros: scripts && scripts.calls > 0 ? (scripts.seconds * 1e6) / scripts.calls : undefined,
    }
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
  }
}

/** Parses `calls=3,usec=120`. */
function fieldsOf(text: string): ReadonlyMap<string, string> {
  return new Map(text.split(',').map((field) => field.split('=') as [string, string]))
}

/** The part of a `SLOWLOG GET` entry that we use. */
type SlowEntry = readonly [id: number, atSeconds: number, micros: number, words: readonly string[]]

/** Counts slow calls to our script on one server. Each slow log entry is counted once. */
class SlowScripts {
  readonly #keyHead: string
  #lastId: number | undefined
  #count = 0

  /** @param keyHead the prefix of all our keys */
  constructor(keyHead: string) {
    this.#keyHead = keyHead
  }

  /**
   * The number of slow calls since the first read.
   *
   * @param entries newest first
   */
  count(entries: readonly SlowEntry[]): number {
    const newest = entries[0]?.[0]
    if (newest === undefined) {
      this.#lastId ??= -1
      return this.#count
    }
    // Skips entries from before the first read. If IDs are lower than before, the server has restarted.
    const since = this.#lastId === undefined ? newest : newest < this.#lastId ? -1 : this.#lastId
    this.#lastId = newest
    for (const [id, , , words] of entries) if (id > since && this.#isOurs(words)) this.#count++
    return this.#count
  }

  /** Recognizes our script by its first key. */
  #isOurs([command = '', , , key = '']: readonly string[]): boolean {
    return /^eval(sha)?$/i.test(command) && key.startsWith(this.#keyHead)
  }
}
