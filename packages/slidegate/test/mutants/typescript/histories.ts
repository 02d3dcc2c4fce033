import fc from 'fast-check'
import { test } from 'vitest'
import { memoryStore } from '../../../src/index.ts'
import { historyOf } from '../../history/histories.ts'
import { play, type StoreOf } from '../../history/play.ts'
import { SCALES } from '../scales.ts'

// What test/history plays, in short: few histories, always the same, in memory alone.

const memory: Record<string, StoreOf> = { memory: (clock) => memoryStore({ clock: clock.now }) }

test.for(Object.entries(SCALES))('random histories of one key: %s', async ([, scale]) => {
  const property = fc.asyncProperty(historyOf(scale), (history) => play(history, memory).then(() => {}))
  await fc.assert(property, { numRuns: scale.events > 500 ? 1 : 4 })
})
