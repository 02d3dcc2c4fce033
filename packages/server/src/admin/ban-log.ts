// Records of bans and blocks, in memory or in a Redis sorted set.

import { BanShape, hasShape } from './answer-shapes.ts'
import type { RedisLink } from './redis-link.ts'

/** A ban or block, as it was when it began. */
export interface BanRecord {
  readonly limiter: string
  /** Only set for limiters with dimensions. */
  readonly dimension?: string
  readonly key: string
  /** Whether `key` is hashed or shortened, and therefore can't be looked up. */
  readonly isHashed?: true
  readonly type: 'ban' | 'block'
  /** The operator's name in the configuration, or `rule` for a ban. */
  readonly who: string
  /** For a ban: the limits that denied the last request. */
  readonly limits?: readonly string[]
  /** For a ban: how many denials caused it, and within which period. */
  readonly denials?: number
  readonly withinMs?: number
  /** Why an operator blocked the key. */
  readonly reason?: string
  /** For a ban: the number of consecutive bans. */
  readonly level?: number
  readonly sinceMs: number
  /** `null` if it never ends. */
  readonly untilMs: number | null
}

/** A log of bans and blocks. When it is full, it keeps the ones that end last. */
export interface BanLog {
  /** @throws {ServiceError} if the records can't be stored */
  add(records: readonly BanRecord[]): Promise<void>
  /** Lists up to `count` records from index `from` on, sorted by end time, latest first. Some may have ended. */
  page(from: number, count: number): Promise<readonly BanRecord[]>
  /** Removes records that `page` returned. */
  remove(records: readonly BanRecord[]): Promise<void>
}

export const MAX_BANS = 10_000

/** How long a record is kept after the ban or block has ended. This allows for a store whose clock is behind. */
const SLACK_MS = 60_000

/** Keeps records in memory, like the bans themselves. */
export class MemoryBanLog implements BanLog {
  #records: readonly BanRecord[] = []

  async add(records: readonly BanRecord[]): Promise<void> {
    const endMs = Date.now() - SLACK_MS
    const present = this.#records.filter((record) => endOf(record) > endMs)
    this.#records = [...present, ...records].sort((a, b) => endOf(b) - endOf(a)).slice(0, MAX_BANS)
  }

  async page(from: number, count: number): Promise<readonly BanRecord[]> {
    return this.#records.slice(from, from + count)
  }

  async remove(records: readonly BanRecord[]): Promise<void> {
    const removed = new Set(records)
    this.#records = this.#records.filter((record) => !removed.has(record))
  }
}

/**
 * Keeps records in Redis, in the sorted set `<prefix>:{bans}`.
 *
 * Members are JSON, and scores are end times. The log only uses commands that the store also uses.
 */
export class RedisBanLog implements BanLog {
  readonly #link: RedisLink
  readonly #key: string

  constructor(link: RedisLink) {
    this.#link = link
    this.#key = `${link.prefix}:{bans}`
  }

  async add(records: readonly BanRecord[]): Promise<void> {
    const members = records.flatMap((record) => [record.untilMs ?? '+inf', JSON.stringify(record)])
    await this.#link.ask((redis) => redis.zadd(this.#key, ...members))
    await this.#link.ask((redis) => redis.zremrangebyscore(this.#key, '-inf', Date.now() - SLACK_MS))
    await this.#link.ask((redis) => redis.zremrangebyrank(this.#key, 0, -MAX_BANS - 1))
  }

  async page(from: number, count: number): Promise<readonly BanRecord[]> {
    const members = await this.#link.ask((redis) => redis.zrange(this.#key, from, from + count - 1, 'REV'))
    return members.map(recordIn)
  }

  async remove(records: readonly BanRecord[]): Promise<void> {
    if (records.length === 0) return
    await this.#link.ask((redis) => redis.zrem(this.#key, ...records.map((record) => JSON.stringify(record))))
  }
}

function endOf({ untilMs }: BanRecord): number {
  return untilMs ?? Number.POSITIVE_INFINITY
}

/** Parses a member. Anything else in the set becomes a record without a limiter. */
function recordIn(member: string): BanRecord {
  try {
    const record: unknown = JSON.parse(member)
    if (hasShape(BanShape, record)) return record as BanRecord
  } catch {
    // The member isn't a valid record.
  }
  return { limiter: '', key: '', type: 'ban', who: '', sinceMs: 0, untilMs: 0 }
}
