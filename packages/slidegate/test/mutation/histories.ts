import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { limitersOf, wide } from '../exhaustive/alphabet.ts'
import { playInMemory } from '../exhaustive/play-all.ts'
import { KINDS } from '../history/declarations.ts'
import { historyOf } from '../history/histories.ts'
import { play, type StoreOf } from '../history/play.ts'
import { LONG, longerIfHeld, type Scale, SUMMING } from '../history/scale.ts'

// What test/exhaustive and test/history play, in short: few histories, always the same, in memory alone.

const memory: Record<string, StoreOf> = { memory: (clock) => memoryStore({ clock: clock.now }) }

describe.each(KINDS)('all histories of %s', (kind) => {
  test('of two steps', async () => {
    expect(await playInMemory(limitersOf(kind, kind), wide([kind]), 2)).toBeGreaterThan(50)
  })
})

async function playSome(scale: Scale, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(historyOf(scale), async (history) => {
    await play(history, memory)
  })
  await fc.assert(property, { numRuns })
}

describe.each(KINDS)('random histories of %s', (kind) => {
  test('the clock set back', () => playSome(longerIfHeld({ ...LONG, kinds: [kind] }), 4))
})

describe.each(SUMMING)('random histories of %s', (kind) => {
  const most = Number.MAX_SAFE_INTEGER
  test('of great numbers', () =>
    playSome({ ...LONG, kinds: [kind], limit: 2 ** 40, windowMs: 100_000, charge: most }, 3))
  test('charged more than it holds', () => playSome({ ...LONG, kinds: [kind], charge: most }, 3))
})

describe('random histories of sliding windows', () => {
  const one = { oneLog: true, kinds: ['sliding'] as const }
  test('over one long log', () =>
    playSome({ limit: 300, windowMs: 1000, events: 600, longWaits: 1, ...one }, 2))
  test('over one short log', () =>
    playSome({ limit: 20, windowMs: 100, events: 100, longWaits: 4, ...one }, 4))
  test('of bursts', () =>
    playSome({ limit: 50, windowMs: 100, events: 30, longWaits: 4, burst: 40, ...one }, 4))
  test('of bursts in grains, the clock set back', () =>
    playSome({ ...LONG, limit: 30, events: 30, longWaits: 4, burst: 25, kinds: ['sliding'] }, 4))
})

test('random histories of all kinds, the clock set back', () =>
  playSome(longerIfHeld({ ...LONG, kinds: KINDS }), 6))
