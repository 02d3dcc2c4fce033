// The audit: changes and who made them, in memory or in a stream of Redis.

import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { AnyKey } from 'slidegate'
import { messageOf } from '#replay/errors.js'
import { isObject } from '../config/reader.ts'
import { redactKey } from '../redact.ts'
import type { Service } from '../service/service.ts'
import type { AuditEntry } from './api-types.ts'
import { concealing, mapKey, shortKey } from './keys.ts'
import type { RedisLink } from './redis-link.ts'

/** What somebody does to the service. */
interface Action {
  /** Who, as the configuration calls him. */
  readonly who: string
  readonly what: string
  readonly limiter?: string
  readonly key?: AnyKey | Partial<AnyKey>
  /** Whatever else tells what is to be done. */
  readonly detail?: object
}

const INSTANCE = `${hostname()}/${process.pid}`

const PAGE = 1000

/**
 * Who has changed what. An action is written down before it is done, and how it has ended after that: what cannot be written
 * down is not done.
 */
export class Audit {
  readonly #service: Service
  readonly #entries: AuditLog
  readonly #log: Logger

  constructor(service: Service, entries: AuditLog, log: Logger) {
    this.#service = service
    this.#entries = entries
    this.#log = log
  }

  /**
   * Does something that is to be found in the audit.
   *
   * @throws {ServiceError} `store_error` where it cannot be written down: then nothing was done
   */
  async act<Result>(action: Action, work: () => Promise<Result>): Promise<Result> {
    const id = await this.#entries.append(this.#recordOf(action))
    try {
      const result = await work()
      await this.#ended(id, action)
      return result
    } catch (error) {
      await this.#ended(id, action, messageOf(error))
      throw error
    }
  }

  /** Writes down what was done, as far as that is possible: for what must not depend on it. Never rejects. */
  async note(action: Action): Promise<void> {
    this.#tell(action)
    try {
      await this.#entries.append({ ...this.#recordOf(action), result: 'done' })
    } catch (error) {
      this.#log.warn({ what: action.what, reason: messageOf(error) }, 'the audit could not be written')
    }
  }

  /**
   * The newest first.
   *
   * @param may which entries are asked for
   */
  async list(count: number, may: (entry: AuditEntry) => boolean): Promise<AuditEntry[]> {
    const endings = new Map<string, AuditRecord>()
    const found: AuditEntry[] = []
    let before: string | undefined
    while (found.length < count) {
      const page = await this.#entries.page(before, PAGE)
      for (const [id, record] of page) {
        if (record.of !== undefined) {
          endings.set(record.of, record)
          continue
        }
        const entry = entryOf(id, { ...record, ...endings.get(id) })
        endings.delete(id)
        if (entry !== undefined && found.length < count && may(entry)) found.push(entry)
      }
      before = page.at(-1)?.[0]
      if (page.length < PAGE) break
    }
    return found
  }

  async #ended(of: string, action: Action, error?: string): Promise<void> {
    this.#tell(action, error)
    const ending: AuditRecord =
      error === undefined ? { result: 'done' } : { result: 'failed', error: error.slice(0, 500) }
    try {
      await this.#entries.append({ of, ...ending })
    } catch (problem) {
      // It was done or not all the same, and the log has it.
      this.#log.warn({ of, what: action.what, reason: messageOf(problem) }, 'the audit could not be written')
    }
  }

  #recordOf({ who, what, limiter, key, detail }: Action): AuditRecord {
    return {
      ...{ who, what },
      ...(limiter !== undefined && { limiter }),
      ...(limiter !== undefined &&
        key !== undefined && {
          key: JSON.stringify(mapKey(key, concealing(this.#service, limiter) ?? shortKey)),
        }),
      ...(detail !== undefined && { detail: JSON.stringify(detail) }),
      instance: INSTANCE,
    }
  }

  #tell({ key, ...action }: Action, error?: string): void {
    const logged = (each: string) => redactKey(each, this.#service.config)
    const told = { ...action, ...(key !== undefined && { key: mapKey(key, logged) }) }
    if (error === undefined) this.#log.info(told, 'admin')
    else this.#log.warn({ ...told, reason: error }, 'admin: failed')
  }
}

/** Whatever else may stand in the stream is none. */
function entryOf(id: string, record: AuditRecord): AuditEntry | undefined {
  const { who, what, limiter, key, detail, instance, result, error } = record
  if (who === undefined || what === undefined || instance === undefined) return undefined
  try {
    return {
      ...{ id, atMs: Number.parseInt(id, 10), who, what },
      ...(limiter !== undefined && { limiter }),
      ...(key !== undefined && { key: keyIn(JSON.parse(key)) }),
      ...(detail !== undefined && { detail: objectIn(JSON.parse(detail)) }),
      instance,
      result: result === 'done' || result === 'failed' ? result : 'unknown',
      ...(error !== undefined && { error }),
    }
  } catch {
    return undefined
  }
}

function keyIn(value: unknown): NonNullable<AuditEntry['key']> {
  if (typeof value === 'string') return value
  const key = objectIn(value)
  if (Object.values(key).every((each) => typeof each === 'string')) return key as Record<string, string>
  throw new TypeError('no key')
}

function objectIn(value: unknown): object {
  if (isObject(value)) return value
  throw new TypeError('no object')
}

/** A record of the audit, as it is kept: texts by name. */
type AuditRecord = Readonly<Record<string, string>>

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
