/** Of a text before which nothing comes. */
const HASH_BASIS = 0x811c9dc5

/**
 * 32 bits of a key, the same in all processes: sketches of several are joined by it. FNV-1a over its UTF-16 units, and the
 * finalizer of MurmurHash3, by which every bit depends on all of them.
 *
 * @param basis the hash of what comes before it
 */
export function keyHash(key: string, basis: number = HASH_BASIS): number {
  let hash = basis
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
