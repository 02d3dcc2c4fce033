// The history in Redis, shared by all instances on the same store.

import { readFileSync } from 'node:fs'
import { Type } from '../../json-schema.ts'
import { PACKAGE } from '../../package-folder.ts'
import { hasShape } from '../answer-shapes.ts'
import type { RedisLink } from '../redis-link.ts'
import { type HistoryStore, hourOf, memberOf, type Step, type Watched } from './history-store.ts'
import {
  type Batch,
  type HistoryRecord,
  KEYS_PER_ORDER,
  RANGES,
  type Range,
  recordName,
  SERVICE,
} from './records.ts'

/** Limiters per script call. Redis serves no other client during a call. */
const LIMITERS_PER_CALL = 4

/** The maximum number of watched keys to read. */
const MAX_MEMBERS = 10_000

const Count = Type.Number({ minimum: 0 })
const RecordShape = Type.Object({
  c: Type.Record(Type.String(), Type.Array(Count, { minItems: 4, maxItems: 4 })),
  r: Type.Record(Type.String(), Count),
})

/** Keeps the history in Redis. In a Cluster, all its keys are on one server. */
export class RedisHistoryStore implements HistoryStore {
  readonly #link: RedisLink
  readonly #prefix: string
  readonly #now: () => number
  readonly #script = readFileSync(new URL('lua/add-history.lua', PACKAGE), 'utf8')

  constructor(link: RedisLink, now: () => number) {
    this.#link = link
    this.#prefix = `${link.prefix}:{history}:`
    this.#now = now
  }

  async add(batch: Batch): Promise<void> {
    const { minute, limiters } = batch
    const { '1h': minutes, '7d': hours } = RANGES
    await this.#link.ask(async (redis) => {
      const commands = redis.pipeline()
      for (let from = 0; from < limiters.length; from += LIMITERS_PER_CALL) {
        const some = limiters.slice(from, from + LIMITERS_PER_CALL)
        const keys = some.flatMap(({ limiter }) => [
          this.#keyOf(limiter, minutes, minute),
          this.#keyOf(limiter, hours, hourOf(minute)),
        ])
        commands.eval(this.#script, keys.length, ...keys, ...argumentsOf(batch, some))
      }
      // Written last: if the counts couldn't be stored, the minute shows as a gap.
      commands.set(this.#keyOf(SERVICE, minutes, minute), '1', 'PX', minutes.ttlMs)
      commands.set(this.#keyOf(SERVICE, hours, hourOf(minute)), '1', 'PX', hours.ttlMs)
      for (const [error] of (await commands.exec()) ?? []) if (error) throw error
    })
  }

  async read(limiter: string, range: Range, from: number, count: number): Promise<readonly Step[]> {
    const keysOf = (name: string) =>
      Array.from({ length: count }, (_, i) => this.#keyOf(name, range, from + i))
    const texts = await this.#link.ask((redis) => redis.mget(...keysOf(SERVICE), ...keysOf(limiter)))
    return Array.from({ length: count }, (_, i) => ({
      isCounted: texts[i] !== null,
      record: recordIn(texts[count + i] ?? null),
    }))
  }

  async watched(): Promise<readonly Watched[]> {
    const found = await this.#link.ask((redis) =>
      redis.zrangebyscore(this.#watchedKey, `(${this.#now()}`, '+inf', 'WITHSCORES', 'LIMIT', 0, MAX_MEMBERS),
    )
    return found.flatMap((member, i) => {
      const colon = member.indexOf(':')
      if (i % 2 === 1 || colon === -1) return []
      return [
        {
          limiter: member.slice(0, colon),
          word: member.slice(colon + 1),
          untilMs: Number(found[i + 1]),
        },
      ]
    })
  }

  async watch(key: Watched, isWatched: boolean): Promise<void> {
    const member = memberOf(key)
    await this.#link.ask(async (redis) => {
      await redis.zremrangebyscore(this.#watchedKey, 0, this.#now())
      if (isWatched) await redis.zadd(this.#watchedKey, key.untilMs, member)
      else await redis.zrem(this.#watchedKey, member)
    })
  }

  get #watchedKey(): string {
    return `${this.#prefix}~watched`
  }

  #keyOf(limiter: string, range: Range, step: number): string {
    return this.#prefix + recordName(limiter, range, step)
  }
}

function argumentsOf({ process, number }: Batch, limiters: Batch['limiters']): (string | number)[] {
  const entries = limiters.flatMap((each) => {
    const all = Object.entries(each.entries)
    return [all.length, ...all.flatMap(([name, counts]) => [name, ...counts])]
  })
  return [process, number, KEYS_PER_ORDER, RANGES['1h'].ttlMs, RANGES['7d'].ttlMs, ...entries]
}

/** Parses a record. Returns undefined for anything else. */
function recordIn(text: string | null): HistoryRecord | undefined {
  if (text === null) return undefined
  try {
    const record = JSON.parse(text)
    return hasShape(RecordShape, record) ? (record as HistoryRecord) : undefined
  } catch {
    return undefined
  }
}
