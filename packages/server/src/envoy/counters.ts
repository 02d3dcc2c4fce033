// Metrics for rules: hits, and ignored parts of requests.

import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import type { Question } from './question.ts'

/** Maximum number of label values. `detailed_metric` and `value_to_metric` turn callers' input into labels. */
const MAX_RULES = 10_000

/** Longer labels are replaced with the rule's path. A label that long contains callers' input. */
const MAX_NAME = 256

const OTHERS = '(others)'

type Outcome = 'within_limit' | 'over_limit' | 'shadow_mode' | 'not_charged'

/** Counts hits by rule. Updating a labeled Prometheus counter would take as long as a decision. */
export class Hits {
  readonly #counts = new Map<string, Map<string, Record<Outcome, number>>>()
  #size = 0

  constructor(registry: Registry) {
    const flush = (counter: Counter<'domain' | 'rule' | 'outcome'>): void => this.#flush(counter)
    new Counter({
      name: 'slidegate_envoy_hits_total',
      help: 'Hits by rule. Rules are named as in envoyproxy/ratelimit.',
      labelNames: ['domain', 'rule', 'outcome'] as const,
      registers: [registry],
      collect() {
        flush(this)
      },
    })
  }

  count(domain: string, questions: readonly Question[], isDenied: boolean): void {
    for (const question of questions) {
      if (question.purpose !== 'check')
        this.#countsOf(domain, question)[outcomeOf(question, isDenied)] += question.hits
    }
  }

  #countsOf(domain: string, { metric: label, rule }: Question): Record<Outcome, number> {
    const metric = label.length > MAX_NAME ? rule.path : label
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

function outcomeOf({ isOver, rule, purpose }: Question, isDenied: boolean): Outcome {
  if (isOver) return rule.isShadow ? 'shadow_mode' : 'over_limit'
  return isDenied && purpose === 'charge' ? 'not_charged' : 'within_limit'
}

/** Counts ignored parts of requests. Logs each reason once. */
export class Ignored {
  readonly #counter: Counter<'reason'>
  readonly #log: Logger
  readonly #logged = new Set<string>()

  constructor(registry: Registry, log: Logger) {
    this.#log = log
    this.#counter = new Counter({
      name: 'slidegate_envoy_ignored_total',
      help: 'Ignored parts of requests: unknown domains, limit overrides, negative hits.',
      labelNames: ['reason'] as const,
      registers: [registry],
    })
  }

  note(reason: 'domain' | 'limit' | 'negative_hits', message: string): void {
    this.#counter.inc({ reason })
    if (this.#logged.has(reason)) return
    this.#logged.add(reason)
    this.#log.warn({ reason }, message)
  }
}
