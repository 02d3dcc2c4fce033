// tier: system
import { describe, expect, test } from 'vitest'
import type { KindName } from './declarations.ts'
import { playAtRandom } from './play.ts'
import type { Scale } from './scale.ts'
import { useStores } from './use-stores.ts'

// The same random history runs through an oracle that counts events, through memory and through Redis. Every field of
// every decision must be equal, so nothing is admitted or denied wrongly.

const stores = useStores()

const WINDOWS: readonly KindName[] = ['sliding', 'sliding', 'sliding', 'fixed']

const SCALES: Record<string, Scale & { decisions: number }> = {
  'with small limits and all events': {
    ...{ limit: 6, windowMs: 200, events: 60, longWaits: 5, kinds: WINDOWS },
    decisions: 1600,
  },
  'with a clock that is set back': {
    ...{ limit: 6, windowMs: 3000, events: 60, longWaits: 5, clockSteps: true, kinds: WINDOWS },
    decisions: 800,
  },
  'with logs of hundreds of records, longer than one read': {
    ...{ limit: 400, windowMs: 2000, events: 900, longWaits: 1, kinds: WINDOWS },
    decisions: 1200,
  },
  'with several windows on one long log': {
    ...{ limit: 300, windowMs: 1000, events: 900, longWaits: 1, oneLog: true, kinds: ['sliding'] },
    decisions: 1200,
  },
  'with several windows on one short log': {
    ...{ limit: 20, windowMs: 100, events: 100, longWaits: 4, oneLog: true, kinds: ['sliding'] },
    decisions: 1200,
  },
  'with bursts whose records expire together': {
    ...{ limit: 50, windowMs: 100, events: 30, longWaits: 4, oneLog: true, burst: 40, kinds: ['sliding'] },
    decisions: 1200,
  },
  'with bursts, coarse grains and a clock that is set back': {
    ...{ limit: 30, windowMs: 300, events: 30, longWaits: 4, clockSteps: true, burst: 25, kinds: WINDOWS },
    decisions: 600,
  },
}

describe('memory, Redis and the oracle return equal decisions', () => {
  test.for(Object.entries(SCALES))('%s', async ([, { decisions, ...scale }]) => {
    expect(await playAtRandom(scale, stores, decisions)).toBeGreaterThanOrEqual(decisions)
  })
})
