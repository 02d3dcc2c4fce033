// Stores the records of the audit log, in memory or in a Redis stream.

import type { RedisLink } from './redis-link.ts'

/** A stored record: the text of each field by name. */
export type AuditRecord = Readonly<Record<string, string>>

export type Kept = readonly [id: string, record: AuditRecord]

/** An append-only log of records. When it is full, the oldest records are dropped. */
export interface AuditLog {
  /**
   * Appends a record and returns its id.
   *
   * An id consists of the epoch milliseconds on the log's clock, `-` and a number.
   *
   * @throws {ServiceError} if the record can't be stored
   */
  append(record: AuditRecord): Promise<string>
  /** Returns up to `count` records, newest first. If `before` is set, returns only records older than that id. */
  page(before: string | undefined, count: number): Promise<readonly Kept[]>
}

export const MAX_RECORDS = 10_000

/** Keeps records in memory: they are lost when the process exits. */
export class MemoryAuditLog implements AuditLog {
  readonly #records: Kept[] = []
  #appended = 0

  async append(record: AuditRecord): Promise<string> {
    const id = `${Date.now()}-${this.#appended++}`
    this.#records.push([id, record])
    if (this.#records.length > MAX_RECORDS) this.#records.shift()
    return id
  }

  async page(before: string | undefined, count: number): Promise<readonly Kept[]> {
    const at = this.#records.findLastIndex(([id]) => id === before)
    const end = before === undefined ? this.#records.length : Math.max(0, at)
    return this.#records.slice(Math.max(0, end - count), end).reverse()
  }
}

/** Keeps about 10,000 records in a Redis stream, usually `<prefix>:{audit}`. */
export class RedisAuditLog implements AuditLog {
  readonly #link: RedisLink
  readonly #key: string

  constructor(link: RedisLink, name = '{audit}') {
    this.#link = link
    this.#key = `${link.prefix}:${name}`
  }

  async append(record: AuditRecord): Promise<string> {
    const fields = Object.entries(record).flat()
    const id = await this.#link.ask((redis) =>
      redis.xadd(this.#key, 'MAXLEN', '~', MAX_RECORDS, '*', ...fields),
    )
    return id!
  }

  async page(before: string | undefined, count: number): Promise<readonly Kept[]> {
    const end = before === undefined ? '+' : `(${before}`
    const found = await this.#link.ask((redis) => redis.xrevrange(this.#key, end, '-', 'COUNT', count))
    return found.map(([id, fields]) => {
      const pairs = fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] ?? ''] as const] : []))
      return [id, Object.fromEntries(pairs)] as const
    })
  }
}
