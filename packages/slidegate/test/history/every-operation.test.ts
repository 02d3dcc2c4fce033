import { describe, expect, test } from 'vitest'
import { KINDS, type KindName } from './declarations.ts'
import type { KeyedScale } from './keyed-histories.ts'
import { playKeyedAtRandom } from './keyed-play.ts'
import type { StoreOf } from './play.ts'
import { useStores } from './use-stores.ts'

// Requests for keys of several dimensions, bans, limits that change, reservations and explanations: each through an oracle
// of true events, through memory and through Redis, and equal in every field of all that is answered.

const stores = useStores()

const small: KeyedScale = {
  ...{ limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 2 },
  ...{ kinds: KINDS, dimensions: [1, 2, 3] },
}

/** Windows so long that a clock which is set back by more than a second is still in one that counts. */
const long: KeyedScale = { ...small, windowMs: 3000, clockSteps: true }

/** Kinds that keep sums: what is reserved is charged to no other. */
const SUMMING: readonly KindName[] = ['sliding', 'sliding', 'sliding', 'fixed', 'calendar', 'firstHit', 'counter', 'bucket']

const SCALES: Record<string, KeyedScale> = {
  dims: { ...small, dimensions: [2, 3] },
  dimsback: { ...long, dimensions: [2, 3] },
  bans: { ...small, bans: true },
  bansback: { ...long, bans: true },
  reservations: { ...small, reservations: true, kinds: SUMMING },
  reservationsback: { ...long, reservations: true, bans: true, kinds: SUMMING },
  reservationssets: { ...long, reservations: true, kinds: SUMMING, sets: [2, 3] },
  reservationsetries: { ...long, reservations: true, kinds: SUMMING, sets: [2, 3], laterKinds: KINDS },
  sets: { ...small, sets: [2, 3] },
  setsback: { ...long, sets: [2, 3] },
  setsback3: { ...long, sets: [2, 3], limits: 3, kinds: ['sliding', 'zset', 'stream', 'bucket'] },
  setssliding: { ...long, sets: [2, 3], kinds: ['sliding'] },
  overrides: { ...small, sets: [2, 3], byOverrides: true, shortestMs: 600_000, windowMs: 1_200_000, processes: 1 },
  all: { ...long, sets: [1, 2], bans: true, reservations: true },
}
const N = Number(process.env['N'] ?? 1000)
const single = () => {
  const { 'ioredis on a Cluster': _, 'node-redis': __, ...single } = stores
  return single
}
test.each(Object.entries(SCALES))('%s', async (_, scale) => {
  console.log(await playKeyedAtRandom(scale, single(), N))
}, 600000)
