const WHOLE = 2 ** 32

/**
 * Whether requests of this key belong to a sample of so large a share of all keys: all of them, or none. The same in all
 * processes, so that a key that is seen by several is in the sample of each.
 */
export function isSampled(key: string, share: number): boolean {
  return share >= 1 || spread(key) < share * WHOLE
}

/** FNV-1a, and the finish of MurmurHash3: keys that differ little are as far apart as others. */
function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
