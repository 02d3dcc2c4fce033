// tier: system
import { Redis } from 'ioredis'
import { redisStore } from 'slidegate/redis'
import { afterAll, expect, it } from 'vitest'
import { costOf, LOADS, startCountingRedis } from '../support/instructions.ts'
import { SHAPES, type ShapeName } from '../support/shapes.ts'

// A change that makes Redis execute more instructions per decision fails here, on any machine.
// Lower the figures when a decision gets cheaper: `npm run bench -- instructions` prints the new ones.

/** Thousands of instructions per decision. The first figure is for one request at a time, the second for 64 at once. */
const FIGURES: Readonly<Record<ShapeName, readonly [lone: number, batch: number]>> = {
  'window, admitted': [110, 33.5],
  'window, denied': [84.5, 21.8],
  'three windows': [124, 38.3],
  bucket: [95, 24.5],
  'fixed window': [87.5, 20.6],
  'window and bucket': [150, 56.6],
  'window and shadow window': [158, 64.4],
  'window with ban': [146, 50.7],
  'two keys': [159, 65.1],
  'window, overrides, none set': [117, 38],
  'window, overrides, one per key': [150, 45],
  'everything on': [301, 133.2],
  zset: [143, 53.7],
  'zset, request id': [147, 57.6],
  distinct: [147, 57],
  'distinct, approximate': [283, 193.5],
  stream: [206, 118],
  'concurrency, acquire or release': [143, 54.4],
  'sliding counter': [96, 25.1],
  'calendar window': [103.5, 22.4],
  'window, cost of 5': [116, 33.8],
  'window, refund': [217, 78.2],
  'window, peek': [108, 25.5],
}

/** The tolerance. Repeated measurements differ by up to 2%. */
const ROOM = 1.05

const redis = await startCountingRedis()
const client = new Redis(redis.url)
afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

/**
 * Other builds of Redis need more or fewer instructions. The figures were measured with a build that needs this many for the
 * script.
 */
const YARDSTICK = 412
const SCRIPT = `
for i = 1, 16 do
  local value = redis.call('GETRANGE', KEYS[1], 0, -1)
  redis.call('SET', KEYS[1], struct.pack('>d', #value + i), 'PX', 60000)
end
return redis.call('TIME')`
const script = { ask: (key: string) => client.eval(SCRIPT, 1, key) }
const scale = (await costOf(redis, script, 'lone')).thousands / YARDSTICK

it.each(Object.entries(FIGURES))('%s takes no more instructions than its bound', async (name, figures) => {
  for (const [i, load] of LOADS.entries()) {
    const measured = async () => {
      const shape = SHAPES[name as ShapeName](redisStore(client))
      return (await costOf(redis, shape, load)).thousands / scale
    }
    const bound = figures[i]! * ROOM
    const first = await measured()
    // Every quarter of a minute, all keys renew their TTLs, which adds up to 10%. They won't do that twice in a row.
    expect(first <= bound ? first : await measured(), load).toBeLessThanOrEqual(bound)
  }
})
