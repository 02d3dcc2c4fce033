// Records bans and blocks as they begin.

import type { Logger } from 'pino'
import type { AnyKey, Decision } from 'slidegate'
import { messageOf } from '../../../replay/src/errors.ts'
import { parseDuration } from '../../../replay/src/text.ts'
import type { Service } from '../service/service.ts'
import type { AuditEntry } from './api-types.ts'
import { Audit } from './audit.ts'
import type { AuditLog } from './audit-log.ts'
import type { BanLog, BanRecord } from './ban-log.ts'
import { endOf } from './ban-status.ts'
import { concealing, mapKey, shortKey } from './keys.ts'

/** The value of `who` for automatic bans. */
const RULE = 'rule'

/** Maximum number of bans waiting to be recorded. Further bans are dropped. */
const MAX_WAITING = 1000
/** Maximum number of bans to record at once. */
const AT_A_TIME = 64

/** A block by an operator. */
export interface Block {
  readonly limiter: string
  readonly key: AnyKey
  readonly who: string
  readonly reason?: string | undefined
}

/** A decision that caused a ban. */
interface Cause {
  readonly limiter: string
  readonly key: AnyKey
  readonly decision: Decision
}

/** Records bans and blocks that begin in this process. Requests that cause no ban take no extra time. */
export class BanRecorder {
  readonly #service: Service
  readonly #records: BanLog
  readonly #past: Audit
  readonly #log: Logger
  readonly #waiting: Cause[] = []

  /** @param past stores automatic bans for the audit log */
  constructor(service: Service, records: BanLog, past: AuditLog, log: Logger) {
    this.#service = service
    this.#records = records
    // A log line per ban would flood the log during an attack.
    this.#past = new Audit(service, past, log.child({}, { level: 'silent' }))
    this.#log = log
  }

  /** Records the ban, if a decision caused one. */
  decided(limiter: string, key: AnyKey, decision: Decision): void {
    if (decision.blockedMs === undefined || !isCause(decision) || this.#waiting.length === MAX_WAITING) return
    if (this.#waiting.push({ limiter, key, decision }) === 1) void this.#record()
  }

  /** Records a block. Never rejects, because the key is already blocked. */
  async blocked({ limiter, key, who, reason }: Block): Promise<void> {
    await this.#try(async () => {
      const { atMs, overrides } = await this.#service.get(limiter).reader.explain(given(key))
      const records = overrides.flatMap(({ dimension, blockedMs }): BanRecord[] => {
        if (blockedMs === undefined) return []
        const cause = { type: 'block', who, ...(reason !== undefined && { reason }) } as const
        const times = { sinceMs: atMs, untilMs: endOf(atMs, blockedMs) }
        return [
          { ...recordedKey(this.#service, limiter, textOf(key, dimension), dimension), ...cause, ...times },
        ]
      })
      await this.#records.add(records)
    })
  }

  /** Lists automatic bans for the audit log, newest first. Some may be over. */
  async past(count: number, may: (entry: AuditEntry) => boolean): Promise<AuditEntry[]> {
    const entries = await this.#past.list(count, may)
    // In Redis, entries of the main audit log may have the same ids.
    return entries.map((entry) => ({ ...entry, id: `${entry.id}-ban` }))
  }

  async #record(): Promise<void> {
    while (this.#waiting.length > 0) {
      const causes = this.#waiting.slice(0, AT_A_TIME)
      await this.#try(async () => {
        const begun = await Promise.allSettled(causes.map((cause) => this.#begunBy(cause)))
        const records = begun.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
        if (records.length > 0) await this.#records.add(records)
        const failed = begun.find((each) => each.status === 'rejected')
        if (failed !== undefined) throw failed.reason
      })
      this.#waiting.splice(0, causes.length)
    }
  }

  /** Returns a key's active bans. The decision caused all of them, because no earlier ban denied the request. */
  async #begunBy({ limiter, key, decision }: Cause): Promise<readonly BanRecord[]> {
    const active = this.#service.has(limiter) ? this.#service.get(limiter) : undefined
    const ban = active?.declared.config.ban
    if (active === undefined || ban === undefined) return []
    const { after, within } = ban
    const rule = { denials: after, withinMs: typeof within === 'number' ? within : parseDuration(within)! }
    const { atMs, bans } = await active.reader.explain(given(key))
    const begun = bans.filter(({ blockedMs }) => blockedMs > 0)
    return Promise.all(
      begun.map(async ({ dimension, blockedMs, sinceMs = atMs, level }): Promise<BanRecord> => {
        const isOurs = (name: string) => dimension === undefined || name.startsWith(`${dimension}.`)
        const cause = { level, limits: decision.deniedBy.filter(isOurs), ...rule }
        const text = textOf(key, dimension)
        const of = dimension === undefined ? text : { [dimension]: text }
        const detail = { ...cause, forMs: blockedMs }
        await this.#past.note({ who: RULE, what: 'ban', limiter, key: of, detail })
        const times = { sinceMs, untilMs: endOf(atMs, blockedMs) }
        return {
          ...recordedKey(this.#service, limiter, text, dimension),
          type: 'ban',
          who: RULE,
          ...cause,
          ...times,
        }
      }),
    )
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#log.warn({ reason: messageOf(error) }, 'failed to record a ban')
    }
  }
}

/** Returns a key in its recorded form. It is hashed if the limiter hashes keys. Long keys are shortened. */
export function recordedKey(
  service: Service,
  limiter: string,
  key: string,
  dimension: string | undefined,
): Pick<BanRecord, 'limiter' | 'dimension' | 'key' | 'isHashed'> {
  const shown = (concealing(service, limiter) ?? shortKey)(key)
  return {
    limiter,
    ...(dimension !== undefined && { dimension }),
    key: shown,
    ...(shown !== key && { isHashed: true as const }),
  }
}

/** Whether a limit denied the request and caused a ban. If not, an earlier ban or block denied it. */
function isCause({ deniedBy, limits, source }: Decision): boolean {
  return source === 'store' && deniedBy.every((name) => limits.some((limit) => limit.name === name))
}

/** Removes the dimensions that have no key. */
function given(key: AnyKey): AnyKey {
  return mapKey(key, (each) => each)
}

function textOf(key: AnyKey, dimension: string | undefined): string {
  return (typeof key === 'string' ? key : key[dimension!])!
}
