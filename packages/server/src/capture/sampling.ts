import { keyHash } from '../admin/key-hash.ts'

const WHOLE = 2 ** 32

/**
 * Whether requests of this key belong to a sample of so large a share of all keys: all of them, or none. The same in all
 * processes, so that a key that is seen by several is in the sample of each.
 */
export function isSampled(key: string, share: number): boolean {
  return share >= 1 || keyHash(key) >>> 0 < share * WHOLE
}
