// Shadow mode set by operators: stored in memory or Redis, applied in this process.

import type { Logger } from 'pino'
import { messageOf } from '../../../replay/src/errors.ts'
import type { Service, ShadowSettings } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import { type RedisLink, UnreachableError } from './redis-link.ts'
import type { Every } from './timer.ts'

/** The name that stands for all of a limiter's limits. */
export const ALL = '*'

/** Stores operators' shadow switches, for all instances that share the store. */
export interface ShadowSwitches {
  /** @throws {ServiceError} if the settings can't be read now */
  read(): Promise<ShadowSettings>
  /**
   * @param limit the name of a limit, or {@link ALL}
   * @param shadow `null` restores the configured mode; for {@link ALL}, it also removes the settings for single limits
   * @throws {ServiceError} if the setting can't be stored
   */
  set(limiter: string, limit: string, shadow: boolean | null): Promise<void>
}

const MAX_SETTINGS = 10_000

/** Settings by `<limiter>:<limit>`. Names of limiters and limits don't contain colons. */
type Settings = ReadonlyMap<string, boolean>

function tooMany(): ServiceError {
  return new ServiceError(409, 'too_many', `there are already ${MAX_SETTINGS} shadow settings; remove some`)
}

/** Keeps settings in memory: they are lost when the process exits. */
export class MemoryShadowSwitches implements ShadowSwitches {
  readonly #settings = new Map<string, boolean>()

  async read(): Promise<ShadowSettings> {
    return shadowSettingsOf(this.#settings)
  }

  async set(limiter: string, limit: string, shadow: boolean | null): Promise<void> {
    for (const name of replacedBy(this.#settings, limiter, limit, shadow)) this.#settings.delete(name)
    if (shadow === null) return
    if (this.#settings.size >= MAX_SETTINGS) throw tooMany()
    this.#settings.set(`${limiter}:${limit}`, shadow)
  }
}

/**
 * Keeps settings in Redis, in the sorted set `<prefix>:{shadow}`.
 *
 * Members are `<limiter>:<limit>`, and scores are 1 or 0. The commands are among those that the store uses,
 * so they need no extra permissions.
 */
export class RedisShadowSwitches implements ShadowSwitches {
  readonly #link: RedisLink
  readonly #key: string

  constructor(link: RedisLink) {
    this.#link = link
    this.#key = `${link.prefix}:{shadow}`
  }

  async read(): Promise<ShadowSettings> {
    return shadowSettingsOf(await this.#settings())
  }

  async set(limiter: string, limit: string, shadow: boolean | null): Promise<void> {
    const settings = await this.#settings()
    const replaced = replacedBy(settings, limiter, limit, shadow)
    if (replaced.length > 0) await this.#link.ask((redis) => redis.zrem(this.#key, ...replaced))
    if (shadow === null) return
    if (settings.size - replaced.length >= MAX_SETTINGS) throw tooMany()
    await this.#link.ask((redis) => redis.zadd(this.#key, shadow ? 1 : 0, `${limiter}:${limit}`))
  }

  async #settings(): Promise<Settings> {
    const found = await this.#link.ask((redis) => redis.zrange(this.#key, 0, MAX_SETTINGS - 1, 'WITHSCORES'))
    const settings = new Map<string, boolean>()
    for (let i = 0; i + 1 < found.length; i += 2) {
      const [name, shadow] = [found[i]!, found[i + 1]!]
      // Skips invalid members.
      if (name.includes(':') && /^[01]$/.test(shadow)) settings.set(name, shadow === '1')
    }
    return settings
  }
}

/** Returns the settings that a new setting replaces. */
function replacedBy(
  settings: Settings,
  limiter: string,
  limit: string,
  shadow: boolean | null,
): readonly string[] {
  const isAll = shadow === null && limit === ALL
  return Array.from(settings.keys()).filter((name) =>
    isAll ? name.startsWith(`${limiter}:`) : name === `${limiter}:${limit}`,
  )
}

/** Groups settings by limiter. Sorts the settings, so that identical settings give identical JSON. */
function shadowSettingsOf(settings: Settings): ShadowSettings {
  // The object has no prototype, because a limiter may be called "constructor".
  const shadowSettings: Record<string, Record<string, boolean>> = Object.create(null)
  for (const [name, shadow] of Array.from(settings).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const colon = name.indexOf(':')
    const limiter = name.slice(0, colon)
    shadowSettings[limiter] ??= Object.create(null) as Record<string, boolean>
    shadowSettings[limiter][name.slice(colon + 1)] = shadow
  }
  return shadowSettings
}

/** How often settings are read. Regular reads pick up changes from instances that couldn't reach this one. */
export const SYNC_EVERY_MS = 900

/**
 * Applies shadow settings to this service, whichever instance operators changed them on.
 *
 * If the settings can't be read, the last known ones stay in force. Also logs Redis outages.
 */
export class ShadowSync {
  readonly #service: Service
  readonly #switches: ShadowSwitches
  readonly #log: Logger
  /** The last settings read, as JSON, whether or not they could be applied. */
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

  /** Reads and applies the settings. Never rejects. */
  async apply(): Promise<void> {
    try {
      const shadowSettings = await this.#switches.read()
      this.#logSuccess()
      const text = JSON.stringify(shadowSettings)
      if (text === this.#known) return
      this.#known = text
      this.#service.shadow(shadowSettings)
      this.#log.info({ shadowSettings }, 'shadow settings changed')
    } catch (error) {
      if (!this.#isClosed) this.#logFailure(error)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#stop()
  }

  /** Logs the start of an outage once. `logSuccess` logs its end. */
  #logFailure(error: unknown): void {
    if (error instanceof UnreachableError) {
      if (this.#unreachableSinceMs !== undefined) return
      this.#unreachableSinceMs = performance.now()
      const { address: redis, reason } = error
      this.#log.warn(
        { redis, reason, onStoreError: Array.from(new Set(this.#service.policies())) },
        'Redis is unreachable: the service runs without it, and limiters follow their onStoreError',
      )
    } else if (this.#isReading) {
      this.#isReading = false
      this.#log.warn(
        { reason: messageOf(error) },
        "can't read shadow settings: the last known ones stay in force",
      )
    }
  }

  #logSuccess(): void {
    if (this.#unreachableSinceMs !== undefined) {
      const downMs = Math.round(performance.now() - this.#unreachableSinceMs)
      this.#unreachableSinceMs = undefined
      this.#log.info({ downMs }, 'Redis is reachable again')
    }
    if (!this.#isReading) {
      this.#isReading = true
      this.#log.info('shadow settings can be read again')
    }
  }
}
