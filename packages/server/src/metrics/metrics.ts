// START HERE: all metrics, from all processes.

import { setImmediate } from 'node:timers/promises'
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { MemoryStore, Store } from 'slidegate'
import type { RedisStore } from 'slidegate/redis'
import type { Admin } from '../admin/admin.ts'
import type { Callers } from '../admin/merge-keys.ts'
import type { Capture } from '../capture/capture.ts'
import type { DecisionLog } from '../capture/decision-log.ts'
import { type Processes, VERSION } from '../service/instance.ts'
import type { Service } from '../service/service.ts'
import { LimiterCounts, type LimiterState } from './limiter-counts.ts'
import { counter, gauge, histogram, type Metric, type Row } from './metric.ts'
import { redisMetrics } from './redis-metrics.ts'

/** The sources that a scrape reads. */
interface MetricSources {
  readonly service: Service
  readonly store: Store
  readonly admin: Pick<Admin, 'callers' | 'instances' | 'redis'>
  readonly capture: Capture
  readonly decisionLog: DecisionLog
}

type Aggregated = Parameters<typeof AggregatorRegistry.aggregate>[0]

/** Metrics for Prometheus. There are no labels with keys, because the number of keys is unbounded. */
export class Metrics {
  readonly registry = new Registry()
  readonly limiters = new LimiterCounts()
  readonly reloads = new Counter({
    name: 'slidegate_config_reloads_total',
    help: 'Attempts to apply a changed configuration.',
    labelNames: ['result'] as const,
    registers: [this.registry],
  })
  readonly configValid = new Gauge({
    name: 'slidegate_config_valid',
    help: '1 if the configuration in the file is active, 0 if it is invalid and the previous one is active.',
    // 0 if the file is invalid in any process.
    aggregator: 'min',
    registers: [this.registry],
  })
  #sources: MetricSources | undefined

  /** Sets the sources. Until then, only the registry's own metrics exist. */
  read(sources: MetricSources): void {
    measureProcess()
    this.#sources = sources
  }

  /** The metrics from all processes, in the Prometheus text format. */
  async text(processes: Processes): Promise<string> {
    const [each, once] = await Promise.all([processes.ask('metrics'), this.#ofInstance()])
    const families = new Map<string, Metric[]>()
    for (const metric of ([...each, once] as readonly (readonly Metric[])[]).flat()) {
      const family = families.get(metric.name)
      if (family === undefined) families.set(metric.name, [metric])
      else family.push(metric)
    }
    const texts: string[] = []
    for (const family of families.values()) texts.push(await textOf(family))
    return texts.join('\n')
  }

  /** Lets the other processes read this process's metrics. */
  share(processes: Processes): void {
    processes.answer('metrics', () => this.#ofProcess())
  }

  async names(): Promise<string[]> {
    return [...(await this.#ofProcess()), ...(await this.#ofInstance())].map(({ name }) => name)
  }

  async #ofProcess(): Promise<readonly Metric[]> {
    const { service, store, admin, capture, decisionLog } = this.#sources ?? {}
    const [own, process, servers = []] = await Promise.all([
      this.registry.getMetricsAsJSON(),
      processMetrics(),
      admin?.redis?.read(),
    ])
    return [
      ...this.limiters.metrics((name) => stateOf(service, name)),
      ...storeMetrics(store, service?.ownStores.stats()),
      ...lineMetrics(capture, decisionLog),
      ...redisMetrics(servers),
      ...(own as unknown as Metric[]),
      ...process,
    ]
  }

  /** Metrics for the whole instance, read only by the process that is scraped. */
  async #ofInstance(): Promise<readonly Metric[]> {
    const { admin } = this.#sources ?? {}
    return [
      ...callerMetrics(await admin?.callers()),
      gauge(
        'slidegate_instances',
        'Instances that share this store.',
        admin ? [[{}, admin.instances()]] : [],
      ),
      gauge('slidegate_build_info', 'Build information.', [[{ version: VERSION }, 1]]),
    ]
  }
}

/** Values per chunk. Requests are served between chunks: formatting the text for a thousand limiters takes seconds. */
const AT_A_TIME = 2000

/** The text for one metric from all processes. */
async function textOf(family: readonly Metric[]): Promise<string> {
  const metric = await together(family)
  let text = ''
  for (let from = 0; from === 0 || from < metric.values.length; from += AT_A_TIME) {
    const values = metric.values.slice(from, from + AT_A_TIME)
    const registry = new Registry()
    registry.registerMetric({ ...metric, get: () => ({ ...metric, values }) } as never)
    const part = await registry.metrics()
    // Only the first chunk keeps the header.
    text += from === 0 ? part : part.replace(/^(# .*\n)+/, '')
    await setImmediate()
  }
  return text
}

async function together(family: readonly Metric[]): Promise<Metric> {
  const [only, ...others] = family
  if (others.length === 0) return only!
  const registry = AggregatorRegistry.aggregate([family] as unknown as Aggregated)
  const [metric] = (await registry.getMetricsAsJSON()) as unknown as Metric[]
  return metric!
}

function stateOf(service: Service | undefined, name: string): LimiterState | undefined {
  if (service?.has(name) !== true) return undefined
  const { limiter } = service.get(name)
  return { isStoreDown: limiter.stats().isStoreDown, waiting: limiter.waiting().length }
}

/** Metrics for the store: size in memory, or calls to Redis. */
function storeMetrics(
  store: Store | undefined,
  own: ReturnType<MemoryStore['stats']> = { keys: 0, evicted: 0 },
): Metric[] {
  const memory = isMemory(store) ? sumOf(store.stats(), own) : undefined
  const redis = isRedis(store) ? store.stats() : undefined
  const only = <Value>(value: Value | undefined): Row<Value>[] => (value === undefined ? [] : [[{}, value]])
  return [
    gauge('slidegate_memory_store_keys', 'Keys in the memory stores.', only(memory?.keys)),
    counter(
      'slidegate_memory_store_evicted_keys_total',
      'Keys evicted early because a memory store was full.',
      only(memory?.evicted),
    ),
    histogram(
      'slidegate_store_call_duration_seconds',
      'Duration of calls to Redis, measured by this service.',
      only(redis?.callMs),
      1000,
    ),
    histogram('slidegate_store_call_requests', 'Requests per call to Redis.', only(redis?.requestsPerCall)),
    counter(
      'slidegate_store_failed_calls_total',
      'Calls to Redis that failed as a whole.',
      only(redis?.failedCalls),
    ),
    counter(
      'slidegate_store_script_loads_total',
      "Times the script was loaded because Redis didn't have it.",
      only(redis?.scriptLoads),
    ),
  ]
}

function sumOf(one: ReturnType<MemoryStore['stats']>, other: typeof one): typeof one {
  return { keys: one.keys + other.keys, evicted: one.evicted + other.evicted }
}

function isMemory(store: Store | undefined): store is MemoryStore {
  return store?.applySync !== undefined && 'stats' in store
}

function isRedis(store: Store | undefined): store is RedisStore {
  return store?.applySync === undefined && store !== undefined && 'stats' in store
}

/** Number of callers, and the busiest caller's share. */
function callerMetrics(callers: ReadonlyMap<string, Callers> = new Map()): Metric[] {
  const rows = (of: keyof Callers): Row<number>[] =>
    Array.from(callers, ([limiter, found]) => [{ limiter }, found[of]])
  return [
    gauge(
      'slidegate_distinct_callers',
      'Estimated number of distinct keys in recent minutes.',
      rows('distinct'),
    ),
    gauge(
      'slidegate_top_caller_ratio',
      "The busiest key's share of requests in recent minutes.",
      rows('topShare'),
    ),
  ]
}

function lineMetrics(capture?: Capture, decisionLog?: DecisionLog): Metric[] {
  const { written = 0, dropped = 0 } = capture?.stats() ?? {}
  return [
    counter('slidegate_capture_requests_total', 'Captured decisions.', [[{}, written]]),
    counter(
      'slidegate_capture_dropped_requests_total',
      'Decisions not captured because the queue was full or writing failed.',
      [[{}, dropped]],
    ),
    counter('slidegate_decision_log_dropped_lines_total', 'Lines that the log or decision log dropped.', [
      [{}, decisionLog?.stats().dropped ?? 0],
    ]),
  ]
}

/** prom-client's gauges that are named like counters. Each is also exported under a correct name. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

let registry: Registry | undefined

/** Starts measuring the event loop and the process. */
function measureProcess(): Registry {
  registry ??= measured()
  return registry
}

/** prom-client's metrics for this process. */
async function processMetrics(): Promise<Metric[]> {
  const metrics = (await measureProcess().getMetricsAsJSON()) as unknown as Metric[]
  // Exports the start time of the youngest process. That time changes when a worker is replaced.
  return metrics.map((metric) =>
    metric.name === 'process_start_time_seconds' ? { ...metric, aggregator: 'max' } : metric,
  )
}

function measured(): Registry {
  const made = new Registry()
  collectDefaultMetrics({ register: made })
  for (const name of MISNAMED) made.removeSingleMetric(name)
  return made
}
