// Keys of callers, and how they are stored.
import { invalidOption, SlidegateError, type SlidegateErrorCode, show } from './errors.ts'
import { hmacSha256, sha256, utf8 } from './runtime/platform.ts'

/** The keys of a request by dimension, `null` if it has none of that dimension. */
export type Keys<Dimension extends string = string> = Readonly<Record<Dimension, string | null>>

/** The key of a request, or its keys. */
export type AnyKey = string | Keys

/** Options of methods about a key. */
export interface KeyOptions {
  /** Passed to `limits` when it is a function. */
  readonly request?: unknown
}

export const MAX_KEY_BYTES: number = 64 * 1024

const MAX_PLAIN_LENGTH = 128
const EXCLAMATION_MARK = 0x21
const TILDE = 0x7e

const MIN_SECRET_BYTES = 16
/** Of base64url, with 6 bits each. */
const HASH_LENGTH = 22

/** How keys, ids and values are stored. They are never parsed. */
export interface KeyEncoding {
  /** Whether the text can't be told from its stored form. */
  readonly isSecret: boolean
  /** Whether a key that the store has under this very text is stored as given. Its characters needn't be checked again. */
  isSame(key: unknown): key is string
  /** @throws {SlidegateError} `invalid_key` unless it is a non-empty well-formed string of up to 64 KiB in UTF-8 */
  key(key: unknown): string
  /** The same for any other text, named `what` in errors. */
  text(text: unknown, what: string, code: SlidegateErrorCode): string
}

/** As it is if it is short and printable, else `~` and its SHA-256. */
export const plainEncoding: KeyEncoding = {
  isSecret: false,
  isSame: (key): key is string => typeof key === 'string' && key.charCodeAt(0) !== TILDE,
  key: storedKey,
  text: storedText,
}

/**
 * `~` and the first 132 bits of its HMAC-SHA-256 (RFC 2104).
 *
 * @throws {SlidegateError} `invalid_option` unless the secret has 16 bytes or more
 */
function hashedEncoding(secret: unknown): KeyEncoding {
  const mac = hmacSha256(secretBytes(secret))
  const text: KeyEncoding['text'] = (given, what, code) => {
    checkText(given, what, code)
    // A value and a key of the same text must differ.
    return `~${mac(`${what}:${given}`).slice(0, HASH_LENGTH)}`
  }
  const isSame = (_: unknown): _ is string => false
  return { isSecret: true, isSame, key: (given) => text(given, 'key', 'invalid_key'), text }
}

/**
 * The encoding by a limiter's options. A secret that is given but undefined, like an environment variable that isn't set, must
 * not lead to plain keys unnoticed.
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
    // The error must not show the secret.
    const what = bytes === undefined ? `of type ${typeof secret}` : `${bytes.length} bytes`
    throw invalidOption(
      `the secret of hashKeys is ${what}; it must be a string or bytes, ${MIN_SECRET_BYTES} bytes or more`,
    )
  }
  return bytes
}

/** Whether a text can be the stored form of any. */
export function isStored(text: string): boolean {
  return isPlain(text) || /^~[A-Za-z0-9_-]{1,43}$/.test(text)
}

/** A caller's key by {@link plainEncoding}. */
export function storedKey(key: unknown): string {
  return typeof key === 'string' && isPlain(key) ? key : storedText(key, 'key', 'invalid_key')
}

function storedText(text: unknown, what: string, code: SlidegateErrorCode): string {
  if (typeof text === 'string' && isPlain(text)) return text
  checkText(text, what, code)
  return `~${sha256(text as string)}`
}

function checkText(text: unknown, what: string, code: SlidegateErrorCode): void {
  const invalid = (message: string) => new SlidegateError(code, message, text)
  if (typeof text !== 'string') throw invalid(`the ${what} is ${show(text)}; it must be a string`)
  if (text === '') throw invalid(`the ${what} is empty; it must be at least one character`)
  if (isTooLong(text)) {
    throw invalid(`the ${what} has more than ${MAX_KEY_BYTES} bytes of UTF-8: ${show(text)}`)
  }
  if (!text.isWellFormed()) throw invalid(`the ${what} has a lone surrogate: ${show(text)}`)
}

/** The length in UTF-16 units is known: each takes one to three bytes. */
function isTooLong(text: string): boolean {
  if (text.length > MAX_KEY_BYTES) return true
  return text.length > MAX_KEY_BYTES / 3 && utf8(text).length > MAX_KEY_BYTES
}

/** Short, printable ASCII without spaces, that doesn't look like a hash. A loop takes half of a pattern's time. */
function isPlain(key: string): boolean {
  if (key === '' || key.length > MAX_PLAIN_LENGTH || key.charCodeAt(0) === TILDE) return false
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i)
    if (code < EXCLAMATION_MARK || code > TILDE) return false
  }
  return true
}

/**
 * Joins parts, such as a user and a route, into a key that no other parts have.
 *
 * @throws {SlidegateError} `invalid_key` unless there are parts, all of them non-empty strings
 */
export function tupleKey(...parts: readonly string[]): string {
  if (parts.length === 0)
    throw new SlidegateError('invalid_key', 'the key has no parts; it must have one at least')
  return parts
    .map((part) => {
      if (typeof part === 'string' && part !== '') return part.replaceAll('%', '%25').replaceAll('|', '%7C')
      throw new SlidegateError(
        'invalid_key',
        `a part of the key is ${show(part)}; it must be a string of at least one character`,
        part,
      )
    })
    .join('|')
}
