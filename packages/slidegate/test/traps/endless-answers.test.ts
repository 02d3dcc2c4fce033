import { expect, it } from 'vitest'
import { createLimiter, type Limiter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { errorOf } from '../input/refusal.ts'

// A Redis, or what is in its place, that answers each page of overrides with one more to come. Nobody waits for its end.

const limits = [slidingWindow({ limit: 5, window: '1m' })]

function limiterOn(answer: (words: readonly string[]) => unknown): Limiter {
  const store = redisStore({ command: async (words) => answer(words) })
  return createLimiter({ limits, store, overrides: true, timeoutMs: 30_000, logger: false })
}

it.each([
  ['of all there are', ['1', 1, '7', 1, 'k', 0, 0, '{}'], 4097],
  ['of what was changed', ['7', 0, '1', 0], 2],
  ['of nothing', ['', 0], 2],
])('pages %s without an end are an error of the store', async (_, page, most) => {
  let calls = 0
  const limiter = limiterOn(() => {
    calls++
    return [0, 0, JSON.stringify(page)]
  })
  expect(await errorOf(() => limiter.overrides.list())).toMatchObject({
    name: 'StoreUnavailableError',
    reason: 'error',
  })
  expect(calls).toBeLessThanOrEqual(most)
  limiter.close()
})

it('a table that is full, and has always more that may have expired, is full', async () => {
  let calls = 0
  const limiter = limiterOn((words) => {
    calls++
    return words.some((word) => word.includes('"type":"notes"')) ? [0, 0, '["1",1,"0",0]'] : [0, 0, '7']
  })
  expect(await errorOf(() => limiter.overrides.set('k', limits))).toMatchObject({ reason: 'full' })
  expect(calls).toBeLessThanOrEqual(4098)
  limiter.close()
})
