// Lines that wait to be appended: no request waits for them.

import { setTimeout } from 'node:timers/promises'

/** Appends lines to wherever they are kept. What it throws has none of them kept. */
type Append = (lines: readonly string[]) => Promise<void>

export interface LineCounts {
  written: number
  /** Lines that there was no room for, or that could not be appended. */
  dropped: number
}

/** Lines and characters that wait at most. */
const MAX_LINES = 50_000
const MAX_CHARS = 8 * 2 ** 20

/** Appended at a time. */
const BATCH_LINES = 512
const BATCH_CHARS = 64 * 2 ** 10

/** For so long a line waits for others. */
const WAIT_MS = 200

const FLUSH_MS = 2000
const FLUSH_STEP_MS = 100

/**
 * Lines on their way to something slow: whoever writes one never waits. Where there is no room for a line it is dropped, and
 * so are those that could not be appended; both are counted.
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

  /** @param onFailure is told of the first of several failures in a row */
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

  /** Resolves when what was written before is appended, or dropped; at the latest after a moment. */
  async flush(): Promise<void> {
    let isOver = false
    const all = this.#flushAll().then(() => {
      isOver = true
    })
    // In steps: while this process stands still nothing is appended either.
    for (let ms = 0; !isOver && ms < FLUSH_MS; ms += FLUSH_STEP_MS) {
      await Promise.race([all, setTimeout(FLUSH_STEP_MS, undefined, { ref: false })])
    }
  }

  async #flushAll(): Promise<void> {
    // What is on its way may have left before.
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
