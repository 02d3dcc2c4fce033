import { expect, it } from 'vitest'
import { failurePolicy, memoryStore } from '../../src/index.ts'
import { OPS } from '../../src/ops/table.ts'
import { KINDS } from './declarations.ts'
import { playKeyedAtRandom } from './keyed-play.ts'
import { playAtRandom, type StoreOf } from './play.ts'

it('histories send every operation', async () => {
  const sent = new Set<string>()
  const recording: StoreOf = (clock) => {
    // Without a fast path, every request is an op.
    const store = memoryStore({ clock: clock.now })
    return {
      failurePolicy,
      apply: (ops, call) => {
        for (const { type } of ops) sent.add(type)
        store.apply(ops, call)
      },
      close: () => store.close(),
    }
  }
  const scale = { limit: 6, windowMs: 200, events: 60, longWaits: 5, kinds: KINDS }
  await playAtRandom(scale, { recording }, 200)
  await playAtRandom({ ...scale, kinds: ['concurrency'] }, { recording }, 100)
  const everything = { sets: [1, 2], bans: true, reservations: true, overrides: true }
  const keyed = { ...scale, ...everything, limits: 2, dimensions: [1, 2, 3] }
  await playKeyedAtRandom(keyed, { recording }, { decisions: 200 })
  expect([...sent].sort()).toEqual(Object.keys(OPS).sort())
})
