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

// Tests maximums that no other test covers: the maximum is accepted, and one more is rejected.

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

describe('up to 64 KiB are accepted', () => {
  const longest = 'x'.repeat(65_536)

  it('for a request id', () => {
    const limiter = createLimiter({ limits: [slidingWindow({ limit: 5, window: '1h', log: 'zset' })] })
    expect(limiter.consumeSync('k', { requestId: longest }).allowed).toBe(true)
    expect(() => limiter.consumeSync('k', { requestId: `${longest}x` })).toThrow(/more than 65536 bytes/)
  })

  it('for a value', () => {
    const limiter = createLimiter({ limits: [distinct({ limit: 5, window: '1h' })] })
    expect(limiter.consumeSync('k', { value: longest }).allowed).toBe(true)
    expect(() => limiter.consumeSync('k', { value: `${longest}x` })).toThrow(/more than 65536 bytes/)
  })
})

it('an error shows 64 characters of an invalid value', () => {
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

it('only the newest 10,000 reservations of a key can be settled', async () => {
  const limiter = createLimiter({ limits })
  const tokens: string[] = []
  for (let i = 0; i < 10_001; i++) tokens.push((await limiter.reserve('k', 1)).token)
  await expect(limiter.cancel(tokens[0]!)).rejects.toMatchObject({ code: 'invalid_reservation' })
  expect(await limiter.cancel(tokens[1]!)).toEqual({ returned: 1, added: 0 })
})

it('at most 1,024 limit sets are cached for a limits function', () => {
  // The limits have names, so that all share one log of one key.
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

it('at most 1,024 calls time out in one turn of the event loop', async () => {
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
