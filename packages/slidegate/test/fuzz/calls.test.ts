// tier: integration
import fc from 'fast-check'
import { expect } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Answer, anyCalls, calls, FORM_COUNT, isDecision, playCalls } from './calls.ts'
import { fuzz } from './harness.ts'
import { expectSense, expectUnpolluted } from './sense.ts'

const { redis } = await useRedis()
const form = fc.nat(FORM_COUNT - 1)

function expectAllSense(answers: readonly Answer[]): void {
  for (const answer of answers) {
    if (!('value' in answer)) continue
    const values = Array.isArray(answer.value) ? answer.value : [answer.value]
    for (const value of values) {
      if (isDecision(value)) expectSense(value)
      if (Number.isNaN(value)) throw new Error('an answer is NaN')
    }
  }
}

fuzz(
  'calls on memory',
  fc.record({ form, played: fc.array(anyCalls, { minLength: 1, maxLength: 5 }) }),
  async ({ form, played }) => {
    const store = memoryStore({ clock: new ManualClock().now })
    // A limiter with another name in the same store. Calls of the first must not affect it.
    const bystander = createLimiter({
      name: 'other',
      limits: [slidingWindow({ limit: 9, window: '1h' })],
      store,
    })
    bystander.consumeSync('k')
    expectAllSense(await playCalls(store, form, played))
    if (bystander.consumeSync('k').remaining !== 7) throw new Error('another limiter was affected')
    expectUnpolluted()
  },
)

fuzz(
  'calls on Redis',
  fc.record({ form, played: fc.array(calls, { minLength: 1, maxLength: 5 }) }),
  async ({ form, played }) => {
    await redis.flushall()
    const { now } = new ManualClock()
    const synchronous = ({ method }: { method: string }) => method === 'consumeSync'
    const both = played.filter((call) => !synchronous(call))
    const inRedis = await playCalls(redisStore(redis, { clock: now }), form, both)
    expectAllSense(inRedis)
    const inMemory = await playCalls(memoryStore({ clock: now }), form, both)
    expect(inRedis.map(comparable)).toEqual(inMemory.map(comparable))
    // Only documented keys may be written.
    for (const key of await redis.keys('*'))
      expect(key).toMatch(/^slidegate:\{\d+\}:default(\/\w+)?:([!-~]+:[!-~]+|~overrides)$/)
  },
)

/** Returns the part of an answer that both stores must agree on. Generated names and tokens differ. */
function comparable(answer: Answer): unknown {
  if (!('value' in answer)) return answer
  const { value } = answer
  if (isDecision(value) || typeof value === 'number' || typeof value === 'boolean') return value
  return Array.isArray(value) && value.every(isDecision) ? value : typeof value
}
