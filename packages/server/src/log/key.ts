import { sha256 } from '@noble/hashes/sha2.js'

const MAX_KEY_CHARS = 256

/**
 * A key cut out of a line, as a string of its own: what JavaScript cuts out of a string keeps all of it in
 * memory, and with it the whole chunk of the file. Very long ones are told apart by a hash, so that a log
 * cannot make a table of callers arbitrarily large.
 */
export function detachedKey(text: string): string {
  if (text.length <= MAX_KEY_CHARS) return detached(text.toWellFormed())
  return `${detached(text.slice(0, 64).toWellFormed())}~${base64url(sha256(new TextEncoder().encode(text)))}`
}

/** A text that keeps no other in memory, of which it may have been a part: cut anew, out of one that is hardly longer. */
export function detached(text: string): string {
  return ` ${text}`.slice(1)
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}
