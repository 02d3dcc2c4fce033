// Callers' keys, and how they are stored.
import { checkThat, invalidOption, SlidegateError, type SlidegateErrorCode, show } from './errors.ts'
import { hmacSha256, sha256, utf8 } from './runtime/platform.ts'

/** A request's keys by dimension. A key is `null` if the request has none in that dimension. */
export type Keys<Dimension extends string = string> = Readonly<Record<Dimension, string | null>>

/** A request's key, or its keys by dimension. */
export type AnyKey = string | Keys

/** Options for methods that take a key. */
export interface KeyOptions {
  /** Passed to the `limits` function, if `limits` is one. */
  readonly request?: unknown
}

export const MAX_KEY_BYTES: number = 64 * 1024

const MAX_PLAIN_LENGTH = 128
const EXCLAMATION_MARK = 0x21
const TILDE = 0x7e

const MIN_SECRET_BYTES = 16
/** Length in base64url characters of 6 bits each. */
const HASH_LENGTH = 22

/** How keys, ids and values are stored. The stored form is never parsed. */
export interface KeyEncoding {
  /** Whether the stored form hides the text. */
  readonly isSecret: boolean
  /** Whether the caller's key can be looked up without encoding it first. Checks only the first character. */
  isSame(key: unknown): key is string
  /**
   * Returns the stored form of a key, id or value.
   *
   * @param what names the text in errors. Default: `key`.
   * @throws {SlidegateError} `code` (default: `invalid_key`) unless the text is non-empty, well-formed and up to 64 KiB in UTF-8
   */
  key(text: unknown, what?: string, code?: SlidegateErrorCode): string
}

/** Stores short, printable text unchanged, and everything else as `~` and its SHA-256. */
export const plainEncoding: KeyEncoding = {
  isSecret: false,
  isSame: (key): key is string => typeof key === 'string' && key.charCodeAt(0) !== TILDE,
  key: storedKey,
}

/**
 * Stores `~` and the first 132 bits of the text's HMAC-SHA-256 (RFC 2104).
 *
 * @throws {SlidegateError} `invalid_option` if the secret has fewer than 16 bytes
 */
function hashedEncoding(secret: unknown): KeyEncoding {
  const mac = hmacSha256(secretBytes(secret))
  return {
    isSecret: true,
    isSame: (_): _ is string => false,
    key(text, what = 'key', code = 'invalid_key') {
      checkText(text, what, code)
      // A value and a key with the same text must have different hashes.
      return `~${mac(`${what}:${text}`).slice(0, HASH_LENGTH)}`
    },
  }
}

/**
 * Returns the encoding that a limiter's options select.
 *
 * If the secret is undefined, for example because an environment variable isn't set, this throws instead of silently
 * storing plain keys.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function encodingBy(options: { readonly hashKeys?: string | Uint8Array }): KeyEncoding {
  return 'hashKeys' in options ? hashedEncoding(options.hashKeys) : plainEncoding
}

function secretBytes(secret: unknown): Uint8Array {
  const given = secret instanceof Uint8Array ? secret : undefined
  const bytes = typeof secret === 'string' ? utf8(secret) : given
  if (bytes === undefined || bytes.length < MIN_SECRET_BYTES) {
    // The error must not contain the secret.
    const what = bytes === undefined ? `a value of type ${typeof secret}` : `${bytes.length} bytes`
    throw invalidOption(
      `the hashKeys secret is ${what}; it must be a string or Uint8Array of ${MIN_SECRET_BYTES} bytes or more`,
    )
  }
  return bytes
}

/** Whether a text could be the stored form of a key, id or value. */
export function isStored(text: string): boolean {
  return isPlain(text) || /^~[A-Za-z0-9_-]{1,43}$/.test(text)
}

/** Returns the stored form of a text in {@link plainEncoding}. */
export function storedKey(text: unknown, what = 'key', code: SlidegateErrorCode = 'invalid_key'): string {
  if (typeof text === 'string' && isPlain(text)) return text
  checkText(text, what, code)
  return `~${sha256(text as string)}`
}

function checkText(text: unknown, what: string, code: SlidegateErrorCode): void {
  const invalid = (message: string) => new SlidegateError(code, message, text)
  if (typeof text !== 'string') throw invalid(`the ${what} is ${show(text)}; it must be a string`)
  if (text === '') throw invalid(`the ${what} is empty; it must be a non-empty string`)
  if (isTooLong(text)) {
    throw invalid(`the ${what} has more than ${MAX_KEY_BYTES} bytes of UTF-8: ${show(text)}`)
  }
  if (!text.isWellFormed()) throw invalid(`the ${what} has a lone surrogate: ${show(text)}`)
}

/** Checks the length in UTF-16 units first. Each unit takes one to three bytes in UTF-8. */
function isTooLong(text: string): boolean {
  if (text.length > MAX_KEY_BYTES) return true
  return text.length > MAX_KEY_BYTES / 3 && utf8(text).length > MAX_KEY_BYTES
}

/** Whether a key is short, printable ASCII without spaces, and isn't a hash. Twice as fast as a regular expression. */
function isPlain(key: string): boolean {
  if (key === '' || key.length > MAX_PLAIN_LENGTH || key.charCodeAt(0) === TILDE) return false
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i)
    if (code < EXCLAMATION_MARK || code > TILDE) return false
  }
  return true
}

/**
 * Joins parts, such as a user and a route, into a unique key.
 *
 * @throws {SlidegateError} `invalid_key` if there are no parts, or if one is empty or not a string
 */
export function tupleKey(...parts: readonly string[]): string {
  if (parts.length === 0) throw new SlidegateError('invalid_key', 'the key has no parts; pass at least one')
  const escaped = parts.map((part) => {
    const isRight = typeof part === 'string' && part !== ''
    checkThat(isRight, 'a part of the key', part, 'a non-empty string', 'invalid_key')
    return part.replaceAll('%', '%25').replaceAll('|', '%7C')
  })
  return escaped.join('|')
}
