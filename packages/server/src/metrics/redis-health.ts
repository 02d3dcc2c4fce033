// What Redis servers report: read once a second, for all who ask.

import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { messageOf } from '#replay/errors.js'
import type { RedisServerStatus } from '../admin/api-types.ts'
import type { RedisLink } from '../admin/redis-link.ts'

const SECTIONS = ['server', 'clients', 'memory', 'stats', 'replication', 'cpu', 'commandstats']

/** For so long what was read stands, whoever asks. */
const FRESH_MS = 1000

/** A server that is not among those of the Cluster any more is told as down for so long. */
const FORGET_MS = 300_000

/** Slow calls that are read at a time: by default Redis keeps as many. */
const SLOW_ENTRIES = 128

/** What was found out of a server. */
export interface ServerHealth {
  /** `host:port`. */
  readonly node: string
  readonly up: boolean
  /** Left out where it may not be asked. */
  readonly info?: RedisInfo | undefined
  /** Slow calls of our script, since it was first asked; left out where it may not be. */
  readonly slowScripts?: number | undefined
}

interface Answer {
  readonly info: string | undefined
  readonly slow: readonly SlowEntry[] | undefined
}

/**
 * What the servers of Redis say of themselves. They are asked once a second at most, however many want to know. What the user
 * may not ask is left out, and said once in the log.
 */
export class RedisHealth {
  readonly #link: RedisLink
  readonly #log: Logger
  readonly #now: () => number
  readonly #slow = new Map<string, SlowScripts>()
  readonly #seenAtMs = new Map<string, number>()
  readonly #refused = new Set<string>()
  #read: { readonly atMs: number; readonly servers: Promise<readonly ServerHealth[]> } | undefined

  /** @param now a monotonic clock, in milliseconds */
  constructor(link: RedisLink, log: Logger, now: () => number = () => performance.now()) {
    this.#link = link
    this.#log = log
    this.#now = now
  }

  /** Never rejects, and takes a second at most. */
  read(): Promise<readonly ServerHealth[]> {
    const nowMs = this.#now()
    if (this.#read === undefined || nowMs - this.#read.atMs >= FRESH_MS) {
      this.#read = { atMs: nowMs, servers: this.#ask(nowMs) }
    }
    return this.#read.servers
  }

  /** The same, for a page. */
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
      this.#unlessRefused('INFO', server.call('INFO', ...SECTIONS) as Promise<string>),
      this.#unlessRefused('SLOWLOG GET', server.slowlog('GET', SLOW_ENTRIES) as Promise<SlowEntry[]>),
    ])
    return { info, slow }
  }

  async #unlessRefused<Reply>(command: string, reply: Promise<Reply>): Promise<Reply | undefined> {
    try {
      return await reply
    } catch (error) {
      // It has answered, if with no more than that.
      if (!(error instanceof Error) || error.name !== 'ReplyError') throw error
      if (!this.#refused.has(command)) {
        this.#refused.add(command)
        this.#log.warn({ command, reason: messageOf(error) }, 'Redis does not tell this of itself')
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

/** What a server answers to `INFO`, by name. What it does not say is left out. */
export class RedisInfo {
  readonly #values = new Map<string, string>()

  constructor(text: string) {
    for (const line of text.split('\r\n')) {
      const colon = line.indexOf(':')
      if (colon > 0) this.#values.set(line.slice(0, colon), line.slice(colon + 1))
    }
  }

  number(name: string): number | undefined {
    const text = this.#values.get(name)
    const value = text === undefined || text === '' ? Number.NaN : Number(text)
    return Number.isFinite(value) ? value : undefined
  }

  get cpuSeconds(): number | undefined {
    const [user, system] = [this.number('used_cpu_user'), this.number('used_cpu_sys')]
    return user === undefined || system === undefined ? undefined : user + system
  }

  /** Calls of scripts, whoever made them, and how long they took. */
  get scripts(): { readonly calls: number; readonly seconds: number } | undefined {
    // A server that tells of no command at all was not allowed to, or was asked by somebody who sees none.
    if (!Array.from(this.#values.keys()).some((name) => name.startsWith('cmdstat_'))) return undefined
    const both = ['cmdstat_evalsha', 'cmdstat_eval'].map((name) => fieldsOf(this.#values.get(name) ?? ''))
    const sum = (field: string) => both.reduce((all, fields) => all + Number(fields.get(field) ?? 0), 0)
    return { calls: sum('calls'), seconds: sum('usec') / 1e6 }
  }

  /** How many bytes the slowest of its replicas is behind; none without replicas. */
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
      evictedKeys: this.number('evicted_keys'),
      connectedClients: this.number('connected_clients'),
      replicaLagBytes: this.replicaLagBytes,
      scriptMicros: scripts && scripts.calls > 0 ? (scripts.seconds * 1e6) / scripts.calls : undefined,
    }
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
  }
}

/** Of `calls=3,usec=120`. */
function fieldsOf(text: string): ReadonlyMap<string, string> {
  return new Map(text.split(',').map((field) => field.split('=') as [string, string]))
}

/** As `SLOWLOG GET` tells a call: others follow, of no interest here. */
type SlowEntry = readonly [id: number, atSeconds: number, micros: number, words: readonly string[]]

/** Slow calls of our script that one server has logged. Each is counted once, by the number that it has there. */
class SlowScripts {
  readonly #keyHead: string
  #lastId: number | undefined
  #count = 0

  /** @param keyHead what all our keys begin with */
  constructor(keyHead: string) {
    this.#keyHead = keyHead
  }

  /**
   * How many there have been since the first look.
   *
   * @param entries the latest first
   */
  count(entries: readonly SlowEntry[]): number {
    const newest = entries[0]?.[0]
    if (newest === undefined) {
      this.#lastId ??= -1
      return this.#count
    }
    // What was there before counts for nothing; where numbers begin anew the server was started again.
    const since = this.#lastId === undefined ? newest : newest < this.#lastId ? -1 : this.#lastId
    this.#lastId = newest
    for (const [id, , , words] of entries) if (id > since && this.#isOurs(words)) this.#count++
    return this.#count
  }

  /** By its first key. */
  #isOurs([command = '', , , key = '']: readonly string[]): boolean {
    return /^eval(sha)?$/i.test(command) && key.startsWith(this.#keyHead)
  }
}
