// tier: integration
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLimiter, limitOf } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import { declared, history, sweep } from './changing.ts'

const { redis } = await useRedis()

let histories = 0

describe.each(Object.entries(storesOn(redis)))('limits whose numbers change, on %s', (_, storeOf) => {
  test('admit no request above a limit in force, and deny none while all have room', async () => {
    let made = 0
    while (made < 1000) {
      const property = fc.asyncProperty(history, async (each) => {
        const clock = new ManualClock(each.startMs)
        const limitsOf = (sets: typeof each.first) =>
          sets.map((numbers) => declared(each.kinds, numbers).map((options) => limitOf(options)))
        let limits = limitsOf(each.first)
        const limiter = createLimiter({
          name: 'changing',
          store: storeOf(clock),
          limits: (_, request) => limits[request as number]!,
          timeoutMs: 30_000,
        })
        const key = `key${histories++}`
        made += await sweep(each, {
          advance: (ms) => clock.advance(ms),
          consume: (cost, request) => limiter.consume(key, { cost, request }),
          change: (sets) => {
            limits = limitsOf(sets)
          },
        })
        limiter.close()
      })
      await fc.assert(property, { numRuns: 10 })
    }
    expect(made).toBeGreaterThanOrEqual(1000)
  })
})
