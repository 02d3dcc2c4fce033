import fc from 'fast-check'
import { test } from 'vitest'
import { memoryStore } from '../../../src/index.ts'
import { keyedHistoryOf } from '../../history/keyed-histories.ts'
import { playKeyed } from '../../history/keyed-play.ts'
import type { StoreOf } from '../../history/play.ts'
import { KEYED } from '../scales.ts'

// A short version of test/history for limiters of several keys: see histories.ts.

const memory: Record<string, StoreOf> = { memory: (clock) => memoryStore({ clock: clock.now }) }

test.for(Object.entries(KEYED))('random histories of keys: %s', async ([, scale]) => {
  const property = fc.asyncProperty(keyedHistoryOf(scale), (history) =>
    playKeyed(history, memory).then(() => {}),
  )
  await fc.assert(property, { numRuns: 4 })
})
