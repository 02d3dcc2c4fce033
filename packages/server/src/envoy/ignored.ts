import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'

/** What requests have asked for without effect: counted each time, said once. */
export class Ignored {
  readonly #counter: Counter<'what'>
  readonly #log: Logger
  readonly #said = new Set<string>()

  constructor(registry: Registry, log: Logger) {
    this.#log = log
    this.#counter = new Counter({
      name: 'slidegate_envoy_ignored_total',
      help: 'What requests have asked for without effect: an unknown domain, a limit of their own, negative hits.',
      labelNames: ['what'] as const,
      registers: [registry],
    })
  }

  note(what: 'domain' | 'limit' | 'negative_hits', message: string): void {
    this.#counter.inc({ what })
    if (this.#said.has(what)) return
    this.#said.add(what)
    this.#log.warn({ what }, message)
  }
}
