// What operators see and change, in all processes of the service.

import type { Logger } from 'pino'
import type { AnyKey, Decision } from 'slidegate'
import type { LimitCounts } from 'slidegate/metrics'
import type { RedisStore } from 'slidegate/redis'
import type { StoreConfig } from '../config/schema.ts'
import { RedisHealth } from '../metrics/redis-health.ts'
import type { Processes } from '../service/instance.ts'
import type { Service } from '../service/service.ts'
import type { SpanUsage } from './api-types.ts'
import { Audit, MemoryAuditLog, RedisAuditLog } from './audit.ts'
import { EventStreams } from './event-streams.ts'
import { Instances, type InstancesOptions } from './instances.ts'
import { concealing, isConcealed, mapKey } from './keys.ts'
import { type LimiterState, mergeLimits, mergeStates, statesOf } from './limiter-states.ts'
import { Live } from './live.ts'
import { type Callers, mergeCallers, mergeTop, renameKeys, type TopReport } from './merge-keys.ts'
import { type SpanCounts, usageOf } from './rates.ts'
import { RedisLink } from './redis-link.ts'
import {
  MemoryShadowSwitches,
  RedisShadowSwitches,
  type ShadowSwitches,
  ShadowSync,
} from './shadow-switches.ts'
import type { CallerSketch, Ranking, TopCounts } from './sliding-keys.ts'
import { Tail, type TailBatch } from './tail.ts'
import { type Every, everyByTimer } from './timer.ts'
import { Usage } from './usage.ts'

interface AdminOptions {
  readonly service: Service
  readonly processes: Processes
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
  readonly shadowSwitches: ShadowSwitches
  readonly tail: Tail
  readonly live: Live
  /** What the servers of the store say of themselves, where it is in Redis. */
  readonly redis: RedisHealth | undefined
  readonly #usage: Usage
  readonly #service: Service
  readonly #processes: Processes
  readonly #instances: Instances
  readonly #streams: EventStreams
  readonly #shadowSync: ShadowSync
  readonly #link: RedisLink | undefined

  constructor(options: AdminOptions) {
    const { service, processes, store, folder, log, redisStore, limitsOf, every = everyByTimer } = options
    const link = store.redis && new RedisLink(store.redis, folder)
    this.#link = link
    this.redis = link && new RedisHealth(link, log)
    this.#service = service
    this.#processes = processes
    this.#usage = new Usage(undefined, every)
    this.#streams = new EventStreams(every)
    this.audit = new Audit(service, link ? new RedisAuditLog(link) : new MemoryAuditLog(), log)
    this.shadowSwitches = link ? new RedisShadowSwitches(link) : new MemoryShadowSwitches()
    const instances = new Instances({ processes, link, every, log, concealed: concealedBy(service) })
    this.#instances = instances
    this.tail = new Tail(instances, this.#streams)
    this.live = new Live({
      ...{ service, instances, usage: this.#usage, streams: this.#streams, redisStore },
      servers: async () => (await this.redis?.servers()) ?? [],
    })
    this.#shadowSync = new ShadowSync(service, this.shadowSwitches, every, log)
    instances.answer('usage', (limiter) => this.#usage.spansOf(limiter as string))
    instances.answer('top', (asked) => {
      const { limiter, by } = asked as { limiter: string; by: Ranking }
      return this.#usage.topOf(limiter, by)
    })
    instances.answer('limits', (limiter) => limitsOf?.(limiter as string) ?? [])
    instances.answer('states', (limiters) => statesOf(service, limiters as string[]))
    instances.answer('shadow', () => this.#shadowSync.apply().then(() => true))
    processes.answer('drain', (drain) => {
      service.isDraining = drain as boolean
      return true
    })
  }

  /** Of each decision. */
  decided(limiter: string, key: AnyKey, decision: Decision): void {
    this.#usage.record(limiter, key, decision)
    this.tail.decided(limiter, key, decision)
  }

  /** Applies the shadow switches, as soon as they can be read. */
  async start(): Promise<void> {
    const link = this.#link
    // Where that still connects, nothing is to be said of it yet.
    if (link === undefined || (await link.connected(START_MS)) || link.isUnreachable)
      await this.#shadowSync.apply()
  }

  /** What was said is in force in all processes when it resolves, and a moment later where one of them could not be asked. */
  async applyShadowSwitches(): Promise<void> {
    await this.#instances.ask('shadow')
  }

  async drain(drain: boolean): Promise<void> {
    await this.#processes.ask('drain', drain)
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

  async topOf(limiter: string, by: Ranking, count: number): Promise<TopReport> {
    const told = (await this.#instances.ask('top', { limiter, by })) as readonly TopCounts[]
    const conceal = concealing(this.#service, limiter)
    if (conceal === undefined) return mergeTop(told, count)
    // What others have told is concealed; it is known here whose it is where the same key came here, too.
    const known = new Map<string, string>()
    const rename = (key: string): string => {
      if (isConcealed(key)) return key
      const stored = conceal(key)
      known.set(stored, key)
      return stored
    }
    const alike = told.map((each) => ({ ...each, summaries: renameKeys(each.summaries, rename) }))
    const { keys, ...top } = mergeTop(alike, count)
    return { ...top, keys: keys.map((each) => ({ ...each, key: known.get(each.key) ?? each.key })) }
  }

  /** What the limits of a limiter have said since its processes were started. */
  async limitsOf(limiter: string): Promise<LimitCounts[]> {
    return mergeLimits((await this.#instances.ask('limits', limiter)) as readonly (readonly LimitCounts[])[])
  }

  /** Who asks this instance, by limiter. */
  async callers(): Promise<ReadonlyMap<string, Callers>> {
    return mergeCallers((await this.#processes.ask('callers')) as readonly Record<string, CallerSketch>[])
  }

  /** By name. */
  async statesOf(limiters: readonly string[]): Promise<ReadonlyMap<string, LimiterState>> {
    const told = await this.#instances.ask('states', limiters)
    return mergeStates(told as readonly Record<string, LimiterState>[])
  }

  /** Ends what is read for as long as one likes. */
  closeStreams(): void {
    this.#streams.close()
  }

  close(): void {
    this.#streams.close()
    this.#usage.close()
    this.#instances.close()
    this.#shadowSync.close()
    this.#link?.close()
  }
}

/** What has keys in it. */
function concealedBy(service: Service): InstancesOptions['concealed'] {
  return {
    top: (answer, asked) => {
      const conceal = concealing(service, (asked as { limiter: string }).limiter)
      const told = answer as TopCounts
      return conceal && { ...told, summaries: renameKeys(told.summaries, conceal) }
    },
    tail: (answer) => {
      const { lines, lost } = answer as TailBatch
      const told = lines.map((line) => {
        const conceal = concealing(service, line.limiter)
        return conceal ? { ...line, key: mapKey(line.key, conceal) } : line
      })
      return { lines: told, lost }
    },
  }
}
