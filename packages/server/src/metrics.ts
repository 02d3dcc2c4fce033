import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import type { Decision, Source } from 'slidegate'
import type { Peers } from './service/peers.ts'

/** Decisions of a limiter, by source: so many denied, so many allowed. */
type Tally = Record<Source, [denied: number, allowed: number]>

/** What is counted, for Prometheus. Never by key: so many labels nobody could keep. */
export class Metrics {
  readonly registry = new Registry()
  /** Told to Prometheus when it asks: to find a counter by its labels takes longer than to count. */
  readonly #decisions = new Map<string, Tally>()
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

  constructor() {
    const tallies = this.#decisions
    new Counter({
      name: 'slidegate_decisions_total',
      help: 'Requests that were decided.',
      labelNames: ['limiter', 'outcome', 'source'] as const,
      registers: [this.registry],
      collect() {
        this.reset()
        for (const [limiter, tally] of tallies) {
          for (const [source, [denied, allowed]] of Object.entries(tally)) {
            if (allowed > 0) this.inc({ limiter, outcome: 'allowed', source }, allowed)
            if (denied > 0) this.inc({ limiter, outcome: 'denied', source }, denied)
          }
        }
      },
    })
  }

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
    let tally = this.#decisions.get(limiter)
    if (tally === undefined) {
      tally = emptyTally()
      this.#decisions.set(limiter, tally)
    }
    tally[source][allowed ? 1 : 0]++
  }
}

function emptyTally(): Tally {
  return {
    store: [0, 0],
    lease: [0, 0],
    denyCache: [0, 0],
    fallback: [0, 0],
    failOpen: [0, 0],
    failClosed: [0, 0],
  }
}
