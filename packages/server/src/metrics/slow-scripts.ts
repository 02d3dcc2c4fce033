/** As `SLOWLOG GET` tells a call: others follow, of no interest here. */
export type SlowEntry = readonly [id: number, atSeconds: number, micros: number, words: readonly string[]]

/** Slow calls of our script that one server has logged. Each is counted once, by the number that it has there. */
export class SlowScripts {
  readonly #keyHead: string
  #lastId: number | undefined
  #count = 0

  /** @param keyHead what all our keys begin with */
  constructor(keyHead: string) {
    this.#keyHead = keyHead
  }

  /**
   * How many there have been since the first look.
   *
   * @param entries the latest first
   */
  count(entries: readonly SlowEntry[]): number {
    const newest = entries[0]?.[0]
    if (newest === undefined) {
      this.#lastId ??= -1
      return this.#count
    }
    // What was there before counts for nothing; where numbers begin anew the server was started again.
    const since = this.#lastId === undefined ? newest : newest < this.#lastId ? -1 : this.#lastId
    this.#lastId = newest
    for (const [id, , , words] of entries) if (id > since && this.#isOurs(words)) this.#count++
    return this.#count
  }

  /** By its first key. */
  #isOurs([command = '', , , key = '']: readonly string[]): boolean {
    return /^eval(sha)?$/i.test(command) && key.startsWith(this.#keyHead)
  }
}
