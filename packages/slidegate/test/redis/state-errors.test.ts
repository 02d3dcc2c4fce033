// tier: integration
import { beforeEach, expect, it } from 'vitest'
import type { Limit } from '../../src/index.ts'
import { banLog } from '../../src/limits/ban.ts'
import { type LimitSet, limitSet, withLog, withOverrides } from '../../src/limits/limit-set.ts'
import { FOREVER } from '../../src/limits/override.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { Op } from '../../src/stores/store.ts'
import { SAMPLES } from '../support/kinds.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests errors about a foreign value in place of a log: Redis reports another type, the script reports other bytes.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const consumed = (set: LimitSet, more: object = {}): Op => ({
  type: 'consume',
  parts: [{ key: 'k', set }],
  ...{ cost: 1, count: 1, leaseMs: 0, requestId: 'r', value: 'v' },
  ...more,
})
const limited = (limit: Limit, ...logs: readonly Parameters<typeof withLog>[1][]) =>
  logs.reduce(withLog, limitSet('l', [limit]))

const one = SAMPLES['a token bucket']!.make({ limit: 1 })
const banned = consumed(limited(one, banLog({ after: 9, within: '1m', for: '1m' })), { cost: 2 })
const overridden: Op = {
  type: 'override',
  parts: [{ key: 'k', set: withOverrides(limitSet('l', [])) }],
  ...{ rule: 'exempt', ruleMs: FOREVER },
}

const LOGS: Readonly<Record<string, readonly [key: string, op: Op]>> = {
  ...Object.fromEntries(
    Object.entries(SAMPLES).map(([name, { make }]) => [name, ['*', consumed(limited(make({ limit: 1 })))]]),
  ),
  'a ban': ['*:b', banned],
  'an override': ['*:o', overridden],
}

it.each(Object.entries(LOGS))('%s rejects values of another type or format', async (_, [pattern, op]) => {
  const store = redisStore(redis)
  await outcomesOf(store, [op])
  const [key = ''] = (await redis.keys(pattern)).sort()
  const isText = (await redis.type(key)) === 'string'
  await redis.del(key)
  await redis.rpush(key, 'x')
  await expect(outcomesOf(store, [op])).rejects.toThrow('WRONGTYPE')
  if (!isText) return
  await redis.set(key, 'x'.repeat(51))
  await expect(outcomesOf(store, [op])).rejects.toThrow(/cannot be used: not an? .* of format 1$/)
})

it.each(['a fixed window', 'a sliding counter', 'a token bucket', 'a ban'])(
  '%s with an extra byte is rejected',
  async (name) => {
    const store = redisStore(redis)
    const [pattern, op] = LOGS[name]!
    await outcomesOf(store, [op])
    const [key = ''] = await redis.keys(pattern)
    const value = (await redis.getBuffer(key))!
    await redis.set(key, Buffer.concat([value, Buffer.of(0)]))
    await expect(outcomesOf(store, [op])).rejects.toThrow(/not an? .* of format 1$/)
  },
)

it('a sliding counter with a misaligned window is rejected', async () => {
  const store = redisStore(redis)
  const op = LOGS['a sliding counter']![1]
  await outcomesOf(store, [op])
  const [key = ''] = await redis.keys('*')
  const value = (await redis.getBuffer(key))!
  value.writeUIntBE(value.readUIntBE(1, 6) + 1, 1, 6)
  await redis.set(key, value)
  await expect(outcomesOf(store, [op])).rejects.toThrow('not a sliding counter')
})
