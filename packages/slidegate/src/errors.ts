// The errors of the library, and how values read in their messages.
import type { Decision } from './decision.ts'

/** Why an input was rejected. A denial isn't an error, see {@link Decision}. */
export type SlidegateErrorCode =
  | 'invalid_limit'
  | 'invalid_duration'
  | 'invalid_precision'
  | 'duplicate_limit'
  | 'invalid_name'
  | 'invalid_key'
  | 'invalid_cost'
  | 'invalid_refund'
  | 'invalid_reservation'
  | 'invalid_request_id'
  | 'reused_request_id'
  | 'invalid_value'
  | 'invalid_option'
  | 'closed'
  | 'sync_unsupported'

// Registered symbols, so that two copies of the package in one process recognise each other's errors.
const slidegateError = Symbol.for('slidegate.SlidegateError')
const storeUnavailableError = Symbol.for('slidegate.StoreUnavailableError')
const waitError = Symbol.for('slidegate.WaitError')

/** A mistake of the caller. `value` is what was given; the message says what would be right. */
export class SlidegateError extends Error {
  override readonly name = 'SlidegateError'
  readonly code: SlidegateErrorCode
  readonly value: unknown

  constructor(code: SlidegateErrorCode, message: string, value?: unknown) {
    super(message)
    this.code = code
    this.value = value
    Object.defineProperty(this, slidegateError, { value: true })
  }

  static override [Symbol.hasInstance](candidate: unknown): boolean {
    return isBranded(candidate, slidegateError)
  }
}

/** An option that no other code fits. */
export function invalidOption(message: string, value?: unknown): SlidegateError {
  return new SlidegateError('invalid_option', message, value)
}

/**
 * Why the store gave no answer:
 * - `timeout`: the limiter's deadline passed; whether the request was charged is unknown
 * - `error`: the store answered with an error, or could not be reached; see `cause`
 * - `down`: it has failed too often; the circuit breaker is open
 * - `overload`: too many requests wait for it already, of all callers or for this key
 * - `invalid_state`: the stored state of the key is damaged, or of an unknown version
 * - `full`: a memory store in which every key is at its limit
 */
export type StoreUnavailableReason = 'timeout' | 'error' | 'down' | 'overload' | 'full' | 'invalid_state'

/** The store gave no answer. Not a denial: the request may be within its limits. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError'
  readonly code = 'store_unavailable'
  readonly reason: StoreUnavailableReason

  constructor(reason: StoreUnavailableReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
    Object.defineProperty(this, storeUnavailableError, { value: true })
  }

  static override [Symbol.hasInstance](candidate: unknown): boolean {
    return isBranded(candidate, storeUnavailableError)
  }
}

/** Any error of a store as a {@link StoreUnavailableError}. */
export function asUnavailable(error: unknown, store = 'the store'): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : show(error)
  return new StoreUnavailableError('error', `${store} did not decide: ${message}`, { cause: error })
}

/** Why a store didn't answer, as far as its connection shows. */
export interface Diagnosis {
  /** Such as `Redis at 127.0.0.1:6379 did not answer`. */
  readonly message: string
  /** The last error of the connection. */
  readonly cause?: Error | undefined
}

export function noAnswer({ message, cause }: Diagnosis, withinMs: number): StoreUnavailableError {
  const why = cause === undefined ? '' : ` (${cause.message})`
  return new StoreUnavailableError('timeout', `${message} within ${withinMs} ms${why}`, cause && { cause })
}

/**
 * The message and the code of an error, and nothing else.
 *
 * Clients attach commands to their errors, with keys and passwords. A stack would keep the failed request alive.
 */
export function plainError(error: unknown): Error {
  const { message, code, errors } = (error ?? {}) as {
    readonly message?: unknown
    readonly code?: unknown
    readonly errors?: readonly unknown[]
  }
  // A host with several addresses fails with an error for each, and no message.
  if (message === '' && Array.isArray(errors) && errors.length > 0) return plainError(errors.at(-1))
  const plain = new Error(typeof message === 'string' && message !== '' ? message : show(code ?? error))
  plain.stack = `Error: ${plain.message}`
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain
}

/**
 * Why a request stopped waiting, or didn't begin to:
 * - `full`: the limiter's `maxWaiting` is reached
 * - `timeout`: there is no room for the request within its `maxWaitMs`
 * - `aborted`: its signal was aborted; the signal's reason is the error's `cause`
 * - `impossible`: it costs more than a limit ever admits, or the key is blocked without an end
 */
export type WaitErrorReason = 'full' | 'timeout' | 'aborted' | 'impossible'

/** A request that waited was not admitted, and nothing was charged for it. */
export class WaitError extends Error {
  override readonly name = 'WaitError'
  readonly code = 'wait_rejected'
  readonly reason: WaitErrorReason
  /** The last denial of a request of the same key that waited in this process, if any. Its times are from its `atMs` on. */
  readonly decision: Decision | undefined

  constructor(reason: WaitErrorReason, message: string, decision?: Decision, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
    this.decision = decision
    Object.defineProperty(this, waitError, { value: true })
  }

  static override [Symbol.hasInstance](candidate: unknown): boolean {
    return isBranded(candidate, waitError)
  }
}

/** Whether it is an error with this brand, perhaps of another copy of the package. */
export function isBranded(candidate: unknown, brand: symbol): boolean {
  return typeof candidate === 'object' && candidate !== null && brand in candidate
}

/** A value for an error message, cut to a short text. */
export function show(value: unknown): string {
  if (typeof value === 'string')
    return value.length > SHOWN ? `${JSON.stringify(value.slice(0, SHOWN))}...` : JSON.stringify(value)
  if (typeof value === 'object' && value !== null) return kindOf(value)
  if (typeof value === 'function') return 'a function'
  // Symbols and bigints can have any length, too.
  const text = String(value)
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text
}

const SHOWN = 64

function kindOf(value: object): string {
  try {
    if (value instanceof Promise) return 'a promise'
    return Array.isArray(value) ? 'an array' : 'an object'
  } catch {
    // A proxy that was revoked.
    return 'an object'
  }
}

/** The names of all options. */
export type Names<Options> = Readonly<Record<keyof Options, true>>

/** @throws {SlidegateError} `invalid_option` unless the options are an object with no other names */
export function checkOptions<Options>(options: Options, what: string, names: Names<Options>): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(`the options of ${what} are ${show(options)}; they must be an object`, options)
  }
  checkNames(options, names, 'invalid_option', what)
}

/** Rejects unknown names, which may be misspelt. Instances of classes may have any. */
export function checkNames<Options extends object>(
  options: Options,
  names: Names<Options>,
  code: SlidegateErrorCode,
  what: string,
): void {
  if (isInstance(options)) return
  const unknown = Object.entries(options).find(
    ([name, value]) => value !== undefined && !Object.hasOwn(names, name),
  )?.[0]
  if (unknown === undefined) return
  const known = Object.keys(names).join(', ')
  throw new SlidegateError(code, `${show(unknown)} is no option of ${what}; there are ${known}`, unknown)
}

/** Whether it is an instance of a class, of any realm. */
function isInstance(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype !== null && Object.getPrototypeOf(prototype) !== null
}
