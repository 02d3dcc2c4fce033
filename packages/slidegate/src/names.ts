import { SlidegateError } from './errors.ts'
import type { Spelling } from './key.ts'
import type { Entries } from './limits/limit.ts'
import { randomText } from './platform.ts'
import type { Named, Part } from './stores/store.ts'

export interface RequestNames {
  /**
   * What tells this request from all others, such as the idempotency key of a payment: with
   * `slidingWindow({ log: 'zset' })` a request that comes again within the window is answered as the first time, and
   * charged once, whatever it brings then. If it costs more than it was charged, it is refused as `reused_request_id`.
   * Choose it yourself: a caller who chooses the id of an admitted request is admitted. A non-empty string of up to
   * 64 KiB. Default: one is made.
   */
  readonly requestId?: string | undefined
  /** What a `distinct` limit counts: needed with one, refused without. A non-empty string of up to 64 KiB. */
  readonly value?: string | undefined
}

/** What all requests are called where no limit keeps entries. */
export const NAMELESS: Named = {}

/** What requests of a limiter are called in logs that keep entries: few do, and then all of this is nothing. */
export class Names {
  /** What tells its ids from all others; drawn when the first is made. */
  #head: string | undefined
  readonly #spelling: Spelling
  #made = 0

  constructor(spelling: Spelling) {
    this.#spelling = spelling
  }

  /**
   * Of a request that is to be charged. Where it needs an id and has none, one is made.
   *
   * @throws {SlidegateError} `invalid_request_id`, `invalid_value`
   */
  of(options: RequestNames | undefined, parts: readonly Part[]): Named {
    if (!areKept(parts) && options?.requestId === undefined && options?.value === undefined) return NAMELESS
    const asked = this.asked(options, parts)
    if (!areWhole(parts) || asked.requestId !== undefined) return asked
    return { ...this.made(parts), value: asked.value }
  }

  /** An id for a request that needs one. */
  made(parts: readonly Part[]): Named {
    if (!areWhole(parts)) return NAMELESS
    this.#head ??= randomText(9)
    return { requestId: `${this.#head}-${(this.#made++).toString(36)}`, mayRepeat: false }
  }

  /**
   * Of a request that is not to be charged, and so needs no id.
   *
   * @throws {SlidegateError} `invalid_request_id`, `invalid_value`
   */
  asked(options: RequestNames | undefined, parts: readonly Part[]): Named {
    const requestId = options?.requestId
    const value = options?.value
    if (requestId === undefined && value === undefined && !keep(parts, 'value')) return NAMELESS
    return {
      requestId: this.#parsedId(requestId, parts),
      mayRepeat: requestId !== undefined,
      value: this.#parsedValue(value, parts),
    }
  }

  #parsedId(requestId: string | undefined, parts: readonly Part[]): string | undefined {
    if (requestId === undefined) return undefined
    if (!keep(parts, 'request') && !keep(parts, 'holder')) {
      throw new SlidegateError(
        'invalid_request_id',
        "no limit of this limiter finds requests by their ids; one with log: 'zset' does",
        requestId,
      )
    }
    return this.#spelling.text(requestId, 'requestId', 'invalid_request_id')
  }

  #parsedValue(value: string | undefined, parts: readonly Part[]): string | undefined {
    if (keep(parts, 'value')) return this.#spelling.text(value, 'value', 'invalid_value')
    if (value === undefined) return undefined
    throw new SlidegateError(
      'invalid_value',
      'no limit of this limiter counts values; one made with distinct() does',
      value,
    )
  }
}

/** Whether any limit keeps entries. Asked of each request: a loop takes less than a callback. */
export function areKept(parts: readonly Part[]): boolean {
  for (let i = 0; i < parts.length; i++) if (parts[i]!.set.keeps.size > 0) return true
  return false
}

/** Whether a limit keeps those that are under way. */
export function areHeld(parts: readonly Part[]): boolean {
  return keep(parts, 'holder')
}

/** Whether a limit takes back only the whole of a request. */
export function areWhole(parts: readonly Part[]): boolean {
  return keep(parts, 'request') || keep(parts, 'holder') || keep(parts, 'record')
}

function keep(parts: readonly Part[], are: Entries): boolean {
  return parts.some(({ set }) => set.keeps.has(are))
}
