// Hashes of callers' text, and keys that are safe to use in a Map.

/** The FNV-1a hash of a text's UTF-16 units. `from` is a seed, or the hash of the preceding text. */
export function textHash(text: string, from: number): number {
  let hash = from
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** The longest text that V8 may treat as an array index. */
const MAX_INDEX_LENGTH = 10

const ZERO = 0x30
const NINE = 0x39
const MARK = '#'

/**
 * Makes a caller's text safe to use as a key of a `Map`.
 *
 * V8 hashes text with a secret. But before Node 20.20.2, 22.22.2, 24.14.1 and 25.8.2, a decimal number of up to 32 bits
 * was its own hash (CVE-2026-21717). A caller could put thousands of such keys into one bucket, which every lookup
 * would then search. So these keys get a prefix.
 */
export function mapKey(text: string): string {
  // Most keys start with a letter.
  if (text.charCodeAt(0) > NINE) return text
  return isIndex(text) || text.startsWith(MARK) ? MARK + text : text
}

/** Also matches text with leading zeros, which is harmless. */
function isIndex(text: string): boolean {
  if (text.length > MAX_INDEX_LENGTH) return false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < ZERO || code > NINE) return false
  }
  return true
}
