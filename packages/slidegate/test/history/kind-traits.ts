import type { KindName } from './declarations.ts'
import type { Ruled } from './oracle.ts'

/** Kinds for which there are permits; that find requests by their ids; that return a request as a whole or not at all. */
export const HELD: readonly KindName[] = ['concurrency']
export const FOUND: readonly KindName[] = ['zset', 'concurrency']
export const WHOLE: readonly KindName[] = ['zset', 'stream', 'concurrency']
export const VALUED: readonly KindName[] = ['distinct']
export const LISTED: readonly KindName[] = [...WHOLE, ...VALUED]

export function isAny(ruled: readonly Ruled[], kinds: readonly KindName[]): boolean {
  return ruled.some(({ kind }) => kinds.includes(kind))
}

/** What a request of some cost takes: a value is one unit. */
export function unitsOf(ruled: readonly Ruled[], cost: number): number {
  return isAny(ruled, VALUED) ? 1 : cost
}
