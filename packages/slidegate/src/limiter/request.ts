// Checks a request's cost, id and value.
import {
  checkNames,
  invalidOption,
  isObject,
  type Names,
  SlidegateError,
  type SlidegateErrorCode,
  show,
} from '../errors.ts'
import type { KeyEncoding } from '../key.ts'
import type { Entries, Limit } from '../limits/limit.ts'
import { randomText } from '../runtime/platform.ts'
import type { Named, Part } from '../stores/store.ts'

/** The id and value of a request. */
export interface RequestNames {
  /**
   * Identifies the request, like an idempotency key. A non-empty string of up to 64 KiB.
   *
   * With `slidingWindow({ log: 'zset' })`, a request repeated within the window is charged once, and each repeat
   * gets the first answer. A repeat that costs more is rejected with `reused_request_id`. Don't let callers
   * choose ids: a caller who sends the id of an admitted request is admitted. Required by `concurrency`
   * limits. Default for other limits: a random id.
   */
  readonly requestId?: string | undefined
  /** The value that a `distinct` limit counts. A non-empty string of up to 64 KiB. Other limiters reject it. */
  readonly value?: string | undefined
}

/** The options that every request takes. */
export const COST_NAMES: Names<Record<'cost' | 'request', unknown>> = { cost: true, request: true }

/** Options for `consume`. */
export const REQUEST_NAMES: Names<Record<'cost' | 'request' | keyof RequestNames, unknown>> = {
  ...COST_NAMES,
  ...{ requestId: true, value: true },
}

/**
 * Checks the names of a request's options, and returns the cost. Default: 1.
 *
 * @throws {SlidegateError} `invalid_cost`, `invalid_option`
 */
export function parseCost<Options extends { readonly cost?: number }>(
  options: Options | undefined,
  names: Names<Options>,
): number {
  if (options === undefined) return 1
  if (!isObject(options)) {
    const cost = typeof options === 'number' ? options : 1
    const message = `the options are ${show(options)}; write { cost: ${cost} }`
    throw new SlidegateError('invalid_cost', message, options)
  }
  // A loop over names allocates nothing.
  for (const name in options) {
    if (!(name in names)) checkNames(options, names, 'invalid_option', 'a request')
  }
  return options.cost === undefined ? 1 : parseUnits(options.cost, 'invalid_cost')
}

export function parseUnits(units: unknown, code: SlidegateErrorCode, least = 1): number {
  if (!Number.isSafeInteger(units) || (units as number) < least) {
    const message = `the number of units is ${show(units)}; it must be an integer of at least ${least}`
    throw new SlidegateError(code, message, units)
  }
  return units as number
}

interface NameOptions extends RequestNames {
  readonly cost?: number | undefined
}

export const NAMELESS: Named = {}

/** Creates the names under which logs keep a limiter's requests. */
export class RequestNamer {
  /** Prefix that makes this limiter's ids unique. Generated with the first id. */
  #head: string | undefined
  readonly #encoding: KeyEncoding
  #made = 0

  constructor(encoding: KeyEncoding) {
    this.#encoding = encoding
  }

  /** Names a request to charge. Generates an id if the request needs one. */
  forCharge(options: NameOptions | undefined, parts: readonly Part[]): Named {
    if (!areKept(parts) && options?.requestId === undefined && options?.value === undefined) return NAMELESS
    const given = this.given(options, parts)
    return given.requestId === undefined ? this.made(parts) : given
  }

  /** Returns the names of a request without options. Generates an id if the request needs one. */
  made(parts: readonly Part[]): Named {
    if (!areWhole(parts)) return NAMELESS
    this.#head ??= randomText(9)
    return { requestId: `${this.#head}-${(this.#made++).toString(36)}`, mayRepeat: false }
  }

  given(options: NameOptions | undefined, parts: readonly Part[]): Named {
    const { requestId, value, cost = 1 } = options ?? {}
    const valued = limitOfValues(parts)
    if (valued === undefined && value !== undefined) {
      const message = 'no limit in this limiter counts values; only distinct() does'
      throw new SlidegateError('invalid_value', message, value)
    }
    if (requestId !== undefined) return { requestId: this.#parsedId(requestId, parts), mayRepeat: true }
    if (valued === undefined) return NAMELESS
    if (cost !== 1) {
      const right = `limit ${show(valued)} counts each distinct value as one unit, so omit the units`
      throw new SlidegateError('invalid_cost', `the number of units is ${cost}; ${right}`, cost)
    }
    return { requestId: this.#encoding.key(value, 'value', 'invalid_value'), mayRepeat: false }
  }

  #parsedId(requestId: string, parts: readonly Part[]): string {
    if (!keep(parts, 'request') && !keep(parts, 'holder')) {
      const message = "no limit in this limiter stores request ids; add one with log: 'zset'"
      throw new SlidegateError('invalid_request_id', message, requestId)
    }
    return this.#encoding.key(requestId, 'requestId', 'invalid_request_id')
  }
}

/** Whether any limit keeps entries. Uses a loop, because this runs for each request. A callback would be slower. */
export function areKept(parts: readonly Part[]): boolean {
  for (let i = 0; i < parts.length; i++) if (parts[i]!.set.keeps.size > 0) return true
  return false
}

export function areHeld(parts: readonly Part[]): boolean {
  return keep(parts, 'holder')
}

/** Whether any limit can refund only whole requests. */
export function areWhole(parts: readonly Part[]): boolean {
  return keep(parts, 'request') || keep(parts, 'holder') || keep(parts, 'record')
}

export function refuseValues(parts: readonly Part[], what: string): void {
  const limit = limitOfValues(parts)
  if (limit === undefined) return
  const message = `limit ${show(limit)} counts distinct values, which ${what}() doesn't support; use consume()`
  throw invalidOption(message, limit)
}

/** Whether a limit can be used only in handlers. Such a limit needs to know when a request ends, or what its value is. */
export function isForHandlers(limit: Limit): boolean {
  const are = limit?.kind?.entries?.are
  return are === 'holder' || are === 'value'
}

/** Returns the name of the limit that counts distinct values. Such a limit is always the limiter's only limit. */
function limitOfValues(parts: readonly Part[]): string | undefined {
  const { keeps, limits } = parts[0]!.set
  return keeps.has('value') ? limits[0]!.name : undefined
}

function keep(parts: readonly Part[], are: Entries): boolean {
  return parts.some(({ set }) => set.keeps.has(are))
}
