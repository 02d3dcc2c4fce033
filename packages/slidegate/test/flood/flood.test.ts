// tier: system
import { expect, it } from 'vitest'
import { flood } from './flood.ts'

// A store of 100,000 keys under floods of others; `npm run flood` sends 50 million of them, and holds the pauses to 50 ms.

const { FLOOD_KEYS } = process.env
const isLong = FLOOD_KEYS !== undefined
const keys = Number(FLOOD_KEYS ?? 1_000_000)

it(`${keys} foreign keys free nobody, take no memory and stop nothing`, {
  timeout: 60_000 + keys,
}, async () => {
  const report = await flood({
    keys,
    // In the short form, too, each wave brings more than there is room for.
    maxKeys: isLong ? 100_000 : 16_000,
    rounds: isLong ? 12 : 4,
    pauseMaxMs: isLong ? 50 : 250,
    ...(isLong && { log: console.log }),
  })
  if (isLong) console.log(JSON.stringify(report, null, 2))
  expect(report.complaints).toEqual([])
  expect(report.keys).toBeGreaterThanOrEqual(keys)
  expect(report.probes).toBeGreaterThan(keys / 1000)
  expect(report.evicted).toBeGreaterThan(keys / 2)
})
