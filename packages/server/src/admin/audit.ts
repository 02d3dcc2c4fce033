// The audit log: who changed what, in memory or in a Redis stream.

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

/** A change by an operator. */
interface Action {
  /** The caller's name in the configuration. */
  readonly who: string
  readonly what: string
  readonly limiter?: string
  readonly key?: AnyKey | Partial<AnyKey>
  /** Other parameters of the change. */
  readonly detail?: object
}

const INSTANCE = `${hostname()}/${process.pid}`

const PAGE = 1000

/**
 * Records who changed what.
 *
 * An action is recorded before it runs, and its result afterwards. If it can't be recorded, it doesn't run.
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
   * Records an action and runs it.
   *
   * @throws {ServiceError} `store_error` if it can't be recorded; then it doesn't run
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

  /** Records a completed action if possible. For actions that must not depend on the audit log. Never rejects. */
  async note(action: Action): Promise<void> {
    this.#logAction(action)
    try {
      await this.#entries.append({ ...this.#recordOf(action), result: 'done' })
    } catch (error) {
      this.#log.warn({ what: action.what, reason: messageOf(error) }, 'failed to write the audit log')
    }
  }

  /**
   * Lists entries, newest first.
   *
   * @param may selects entries
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
    this.#logAction(action, error)
    const ending: AuditRecord =
      error === undefined ? { result: 'done' } : { result: 'failed', error: error.slice(0, 500) }
    try {
      await this.#entries.append({ of, ...ending })
    } catch (problem) {
      // The action has already run, and the service's log has the result.
      this.#log.warn({ of, what: action.what, reason: messageOf(problem) }, 'failed to write the audit log')
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

  #logAction({ key, ...action }: Action, error?: string): void {
    const redact = (each: string) => redactKey(each, this.#service.config)
    const fields = { ...action, ...(key !== undefined && { key: mapKey(key, redact) }) }
    if (error === undefined) this.#log.info(fields, 'admin action')
    else this.#log.warn({ ...fields, reason: error }, 'admin action failed')
  }
}

/** Parses a record. Returns undefined for anything else in the stream. */
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
  throw new TypeError('not a key')
}

function objectIn(value: unknown): object {
  if (isObject(value)) return value
  throw new TypeError('not an object')
}

/** A stored record: strings by name. */
type AuditRecord = Readonly<Record<string, string>>

type Kept = readonly [id: string, record: AuditRecord]

/** Stores records. Append-only; the oldest are dropped. */
export interface AuditLog {
  /**
   * Appends a record and returns its id.
   *
   * An id consists of epoch milliseconds of the log's clock, `-` and a number.
   *
   * @throws {ServiceError} if it can't be stored
   */
  append(record: AuditRecord): Promise<string>
  /** Returns up to `count` records, newest first. With `before`, only those before this id. */
  page(before: string | undefined, count: number): Promise<readonly Kept[]>
}

/** The maximum number of records. */
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

/** Keeps records in the Redis stream `<prefix>:{audit}`, about 10,000 of them. */
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
