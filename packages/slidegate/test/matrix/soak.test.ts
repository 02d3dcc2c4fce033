// tier: system
import { expect, it } from 'vitest'
import { soak } from './soak.ts'

// Faults at random for a while; `npm run soak -- --minutes 60 --seed 7` for a longer one, on a Cluster as well.

const { SOAK_MINUTES, SOAK_SEED } = process.env
const isLong = SOAK_MINUTES !== undefined
const lastsMs = isLong ? Number(SOAK_MINUTES) * 60_000 : 30_000

const seed = Number(SOAK_SEED ?? (isLong ? Math.floor(Math.random() * 1_000_000) : 1))

it(`faults at random leave nothing behind (--seed ${seed})`, { timeout: lastsMs + 120_000 }, async () => {
  const { incidents, falls, complaints } = await soak({
    seed,
    lastsMs,
    withCluster: isLong,
    checkedEveryMs: isLong ? 30_000 : 2500,
    ...(isLong && { log: console.log }),
  })
  expect(complaints).toEqual([])
  expect(incidents).toBeGreaterThan(5)
  expect(falls).toBeGreaterThan(0)
})
