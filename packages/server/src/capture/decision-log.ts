// Logs every decision as a line, for log shippers.

import { resolve } from 'node:path'
import { type Logger, pino } from 'pino'
import type { AnyKey, Decision } from 'slidegate'
import { mapKey } from '../admin/keys.ts'
import type { Config } from '../config/schema.ts'
import { redactKey } from '../redact.ts'
import { LineFile } from './line-file.ts'
import { type LineCounts, LineQueue } from './line-queue.ts'

/** A decision, as it stands in a log. */
export interface LoggedDecision extends Pick<Decision, 'allowed' | 'cost' | 'deniedBy' | 'source'> {
  /** ISO 8601, by the clock of the store. */
  readonly time: string
  readonly limiter: string
  readonly key: string | Readonly<Record<string, string>>
  /** `null` where no limit is enforced. */
  readonly remaining: number | null
  /** `null` where it will never be admitted. */
  readonly retryAfterMs: number | null
  /** Shadow limits that had no room. */
  readonly shadowDeniedBy: readonly string[]
}

/** A file of lines of decisions. */
interface DecisionFile {
  readonly name: string
  readonly file: LineFile
  readonly queue: LineQueue
  readonly log: Logger
}

/** Writes a line for each decision, or each denial, to the log or to a file of their own. */
export class DecisionLog {
  readonly #folder: string
  readonly #log: Logger
  readonly #toLog: Logger
  readonly #droppedByLog: () => number
  readonly #counts: LineCounts = { written: 0, dropped: 0 }
  #config: Config
  #file: DecisionFile | undefined

  /**
   * @param folder against which the names of files are
   * @param droppedByLog how many of its lines the log has dropped
   */
  constructor(config: Config, folder: string, log: Logger, droppedByLog = (): number => 0) {
    this.#droppedByLog = droppedByLog
    this.#config = config
    this.#folder = folder
    this.#log = log
    // Whatever else is worth a line.
    this.#toLog = log.child({}, { level: 'info' })
    this.#open(config)
  }

  /** Of each decision. */
  decided(limiter: string, key: AnyKey, decision: Decision): void {
    const { decisions = 'none' } = this.#config.logging ?? {}
    if (decisions === 'none' || (decisions === 'denied' && decision.allowed)) return
    const log = this.#file?.log ?? this.#toLog
    log.info({ decision: told(limiter, key, decision, this.#config) }, 'decision')
  }

  /** Lines so far that there was no room for, or that could not be written. */
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
      this.#log.warn({ err: error }, 'the log of decisions could not be closed')
    }
  }

  #open({ logging }: Config): void {
    const name = logging?.decisionFile
    if (name === undefined) return
    const file = new LineFile(resolve(this.#folder, name))
    const queue = new LineQueue(
      (lines) => file.append(lines),
      this.#counts,
      (error) => this.#log.warn({ err: error }, 'decisions could not be logged'),
    )
    const log = pino({ level: 'info' }, { write: (line) => queue.write(line.trimEnd()) })
    this.#file = { name, file, queue, log }
  }
}

function told(limiter: string, key: AnyKey, decision: Decision, config: Config): LoggedDecision {
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
