import type { Shadowings } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { RedisLink } from './redis-link.ts'

/** All limits of a limiter. */
export const ALL = '*'

/** Which limits are shadow limits by an operator's word, in force wherever the same store is. */
export interface Steering {
  /** @throws {ServiceError} where that cannot be told now */
  read(): Promise<Shadowings>
  /**
   * @param limit its name, or {@link ALL}
   * @param shadow `null`: as the configuration says; for all limits, whatever was said of single ones, too
   * @throws {ServiceError} where it cannot be kept
   */
  say(limiter: string, limit: string, shadow: boolean | null): Promise<void>
}

/** Words on so many limits are kept at most. */
const MAX_WORDS = 10_000

/** The words of each limit: limiter and limit with a colon between, which no name has. */
type Words = ReadonlyMap<string, boolean>

function tooMany(): ServiceError {
  return new ServiceError(409, 'too_many', `there are ${MAX_WORDS} words on limits already; take some back`)
}

/** What was said ends with the process. */
export class MemorySteering implements Steering {
  readonly #words = new Map<string, boolean>()

  async read(): Promise<Shadowings> {
    return shadowingsOf(this.#words)
  }

  async say(limiter: string, limit: string, shadow: boolean | null): Promise<void> {
    for (const word of forgottenBy(this.#words, limiter, limit, shadow)) this.#words.delete(word)
    if (shadow === null) return
    if (this.#words.size >= MAX_WORDS) throw tooMany()
    this.#words.set(`${limiter}:${limit}`, shadow)
  }
}

/** A sorted set, `<prefix>:{shadow}`: `<limiter>:<limit>` by 1 or 0. Its commands are among those of the store. */
export class RedisSteering implements Steering {
  readonly #link: RedisLink
  readonly #key: string

  constructor(link: RedisLink) {
    this.#link = link
    this.#key = `${link.prefix}:{shadow}`
  }

  async read(): Promise<Shadowings> {
    return shadowingsOf(await this.#words())
  }

  async say(limiter: string, limit: string, shadow: boolean | null): Promise<void> {
    const words = await this.#words()
    const forgotten = forgottenBy(words, limiter, limit, shadow)
    if (forgotten.length > 0) await this.#link.ask((client) => client.zrem(this.#key, ...forgotten))
    if (shadow === null) return
    if (words.size - forgotten.length >= MAX_WORDS) throw tooMany()
    await this.#link.ask((client) => client.zadd(this.#key, shadow ? 1 : 0, `${limiter}:${limit}`))
  }

  async #words(): Promise<Words> {
    const found = await this.#link.ask((client) => client.zrange(this.#key, 0, MAX_WORDS - 1, 'WITHSCORES'))
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
function shadowingsOf(words: Words): Shadowings {
  const shadowings: Record<string, Record<string, boolean>> = Object.create(null)
  for (const [word, shadow] of Array.from(words).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const colon = word.indexOf(':')
    const limiter = word.slice(0, colon)
    shadowings[limiter] ??= Object.create(null) as Record<string, boolean>
    shadowings[limiter][word.slice(colon + 1)] = shadow
  }
  return shadowings
}
