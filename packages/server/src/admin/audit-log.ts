import type { RedisLink } from './redis-link.ts'

/** A record of the audit, as it is kept: texts by name. */
export type AuditRecord = Readonly<Record<string, string>>

type Kept = readonly [id: string, record: AuditRecord]

/** Where the audit is kept: only ever appended to, and the oldest records go. */
export interface AuditLog {
  /**
   * Answers the id of the record: milliseconds since the epoch by the log's clock, `-`, and a number.
   *
   * @throws {ServiceError} where it could not be kept
   */
  append(record: AuditRecord): Promise<string>
  /** The newest first: `count` at most, of those before an id. */
  page(before: string | undefined, count: number): Promise<readonly Kept[]>
}

/** Records that are kept. */
export const MAX_RECORDS = 10_000

/** They end with the process. */
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

/** The stream `<prefix>:{audit}`, of some 10,000 records. */
export class RedisAuditLog implements AuditLog {
  readonly #link: RedisLink
  readonly #key: string

  constructor(link: RedisLink) {
    this.#link = link
    this.#key = `${link.prefix}:{audit}`
  }

  async append(record: AuditRecord): Promise<string> {
    const fields = Object.entries(record).flat()
    const id = await this.#link.ask((client) =>
      client.xadd(this.#key, 'MAXLEN', '~', MAX_RECORDS, '*', ...fields),
    )
    return id!
  }

  async page(before: string | undefined, count: number): Promise<readonly Kept[]> {
    const end = before === undefined ? '+' : `(${before}`
    const found = await this.#link.ask((client) => client.xrevrange(this.#key, end, '-', 'COUNT', count))
    return found.map(([id, fields]) => {
      const pairs = fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] ?? ''] as const] : []))
      return [id, Object.fromEntries(pairs)] as const
    })
  }
}
