/** What a call that may be sent twice carries so that it is charged once. */
export interface Receipt {
  /** Where the script keeps what it has answered; the last of the call's keys. */
  readonly key: string
  /** The first of the call's words. */
  readonly words: readonly string[]
}

/** So many digits, that numbers compare as text. */
const DIGITS = 16

/**
 * Numbers the calls of a transport, and gives each a place to leave its answer at. A call that is sent again has its old
 * number, by which the script knows it. No two calls in flight share a place, so an answer stays until its call is
 * settled or given up by all; one that comes after a later call of its place is not executed.
 */
export class Receipts {
  readonly #head: string
  #calls = 0

  constructor(head: string) {
    this.#head = head
  }

  next(place: number): Receipt {
    this.#calls++
    return { key: `${this.#head}${place}`, words: ['once', String(this.#calls).padStart(DIGITS, '0')] }
  }
}
