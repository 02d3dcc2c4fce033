import { sha256 } from '@noble/hashes/sha2.js'

const MAX_KEY_CHARS = 256

/**
 * A key cut out of a line, as a string of its own: what JavaScript cuts out of a string keeps all of it in
 * memory, and with it the whole chunk of the file. Very long ones are told apart by a hash, so that a log
 * cannot make a table of callers arbitrarily large.
 */
export function detachedKey(text: string): string {
  if (text.length <= MAX_KEY_CHARS) return detached(text)
  return `${detached(text.slice(0, 64))}~${base64url(sha256(new TextEncoder().encode(text)))}`
}

/** Cut anew, out of a text that is hardly longer. */
function detached(text: string): string {
  return ` ${text.toWellFormed()}`.slice(1)
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}
