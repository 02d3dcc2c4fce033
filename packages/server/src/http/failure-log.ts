import type { Logger } from 'pino'

const COUNT_MS = 1000

/** A kind that was not seen for this long is logged in full again. */
const FORGET_MS = 60_000

/** Kinds that it distinguishes. */
const MOST_KINDS = 64

/**
 * Logs failed requests: the first of a kind in full, then counts.
 *
 * Counts take one line a second. In an outage nearly all requests fail, and a line for each would fill the disk.
 */
export class FailureLog {
  readonly #log: Logger
  /** When each was seen last. */
  readonly #kinds = new Map<string, number>()
  #counts: Record<string, number> = {}
  #timer: NodeJS.Timeout | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /**
   * @param code the one in the response: failures are counted by it
   * @param kind distinguishes failures of the same code
   */
  failed(level: 'warn' | 'error', code: string, kind: string, fields: object): void {
    if (this.#isNew(`${code} ${kind}`)) {
      this.#log[level](fields, 'a request has failed')
      return
    }
    this.#counts[code] = (this.#counts[code] ?? 0) + 1
    this.#timer ??= setTimeout(() => this.flush(), COUNT_MS).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const counts = this.#counts
    if (Object.keys(counts).length === 0) return
    this.#counts = {}
    this.#log.warn({ requests: counts }, 'more requests have failed')
  }

  #isNew(kind: string): boolean {
    const nowMs = performance.now()
    const seenMs = this.#kinds.get(kind)
    if (seenMs === undefined && this.#kinds.size >= MOST_KINDS) this.#forget(nowMs)
    if (seenMs !== undefined || this.#kinds.size < MOST_KINDS) this.#kinds.set(kind, nowMs)
    return seenMs === undefined ? this.#kinds.has(kind) : nowMs - seenMs > FORGET_MS
  }

  #forget(nowMs: number): void {
    for (const [kind, seenMs] of this.#kinds) if (nowMs - seenMs > FORGET_MS) this.#kinds.delete(kind)
  }
}
