import { createHash } from 'node:crypto'

const MAX_KEY_CHARS = 256

/**
 * A key cut out of a line, as a string of its own: what JavaScript cuts out of a string keeps all of it in
 * memory, and with it the whole chunk of the file. Very long ones are told apart by a hash, so that a log
 * cannot make a table of callers arbitrarily large.
 */
export function detachedKey(text: string): string {
  if (text.length <= MAX_KEY_CHARS) return Buffer.from(text).toString()
  return `${Buffer.from(text.slice(0, 64))}~${createHash('sha256').update(text).digest('base64url')}`
}
