// The audit log: who changed what and why, with the states before and after.

import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { AnyKey } from 'slidegate'
import { messageOf } from '../../../replay/src/errors.ts'
import { redactKey } from '../redact.ts'
import type { Service } from '../service/service.ts'
import type { AuditEntry } from './api-types.ts'
import { type Change, changeOf } from './audit-entry.ts'
import type { AuditLog, AuditRecord } from './audit-log.ts'
import type { State } from './change-words.ts'
import { concealing, mapKey, shortKey } from './keys.ts'

/** A change by an operator. */
interface Action {
  /** The caller's name in the configuration. */
  readonly who: string
  readonly what: string
  readonly limiter?: string
  readonly key?: AnyKey | Partial<AnyKey>
  /** Other parameters of the change. */
  readonly detail?: object
  /** The operator's reason. */
  readonly reason?: string | undefined
  /** The entry that this action undoes. */
  readonly undoes?: string
}

interface Acted<Result, Known> {
  readonly result: Result
  /** The state after the action. Undefined if it couldn't be read. */
  readonly after: Known | undefined
}

const INSTANCE = `${hostname()}/${process.pid}`

const PAGE = 1000

/** Maximum length of a stored error, in characters. */
const MAX_ERROR = 500

/**
 * Records who changed what.
 *
 * An action is recorded before it runs, and its result afterwards. An action that can't be recorded doesn't run.
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
   * @param state reads the state that the action changes; called before and after it
   * @throws {ServiceError} `store_error` if the action can't be recorded; it then doesn't run
   */
  async act<Result, Known extends State>(
    action: Action,
    work: () => Promise<Result>,
    state?: () => Promise<Known>,
  ): Promise<Acted<Result, Known>> {
    const before = await state?.()
    const id = await this.#entries.append({ ...this.#recordOf(action), ...stateIn('before', before) })
    try {
      const result = await work()
      const after = await state?.().catch(() => undefined)
      await this.#ended(id, action, { result: 'done', ...stateIn('after', after) })
      return { result, after }
    } catch (error) {
      await this.#ended(id, action, { result: 'failed', error: messageOf(error).slice(0, MAX_ERROR) })
      throw error
    }
  }

  /** Records a completed action. Never rejects: a failure is only logged, because the action is already done. */
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
   * @param may returns whether the caller may see an entry
   */
  async list(count: number, may: (entry: AuditEntry) => boolean): Promise<AuditEntry[]> {
    const found: AuditEntry[] = []
    for await (const { entry } of this.#changes()) {
      if (may(entry)) found.push(entry)
      if (found.length === count) break
    }
    return found
  }

  /** Returns an entry that the caller may see. */
  async find(id: string, may: (entry: AuditEntry) => boolean): Promise<Change | undefined> {
    for await (const change of this.#changes()) {
      if (change.entry.id === id) return may(change.entry) ? change : undefined
    }
    return undefined
  }

  /** All entries, newest first. */
  async *#changes(): AsyncGenerator<Change> {
    const endings = new Map<string, AuditRecord>()
    const undone = new Set<string>()
    let before: string | undefined
    for (;;) {
      const page = await this.#entries.page(before, PAGE)
      for (const [id, record] of page) {
        if (record.of !== undefined) {
          endings.set(record.of, record)
          continue
        }
        const change = changeOf(id, { ...record, ...endings.get(id) }, undone)
        endings.delete(id)
        if (change === undefined) continue
        const { undoes, result } = change.entry
        if (undoes !== undefined && result === 'done') undone.add(undoes)
        yield change
      }
      before = page.at(-1)?.[0]
      if (page.length < PAGE) return
    }
  }

  async #ended(of: string, action: Action, ending: AuditRecord): Promise<void> {
    this.#logAction(action, ending.error)
    try {
      await this.#entries.append({ of, ...ending })
    } catch (problem) {
      // The action has already run, and the service's log has the result.
      this.#log.warn({ of, what: action.what, reason: messageOf(problem) }, 'failed to write the audit log')
    }
  }

  #recordOf({ who, what, limiter, key, detail, reason, undoes }: Action): AuditRecord {
    return {
      ...{ who, what },
      ...(limiter !== undefined && { limiter }),
      ...(limiter !== undefined &&
        key !== undefined && {
          key: JSON.stringify(mapKey(key, concealing(this.#service, limiter) ?? shortKey)),
        }),
      ...(detail !== undefined && { detail: JSON.stringify(detail) }),
      ...(reason !== undefined && { reason }),
      ...(undoes !== undefined && { undoes }),
      instance: INSTANCE,
    }
  }

  /** The reason isn't logged, because it may name a key. */
  #logAction({ key, reason: _, ...action }: Action, error?: string): void {
    const redact = (each: string) => redactKey(each, this.#service.config)
    const fields = { ...action, ...(key !== undefined && { key: mapKey(key, redact) }) }
    if (error === undefined) this.#log.info(fields, 'admin action')
    else this.#log.warn({ ...fields, reason: error }, 'admin action failed')
  }
}

function stateIn<Name extends string>(name: Name, state: State | undefined): AuditRecord {
  return state === undefined ? {} : { [name]: JSON.stringify(state) }
}
