// Appends lines to a stream of Redis, and reads the newest.

import type { RedisLink } from '../admin/redis-link.ts'

/** Read at a time. */
const PAGE = 1000

/** Lines in the stream `<prefix>:{capture}`, of which some `maxLength` are kept. */
export class LineStream {
  readonly #link: RedisLink
  readonly #key: string
  readonly #maxLength: number

  constructor(link: RedisLink, maxLength: number) {
    this.#link = link
    this.#key = `${link.prefix}:{capture}`
    this.#maxLength = maxLength
  }

  async append(lines: readonly string[]): Promise<void> {
    const results = await this.#link.ask((redis) => {
      const calls = redis.pipeline()
      for (const line of lines) calls.xadd(this.#key, 'MAXLEN', '~', this.#maxLength, '*', 'line', line)
      return calls.exec()
    })
    const failed = results?.find(([error]) => error !== null)?.[0]
    if (failed) throw failed
  }

  /** The newest lines that are wanted, the oldest of them first. */
  async newest(count: number, isWanted: (line: string) => boolean): Promise<string[]> {
    const found: string[] = []
    let end = '+'
    for (let read = 0; read < 2 * this.#maxLength && found.length < count; read += PAGE) {
      const page = await this.#link.ask((redis) => redis.xrevrange(this.#key, end, '-', 'COUNT', PAGE))
      for (const [, [, line]] of page) {
        if (line !== undefined && found.length < count && isWanted(line)) found.push(line)
      }
      if (page.length < PAGE) break
      end = `(${page.at(-1)![0]}`
    }
    return found.reverse()
  }

  async close(): Promise<void> {
    this.#link.close()
  }
}
