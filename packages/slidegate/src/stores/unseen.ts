import { limitsOf } from '../decision.ts'
import type { ConsumeOutcome, Part, RequestOp } from './store.ts'

/** The numbers of limits that were not looked at: as of keys of which nothing is known. */
export function zerosFor(parts: readonly Part[]): number[] {
  return new Array<number>(3 * limitsOf(parts).length).fill(0)
}

/** The limits of a key that is blocked are not looked at. */
export function blockedOutcome({ parts }: RequestOp, atMs: number, blockedMs: number): ConsumeOutcome {
  const limits = zerosFor(parts)
  return { source: 'store', atMs, admitted: 0, limits, waitMs: 0, blockedMs, isUnseen: true }
}
