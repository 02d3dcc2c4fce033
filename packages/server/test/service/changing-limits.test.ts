// tier: integration
import fc from 'fast-check'
import { memoryStore, type Store } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { ManualClock } from 'slidegate/testing'
import { describe, expect, test } from 'vitest'
import { declared, type History, history, sweep } from '../../../slidegate/test/history/changing.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import type { Config } from '../../src/config/schema.ts'
import { Service } from '../../src/service/service.ts'

const { redis } = await useRedis()

const STORES: Readonly<Record<string, (clock: () => number) => Store>> = {
  memory: (clock) => memoryStore({ clock }),
  Redis: (clock) => redisStore(redis, { clock }),
}

/** The first set holds for all keys, the second for a plan. */
function configOf({ kinds }: History, [usual, plan]: History['first']): Config {
  return {
    limiters: {
      api: {
        limits: declared(kinds, usual!),
        plans: { gold: { limits: declared(kinds, plan!) } },
        choosePlan: true,
        timeoutMs: 30_000,
      },
    },
  }
}

let histories = 0

describe.each(Object.entries(STORES))('numbers that change by reloads and plans, on %s', (_, storeOf) => {
  test('admit no request above a limit in force, and deny none while all have room', async () => {
    let made = 0
    while (made < 1000) {
      const property = fc.asyncProperty(history, async (each) => {
        const clock = new ManualClock(each.startMs)
        const service = new Service(configOf(each, each.first), storeOf(clock.now))
        const key = `key${histories++}`
        made += await sweep(each, {
          advance: (ms) => clock.advance(ms),
          consume: (cost, set) =>
            service
              .get('api')
              .limiter.consume(key, { cost, request: { plan: set === 1 ? 'gold' : undefined } }),
          change: (sets) => service.reload(configOf(each, sets)),
        })
        service.close()
      })
      await fc.assert(property, { numRuns: 10 })
    }
    expect(made).toBeGreaterThanOrEqual(1000)
  })
})
