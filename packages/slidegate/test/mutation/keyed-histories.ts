import fc from 'fast-check'
import { test } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { KINDS, type KindName } from '../history/declarations.ts'
import { type KeyedScale, keyedHistoryOf } from '../history/keyed-histories.ts'
import { playKeyed } from '../history/keyed-play.ts'
import type { StoreOf } from '../history/play.ts'

// What test/history plays on limiters of several keys, in short: see histories.ts.

const memory: Record<string, StoreOf> = { memory: (clock) => memoryStore({ clock: clock.now }) }

const small: KeyedScale = {
  ...{ limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 2 },
  ...{ kinds: KINDS, dimensions: [1, 2, 3] },
}
const long: KeyedScale = { ...small, windowMs: 3000, clockSteps: true }
const SUMS: readonly KindName[] = ['sliding', 'fixed', 'calendar', 'firstHit', 'counter', 'bucket']

const KEYED: Record<string, KeyedScale> = {
  'several keys': { ...long, dimensions: [2, 3] },
  bans: { ...small, bans: true },
  'bans, the clock set back': { ...long, bans: true },
  reservations: { ...small, kinds: SUMS, reservations: true },
  'limits that change': { ...small, sets: [2, 3] },
  'limits of sums that change, the clock set back': { ...long, kinds: SUMS, sets: [2, 3] },
  'windows over one log that change': { ...small, kinds: ['sliding'], sets: [2, 3] },
  'reservations under limits that change': {
    ...{ ...small, kinds: SUMS, laterKinds: KINDS, sets: [2, 3], reservations: true },
  },
  overrides: { ...small, limits: 3, overrides: true },
  'overrides and bans, the clock set back': { ...long, overrides: true, bans: true },
  'all of it': { ...small, sets: [1, 2], bans: true, reservations: true, overrides: true },
}

test.for(Object.entries(KEYED))('random histories of keys: %s', async ([, scale]) => {
  const property = fc.asyncProperty(keyedHistoryOf(scale), async (history) => {
    await playKeyed(history, memory)
  })
  await fc.assert(property, { numRuns: 4 })
})
