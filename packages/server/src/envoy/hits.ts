import { Counter, type Registry } from 'prom-client'
import type { Ask } from './ask.ts'

/** How many rules are told apart: `detailed_metric` and `value_to_metric` bring whatever callers send. */
const MAX_RULES = 10_000

/** Longer names are those of their rules only: they have what callers send. */
const MAX_NAME = 256

const OTHERS = '(others)'

type Outcome = 'within_limit' | 'over_limit' | 'shadow_mode' | 'not_charged'

/** Counts hits of rules, for Prometheus. Added up here, since a labelled counter costs as much as a decision. */
export class Hits {
  readonly #counts = new Map<string, Map<string, Record<Outcome, number>>>()
  #size = 0

  constructor(registry: Registry) {
    const flush = (counter: Counter<'domain' | 'rule' | 'outcome'>): void => this.#flush(counter)
    new Counter({
      name: 'slidegate_envoy_hits_total',
      help: 'Hits of rules in the format of envoyproxy/ratelimit.',
      labelNames: ['domain', 'rule', 'outcome'] as const,
      registers: [registry],
      collect() {
        flush(this)
      },
    })
  }

  count(domain: string, asks: readonly Ask[], isDenied: boolean): void {
    for (const ask of asks) {
      if (ask.purpose !== 'check') this.#countsOf(domain, ask)[outcomeOf(ask, isDenied)] += ask.hits
    }
  }

  #countsOf(domain: string, { metric: told, rule }: Ask): Record<Outcome, number> {
    const metric = told.length > MAX_NAME ? rule.path : told
    let rules = this.#counts.get(domain)
    if (rules === undefined) {
      rules = new Map()
      this.#counts.set(domain, rules)
    }
    const known = rules.get(metric)
    if (known !== undefined) return known
    const isFull = this.#size >= MAX_RULES
    const name = isFull ? (rules.has(rule.path) ? rule.path : OTHERS) : metric
    const counts = rules.get(name) ?? { within_limit: 0, over_limit: 0, shadow_mode: 0, not_charged: 0 }
    if (!rules.has(name)) this.#size++
    rules.set(name, counts)
    return counts
  }

  #flush(counter: Counter<'domain' | 'rule' | 'outcome'>): void {
    for (const [domain, rules] of this.#counts) {
      for (const [rule, counts] of rules) {
        for (const outcome of Object.keys(counts) as Outcome[]) {
          if (counts[outcome] > 0) counter.inc({ domain, rule, outcome }, counts[outcome])
          counts[outcome] = 0
        }
      }
    }
  }
}

function outcomeOf({ isOver, rule, purpose }: Ask, isDenied: boolean): Outcome {
  if (isOver) return rule.isShadow ? 'shadow_mode' : 'over_limit'
  return isDenied && purpose === 'charge' ? 'not_charged' : 'within_limit'
}
