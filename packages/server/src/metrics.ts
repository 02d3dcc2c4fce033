import { Counter, Gauge, Registry } from 'prom-client'
import type { Decision } from 'slidegate'

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
    registers: [this.registry],
  })

  decided(limiter: string, { allowed, source }: Decision): void {
    this.decisions.inc({ limiter, outcome: allowed ? 'allowed' : 'denied', source })
  }
}
