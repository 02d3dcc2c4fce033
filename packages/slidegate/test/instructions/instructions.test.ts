// tier: system
import { Redis } from 'ioredis'
import { redisStore } from 'slidegate/redis'
import { afterAll, expect, it } from 'vitest'
import { costOf, LOADS, startCountingRedis } from '../support/instructions.ts'
import { SHAPES, type ShapeName } from '../support/shapes.ts'

// A change that makes Redis execute more instructions per decision fails here, on any machine.
// Lower the figures when a decision gets cheaper: `npm run bench -- instructions` prints the new ones.

/** Thousand instructions per decision: one request at a time, 64 at once. */
const FIGURES: Readonly<Record<ShapeName, readonly [lone: number, batch: number]>> = {
  'window, admitted': [119, 36.7],
  'window, denied': [87.9, 21.6],
  'three windows': [149, 47.4],
  bucket: [116, 35.2],
  'fixed window': [106, 24.1],
  'window and bucket': [175, 71.0],
  'window and shadow window': [177, 73.8],
  'window with ban': [423, 123],
  'two keys': [178, 74.5],
  'window, overrides, none set': [133, 40.9],
  'window, overrides, one per key': [452, 200],
  'everything on': [877, 435],
  zset: [300, 83.7],
  'zset, request id': [306, 92.0],
  distinct: [303, 87.7],
  stream: [369, 146],
  'concurrency, acquire or release': [293, 71.4],
  'sliding counter': [107, 28.2],
  'calendar window': [265, 63.5],
  'window, cost of 5': [125, 36.9],
  'window, refund': [304, 124],
  'window, peek': [256, 52.1],
}

/** Repeats differ by 1%. */
const ROOM = 1.06

const redis = await startCountingRedis()
const client = new Redis(redis.url)
afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

/** Other builds of Redis need more or fewer instructions. The figures are from one that needs this many for the script. */
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
