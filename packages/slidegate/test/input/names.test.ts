import { expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  distinct,
  fixedWindow,
  memoryStore,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { expectRefusal } from './refusal.ts'

// A misspelt option would do nothing, and say nothing: `shadw: true` would be a limit that denies.

const window = { limit: 10, window: '1m' }
const LIMITS: Record<string, [make: (options: never) => unknown, right: object]> = {
  slidingWindow: [slidingWindow, window],
  fixedWindow: [fixedWindow, window],
  slidingCounter: [slidingCounter, window],
  distinct: [distinct, window],
  tokenBucket: [tokenBucket, { capacity: 10, refill: 1, interval: '1s' }],
  concurrency: [concurrency, { limit: 10, ttl: '1m' }],
}

it.each(Object.entries(LIMITS))('%s refuses an option that it does not know', async (_, [make, right]) => {
  await expectRefusal(() => make({ ...right, shadw: true } as never), {
    code: 'invalid_limit',
    value: 'shadw',
    right: /"shadw" is no option of this limit; there are .*\bshadow\b/,
  })
  expect(() => make({ ...right, shadw: undefined } as never)).not.toThrow()
})

const limits = [slidingWindow({ limit: 10, window: '1m' })]

it.each<[what: string, name: string, make: () => unknown]>([
  ['createLimiter', 'onStoreErr', () => createLimiter({ limits, onStoreErr: 'allow' } as never)],
  ['memoryStore', 'maxkeys', () => memoryStore({ maxkeys: 5 } as never)],
  ['redisStore', 'buckts', () => redisStore({ command: async () => null }, { buckts: 1 } as never)],
])('%s refuses an option that it does not know', async (what, value, make) => {
  const right = new RegExp(`is no option of ${what}; there are `)
  await expectRefusal(make, { code: 'invalid_option', value, right })
})
