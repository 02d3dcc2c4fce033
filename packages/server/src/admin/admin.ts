// Lets operators inspect and change the running service, across all processes.

import type { Logger } from 'pino'
import type { AnyKey, Decision } from 'slidegate'
import type { LimitCounts } from 'slidegate/metrics'
import type { RedisStore } from 'slidegate/redis'
import type { StoreConfig } from '../config/schema.ts'
import type { StoreOutage } from '../metrics/limiter-counts.ts'
import { RedisHealth } from '../metrics/redis-health.ts'
import type { Processes } from '../service/instance.ts'
import type { FileState } from '../service/readiness.ts'
import type { ActiveLimiter, Service } from '../service/service.ts'
import type { SpanUsage } from './api-types.ts'
import { Audit } from './audit.ts'
import { MemoryAuditLog, RedisAuditLog } from './audit-log.ts'
import { MemoryBanLog, RedisBanLog } from './ban-log.ts'
import { BanRecorder } from './ban-recorder.ts'
import { Bans } from './bans.ts'
import { EventStreams } from './event-streams.ts'
import { findKey } from './find-key.ts'
import { History } from './history/history.ts'
import { MemoryHistoryStore } from './history/history-store.ts'
import { RedisHistoryStore } from './history/redis-history-store.ts'
import { Instances, type InstancesOptions } from './instances.ts'
import { concealing, isConcealed, mapKey, shortKey } from './keys.ts'
import { type DenialTimes, denialWord, mergeDenials } from './last-denials.ts'
import { type LimiterState, mergeLimits, mergeStates, statesOf } from './limiter-states.ts'
import { Live } from './live.ts'
import { type Callers, mergeCallers, mergeTop, renameKeys, type TopReport } from './merge-keys.ts'
import { decisionsIn } from './merge-reports.ts'
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
  /** The service's store, if it is in Redis. */
  readonly redisStore?: RedisStore | undefined
  /** Returns the counts for a limiter's limits in this process. */
  readonly limitsOf?: ((limiter: string) => readonly LimitCounts[]) | undefined
  /** Whether the store of a limiter or an Envoy domain is down. */
  readonly isStoreDown: (limiter: string) => boolean
  /** Returns the current or latest outage of a limiter's store. */
  readonly outageOf: (limiter: string) => StoreOutage | undefined
  readonly fileState: () => FileState
  /** The base folder for relative file names. */
  readonly folder: string
  readonly log: Logger
  /** Calls a function periodically. Default: uses a timer. */
  readonly every?: Every | undefined
  /** The wall clock for the history, in epoch milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

/** Maximum time to wait for Redis at startup. */
const START_MS = 500

/** Inspects and changes the running service, across all processes. */
export class Admin {
  readonly audit: Audit
  readonly bans: Bans
  readonly banRecorder: BanRecorder
  readonly shadowSwitches: ShadowSwitches
  readonly tail: Tail
  readonly live: Live
  readonly history: History
  /** Statistics about the Redis servers, if the store is in Redis. */
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
    const { isStoreDown, outageOf, fileState, now = Date.now } = options
    const link = store.redis && new RedisLink(store.redis, folder)
    this.#link = link
    this.redis = link && new RedisHealth(link, log)
    this.#service = service
    this.#processes = processes
    this.#usage = new Usage(undefined, every)
    this.#streams = new EventStreams(every)
    this.audit = new Audit(service, link ? new RedisAuditLog(link) : new MemoryAuditLog(), log)
    // A separate log: otherwise, an attack that causes many bans would push out operators' changes.
    const past = link ? new RedisAuditLog(link, '{audit}:bans') : new MemoryAuditLog()
    const records = link ? new RedisBanLog(link) : new MemoryBanLog()
    this.bans = new Bans(service, records, log)
    this.banRecorder = new BanRecorder(service, records, past, log)
    this.shadowSwitches = link ? new RedisShadowSwitches(link) : new MemoryShadowSwitches()
    const perSecond = () => decisionsIn(this.#usage.secondsOf(this.#usage.names(), 1))
    const concealed = concealedBy(service)
    const instances = new Instances({ processes, link, every, log, perSecond, concealed })
    this.#instances = instances
    this.tail = new Tail(instances, this.#streams)
    this.live = new Live({
      ...{
        service,
        instances,
        usage: this.#usage,
        streams: this.#streams,
        redisStore,
        isStoreDown,
        outageOf,
        fileState,
      },
      servers: async () => (await this.redis?.servers()) ?? [],
    })
    this.history = new History({
      ...{ service, usage: this.#usage, every, log, now },
      store: link ? new RedisHistoryStore(link, now) : new MemoryHistoryStore(now),
    })
    this.#shadowSync = new ShadowSync(service, this.shadowSwitches, every, log)
    instances.answer('usage', (limiter) => this.#usage.spansOf(limiter as string))
    instances.answer('top', (query) => {
      const { limiter, by } = query as { limiter: string; by: Ranking }
      return this.#usage.topOf(limiter, by)
    })
    instances.answer('limits', (limiter) => limitsOf?.(limiter as string) ?? [])
    instances.answer('states', (limiters) => statesOf(service, limiters as string[]))
    instances.answer('denials', (word) => this.#usage.lastDenialsOf(word as string))
    instances.answer('shadow', () => this.#shadowSync.apply().then(() => true))
    processes.answer('drain', (drain) => {
      service.isDraining = drain as boolean
      return true
    })
  }

  decided(limiter: string, key: AnyKey, decision: Decision): void {
    this.#usage.record(limiter, key, decision)
    this.tail.decided(limiter, key, decision)
    this.banRecorder.decided(limiter, key, decision)
  }

  /** Applies the shadow switches. Waits for the first connection to Redis, up to a timeout. */
  async start(): Promise<void> {
    const link = this.#link
    // If the first connection is still pending after the timeout, does nothing, so that no failure is logged yet.
    if (link === undefined || (await link.connected(START_MS)) || link.isUnreachable)
      await this.#shadowSync.apply()
  }

  /** Applies the shadow switches in all processes. Unreachable processes apply them at their next poll. */
  async applyShadowSwitches(): Promise<void> {
    await this.#instances.ask('shadow')
  }

  async drain(drain: boolean): Promise<void> {
    await this.#processes.ask('drain', drain)
  }

  /** Returns the limiters and Envoy domains that have made decisions in this process. */
  seen(): readonly string[] {
    return this.#usage.names()
  }

  /** Returns the number of instances that share the store. */
  instances(): number {
    return this.#instances.count()
  }

  async usageOf(limiter: string): Promise<SpanUsage[]> {
    return usageOf((await this.#instances.ask('usage', limiter)) as readonly (readonly SpanCounts[])[])
  }

  async topOf(limiter: string, by: Ranking, count: number): Promise<TopReport> {
    const answers = (await this.#instances.ask('top', { limiter, by })) as readonly TopCounts[]
    const conceal = concealing(this.#service, limiter)
    if (conceal === undefined) return mergeTop(answers, count)
    // Other instances send hashed keys. This instance hashes its own keys for the merge, and restores them later.
    const known = new Map<string, string>()
    const rename = (key: string): string => {
      if (isConcealed(key)) return key
      const stored = conceal(key)
      known.set(stored, key)
      return stored
    }
    const concealed = answers.map((each) => ({ ...each, summaries: renameKeys(each.summaries, rename) }))
    const { keys, ...top } = mergeTop(concealed, count)
    return { ...top, keys: keys.map((each) => ({ ...each, key: known.get(each.key) ?? each.key })) }
  }

  /** Returns the counts for a limiter's limits since the processes started. */
  async limitsOf(limiter: string): Promise<LimitCounts[]> {
    return mergeLimits((await this.#instances.ask('limits', limiter)) as readonly (readonly LimitCounts[])[])
  }

  /** Returns statistics about this instance's callers, by limiter. */
  async callers(): Promise<ReadonlyMap<string, Callers>> {
    return mergeCallers((await this.#processes.ask('callers')) as readonly Record<string, CallerSketch>[])
  }

  async statesOf(limiters: readonly string[]): Promise<ReadonlyMap<string, LimiterState>> {
    const answers = await this.#instances.ask('states', limiters)
    return mergeStates(answers as readonly Record<string, LimiterState>[])
  }

  /** Looks up a key in these limiters. */
  async find(limiters: readonly ActiveLimiter[], key: string): ReturnType<typeof findKey> {
    const answers = await this.#instances.ask('denials', denialWord(shortKey(key)))
    return findKey(limiters, key, mergeDenials(answers as readonly DenialTimes[]))
  }

  /** Ends all event streams. */
  closeStreams(): void {
    this.#streams.close()
  }

  /** Stops everything, after trying to store the current minute's counts. */
  async close(): Promise<void> {
    this.#streams.close()
    this.#usage.close()
    this.#instances.close()
    this.#shadowSync.close()
    await this.history.close()
    this.#link?.close()
  }
}

/** Hashes the keys in answers to other instances, if the limiter has `hashKeys`. */
function concealedBy(service: Service): InstancesOptions['concealed'] {
  return {
    top: (answer, query) => {
      const conceal = concealing(service, (query as { limiter: string }).limiter)
      const counts = answer as TopCounts
      return conceal && { ...counts, summaries: renameKeys(counts.summaries, conceal) }
    },
    tail: (answer) => {
      const { lines, lost } = answer as TailBatch
      const concealed = lines.map((line) => {
        const conceal = concealing(service, line.limiter)
        return conceal ? { ...line, key: mapKey(line.key, conceal) } : line
      })
      return { lines: concealed, lost }
    },
  }
}
