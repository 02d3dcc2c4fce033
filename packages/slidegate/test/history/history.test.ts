// tier: system
import { describe, expect, test } from 'vitest'
import type { KindName } from './declarations.ts'
import { playAtRandom } from './play.ts'
import type { Scale } from './scale.ts'
import { useStores } from './use-stores.ts'

// The same random history through an oracle of true events, through memory and through Redis: every field of
// every decision must be equal, so that nothing is admitted that should not be, and nothing denied.

const stores = useStores()

const WINDOWS: readonly KindName[] = ['sliding', 'sliding', 'sliding', 'fixed']

const SCALES: Record<string, Scale & { decisions: number }> = {
  'small limits, everything happening': {
    ...{ limit: 6, windowMs: 200, events: 60, longWaits: 5, kinds: WINDOWS },
    decisions: 1600,
  },
  'the clock set back now and then': {
    ...{ limit: 6, windowMs: 3000, events: 60, longWaits: 5, clockSteps: true, kinds: WINDOWS },
    decisions: 800,
  },
  'logs of hundreds of records, larger than one read': {
    ...{ limit: 400, windowMs: 2000, events: 900, longWaits: 1, kinds: WINDOWS },
    decisions: 1200,
  },
  'several windows on one long log': {
    ...{ limit: 300, windowMs: 1000, events: 900, longWaits: 1, oneLog: true, kinds: ['sliding'] },
    decisions: 1200,
  },
  'several windows on one short log': {
    ...{ limit: 20, windowMs: 100, events: 100, longWaits: 4, oneLog: true, kinds: ['sliding'] },
    decisions: 1200,
  },
  'bursts, of which many records leave at once': {
    ...{ limit: 50, windowMs: 100, events: 30, longWaits: 4, oneLog: true, burst: 40, kinds: ['sliding'] },
    decisions: 1200,
  },
  'bursts in grains, the clock set back': {
    ...{ limit: 30, windowMs: 300, events: 30, longWaits: 4, clockSteps: true, burst: 25, kinds: WINDOWS },
    decisions: 600,
  },
}

describe('memory, Redis and the oracle agree in every field of every decision', () => {
  test.for(Object.entries(SCALES))('%s', async ([, { decisions, ...scale }]) => {
    expect(await playAtRandom(scale, stores, decisions)).toBeGreaterThanOrEqual(decisions)
  })
})
