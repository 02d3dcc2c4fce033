import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  distinct,
  fixedWindow,
  type Limit,
  memoryStore,
  slidingWindow,
} from '../../src/index.ts'
import { Deadlines, type Due } from '../../src/resilience/deadlines.ts'
import { bytesInUse } from '../faults/matrix/meter.ts'

// Bounds that no other test reaches: at each the last that is taken, and what comes of one more.

const limits = [slidingWindow({ limit: 20_000, window: '1h' })]

it('consumeMany takes 10,000 requests', async () => {
  const limiter = createLimiter({ limits })
  const requests = Array.from({ length: 10_000 }, () => ({ key: 'k' }))
  expect((await limiter.consumeMany(requests)).filter(({ allowed }) => allowed)).toHaveLength(10_000)
  await expect(limiter.consumeMany([...requests, { key: 'k' }])).rejects.toMatchObject({
    code: 'invalid_option',
    message: expect.stringContaining('at most 10000'),
  })
  expect((await limiter.peek('k')).remaining).toBe(10_000)
})

describe('ids and values have 64 KiB', () => {
  const longest = 'x'.repeat(65_536)

  it('of an id', () => {
    const limiter = createLimiter({ limits: [slidingWindow({ limit: 5, window: '1h', log: 'zset' })] })
    expect(limiter.consumeSync('k', { requestId: longest }).allowed).toBe(true)
    expect(() => limiter.consumeSync('k', { requestId: `${longest}x` })).toThrow(/more than 65536 bytes/)
  })

  it('of a value', () => {
    const limiter = createLimiter({ limits: [distinct({ limit: 5, window: '1h' })] })
    expect(limiter.consumeSync('k', { value: longest }).allowed).toBe(true)
    expect(() => limiter.consumeSync('k', { value: `${longest}x` })).toThrow(/more than 65536 bytes/)
  })
})

it('of what is wrong an error shows 64 characters', () => {
  const limiter = createLimiter({ limits })
  const shown = (key: string) => {
    try {
      limiter.consumeSync(key)
    } catch (error) {
      return (error as Error).message
    }
    return ''
  }
  expect(shown(`${'x'.repeat(70_000)}`).length).toBeLessThan(150)
  expect(shown(`${'x'.repeat(70_000)}`)).toContain('x'.repeat(50))
})

it('10,000 reservations of a key can be settled: one more, and the oldest cannot', async () => {
  const limiter = createLimiter({ limits })
  const tokens: string[] = []
  for (let i = 0; i < 10_001; i++) tokens.push((await limiter.reserve('k', 1)).token)
  await expect(limiter.cancel(tokens[0]!)).rejects.toMatchObject({ code: 'invalid_reservation' })
  expect(await limiter.cancel(tokens[1]!)).toEqual({ returned: 1, added: 0 })
})

it('of limits that a function tells anew each time, no more are kept than 1,024', () => {
  // By name, so that all are on one log, of one key.
  const told = (n: number): Limit[] => [fixedWindow({ limit: 20_000 + n, window: '1h', name: `n${n}` })]
  let asked = 0
  const limiter = createLimiter({ limits: () => told(asked++), store: memoryStore() })
  const ask = (times: number) => {
    for (let i = 0; i < times; i++) limiter.consumeSync('k')
  }
  ask(3000)
  const before = bytesInUse()
  ask(12_000)
  expect(bytesInUse() - before).toBeLessThan(2e6)
})

it('no more than 1,024 calls are given up in one turn of the event loop', async () => {
  const deadlines = new Deadlines()
  const dueAtMs = performance.now() + 5
  const calls = Array.from({ length: 3000 }, (): Due & { isSettled: boolean } => ({
    isSettled: false,
    dueAtMs,
    giveUp() {
      this.isSettled = true
    },
  }))
  for (const call of calls) deadlines.watch(call)
  const settled: number[] = []
  while (settled.at(-1) !== 3000) {
    await new Promise((resolve) => setImmediate(resolve))
    settled.push(calls.filter(({ isSettled }) => isSettled).length)
  }
  const steps = settled.map((count, i) => count - (settled[i - 1] ?? 0))
  expect(Math.max(...steps)).toBe(1024)
})
