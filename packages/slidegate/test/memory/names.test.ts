// tier: integration
import { expect, it } from 'vitest'
import { createLimiter, memoryStore, SlidegateError, slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { KeyTable } from '../../src/stores/memory/key-table.ts'
import { MemoryOps } from '../../src/stores/memory/memory-ops.ts'
import { keyspace } from '../../src/stores/redis/keyspace.ts'
import type { Op } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { bytesInUse } from '../faults/matrix/meter.ts'

// Clients may choose the names of limiters, see serveStore.

const limits = [slidingWindow({ limit: 2, window: '1m' })]
const partsOf = (limiter: string, key = 'ann') => [{ key, set: limitSet(limiter, limits) }]
const peek = (limiter: string): Op => ({ type: 'peek', parts: partsOf(limiter), cost: 1, count: 1 })
const consume = (limiter: string): Op => ({
  ...{ type: 'consume', parts: partsOf(limiter), cost: 1, count: 1, leaseMs: 0 },
})

it('a memory store keeps only the names of limiters that have keys', () => {
  const table = new KeyTable(1000, 0)
  const ops = new MemoryOps(table, 'throw')
  for (let i = 0; i < 5000; i++) ops.apply(peek(`peeked${i}`), 1)
  expect(table.names).toBe(0)
  for (let i = 0; i < 500; i++) ops.apply(consume(`used${i}`), 1)
  expect(table.names).toBe(500)
  for (let i = 0; i < 200; i++) ops.apply({ type: 'reset', parts: partsOf(`used${i}`) }, 1)
  expect(table.names).toBe(300)
  for (let i = 0; i < 5000; i++) {
    table.sweep(100_000 + i)
    ops.apply(consume(`later${i}`), 100_000 + i)
  }
  expect([table.names, table.size]).toEqual([1000, 1000])
})

it('all limit sets of a limiter find its key, also after the limiter had no keys', async () => {
  const clock = new ManualClock()
  const store = memoryStore({ clock: clock.now })
  const strict = createLimiter({ name: 'api', limits, store })
  const lenient = createLimiter({ name: 'api', limits: [slidingWindow({ limit: 9, window: '1m' })], store })
  for (let round = 0; round < 3; round++) {
    expect((await lenient.peek('ann')).remaining).toBe(9)
    expect(strict.consumeSync('ann').remaining).toBe(1)
    expect(lenient.consumeSync('ann').remaining).toBe(7)
    expect(strict.consumeSync('bob').remaining).toBe(1)
    expect(strict.consumeSync('ann').allowed).toBe(false)
    await lenient.reset('ann')
    expect((await strict.peek('bob')).remaining).toBe(1)
    await strict.reset('bob')
    expect(store.stats().keys).toBe(0)
  }
})

it('Redis keys take no memory per limiter name', () => {
  const space = keyspace('slidegate', 64)
  const ask = (from: number) => {
    for (let i = from; i < from + 5000; i++) space.append(peek(`limiter${i}`), [])
  }
  ask(0)
  const before = bytesInUse()
  ask(5000)
  ask(10_000)
  // With 64 strings per name, this would take 60 MB.
  expect(bytesInUse() - before).toBeLessThan(2e6)
})

it.each<Op['type']>(['consume', 'peek', 'explain', 'charge', 'list', 'reset'])(
  'a %s on a set without logs is rejected before anything is written',
  (type) => {
    const store = memoryStore()
    const parts = [...partsOf('api'), { key: 'bob', set: limitSet('api', []) }]
    const use = () => store.applySync([consume('api')])
    use()
    const asked = { type, cost: 1, count: 1, leaseMs: 0, units: 1 }
    for (const each of [parts, parts.slice(1)]) {
      expect(() => store.applySync([{ ...asked, parts: each } as Op])).toThrow(
        new SlidegateError('invalid_option', 'a limit set for "api" has no logs; it needs at least one'),
      )
    }
    expect(store.stats().keys).toBe(1)
    expect(use()).toMatchObject([{ admitted: 1, limits: [1, expect.any(Number), 60_000] }])
  },
)
