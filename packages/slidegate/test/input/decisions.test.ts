import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { createLimiter, type Decision, fixedWindow, memoryStore, slidingWindow } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'

const clock = new ManualClock()
const window = slidingWindow({ limit: 1, window: '1m' })
const limitersBy = {
  'one log': [window],
  'two logs': [window, fixedWindow({ limit: 1, window: '1m', name: 'other' })],
}

function expected(allowed: boolean, names: readonly string[]): Decision {
  const numbers = {
    allowed,
    remaining: 0,
    retryAfterMs: allowed ? 0 : 60_000,
    resetAfterMs: 60_000,
  }
  const limits = names.map((name) => {
    const { limit, windowMs, precisionMs, shadow } =
      name === 'other' ? { ...window, precisionMs: 60_000 } : window
    return { name, limit, windowMs, precisionMs, shadow, ...numbers }
  })
  const { remaining, retryAfterMs, resetAfterMs } = numbers
  return {
    ...{ allowed, cost: 1, remaining, retryAfterMs, resetAfterMs },
    ...{ deniedBy: allowed ? [] : names, limits, source: 'store', atMs: clock.now() },
  }
}

it.each(Object.entries(limitersBy))('a decision by %s is plain data', async (_, limits) => {
  // Sets the clock to the start of a fixed window.
  clock.set(Math.ceil(clock.now() / 60_000) * 60_000)
  const limiter = createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
  const names = limits.map(({ name }) => name)
  const decisions = [limiter.consumeSync('a'), limiter.consumeSync('a'), await limiter.consume('b')]
  for (const [i, decision] of decisions.entries()) {
    const literal = expected(i !== 1, names)
    assert.deepEqual(decision, literal)
    expect(JSON.stringify(decision)).toBe(JSON.stringify(literal))
    expect(inspect(decision, { depth: 9 })).toBe(inspect(literal, { depth: 9 }))
    assert.deepEqual({ ...decision }, literal)
    assert.deepEqual(structuredClone(decision), literal)
  }
})

it("a refund uses the recorded charge instead of the decision's fields", async () => {
  const limits = [slidingWindow({ limit: 5, window: '1m' })]
  const limiter = createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
  const decision = limiter.consumeSync('a', { cost: 3 })
  Object.assign(decision, { cost: 1, atMs: 0 })
  await expect(limiter.refund('a', { ...decision })).rejects.toThrow('from another limiter, or a copy')
  await expect(limiter.refund('a', decision, 4)).rejects.toThrow('only 3 were charged')
  expect(await limiter.refund('a', decision, 2)).toBe(2)
  expect(await limiter.refund('a', decision, 3)).toBe(1)
  expect(await limiter.refund('a', decision, 3)).toBe(0)
  expect((await limiter.peek('a')).remaining).toBe(5)
})
