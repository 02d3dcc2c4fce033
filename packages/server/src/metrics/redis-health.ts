import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { RedisServerTold } from '../admin/overview.ts'
import type { RedisLink } from '../admin/redis-link.ts'
import { messageOf } from '../errors.ts'
import { RedisInfo } from './redis-info.ts'
import { type SlowEntry, SlowScripts } from './slow-scripts.ts'

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
  async servers(): Promise<readonly RedisServerTold[]> {
    return (await this.read()).map(({ node, up, info }) => ({ node, up, ...info?.told() }))
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
