import type { KindName } from './declarations.ts'
import type { Ruled } from './oracle.ts'

/** Abilities of kinds. HELD issue permits, FOUND find requests by id, WHOLE refund a request only as a whole. */
export const HELD: readonly KindName[] = ['concurrency']
export const FOUND: readonly KindName[] = ['zset', 'concurrency']
export const WHOLE: readonly KindName[] = ['zset', 'stream', 'concurrency']
export const VALUED: readonly KindName[] = ['distinct']
export const LISTED: readonly KindName[] = [...WHOLE, ...VALUED]

export function isAny(ruled: readonly Ruled[], kinds: readonly KindName[]): boolean {
  return ruled.some(({ kind }) => kinds.includes(kind))
}

/** Returns the units of a request with this cost. A value is one unit. */
export function unitsOf(ruled: readonly Ruled[], cost: number): number {
  return isAny(ruled, VALUED) ? 1 : cost
}
