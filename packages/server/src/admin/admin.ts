import type { Logger } from 'pino'
import type { AnyKey, Decision, LimiterStats } from 'slidegate'
import type { StoreConfig } from '../config/schema.ts'
import type { Peers } from '../service/peers.ts'
import type { Service } from '../service/service.ts'
import { Audit } from './audit.ts'
import { MemoryAuditLog, RedisAuditLog } from './audit-log.ts'
import { type Every, everyByTimer } from './every.ts'
import { type SpanCounts, type SpanUsage, usageOf } from './rates.ts'
import { RedisLink } from './redis-link.ts'
import { Steered } from './steered.ts'
import { MemorySteering, RedisSteering, type Steering } from './steering.ts'
import { Tail } from './tail.ts'
import { type By, type TopCounts, type TopKey, topKeys, Usage } from './usage.ts'

export interface AdminOptions {
  readonly service: Service
  readonly peers: Peers
  readonly store: StoreConfig
  /** Against which the names of files are. */
  readonly folder: string
  readonly log: Logger
  /** Default: a timer. */
  readonly every?: Every | undefined
}

/** The service is not kept waiting for longer by a Redis that gives no answer when it starts. */
const START_MS = 500

/** What a limiter of one process has to say of itself. */
interface LimiterState {
  readonly stats: LimiterStats
  readonly waiting: { readonly length: number; readonly expectedWaitMs: number | null }
}

/** What operators see of the service, and how they change it: in all its processes. */
export class Admin {
  readonly audit: Audit
  readonly steering: Steering
  readonly tail: Tail
  readonly #usage = new Usage()
  readonly #peers: Peers
  readonly #steered: Steered
  readonly #link: RedisLink | undefined

  constructor({ service, peers, store, folder, log, every = everyByTimer }: AdminOptions) {
    const link = store.redis && new RedisLink(store.redis, folder)
    this.#link = link
    this.#peers = peers
    this.audit = new Audit(service, link ? new RedisAuditLog(link) : new MemoryAuditLog(), log)
    this.steering = link ? new RedisSteering(link) : new MemorySteering()
    this.tail = new Tail(peers, every)
    this.#steered = new Steered(service, this.steering, every, log)
    peers.answer('usage', (limiter) => this.#usage.spansOf(limiter as string))
    peers.answer('top', (asked) => {
      const { limiter, by } = asked as { limiter: string; by: By }
      return this.#usage.topOf(limiter, by)
    })
    peers.answer('state', (limiter) => stateOf(service, limiter as string))
    peers.answer('steer', () => this.#steered.heed().then(() => true))
    peers.answer('drain', (drain) => {
      service.isDraining = drain as boolean
      return true
    })
  }

  /** Of each decision. */
  decided(limiter: string, key: AnyKey, decision: Decision): void {
    this.#usage.record(limiter, key, decision)
    this.tail.decided(limiter, key, decision)
  }

  /** Heeds what was said before; where that cannot be read at once, as soon as it can. */
  async start(): Promise<void> {
    if (this.#link === undefined || (await this.#link.connected(START_MS))) await this.#steered.heed()
  }

  /** What was said is in force in all processes of this instance when it resolves. */
  async steer(): Promise<void> {
    await this.#peers.ask('steer')
  }

  async drain(drain: boolean): Promise<void> {
    await this.#peers.ask('drain', drain)
  }

  /** Whose decisions have been seen here: limiters, and domains of Envoy. */
  seen(): readonly string[] {
    return this.#usage.names()
  }

  async usageOf(limiter: string): Promise<SpanUsage[]> {
    return usageOf((await this.#peers.ask('usage', limiter)) as readonly (readonly SpanCounts[])[])
  }

  async topOf(
    limiter: string,
    by: By,
    count: number,
  ): Promise<{ readonly overMs: number; readonly keys: TopKey[] }> {
    const counts = (await this.#peers.ask('top', { limiter, by })) as readonly TopCounts[]
    return { overMs: Math.max(0, ...counts.map(({ overMs }) => overMs)), keys: topKeys(counts, count) }
  }

  async stateOf(limiter: string): Promise<LimiterState> {
    const [first, ...others] = (await this.#peers.ask('state', limiter)) as [LimiterState, ...LimiterState[]]
    return others.reduce(together, first)
  }

  close(): void {
    this.tail.close()
    this.#steered.close()
    this.#link?.close()
  }
}

function stateOf(service: Service, name: string): LimiterState | undefined {
  // One process may have heard of a limiter before another.
  if (!service.has(name)) return undefined
  const { limiter } = service.get(name)
  const { length, expectedWaitMs } = limiter.waiting()
  const isEver = Number.isFinite(expectedWaitMs)
  return { stats: limiter.stats(), waiting: { length, expectedWaitMs: isEver ? expectedWaitMs : null } }
}

function together(a: LimiterState, b: LimiterState): LimiterState {
  const [one, two] = [a.waiting, b.waiting]
  const expectedWaitMs =
    one.expectedWaitMs === null || two.expectedWaitMs === null
      ? null
      : Math.max(one.expectedWaitMs, two.expectedWaitMs)
  return {
    stats: {
      storeErrors: sums(a.stats.storeErrors, b.stats.storeErrors),
      withoutStore: sums(a.stats.withoutStore, b.stats.withoutStore),
      breakerOpened: a.stats.breakerOpened + b.stats.breakerOpened,
    },
    waiting: { length: one.length + two.length, expectedWaitMs },
  }
}

function sums<Name extends string>(
  a: Readonly<Record<Name, number>>,
  b: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const names = Object.keys(a) as Name[]
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Record<Name, number>
}
