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
  'window, admitted': [114, 36.7],
  'window, denied': [90, 24.2],
  'three windows': [132, 41.7],
  bucket: [98.3, 24.3],
  'fixed window': [92.6, 22.3],
  'window and bucket': [155, 58.8],
  'window and shadow window': [169, 71.6],
  'window with ban': [162, 54.4],
  'two keys': [167, 72.4],
  'window, overrides, none set': [120, 40.9],
  'window, overrides, one per key': [206, 64.1],
  'everything on': [390, 163],
  zset: [149, 55.5],
  'zset, request id': [153, 61.2],
  distinct: [151, 58.6],
  stream: [210, 121],
  'concurrency, acquire or release': [192, 67.9],
  'sliding counter': [100, 25.7],
  'calendar window': [108, 23.0],
  'window, cost of 5': [122, 36.9],
  'window, refund': [267, 84.8],
  'window, peek': [119, 28.3],
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
