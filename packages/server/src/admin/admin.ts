import type { Logger } from 'pino'
import type { AnyKey, Decision } from 'slidegate'
import type { LimitCounts } from 'slidegate/metrics'
import type { RedisStore } from 'slidegate/redis'
import type { StoreConfig } from '../config/schema.ts'
import { RedisHealth } from '../metrics/redis-health.ts'
import type { Peers } from '../service/peers.ts'
import type { Service } from '../service/service.ts'
import { Audit } from './audit.ts'
import { MemoryAuditLog, RedisAuditLog } from './audit-log.ts'
import { EventStreams } from './event-streams.ts'
import { type Every, everyByTimer } from './every.ts'
import { Instances, type InstancesOptions } from './instances.ts'
import { concealing, isConcealed, mapKey } from './key-text.ts'
import { type Callers, callersTogether, respelled, type TopTold, topTogether } from './keys-together.ts'
import { type LimiterState, limitsTogether, statesOf, statesTogether } from './limiter-states.ts'
import { Live } from './live.ts'
import type { SpanUsage } from './overview.ts'
import { type SpanCounts, usageOf } from './rates.ts'
import { RedisLink } from './redis-link.ts'
import type { By, CallersTold, TopCounts } from './sliding-keys.ts'
import { Steered } from './steered.ts'
import { MemorySteering, RedisSteering, type Steering } from './steering.ts'
import { Tail, type Taken } from './tail.ts'
import { Usage } from './usage.ts'

export interface AdminOptions {
  readonly service: Service
  readonly peers: Peers
  readonly store: StoreConfig
  /** Where that is what the service's store is. */
  readonly redisStore?: RedisStore | undefined
  /** What the limits of a limiter have said in this process. */
  readonly limitsOf?: ((limiter: string) => readonly LimitCounts[]) | undefined
  /** Against which the names of files are. */
  readonly folder: string
  readonly log: Logger
  /** Default: a timer. */
  readonly every?: Every | undefined
}

/** The service is not kept waiting for longer by a Redis that gives no answer when it starts. */
const START_MS = 500

/** What operators see of the service, and how they change it: in all its processes. */
export class Admin {
  readonly audit: Audit
  readonly steering: Steering
  readonly tail: Tail
  readonly live: Live
  /** What the servers of the store say of themselves, where it is in Redis. */
  readonly redis: RedisHealth | undefined
  readonly #usage: Usage
  readonly #service: Service
  readonly #peers: Peers
  readonly #instances: Instances
  readonly #streams: EventStreams
  readonly #steered: Steered
  readonly #link: RedisLink | undefined

  constructor(options: AdminOptions) {
    const { service, peers, store, folder, log, redisStore, limitsOf, every = everyByTimer } = options
    const link = store.redis && new RedisLink(store.redis, folder)
    this.#link = link
    this.redis = link && new RedisHealth(link, log)
    this.#service = service
    this.#peers = peers
    this.#usage = new Usage(undefined, every)
    this.#streams = new EventStreams(every)
    this.audit = new Audit(service, link ? new RedisAuditLog(link) : new MemoryAuditLog(), log)
    this.steering = link ? new RedisSteering(link) : new MemorySteering()
    const instances = new Instances({ peers, link, every, log, concealed: concealedBy(service) })
    this.#instances = instances
    this.tail = new Tail(instances, this.#streams)
    this.live = new Live({
      ...{ service, instances, usage: this.#usage, streams: this.#streams, redisStore },
      servers: async () => (await this.redis?.servers()) ?? [],
    })
    this.#steered = new Steered(service, this.steering, every, log)
    instances.answer('usage', (limiter) => this.#usage.spansOf(limiter as string))
    instances.answer('top', (asked) => {
      const { limiter, by } = asked as { limiter: string; by: By }
      return this.#usage.topOf(limiter, by)
    })
    instances.answer('limits', (limiter) => limitsOf?.(limiter as string) ?? [])
    instances.answer('states', (limiters) => statesOf(service, limiters as string[]))
    instances.answer('steer', () => this.#steered.heed().then(() => true))
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
    const link = this.#link
    // Where that still connects, nothing is to be said of it yet.
    if (link === undefined || (await link.connected(START_MS)) || link.isUnreachable)
      await this.#steered.heed()
  }

  /** What was said is in force in all processes when it resolves, and a moment later where one of them could not be asked. */
  async steer(): Promise<void> {
    await this.#instances.ask('steer')
  }

  async drain(drain: boolean): Promise<void> {
    await this.#peers.ask('drain', drain)
  }

  /** Whose decisions have been seen here: limiters, and domains of Envoy. */
  seen(): readonly string[] {
    return this.#usage.names()
  }

  /** How many instances there are on the same store. */
  instances(): number {
    return this.#instances.count()
  }

  async usageOf(limiter: string): Promise<SpanUsage[]> {
    return usageOf((await this.#instances.ask('usage', limiter)) as readonly (readonly SpanCounts[])[])
  }

  async topOf(limiter: string, by: By, count: number): Promise<TopTold> {
    const told = (await this.#instances.ask('top', { limiter, by })) as readonly TopCounts[]
    const conceal = concealing(this.#service, limiter)
    if (conceal === undefined) return topTogether(told, count)
    // What others have told is concealed; it is known here whose it is where the same key came here, too.
    const known = new Map<string, string>()
    const spell = (key: string): string => {
      if (isConcealed(key)) return key
      const stored = conceal(key)
      known.set(stored, key)
      return stored
    }
    const alike = told.map((each) => ({ ...each, summaries: respelled(each.summaries, spell) }))
    const { keys, ...top } = topTogether(alike, count)
    return { ...top, keys: keys.map((each) => ({ ...each, key: known.get(each.key) ?? each.key })) }
  }

  /** What the limits of a limiter have said since its processes were started. */
  async limitsOf(limiter: string): Promise<LimitCounts[]> {
    return limitsTogether(
      (await this.#instances.ask('limits', limiter)) as readonly (readonly LimitCounts[])[],
    )
  }

  /** Who asks this instance, by limiter. */
  async callers(): Promise<ReadonlyMap<string, Callers>> {
    return callersTogether((await this.#peers.ask('callers')) as readonly Record<string, CallersTold>[])
  }

  /** By name. */
  async statesOf(limiters: readonly string[]): Promise<ReadonlyMap<string, LimiterState>> {
    const told = await this.#instances.ask('states', limiters)
    return statesTogether(told as readonly Record<string, LimiterState>[])
  }

  /** Ends what is read for as long as one likes. */
  closeStreams(): void {
    this.#streams.close()
  }

  close(): void {
    this.#streams.close()
    this.#usage.close()
    this.#instances.close()
    this.#steered.close()
    this.#link?.close()
  }
}

/** What has keys in it. */
function concealedBy(service: Service): InstancesOptions['concealed'] {
  return {
    top: (answer, asked) => {
      const conceal = concealing(service, (asked as { limiter: string }).limiter)
      const told = answer as TopCounts
      return conceal && { ...told, summaries: respelled(told.summaries, conceal) }
    },
    tail: (answer) => {
      const { lines, lost } = answer as Taken
      const told = lines.map((line) => {
        const conceal = concealing(service, line.limiter)
        return conceal ? { ...line, key: mapKey(line.key, conceal) } : line
      })
      return { lines: told, lost }
    },
  }
}
