// Logs each decision as a line, for log shippers.

import { resolve } from 'node:path'
import { type Logger, pino } from 'pino'
import type { AnyKey, Decision } from 'slidegate'
import { mapKey } from '../admin/keys.ts'
import type { Config } from '../config/schema.ts'
import { redactKey } from '../redact.ts'
import { LineFile } from './line-file.ts'
import { type LineCounts, LineQueue } from './line-queue.ts'

export interface LoggedDecision extends Pick<Decision, 'allowed' | 'cost' | 'deniedBy' | 'source'> {
  /** ISO 8601, by the store's clock. */
  readonly time: string
  readonly limiter: string
  readonly key: string | Readonly<Record<string, string>>
  /** `null` if no limit is enforced. */
  readonly remaining: number | null
  /** `null` if the request would never be admitted. */
  readonly retryAfterMs: number | null
  /** Shadow limits that would have denied the request. */
  readonly shadowDeniedBy: readonly string[]
}

interface DecisionFile {
  readonly name: string
  readonly file: LineFile
  readonly queue: LineQueue
  readonly log: Logger
}

/** Logs all decisions or only denials, to the log or to a separate file. */
export class DecisionLog {
  readonly #folder: string
  readonly #log: Logger
  readonly #toLog: Logger
  readonly #droppedByLog: () => number
  readonly #counts: LineCounts = { written: 0, dropped: 0 }
  #config: Config
  #file: DecisionFile | undefined

  /**
   * @param folder the base folder for relative file names
   * @param droppedByLog returns the number of lines that the log has dropped
   */
  constructor(config: Config, folder: string, log: Logger, droppedByLog = (): number => 0) {
    this.#droppedByLog = droppedByLog
    this.#config = config
    this.#folder = folder
    this.#log = log
    // Decisions are logged at every log level.
    this.#toLog = log.child({}, { level: 'info' })
    this.#open(config)
  }

  /** Logs a decision, if configured. */
  decided(limiter: string, key: AnyKey, decision: Decision): void {
    const { decisions = 'none' } = this.#config.logging ?? {}
    if (decisions === 'none' || (decisions === 'denied' && decision.allowed)) return
    const log = this.#file?.log ?? this.#toLog
    log.info({ decision: loggedDecision(limiter, key, decision, this.#config) }, 'decision')
  }

  /** Lines dropped so far, because the queue was full or writing failed. */
  stats(): Pick<LineCounts, 'dropped'> {
    return { dropped: this.#counts.dropped + this.#droppedByLog() }
  }

  reload(config: Config): void {
    this.#config = config
    if (config.logging?.decisionFile === this.#file?.name) return
    void this.close()
    this.#open(config)
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    try {
      await file?.queue.flush()
      await file?.file.close()
    } catch (error) {
      this.#log.warn({ err: error }, "couldn't close the decision log")
    }
  }

  #open({ logging }: Config): void {
    const name = logging?.decisionFile
    if (name === undefined) return
    const file = new LineFile(resolve(this.#folder, name))
    const queue = new LineQueue(
      (lines) => file.append(lines),
      this.#counts,
      (error) => this.#log.warn({ err: error }, "couldn't log decisions"),
    )
    const log = pino({ level: 'info' }, { write: (line) => queue.write(line.trimEnd()) })
    this.#file = { name, file, queue, log }
  }
}

function loggedDecision(limiter: string, key: AnyKey, decision: Decision, config: Config): LoggedDecision {
  const { atMs, allowed, cost, remaining, retryAfterMs, deniedBy, source, limits } = decision
  return {
    time: new Date(atMs).toISOString(),
    limiter,
    key: mapKey(key, (each) => redactKey(each, config)),
    allowed,
    cost,
    remaining: Number.isFinite(remaining) ? remaining : null,
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
    deniedBy,
    source,
    shadowDeniedBy: limits.filter((limit) => limit.shadow && !limit.allowed).map(({ name }) => name),
  }
}
