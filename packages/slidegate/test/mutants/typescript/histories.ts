import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/index.ts'
import { limitersOf, wide } from '../../history/alphabet.ts'
import { KINDS } from '../../history/declarations.ts'
import { historyOf } from '../../history/histories.ts'
import { play, type StoreOf } from '../../history/play.ts'
import { playInMemory } from '../../history/play-all.ts'
import { SCALES } from '../scales.ts'

// What test/history plays, in short: few histories, always the same, in memory alone.

const memory: Record<string, StoreOf> = { memory: (clock) => memoryStore({ clock: clock.now }) }

describe.each(KINDS)('all histories of %s', (kind) => {
  test('of two steps', async () => {
    expect(await playInMemory(limitersOf(kind, kind), wide([kind]), 2)).toBeGreaterThan(50)
  })
})

test.for(Object.entries(SCALES))('random histories of one key: %s', async ([, scale]) => {
  const property = fc.asyncProperty(historyOf(scale), (history) => play(history, memory).then(() => {}))
  await fc.assert(property, { numRuns: scale.events > 500 ? 1 : 4 })
})
