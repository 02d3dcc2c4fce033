// The library's errors, and how their messages show values.
import type { Decision } from './decision.ts'

/** Why input was rejected. A denial isn't an error, see {@link Decision}. */
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

// Registered symbols, so that two copies of the package in one process recognize each other's errors.
const slidegateError = Symbol.for('slidegate.SlidegateError')
const storeUnavailableError = Symbol.for('slidegate.StoreUnavailableError')
const waitError = Symbol.for('slidegate.WaitError')

/** Invalid input or wrong use. `value` is the rejected value; the message says what is allowed. */
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

/** For invalid options that have no code of their own. */
export function invalidOption(message: string, value?: unknown): SlidegateError {
  return new SlidegateError('invalid_option', message, value)
}

/**
 * Why the store didn't answer:
 * - `timeout`: the limiter's `timeoutMs` passed; the request may have been charged
 * - `error`: the store returned an error or couldn't be reached, see `cause`
 * - `down`: it failed too often; the circuit breaker is open
 * - `overload`: too many requests are waiting for it, in total or for this key
 * - `invalid_state`: the key's stored state is damaged, or its version is unknown
 * - `full`: a memory store in which every key is at its limit
 */
export type StoreUnavailableReason = 'timeout' | 'error' | 'down' | 'overload' | 'full' | 'invalid_state'

/** The store didn't answer. Not a denial: the request may be within its limits. */
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

/** Wraps any error of a store in a {@link StoreUnavailableError}. */
export function asUnavailable(error: unknown, store = 'the store'): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : show(error)
  return new StoreUnavailableError('error', `${store} failed: ${message}`, { cause: error })
}

/** Why a store didn't answer, if its connection knows. */
export interface Diagnosis {
  /** For example `Redis at 127.0.0.1:6379 did not answer`. */
  readonly message: string
  /** The connection's last error. */
  readonly cause?: Error | undefined
}

export function noAnswer({ message, cause }: Diagnosis, withinMs: number): StoreUnavailableError {
  const why = cause === undefined ? '' : ` (${cause.message})`
  return new StoreUnavailableError('timeout', `${message} within ${withinMs} ms${why}`, cause && { cause })
}

/**
 * Copies only the message and code of an error.
 *
 * Redis clients attach commands to their errors, with keys and passwords. A stack would keep the failed request in memory.
 */
export function plainError(error: unknown): Error {
  const { message, code, errors } = (error ?? {}) as {
    readonly message?: unknown
    readonly code?: unknown
    readonly errors?: readonly unknown[]
  }
  // Connecting to a host with several addresses fails with one error per address, and an empty message.
  if (message === '' && Array.isArray(errors) && errors.length > 0) return plainError(errors.at(-1))
  const plain = new Error(typeof message === 'string' && message !== '' ? message : show(code ?? error))
  plain.stack = `Error: ${plain.message}`
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain
}

/**
 * Why a request wasn't admitted by `wait`:
 * - `full`: the limiter's `maxWaiting` is reached
 * - `timeout`: there is no room within `maxWaitMs`
 * - `aborted`: its `signal` was aborted; the signal's reason is the error's `cause`
 * - `impossible`: the cost exceeds a limit, or the key is blocked indefinitely
 */
export type WaitErrorReason = 'full' | 'timeout' | 'aborted' | 'impossible'

/** A waiting request wasn't admitted. Nothing was charged. */
export class WaitError extends Error {
  override readonly name = 'WaitError'
  readonly code = 'wait_rejected'
  readonly reason: WaitErrorReason
  /** The key's last denial while waiting in this process, if any. Its times count from its `atMs`. */
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

/** Whether an error has this brand. It may come from another copy of the package. */
export function isBranded(candidate: unknown, brand: symbol): boolean {
  return typeof candidate === 'object' && candidate !== null && brand in candidate
}

/** Formats a value for an error message, shortened. */
export function show(value: unknown): string {
  if (typeof value === 'string')
    return value.length > SHOWN ? `${JSON.stringify(value.slice(0, SHOWN))}...` : JSON.stringify(value)
  if (typeof value === 'object' && value !== null) return kindOf(value)
  if (typeof value === 'function') return 'a function'
  // Symbols and bigints can be long, too.
  const text = String(value)
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text
}

const SHOWN = 64

function kindOf(value: object): string {
  try {
    if (value instanceof Promise) return 'a promise'
    return Array.isArray(value) ? 'an array' : 'an object'
  } catch {
    // A revoked proxy throws.
    return 'an object'
  }
}

/** All option names. */
export type Names<Options> = Readonly<Record<keyof Options, true>>

/** @throws {SlidegateError} `invalid_option` if the options aren't an object or have an unknown name */
export function checkOptions<Options>(options: Options, what: string, names: Names<Options>): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(`the options of ${what} are ${show(options)}; they must be an object`, options)
  }
  checkNames(options, names, 'invalid_option', what)
}

/** Rejects unknown names, which may be misspelled. Class instances may have any properties. */
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
  throw new SlidegateError(
    code,
    `unknown option ${show(unknown)} for ${what}; expected one of: ${known}`,
    unknown,
  )
}

/** Whether a value is a class instance, of any realm. */
function isInstance(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype !== null && Object.getPrototypeOf(prototype) !== null
}
