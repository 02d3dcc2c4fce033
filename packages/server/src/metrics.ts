import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import type { Decision } from 'slidegate'
import type { Peers } from './service/peers.ts'

/** What is counted, for Prometheus. Never by key: so many labels nobody could keep. */
export class Metrics {
  readonly registry = new Registry()
  readonly decisions = new Counter({
    name: 'slidegate_decisions_total',
    help: 'Requests that were decided.',
    labelNames: ['limiter', 'outcome', 'source'] as const,
    registers: [this.registry],
  })
  readonly storeErrors = new Counter({
    name: 'slidegate_store_errors_total',
    help: 'What was asked of the store without an answer.',
    labelNames: ['limiter', 'reason'] as const,
    registers: [this.registry],
  })
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

  /** As Prometheus reads it, of all processes of this service together. */
  async text(peers: Peers): Promise<string> {
    const each = (await peers.ask('metrics')) as Parameters<typeof AggregatorRegistry.aggregate>[0]
    return AggregatorRegistry.aggregate(each).metrics()
  }

  /** Lets others of these processes ask for what was counted here. */
  share(peers: Peers): void {
    peers.answer('metrics', () => this.registry.getMetricsAsJSON())
  }

  decided(limiter: string, { allowed, source }: Decision): void {
    this.decisions.inc({ limiter, outcome: allowed ? 'allowed' : 'denied', source })
  }
}
