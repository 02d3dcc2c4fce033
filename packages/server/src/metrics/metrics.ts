import { setImmediate } from 'node:timers/promises'
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import type { Store } from 'slidegate'
import type { Admin } from '../admin/admin.ts'
import type { Capture } from '../capture/capture.ts'
import type { DecisionLog } from '../capture/decision-log.ts'
import type { Peers } from '../service/peers.ts'
import type { Service } from '../service/service.ts'
import { VERSION } from '../version.ts'
import { callerMetrics } from './callers.ts'
import { LimiterCounts, type LimiterState } from './limiter-counts.ts'
import { lineMetrics } from './line-metrics.ts'
import { gauge, type Metric } from './metric.ts'
import { measureProcess, processMetrics } from './process.ts'
import { redisMetrics } from './redis-metrics.ts'
import { storeMetrics } from './store-metrics.ts'

/** What is asked when Prometheus asks. */
export interface MetricSources {
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
  async text(peers: Peers): Promise<string> {
    const [each, once] = await Promise.all([peers.ask('metrics'), this.#ofInstance()])
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
  share(peers: Peers): void {
    peers.answer('metrics', () => this.#ofProcess())
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
