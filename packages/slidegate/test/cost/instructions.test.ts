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
  'window, admitted': [109, 36],
  'window, denied': [85, 21.6],
  'three windows': [123, 40.7],
  bucket: [94.5, 24.3],
  'fixed window': [90, 20.4],
  'window and bucket': [150, 57.5],
  'window and shadow window': [164, 70.3],
  'window with ban': [158, 54.3],
  'two keys': [163, 71.2],
  'window, overrides, none set': [119, 40.8],
  'window, overrides, one per key': [153, 48.4],
  'everything on': [315, 142],
  zset: [146, 53.4],
  'zset, request id': [152, 57.6],
  distinct: [152, 57.6],
  'distinct, approximate': [285, 195],
  stream: [210, 118],
  'concurrency, acquire or release': [185, 66.6],
  'sliding counter': [99, 24.9],
  'calendar window': [105, 22.2],
  'window, cost of 5': [118, 36.7],
  'window, refund': [230, 82.7],
  'window, peek': [112, 25.5],
}

/** The tolerance. Repeated measurements differ by 1%, and renewed TTLs add a few percent. */
const ROOM = 1.06

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
    const shape = SHAPES[name as ShapeName](redisStore(client))
    const { thousands } = await costOf(redis, shape, load)
    expect(thousands / scale, load).toBeLessThanOrEqual(figures[i]! * ROOM)
  }
})
