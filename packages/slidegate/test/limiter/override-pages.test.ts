import { expect, it } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { listed } from '../support/overrides.ts'

// Uses a fake Redis in which every page of overrides points to another page.

it('a page of overrides that points to itself is reported as a store error', async () => {
  const store = redisStore({ command: async () => [0, 0, '["k"]'] })
  const limits = [slidingWindow({ limit: 5, window: '1m' })]
  const limiter = createLimiter({ limits, store, overrides: true, timeoutMs: 30_000, logger: false })
  await expect(listed(limiter)).rejects.toMatchObject({ name: 'StoreUnavailableError', reason: 'error' })
  limiter.close()
})

it('an endless list of overrides is read only as far as its consumer iterates', async () => {
  let calls = 0
  const store = redisStore({
    command: async () => {
      calls++
      return [0, 0, JSON.stringify([`k${calls}`, `k${calls}`, `1 0 ${2 ** 52} exempt\n`])]
    },
  })
  const limits = [slidingWindow({ limit: 5, window: '1m' })]
  const limiter = createLimiter({ limits, store, overrides: true, timeoutMs: 30_000, logger: false })
  const keys: string[] = []
  for await (const { key } of limiter.overrides.list()) {
    keys.push(key)
    if (keys.length === 5) break
  }
  expect(keys).toEqual(['k1', 'k2', 'k3', 'k4', 'k5'])
  expect(calls).toBe(5)
  limiter.close()
})
