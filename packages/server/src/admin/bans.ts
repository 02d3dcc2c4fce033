// Lists the keys that are banned or blocked now.

import type { Logger } from 'pino'
import type { AnyKey } from 'slidegate'
import { messageOf } from '../../../replay/src/errors.ts'
import type { Service } from '../service/service.ts'
import type { BanStatus } from './api-types.ts'
import type { BanLog, BanRecord } from './ban-log.ts'
import { recordedKey } from './ban-recorder.ts'
import { statusOf } from './ban-status.ts'
import { keysOf } from './keys.ts'

interface BanList {
  /** Sorted by end time, latest first. */
  readonly bans: readonly BanStatus[]
  /** Whether the list contains all bans and blocks. */
  readonly isComplete: boolean
}

const PAGE = 1000
/** Number of keys to look up at once. `MAX_LOOKS` is the maximum for a whole list. */
const LOOKS = 100
const MAX_LOOKS = 1000

/** Lists recorded bans and blocks, except those that have ended or were lifted elsewhere. */
export class Bans {
  readonly #service: Service
  readonly #records: BanLog
  readonly #log: Logger

  constructor(service: Service, records: BanLog, log: Logger) {
    this.#service = service
    this.#records = records
    this.#log = log
  }

  /**
   * Lists bans and blocks.
   *
   * @param may returns whether the caller may see a limiter
   * @throws {ServiceError} {StoreUnavailableError}
   */
  async list(may: (limiter: string) => boolean, count: number): Promise<BanList> {
    const found = new Map<string, readonly [BanRecord, BanStatus]>()
    const ended: BanRecord[] = []
    let looks = 0
    let next: BanRecord[] = []
    const look = async (): Promise<void> => {
      const statuses = await Promise.all(next.map((record) => statusOf(this.#service, record)))
      next.forEach((record, i) => {
        const word = JSON.stringify([record.type, record.limiter, record.dimension ?? null, record.key])
        const [other] = found.get(word) ?? []
        const isLatest = statuses[i] !== undefined && (other?.sinceMs ?? 0) <= record.sinceMs
        if (isLatest) found.set(word, [record, statuses[i]!])
        // The earlier of two records of the same type for a key is over, too.
        const over = isLatest ? other : record
        if (over !== undefined) ended.push(over)
      })
      looks += next.length
      next = []
    }
    for await (const record of this.#all()) {
      if (!this.#service.has(record.limiter) || !may(record.limiter)) continue
      if (next.push(record) === LOOKS) await look()
      if (found.size > count || looks === MAX_LOOKS) break
    }
    await look()
    await this.#records.remove(ended)
    const bans = Array.from(found.values(), ([, status]) => status).sort((a, b) => timeLeft(b) - timeLeft(a))
    return { bans: bans.slice(0, count), isComplete: bans.length <= count && looks < MAX_LOOKS }
  }

  /** Removes the records of lifted bans and blocks whose keys can't be looked up. Never rejects. */
  async lifted(limiter: string, key: AnyKey, types: readonly BanRecord['type'][]): Promise<void> {
    const hashed = keysOf(key)
      .map((each) => recordedKey(this.#service, limiter, each.key, each.dimension))
      .filter(({ isHashed }) => isHashed)
    if (hashed.length === 0) return
    try {
      const lifted: BanRecord[] = []
      for await (const record of this.#all()) {
        const isOf = hashed.some((each) => each.key === record.key && each.dimension === record.dimension)
        if (isOf && record.limiter === limiter && types.includes(record.type)) lifted.push(record)
      }
      await this.#records.remove(lifted)
    } catch (error) {
      this.#log.warn({ reason: messageOf(error) }, 'failed to remove a ban from the list')
    }
  }

  async *#all(): AsyncGenerator<BanRecord> {
    for (let from = 0; ; from += PAGE) {
      const page = await this.#records.page(from, PAGE)
      yield* page
      if (page.length < PAGE) return
    }
  }
}

function timeLeft({ untilMs }: BanStatus): number {
  return untilMs ?? Number.POSITIVE_INFINITY
}
