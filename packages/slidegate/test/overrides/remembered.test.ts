import { expect, it } from 'vitest'
import { slidingWindow } from '../../src/index.ts'
import { MAX_NOTES } from '../../src/limits/notes.ts'
import { KnownOverrides } from '../../src/overrides/known-overrides.ts'
import { limitsText, textOf } from '../../src/overrides/override-note.ts'

it(`limits that were read are made anew after ${2 * MAX_NOTES} others: no more are remembered`, () => {
  const known = new KnownOverrides(() => 0)
  let version = 0
  const inForce = (limit: number) => {
    const limits = [slidingWindow({ limit, window: '1m' })]
    const text = textOf({ key: 'k', dimension: undefined, limits: limitsText(limits), ttlMs: 0 })
    known.learn({ version: ++version, isAll: false, notes: [{ name: 'k', text, ttlMs: 0, ageMs: 0 }] })
    return known.of('k')
  }
  const first = inForce(1)
  for (let limit = 2; limit <= 2 * MAX_NOTES; limit++) inForce(limit)
  expect(inForce(1)).toBe(first)
  inForce(2 * MAX_NOTES + 1)
  expect(inForce(1)).not.toBe(first)
  expect(inForce(1)).toEqual(first)
})
