// The library's errors, and how their messages show values.
import type { Decision } from './decision.ts'

/** Why input was rejected. A denial isn't an error; see {@link Decision}. */
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

// Registered symbols let several copies of the package in one process recognize each other's errors.
const slidegateError = Symbol.for('slidegate.SlidegateError')
const storeUnavailableError = Symbol.for('slidegate.StoreUnavailableError')
const waitError = Symbol.for('slidegate.WaitError')

/** Invalid input or incorrect use. `value` is the rejected value, and the message describes allowed values. */
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

/** Creates the error for an invalid option that has no error code of its own. */
export function invalidOption(message: string, value?: unknown): SlidegateError {
  return new SlidegateError('invalid_option', message, value)
}

/**
 * Why the store didn't answer:
 * - `timeout`: the limiter's `timeoutMs` passed; the request may have been charged
 * - `error`: the store returned an error or couldn't be reached; see `cause`
 * - `down`: the store failed too often; the circuit breaker is open
 * - `overload`: too many requests are waiting for the store, in total or for this key
 * - `invalid_state`: the key's stored state is damaged, or its version is unknown
 * - `full`: the memory store is full, and every key in it is at its limit
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

/** Wraps any error from a store in a {@link StoreUnavailableError}. */
export function asUnavailable(error: unknown, store = 'the store'): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : show(error)
  return new StoreUnavailableError('error', `${store} failed: ${message}`, { cause: error })
}

/** A connection's explanation of why the store didn't answer. */
export interface Diagnosis {
  readonly message: string
  readonly cause?: Error | undefined
}

/** The error for a request that got no answer. */
export function noAnswer({ message, cause }: Diagnosis, withinMs: number): StoreUnavailableError {
  if (cause !== undefined) return withReason('timeout', message, cause)
  return new StoreUnavailableError('timeout', `${message} within ${withinMs} ms`)
}

/** The error for a request that couldn't be sent. Errors from `fetch` have the reason in their `cause`. */
export function noConnection(store: string, cause: unknown, why: unknown = cause): StoreUnavailableError {
  return withReason('error', `no connection to ${store}`, cause, why)
}

function withReason(
  reason: StoreUnavailableReason,
  message: string,
  cause: unknown,
  why: unknown = cause,
): StoreUnavailableError {
  const isKnown = (address: string) => message.includes(address.trim())
  const short = plainError(why).message.replace(/ \S+$/, (last) => (isKnown(last) ? '' : last))
  return new StoreUnavailableError(reason, `${message} (${short})`, { cause })
}

/**
 * Copies only the message and code of an error.
 *
 * Redis clients attach commands to their errors, including keys and passwords. A stack would keep the failed request in
 * memory.
 */
export function plainError(error: unknown): Error {
  const { message, code, errors } = (error ?? {}) as {
    readonly message?: unknown
    readonly code?: unknown
    readonly errors?: readonly unknown[]
  }
  // If a host has several addresses, a connection error contains one error per address, and its message is empty.
  if (message === '' && Array.isArray(errors) && errors.length > 0) return plainError(errors.at(-1))
  const plain = new Error(typeof message === 'string' && message !== '' ? message : show(code ?? error))
  plain.stack = `Error: ${plain.message}`
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain
}

/**
 * Why a request wasn't admitted by `wait`:
 * - `full`: the limiter's `maxWaiting` has been reached
 * - `timeout`: there is no room within `maxWaitMs`
 * - `aborted`: the request's `signal` was aborted; the signal's reason is the error's `cause`
 * - `impossible`: the cost exceeds a limit, or the key is blocked indefinitely
 */
export type WaitErrorReason = 'full' | 'timeout' | 'aborted' | 'impossible'

/** A waiting request wasn't admitted. Nothing was charged. */
export class WaitError extends Error {
  override readonly name = 'WaitError'
  readonly code = 'wait_rejected'
  readonly reason: WaitErrorReason
  /** The key's last denial while the request waited in this process, if any. Its times are relative to its `atMs`. */
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

/** Whether an error is marked with this symbol. The error may come from another copy of the package. */
export function isBranded(candidate: unknown, brand: symbol): boolean {
  return isObject(candidate) && brand in candidate
}

/** Whether a value is an object, an array or a class instance. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Formats a value for an error message, shortened. */
export function show(value: unknown): string {
  if (typeof value === 'string')
    return value.length > SHOWN ? `${JSON.stringify(value.slice(0, SHOWN))}...` : JSON.stringify(value)
  if (isObject(value)) return kindOf(value)
  if (typeof value === 'function') return 'a function'
  // Symbols and bigints can be long, too.
  const text = String(value)
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text
}

const SHOWN = 64

function kindOf(value: object): string {
  try {
    if (value instanceof Promise) return 'a promise'
    return Array.isArray(value) ? `an array of ${value.length}` : 'an object'
  } catch {
    // Array.isArray throws for a revoked proxy.
    return 'an object'
  }
}

/** All option names. */
export type Names<Options> = Readonly<Record<keyof Options, true>>

/** @throws {SlidegateError} `invalid_option` if the options aren't an object or have an unknown name */
export function checkOptions<Options>(options: Options, what: string, names: Names<Options>): void {
  if (!isObject(options)) {
    throw invalidOption(`the options for ${what} are ${show(options)}; they must be an object`, options)
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
  const known = Object.keys(names)
  const near = known.find((name) => isNear(unknown, name))
  const right = near === undefined ? `expected one of: ${known.join(', ')}` : `did you mean "${near}"?`
  throw new SlidegateError(code, `unknown option ${show(unknown)} for ${what}; ${right}`, unknown)
}

/** Whether a name has all the letters in a word and a similar length. Ignores case and order. */
function isNear(word: string, name: string): boolean {
  const hasAll = [...word.toLowerCase()].every((letter) => name.toLowerCase().includes(letter))
  return hasAll && Math.abs(name.length - word.length) <= word.length / 3
}

/** Whether a value is a class instance, from any realm. */
function isInstance(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype !== null && Object.getPrototypeOf(prototype) !== null
}

/** @throws {SlidegateError} `invalid_option` */
export function checkTimeout(timeoutMs: number): void {
  checkInteger('timeoutMs', timeoutMs, 1, 2 ** 31 - 1)
}

/** @throws {SlidegateError} with this code if the value isn't an integer in this range */
export function checkInteger(
  name: string,
  value: unknown,
  least: number,
  most: number,
  code?: SlidegateErrorCode,
): void {
  const isRight = Number.isInteger(value) && (value as number) >= least && (value as number) <= most
  checkThat(isRight, name, value, `an integer from ${least} to ${most}`, code)
}

/** Rejects an invalid value. The error describes valid values. */
export function checkThat(
  isRight: boolean,
  what: string,
  value: unknown,
  right: string,
  code: SlidegateErrorCode = 'invalid_option',
): asserts isRight {
  if (!isRight) throw wrongValue(what, value, right, code)
}

/** The error for an invalid value. */
export function wrongValue(
  what: string,
  value: unknown,
  right: string,
  code: SlidegateErrorCode = 'invalid_option',
): SlidegateError {
  return new SlidegateError(code, `${what} is ${show(value)}; it must be ${right}`, value)
}
