/** What a call that may be sent twice carries so that it is charged once. */
export interface Receipt {
  /** Where the script keeps what it has answered; the last of the call's keys. */
  readonly key: string
  /** The first of the call's words: its number, and a letter if the receipt's TTL has to be renewed. */
  readonly word: string
}

/** So many digits, that numbers compare as text. */
const DIGITS = 17

/** A tenth of the TTL: should some calls that renew it get lost, others don't. */
const RENEWED_EACH_MS = 60_000

/**
 * Numbers the calls of a transport, and gives each a place to leave its answer at. A call that is sent again has its old
 * number, by which the script knows it. No two calls in flight share a place, so an answer stays until its call is
 * settled or given up by all; one that comes after a later call of its place is not executed.
 */
export class Receipts {
  readonly #head: string
  #calls = 0
  /** When the TTL of each place was renewed last, by `performance.now()`. */
  readonly #renewedAtMs: number[] = []

  constructor(head: string) {
    this.#head = head
  }

  next(place: number): Receipt {
    this.#calls++
    const nowMs = performance.now()
    const isDue = nowMs - (this.#renewedAtMs[place] ?? 0) >= RENEWED_EACH_MS
    if (isDue) this.#renewedAtMs[place] = nowMs
    const number = String(this.#calls).padStart(DIGITS, '0')
    return { key: `${this.#head}${place}`, word: isDue ? `${number}r` : number }
  }
}
