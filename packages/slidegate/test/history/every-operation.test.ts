import { describe, expect, test } from 'vitest'
import { KINDS } from './declarations.ts'
import type { KeyedScale } from './keyed-histories.ts'
import { playKeyedAtRandom } from './keyed-play.ts'
import { useStores } from './use-stores.ts'

const stores = useStores()

const small: KeyedScale = {
  ...{ limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 2 },
  ...{ kinds: KINDS, dimensions: [1, 2, 3] },
}

test('dims', async () => {
  const { 'ioredis on a Cluster': _, 'node-redis': __, ...single } = stores
  console.log(await playKeyedAtRandom({ ...small, dimensions: [2, 3] }, single, 1500))
}, 60000)
test('bans', async () => {
  const { 'ioredis on a Cluster': _, 'node-redis': __, ...single } = stores
  console.log(await playKeyedAtRandom({ ...small, bans: true }, single, 1500))
}, 60000)
const single = () => {
  const { 'ioredis on a Cluster': _, 'node-redis': __, ...single } = stores
  return single
}
test('bans steps', async () => {
  console.log(await playKeyedAtRandom({ ...small, windowMs: 3000, clockSteps: true, bans: true }, single(), 1500))
}, 60000)
test('reserve', async () => {
  console.log(await playKeyedAtRandom({ ...small, windowMs: 3000, clockSteps: true, bans: true, reservations: true, kinds: ['sliding', 'fixed', 'calendar', 'firstHit', 'counter', 'bucket'] }, single(), 1500))
}, 60000)
test('sets', async () => {
  console.log(await playKeyedAtRandom({ ...small, sets: [2, 3] }, single(), 1500))
}, 60000)
test('overrides', async () => {
  console.log(await playKeyedAtRandom({ ...small, sets: [2, 3], byOverrides: true, shortestMs: 600_000, windowMs: 1_200_000, processes: 1 }, single(), 1500))
}, 60000)
