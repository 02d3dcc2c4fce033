import { randomBytes } from 'node:crypto'
import { SlidegateError } from './errors.ts'
import { storedText } from './key.ts'
import type { Entries } from './limits/limit.ts'
import type { LimitSet } from './limits/limit-set.ts'
import type { Named } from './stores/store.ts'

export interface RequestNames {
  /**
   * What tells this request from all others, such as the idempotency key of a payment: with
   * `slidingWindow({ log: 'zset' })` a request that comes again within the window is answered as the first time, and
   * charged once, whatever it costs or brings then. So choose it yourself: whoever may choose the id of a request that
   * was admitted is admitted. A non-empty string of up to 64 KiB. Default: one is made.
   */
  readonly requestId?: string | undefined
  /** What a `distinct` limit counts: needed with one, refused without. A non-empty string of up to 64 KiB. */
  readonly value?: string | undefined
}

/** What all requests are called where no limit keeps entries. */
export const NAMELESS: Named = {}

/** What requests of a limiter are called in logs that keep entries: few do, and then all of this is nothing. */
export class Names {
  readonly #keeps: ReadonlySet<Entries>
  readonly #needsId: boolean
  readonly #findsId: boolean
  readonly #needsValue: boolean
  readonly #head = randomBytes(9).toString('base64url')
  #made = 0

  constructor({ logs }: LimitSet) {
    this.#keeps = new Set(logs.flatMap(({ kind }) => kind.entries?.are ?? []))
    this.#findsId = this.#keeps.has('request') || this.#keeps.has('holder')
    this.#needsId = this.#findsId || this.#keeps.has('record')
    this.#needsValue = this.#keeps.has('value')
  }

  /** Whether any limit keeps entries. */
  get areKept(): boolean {
    return this.#keeps.size > 0
  }

  /** Whether a limit takes back only the whole of a request. */
  get areWhole(): boolean {
    return this.#needsId
  }

  /** Whether a limit keeps those that are under way. */
  get areHeld(): boolean {
    return this.#keeps.has('holder')
  }

  /**
   * Of a request that is to be charged. Where it needs an id and has none, one is made.
   *
   * @throws {SlidegateError} `invalid_request_id`, `invalid_value`
   */
  of(options: RequestNames | undefined): Named {
    const asked = this.ofAsked(options)
    if (!this.#needsId || asked.requestId !== undefined) return asked
    return { requestId: this.#make(), mayRepeat: false, value: asked.value }
  }

  /** The same of one that is not, and so needs no id. */
  ofAsked(options: RequestNames | undefined): Named {
    const requestId = options?.requestId
    const value = options?.value
    if (requestId === undefined && value === undefined && !this.#needsValue) return NAMELESS
    return {
      requestId: this.#parseId(requestId),
      mayRepeat: requestId !== undefined,
      value: this.#parseValue(value),
    }
  }

  #make(): string {
    return `${this.#head}-${(this.#made++).toString(36)}`
  }

  #parseId(requestId: string | undefined): string | undefined {
    if (requestId === undefined) return undefined
    if (!this.#findsId) {
      throw new SlidegateError(
        'invalid_request_id',
        "no limit of this limiter finds requests by their ids; one with log: 'zset' does",
        requestId,
      )
    }
    return storedText(requestId, 'requestId', 'invalid_request_id')
  }

  #parseValue(value: string | undefined): string | undefined {
    if (this.#needsValue) return storedText(value, 'value', 'invalid_value')
    if (value === undefined) return undefined
    throw new SlidegateError(
      'invalid_value',
      'no limit of this limiter counts values; one made with distinct() does',
      value,
    )
  }
}
