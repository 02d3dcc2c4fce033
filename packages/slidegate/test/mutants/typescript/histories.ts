import fc from 'fast-check'
import { test } from 'vitest'
import { memoryStore } from '../../../src/index.ts'
import { historyOf } from '../../history/histories.ts'
import { play, type StoreOf } from '../../history/play.ts'
import { SCALES } from '../scales.ts'

// A short version of test/history: few histories with a fixed seed, in memory.

const memory: Record<string, StoreOf> = { memory: (clock) => memoryStore({ clock: clock.now }) }

test.for(Object.entries(SCALES))('random histories of one key: %s', async ([, scale]) => {
  const property = fc.asyncProperty(historyOf(scale), (history) => play(history, memory).then(() => {}))
  await fc.assert(property, { numRuns: scale.events > 500 ? 1 : 4 })
})
