// Shadow limits that operators switch: kept in memory or Redis, applied in this process.

import type { Logger } from 'pino'
import { messageOf } from '#replay/errors.js'
import type { Service, ShadowSettings } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import { type RedisLink, UnreachableError } from './redis-link.ts'
import type { Every } from './timer.ts'

/** All limits of a limiter. */
export const ALL = '*'

/** Which limits are shadow limits by an operator's word, in force wherever the same store is. */
export interface ShadowSwitches {
  /** @throws {ServiceError} where that cannot be told now */
  read(): Promise<ShadowSettings>
  /**
   * @param limit its name, or {@link ALL}
   * @param shadow `null`: as the configuration says; for all limits, whatever was said of single ones, too
   * @throws {ServiceError} where it cannot be kept
   */
  set(limiter: string, limit: string, shadow: boolean | null): Promise<void>
}

/** Words on so many limits are kept at most. */
const MAX_WORDS = 10_000

/** The words of each limit: limiter and limit with a colon between, which no name has. */
type Words = ReadonlyMap<string, boolean>

function tooMany(): ServiceError {
  return new ServiceError(409, 'too_many', `there are ${MAX_WORDS} words on limits already; take some back`)
}

/** What was said ends with the process. */
export class MemoryShadowSwitches implements ShadowSwitches {
  readonly #words = new Map<string, boolean>()

  async read(): Promise<ShadowSettings> {
    return shadowSettingsOf(this.#words)
  }

  async set(limiter: string, limit: string, shadow: boolean | null): Promise<void> {
    for (const word of forgottenBy(this.#words, limiter, limit, shadow)) this.#words.delete(word)
    if (shadow === null) return
    if (this.#words.size >= MAX_WORDS) throw tooMany()
    this.#words.set(`${limiter}:${limit}`, shadow)
  }
}

/** A sorted set, `<prefix>:{shadow}`: `<limiter>:<limit>` by 1 or 0. Its commands are among those of the store. */
export class RedisShadowSwitches implements ShadowSwitches {
  readonly #link: RedisLink
  readonly #key: string

  constructor(link: RedisLink) {
    this.#link = link
    this.#key = `${link.prefix}:{shadow}`
  }

  async read(): Promise<ShadowSettings> {
    return shadowSettingsOf(await this.#words())
  }

  async set(limiter: string, limit: string, shadow: boolean | null): Promise<void> {
    const words = await this.#words()
    const forgotten = forgottenBy(words, limiter, limit, shadow)
    if (forgotten.length > 0) await this.#link.ask((redis) => redis.zrem(this.#key, ...forgotten))
    if (shadow === null) return
    if (words.size - forgotten.length >= MAX_WORDS) throw tooMany()
    await this.#link.ask((redis) => redis.zadd(this.#key, shadow ? 1 : 0, `${limiter}:${limit}`))
  }

  async #words(): Promise<Words> {
    const found = await this.#link.ask((redis) => redis.zrange(this.#key, 0, MAX_WORDS - 1, 'WITHSCORES'))
    const words = new Map<string, boolean>()
    for (let i = 0; i + 1 < found.length; i += 2) {
      const [word, shadow] = [found[i]!, found[i + 1]!]
      // Skips what it cannot read.
      if (word.includes(':') && /^[01]$/.test(shadow)) words.set(word, shadow === '1')
    }
    return words
  }
}

/** The words that another one takes the place of. */
function forgottenBy(
  words: Words,
  limiter: string,
  limit: string,
  shadow: boolean | null,
): readonly string[] {
  const isAll = shadow === null && limit === ALL
  return Array.from(words.keys()).filter((word) =>
    isAll ? word.startsWith(`${limiter}:`) : word === `${limiter}:${limit}`,
  )
}

/** In order, so that the same words are the same text. Names may be those of properties that all objects have. */
function shadowSettingsOf(words: Words): ShadowSettings {
  const shadowSettings: Record<string, Record<string, boolean>> = Object.create(null)
  for (const [word, shadow] of Array.from(words).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const colon = word.indexOf(':')
    const limiter = word.slice(0, colon)
    shadowSettings[limiter] ??= Object.create(null) as Record<string, boolean>
    shadowSettings[limiter][word.slice(colon + 1)] = shadow
  }
  return shadowSettings
}

/** What was said on an instance that could not ask this one is in force here after so long, and a moment. */
export const SYNC_EVERY_MS = 900

/**
 * Keeps a service to what operators have said, here or elsewhere. While that cannot be read, what is known stands. Since it asks
 * all the time, it is here that one is told whether Redis can be reached.
 */
export class ShadowSync {
  readonly #service: Service
  readonly #switches: ShadowSwitches
  readonly #log: Logger
  /** What is in force, or could not be put in force, as a text. */
  #known = '{}'
  #isReading = true
  #unreachableSinceMs: number | undefined
  #isClosed = false
  readonly #stop: () => void

  constructor(service: Service, switches: ShadowSwitches, every: Every, log: Logger) {
    this.#service = service
    this.#switches = switches
    this.#log = log
    this.#stop = every(SYNC_EVERY_MS, () => this.apply())
  }

  /** Reads what was said, and puts it in force. Never rejects. */
  async apply(): Promise<void> {
    try {
      const shadowSettings = await this.#switches.read()
      this.#tellReading()
      const text = JSON.stringify(shadowSettings)
      if (text === this.#known) return
      this.#known = text
      this.#service.shadow(shadowSettings)
      this.#log.info({ shadowSettings }, 'which limits are shadow limits has changed')
    } catch (error) {
      if (!this.#isClosed) this.#tellFailure(error)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#stop()
  }

  /** Once for each time that it begins; so is its end, below. */
  #tellFailure(error: unknown): void {
    if (error instanceof UnreachableError) {
      if (this.#unreachableSinceMs !== undefined) return
      this.#unreachableSinceMs = performance.now()
      const { address: redis, reason } = error
      this.#log.warn(
        { redis, reason, onStoreError: Array.from(new Set(this.#service.policies())) },
        'Redis cannot be reached: the service runs without it, and requests are told what onStoreError says',
      )
    } else if (this.#isReading) {
      this.#isReading = false
      this.#log.warn(
        { reason: messageOf(error) },
        'which limits are shadow limits cannot be read: what is known stands',
      )
    }
  }

  #tellReading(): void {
    if (this.#unreachableSinceMs !== undefined) {
      const downMs = Math.round(performance.now() - this.#unreachableSinceMs)
      this.#unreachableSinceMs = undefined
      this.#log.info({ downMs }, 'Redis can be reached again')
    }
    if (!this.#isReading) {
      this.#isReading = true
      this.#log.info('which limits are shadow limits can be read again')
    }
  }
}
