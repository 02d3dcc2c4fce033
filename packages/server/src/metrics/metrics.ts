// START HERE: all metrics, over all processes.

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

/** What is asked when Prometheus asks. */
interface MetricSources {
  readonly service: Service
  readonly store: Store
  readonly admin: Pick<Admin, 'callers' | 'instances' | 'redis'>
  readonly capture: Capture
  readonly decisionLog: DecisionLog
}

type Aggregated = Parameters<typeof AggregatorRegistry.aggregate>[0]

/** What is counted, for Prometheus. Never by key: so many labels nobody could keep. */
export class Metrics {
  readonly registry = new Registry()
  readonly limiters = new LimiterCounts()
  readonly reloads = new Counter({
    name: 'slidegate_config_reloads_total',
    help: 'Attempts to put a changed configuration in force.',
    labelNames: ['result'] as const,
    registers: [this.registry],
  })
  readonly configValid = new Gauge({
    name: 'slidegate_config_valid',
    help: '1 where the configuration as it stands in the file is in force, 0 where it is wrong and the one before is.',
    // One process that is behind is one that is wrong.
    aggregator: 'min',
    registers: [this.registry],
  })
  #sources: MetricSources | undefined

  /** From now on there is something to ask. */
  read(sources: MetricSources): void {
    measureProcess()
    this.#sources = sources
  }

  /** As Prometheus reads it, of all processes of this service together. */
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

  /** Lets others of these processes ask for what was counted here. */
  share(processes: Processes): void {
    processes.answer('metrics', () => this.#ofProcess())
  }

  /** What all are called. */
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

  /** Asked once, by the process that is asked. */
  async #ofInstance(): Promise<readonly Metric[]> {
    const { admin } = this.#sources ?? {}
    return [
      ...callerMetrics(await admin?.callers()),
      gauge(
        'slidegate_instances',
        'Instances of the service on the same store.',
        admin ? [[{}, admin.instances()]] : [],
      ),
      gauge('slidegate_build_info', 'What runs.', [[{ version: VERSION }, 1]]),
    ]
  }
}

/** Values that are made text at a time. With a thousand limiters all of them take seconds: requests are answered in between. */
const AT_A_TIME = 2000

/** A metric, as each process has it. */
async function textOf(family: readonly Metric[]): Promise<string> {
  const metric = await together(family)
  let text = ''
  for (let from = 0; from === 0 || from < metric.values.length; from += AT_A_TIME) {
    const values = metric.values.slice(from, from + AT_A_TIME)
    const registry = new Registry()
    registry.registerMetric({ ...metric, get: () => ({ ...metric, values }) } as never)
    const part = await registry.metrics()
    // What it is stands before the first.
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

/** What the store says of itself: of a store in this process how much it holds, of one in Redis how it was asked. */
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
      'Keys that full memory stores have evicted before their time.',
      only(memory?.evicted),
    ),
    histogram(
      'slidegate_store_call_duration_seconds',
      'How long calls to Redis took, as this service sees them.',
      only(redis?.callMs),
      1000,
    ),
    histogram(
      'slidegate_store_call_requests',
      'Requests that have travelled in one call.',
      only(redis?.requestsPerCall),
    ),
    counter(
      'slidegate_store_failed_calls_total',
      'Calls to Redis that have failed as a whole.',
      only(redis?.failedCalls),
    ),
    counter(
      'slidegate_store_script_loads_total',
      'How often Redis did not know the script, and was sent it.',
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

/** How many ask, and whether one of them makes up most of it. */
function callerMetrics(callers: ReadonlyMap<string, Callers> = new Map()): Metric[] {
  const rows = (of: keyof Callers): Row<number>[] =>
    Array.from(callers, ([limiter, found]) => [{ limiter }, found[of]])
  return [
    gauge('slidegate_distinct_callers', 'Different keys of the last minutes, estimated.', rows('distinct')),
    gauge(
      'slidegate_top_caller_ratio',
      'Share of the requests of the last minutes that the busiest key has made.',
      rows('topShare'),
    ),
  ]
}

/** What became of decisions that are written down. */
function lineMetrics(capture?: Capture, decisionLog?: DecisionLog): Metric[] {
  const { written = 0, dropped = 0 } = capture?.stats() ?? {}
  return [
    counter('slidegate_capture_requests_total', 'Decisions that were captured.', [[{}, written]]),
    counter(
      'slidegate_capture_dropped_requests_total',
      'Decisions that should have been, and there was no room.',
      [[{}, dropped]],
    ),
    counter(
      'slidegate_decision_log_dropped_lines_total',
      'Lines of the decision log, or of the log, for which there was no room.',
      [[{}, decisionLog?.stats().dropped ?? 0]],
    ),
  ]
}

/** Called like counters, and gauges: prom-client has each under a right name, too. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

let registry: Registry | undefined

/** From now on it is measured how late the event loop is, and what else takes its time. */
function measureProcess(): Registry {
  registry ??= measured()
  return registry
}

/** What prom-client tells of this process: what it needs, and how late its event loop is. */
async function processMetrics(): Promise<Metric[]> {
  const metrics = (await measureProcess().getMetricsAsJSON()) as unknown as Metric[]
  // Of several processes that of the youngest: one that was replaced shows.
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
