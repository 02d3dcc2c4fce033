import { createHash } from 'node:crypto'
import { SlidegateError, show } from './errors.ts'

const MAX_KEY_BYTES = 64 * 1024

/** Short, printable ASCII without spaces, and not to be mistaken for a hash. */
const PLAIN = /^[!-}][!-~]{0,127}$/

/**
 * A caller's key as it is stored: as it is where it is short and printable, else `~` and its SHA-256. Nothing
 * in a key is ever parsed.
 *
 * @throws {SlidegateError} `invalid_key` unless it is a non-empty well-formed string of up to 64 KiB in UTF-8
 */
export function storedKey(key: unknown): string {
  if (typeof key !== 'string') throw invalidKey(key, `the key is ${show(key)}; it must be a string`)
  if (PLAIN.test(key)) return key
  if (key === '') throw invalidKey(key, 'the key is empty; it must name whom the limit counts')
  // The length in UTF-16 units comes first: it is never above the bytes, and costs nothing to ask.
  if (key.length > MAX_KEY_BYTES || Buffer.byteLength(key) > MAX_KEY_BYTES) {
    throw invalidKey(key, `the key has more than ${MAX_KEY_BYTES} bytes of UTF-8: ${show(key)}`)
  }
  if (!key.isWellFormed()) throw invalidKey(key, `the key has a lone surrogate: ${show(key)}`)
  return `~${createHash('sha256').update(key).digest('base64url')}`
}

function invalidKey(key: unknown, message: string): SlidegateError {
  return new SlidegateError('invalid_key', message, key)
}
