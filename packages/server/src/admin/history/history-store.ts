// Where the history is stored: the interface, and the store in memory.

import { added, type Batch, type HistoryRecord, RANGES, type Range, recordName, SERVICE } from './records.ts'

/** A limiter's watched key, and when it stops being watched, in epoch milliseconds. */
export interface Watched {
  readonly limiter: string
  /** Dimension, `=` and the key or its hash. */
  readonly word: string
  readonly untilMs: number
}

/** One minute or hour in a limiter's history. */
export interface Step {
  /** Whether any of the service's processes was counting during this step. */
  readonly isCounted: boolean
  /** Undefined if the limiter was idle. */
  readonly record: HistoryRecord | undefined
}

/** Stores counts by minute and hour, and watched keys. */
export interface HistoryStore {
  /**
   * Adds a batch. Adding it again changes nothing, so a failed batch can be retried.
   *
   * @throws {ServiceError} if it can't be stored now
   */
  add(batch: Batch): Promise<void>
  /** @throws {ServiceError} if it can't be read now */
  read(limiter: string, range: Range, from: number, count: number): Promise<readonly Step[]>
  /** @throws {ServiceError} if they can't be read now */
  watched(): Promise<readonly Watched[]>
  /** Adds or removes a watched key. @throws {ServiceError} if the change can't be stored now */
  watch(key: Watched, isWatched: boolean): Promise<void>
}

/** Returns the hour that contains a minute, both counted from the epoch. */
export function hourOf(minute: number): number {
  return Math.floor(minute / 60)
}

/** Keeps the history in memory: it is lost when the process exits. */
export class MemoryHistoryStore implements HistoryStore {
  readonly #now: () => number
  /** Records as JSON text, by record name, because text needs less memory than objects. */
  readonly #records = new Map<string, { readonly text: string; readonly untilMs: number }>()
  readonly #watched = new Map<string, Watched>()

  constructor(now: () => number) {
    this.#now = now
  }

  async add(batch: Batch): Promise<void> {
    const nowMs = this.#now()
    for (const [name, { untilMs }] of this.#records) if (untilMs <= nowMs) this.#records.delete(name)
    for (const range of Object.values(RANGES)) {
      const step = range.letter === 'm' ? batch.minute : hourOf(batch.minute)
      const untilMs = nowMs + range.ttlMs
      this.#records.set(recordName(SERVICE, range, step), { text: '1', untilMs })
      for (const { limiter, entries } of batch.limiters) {
        const name = recordName(limiter, range, step)
        const record = added(this.#record(name), batch, entries)
        this.#records.set(name, { text: JSON.stringify(record), untilMs })
      }
    }
  }

  async read(limiter: string, range: Range, from: number, count: number): Promise<readonly Step[]> {
    return Array.from({ length: count }, (_, i) => ({
      isCounted: this.#records.has(recordName(SERVICE, range, from + i)),
      record: this.#record(recordName(limiter, range, from + i)),
    }))
  }

  async watched(): Promise<readonly Watched[]> {
    return Array.from(this.#watched.values()).filter(({ untilMs }) => untilMs > this.#now())
  }

  async watch(key: Watched, isWatched: boolean): Promise<void> {
    const member = memberOf(key)
    if (isWatched) this.#watched.set(member, key)
    else this.#watched.delete(member)
  }

  #record(name: string): HistoryRecord | undefined {
    const known = this.#records.get(name)
    return known && (JSON.parse(known.text) as HistoryRecord)
  }
}

/** Returns `<limiter>:<dimension>=<key>`. Limiter names have no colon. */
export function memberOf({ limiter, word }: Watched): string {
  return `${limiter}:${word}`
}
