// The dashboard's overview, second by second, across all instances.

import type { Readable } from 'node:stream'
import type { RedisStore } from 'slidegate/redis'
import type { LimiterConfig } from '../config/schema.ts'
import type { StoreOutage } from '../metrics/limiter-counts.ts'
import type { FileState } from '../service/readiness.ts'
import type { Service } from '../service/service.ts'
import type { History, Overview, RedisServerStatus } from './api-types.ts'
import { type EventStreams, eventOf } from './event-streams.ts'
import type { Instances } from './instances.ts'
import { concealing } from './keys.ts'
import { type Callers, mergeCallers } from './merge-keys.ts'
import { instancesOf, limitersOf, type ProcessReport, storeOf } from './merge-reports.ts'
import type { SecondCounts } from './rates.ts'
import type { CallerSketch } from './sliding-keys.ts'
import { CallTotals } from './store-calls.ts'
import type { Usage } from './usage.ts'

const EVERY_MS = 1000

/** The sketches that estimate the number of callers are queried less often than everything else. */
const CALLERS_EVERY_MS = 5000

const HISTORY_SECONDS = 300

interface LiveOptions {
  readonly service: Service
  readonly instances: Instances
  readonly usage: Usage
  readonly streams: EventStreams
  /** The service's store, if it is in Redis. */
  readonly redisStore: RedisStore | undefined
  readonly servers: () => Promise<readonly RedisServerStatus[]>
  /** Whether the store of a limiter or an Envoy domain is down. */
  readonly isStoreDown: (domain: string) => boolean
  /** Returns the current or latest outage of that store. */
  readonly outageOf: (domain: string) => StoreOutage | undefined
  readonly fileState: () => FileState
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Reports on the service second by second, across all instances. Queries other processes only while it has readers. */
export class Live {
  readonly #options: LiveOptions
  readonly #now: () => number
  readonly #totals: CallTotals
  #overview: { readonly untilMs: number; readonly result: Promise<Overview> } | undefined
  #callers: { readonly untilMs: number; readonly result: Promise<ReadonlyMap<string, Callers>> } | undefined

  constructor(options: LiveOptions) {
    const { service, redisStore, instances, usage, now = () => performance.now() } = options
    this.#options = options
    this.#now = now
    this.#totals = new CallTotals(redisStore, now)
    instances.answer('live', () => this.#report())
    instances.answer('callers', () => usage.callers((limiter) => concealing(service, limiter)))
    instances.answer('seconds', (limiters) => usage.secondsOf(limiters as string[], HISTORY_SECONDS))
  }

  /** @param may whether the reader may see a limiter */
  async overview(may: (limiter: string) => boolean): Promise<Overview> {
    const nowMs = this.#now()
    // Concurrent readers share an overview.
    if (this.#overview === undefined || this.#overview.untilMs <= nowMs) {
      this.#overview = { untilMs: nowMs + EVERY_MS / 2, result: this.#ask() }
    }
    const overview = await this.#overview.result
    return { ...overview, limiters: overview.limiters.filter(({ name }) => may(name)) }
  }

  /** @throws {ServiceError} `too_many_readers` */
  open(may: () => (limiter: string) => boolean): Readable {
    return this.#options.streams.open({
      everyMs: EVERY_MS,
      next: async (take) => (take ? eventOf('overview', await this.overview(may())) : ''),
    })
  }

  async history(limiters: readonly string[]): Promise<History> {
    const { instances, usage } = this.#options
    const all = (await instances.ask('seconds', limiters)) as readonly SecondCounts[]
    const aligned = byOneClock(all, usage.secondsOf([], 1).latest)
    const latest = Math.max(0, ...aligned.map((each) => each.latest))
    const length = Math.max(0, ...aligned.map((each) => latest - each.latest + each.allowed.length))
    const seconds = Array.from({ length: Math.min(length, HISTORY_SECONDS) }, (_, i) => latest - i).reverse()
    const column = (of: (each: SecondCounts) => readonly number[]) =>
      seconds.map((second) => aligned.reduce((sum, each) => sum + (of(each)[each.latest - second] ?? 0), 0))
    return {
      seconds,
      allowed: column((each) => each.allowed),
      denied: column((each) => each.denied),
      shadowDenied: column((each) => each.shadowDenied),
    }
  }

  async #ask(): Promise<Overview> {
    const { instances, servers, usage } = this.#options
    const [{ answers, missing }, callers, redisServers] = await Promise.all([
      instances.askAll('live'),
      this.#callersNow(),
      servers(),
    ])
    const reports = answers as readonly ProcessReport[]
    // Uses the second in this process's own report, because the next second may have begun in the meantime.
    const own = reports.find(({ process }) => process.process === instances.self.process)
    const { latest } = own?.limiters[0]?.latest ?? usage.secondsOf([], 1)
    return {
      atMs: 1000 * latest,
      instances: instancesOf(reports, instances.self),
      gone: instances.gone(),
      missing,
      store: storeOf(reports, redisServers),
      limiters: limitersOf(reports, callers),
    }
  }

  #callersNow(): Promise<ReadonlyMap<string, Callers>> {
    const nowMs = this.#now()
    if (this.#callers === undefined || this.#callers.untilMs <= nowMs) {
      this.#callers = { untilMs: nowMs + CALLERS_EVERY_MS, result: this.#askCallers() }
    }
    return this.#callers.result
  }

  async #askCallers(): Promise<ReadonlyMap<string, Callers>> {
    const answers = await this.#options.instances.ask('callers')
    return mergeCallers(answers as readonly Readonly<Record<string, CallerSketch>>[])
  }

  #report(): ProcessReport {
    const { service, instances, usage, redisStore, isStoreDown, outageOf, fileState } = this.#options
    const declared = service.active().map(({ declared: { name, config }, limiter }) => ({
      ...{
        name,
        waiting: limiter.waiting().length,
        isStoreDown: limiter.stats().isStoreDown && isStoreDown(name),
      },
      ...policyOf(config),
    }))
    const names = new Set(declared.map(({ name }) => name))
    // Envoy domains have counts, but aren't declared as limiters in the configuration.
    const domains = usage.names().filter((name) => !names.has(name))
    const policy = policyOf(service.config.envoy)
    const all = [
      ...declared,
      ...domains.map((name) => ({ name, waiting: 0, isStoreDown: isStoreDown(name), ...policy })),
    ]
    const limiters = all.map((each) => {
      const { name } = each
      const outage = outageOf(name)
      const counts = { latest: usage.secondsOf([name], 1), lastMinute: usage.lastMinuteOf(name) }
      return { ...each, ...counts, ...(outage && { outage }) }
    })
    return {
      process: instances.self,
      isRedis: redisStore !== undefined,
      fileState: fileState(),
      calls: this.#totals.lately(),
      limiters,
    }
  }
}

function policyOf({
  onStoreError = 'throw',
  instances = 1,
}: Pick<LimiterConfig, 'onStoreError' | 'instances'> = {}) {
  return { onStoreError, instances }
}

/** Maximum clock difference. If a process's clock differs by more, its counts are used as if the clocks agreed. */
const CLOCKS_DIFFER_SECONDS = 2

function byOneClock(all: readonly SecondCounts[], latest: number): readonly SecondCounts[] {
  return all.map((each) =>
    Math.abs(each.latest - latest) <= CLOCKS_DIFFER_SECONDS ? each : { ...each, latest },
  )
}
