// Queues lines to be appended, without delaying requests.

import { setTimeout } from 'node:timers/promises'

/** Appends lines. If this throws, none of the lines count as written. */
type Append = (lines: readonly string[]) => Promise<void>

export interface LineCounts {
  written: number
  /** Lines dropped because the queue was full or appending failed. */
  dropped: number
}

/** Maximum size of the queue, in lines and in characters. */
const MAX_LINES = 50_000
const MAX_CHARS = 8 * 2 ** 20

/** Maximum size of a batch, in lines and in characters. */
const BATCH_LINES = 512
const BATCH_CHARS = 64 * 2 ** 10

/** Maximum time that a line waits for further lines before it is appended, in milliseconds. */
const WAIT_MS = 200

const FLUSH_MS = 2000
const FLUSH_STEP_MS = 100

/**
 * Buffers lines for a slow destination, so that writers never wait.
 *
 * Lines are dropped and counted if the queue is full or appending fails.
 */
export class LineQueue {
  readonly #append: Append
  readonly #counts: LineCounts
  readonly #onFailure: (error: unknown) => void
  #lines: string[] = []
  #chars = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #isFailing = false

  /** @param onFailure called for the first of several consecutive failures */
  constructor(append: Append, counts: LineCounts, onFailure: (error: unknown) => void) {
    this.#append = append
    this.#counts = counts
    this.#onFailure = onFailure
  }

  write(line: string): void {
    if (this.#lines.length >= MAX_LINES || this.#chars + line.length > MAX_CHARS) {
      this.#counts.dropped++
      return
    }
    this.#lines.push(line)
    this.#chars += line.length
    if (this.#sending === undefined) this.#sendSoon()
  }

  #sendSoon(): void {
    if (this.#chars >= BATCH_CHARS || this.#lines.length >= BATCH_LINES) this.#send()
    else this.#timer ??= globalThis.setTimeout(() => this.#send(), WAIT_MS).unref()
  }

  /** Resolves when all earlier lines have been appended or dropped, or after a timeout. */
  async flush(): Promise<void> {
    let isOver = false
    const all = this.#flushAll().then(() => {
      isOver = true
    })
    // Waits in steps: otherwise, time during which the process is suspended would count toward the timeout.
    for (let ms = 0; !isOver && ms < FLUSH_MS; ms += FLUSH_STEP_MS) {
      await Promise.race([all, setTimeout(FLUSH_STEP_MS, undefined, { ref: false })])
    }
  }

  async #flushAll(): Promise<void> {
    // Waits for a batch that is already being appended.
    await this.#sending
    this.#send()
    await this.#sending
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
      if (this.#lines.length > 0) this.#sendSoon()
    })
  }

  async #sendAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const batch = this.#take()
      try {
        await this.#append(batch)
        this.#counts.written += batch.length
        this.#isFailing = false
      } catch (error) {
        this.#counts.dropped += batch.length
        if (!this.#isFailing) this.#onFailure(error)
        this.#isFailing = true
      }
    }
  }

  #take(): readonly string[] {
    let chars = 0
    let count = 0
    while (count < BATCH_LINES && count < this.#lines.length && chars < BATCH_CHARS) {
      chars += this.#lines[count]!.length
      count++
    }
    this.#chars -= chars
    return this.#lines.splice(0, count)
  }
}
