import { describe, expect, it } from 'vitest'
import { Oracle } from '../src/http/oracle.ts'

/** Counts the right decisions for one user with a limit of 2 per 100 ms. */
function rightOf(...decisions: readonly (readonly [atMs: number, isAdmitted: boolean])[]): number {
  const oracle = new Oracle({ limit: 2, windowMs: 100 })
  for (const [atMs, isAdmitted] of decisions) oracle.record('ann', isAdmitted, atMs)
  return oracle.judge().right
}

describe('the oracle', () => {
  it('accepts decisions that keep the limit in every window', () => {
    expect(rightOf([0, true], [50, true], [99, false], [100, true], [149, false], [150, true])).toBe(6)
  })

  it('rejects an admission above the limit', () => {
    expect(rightOf([0, true], [99, true], [99, true])).toBe(2)
  })

  it('rejects a needless denial', () => {
    expect(rightOf([0, true], [1, false], [100, false])).toBe(1)
  })

  it('counts all admissions, right or wrong', () => {
    expect(rightOf([0, true], [90, true], [95, true], [150, false])).toBe(3)
  })

  it('judges users separately, and each decision once', () => {
    const oracle = new Oracle({ limit: 1, windowMs: 100 })
    oracle.record('ann', true, 0)
    oracle.record('bob', true, 0)
    oracle.record('ann', true, 1)
    expect(oracle.judge()).toEqual({ decisions: 3, right: 2 })
    expect(oracle.judge()).toEqual({ decisions: 0, right: 0 })
  })
})
