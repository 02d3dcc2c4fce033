import { createHash } from 'node:crypto'
import { SlidegateError, type SlidegateErrorCode, show } from './errors.ts'

const MAX_KEY_BYTES = 64 * 1024

const MAX_PLAIN_LENGTH = 128
const EXCLAMATION_MARK = 0x21
const TILDE = 0x7e

/**
 * A caller's key as it is stored: as it is where it is short and printable, else `~` and its SHA-256. Nothing
 * in a key is ever parsed.
 *
 * @throws {SlidegateError} `invalid_key` unless it is a non-empty well-formed string of up to 64 KiB in UTF-8
 */
export function storedKey(key: unknown): string {
  return typeof key === 'string' && isPlain(key) ? key : storedText(key, 'key', 'invalid_key')
}

/** Any other text that a caller has chosen, as it is stored, in the same way. `what` says what it is, in errors. */
export function storedText(key: unknown, what: string, code: SlidegateErrorCode): string {
  const invalid = (message: string) => new SlidegateError(code, message, key)
  if (typeof key !== 'string') throw invalid(`the ${what} is ${show(key)}; it must be a string`)
  if (isPlain(key)) return key
  if (key === '') throw invalid(`the ${what} is empty; it must be at least one character`)
  // The length in UTF-16 units comes first: it is never above the bytes, and costs nothing to ask.
  if (key.length > MAX_KEY_BYTES || Buffer.byteLength(key) > MAX_KEY_BYTES) {
    throw invalid(`the ${what} has more than ${MAX_KEY_BYTES} bytes of UTF-8: ${show(key)}`)
  }
  if (!key.isWellFormed()) throw invalid(`the ${what} has a lone surrogate: ${show(key)}`)
  return `~${createHash('sha256').update(key).digest('base64url')}`
}

/** Short, printable ASCII without spaces, and not to be mistaken for a hash. A loop takes half of a pattern's time. */
function isPlain(key: string): boolean {
  if (key === '' || key.length > MAX_PLAIN_LENGTH || key.charCodeAt(0) === TILDE) return false
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i)
    if (code < EXCLAMATION_MARK || code > TILDE) return false
  }
  return true
}
