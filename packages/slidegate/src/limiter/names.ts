import { invalidOption, SlidegateError, show } from '../errors.ts'
import type { Spelling } from '../key.ts'
import type { Entries, Limit } from '../limits/limit.ts'
import { randomText } from '../runtime/platform.ts'
import type { Named, Part } from '../stores/store.ts'

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

/** The options of a request that its names depend on. */
interface NameOptions extends RequestNames {
  readonly cost?: number | undefined
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
   * @throws {SlidegateError} `invalid_request_id`, `invalid_value`, `invalid_cost`
   */
  of(options: NameOptions | undefined, parts: readonly Part[]): Named {
    if (!areKept(parts) && options?.requestId === undefined && options?.value === undefined) return NAMELESS
    const asked = this.asked(options, parts)
    if (!areWhole(parts) || asked.requestId !== undefined) return asked
    return this.made(parts)
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
   * @throws {SlidegateError} `invalid_request_id`, `invalid_value`, `invalid_cost`
   */
  asked(options: NameOptions | undefined, parts: readonly Part[]): Named {
    const { requestId, value, cost = 1 } = options ?? {}
    const valued = limitOfValues(parts)
    if (valued === undefined && value !== undefined) {
      throw new SlidegateError(
        'invalid_value',
        'no limit of this limiter counts values; one made with distinct() does',
        value,
      )
    }
    if (requestId !== undefined) return { requestId: this.#parsedId(requestId, parts), mayRepeat: true }
    if (valued === undefined) return NAMELESS
    if (cost !== 1) {
      throw new SlidegateError(
        'invalid_cost',
        `the units are ${cost}; limit ${show(valued)} counts distinct values, one unit each: leave the units out`,
        cost,
      )
    }
    return { requestId: this.#spelling.text(value, 'value', 'invalid_value'), mayRepeat: false }
  }

  #parsedId(requestId: string, parts: readonly Part[]): string {
    if (!keep(parts, 'request') && !keep(parts, 'holder')) {
      throw new SlidegateError(
        'invalid_request_id',
        "no limit of this limiter finds requests by their ids; one with log: 'zset' does",
        requestId,
      )
    }
    return this.#spelling.text(requestId, 'requestId', 'invalid_request_id')
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

/**
 * Refuses what isn't done with values.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function refuseValues(parts: readonly Part[], what: string): void {
  const limit = limitOfValues(parts)
  if (limit === undefined) return
  throw invalidOption(
    `limit ${show(limit)} counts distinct values, which ${what}() can't ask for; use consume()`,
    limit,
  )
}

/** Whether a limit needs what only the code behind a request knows: when it's over, or a value. */
export function isForHandlers(limit: Limit): boolean {
  const are = limit?.kind?.entries?.are
  return are === 'holder' || are === 'value'
}

/** The name of the limit that counts distinct values, the only one of its limiter. */
function limitOfValues(parts: readonly Part[]): string | undefined {
  const { keeps, limits } = parts[0]!.set
  return keeps.has('value') ? limits[0]!.name : undefined
}

function keep(parts: readonly Part[], are: Entries): boolean {
  return parts.some(({ set }) => set.keeps.has(are))
}
