import { limitsOf } from './outcome.ts'
import type { Part } from './store.ts'

/** The numbers of limits that were not looked at: as of keys of which nothing is known. */
export function zerosFor(parts: readonly Part[]): number[] {
  return new Array<number>(3 * limitsOf(parts).length).fill(0)
}
