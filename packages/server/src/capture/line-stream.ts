// Appends lines to a Redis stream, and reads the newest lines.

import type { RedisLink } from '../admin/redis-link.ts'

/** Number of entries to read at once. */
const PAGE = 1000

/** The stream `<prefix>:{capture}`, trimmed to about `maxLength` lines. */
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

  /** The newest matching lines, in chronological order. */
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
