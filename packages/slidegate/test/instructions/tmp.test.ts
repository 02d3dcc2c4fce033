// tier: system
import { Redis } from 'ioredis'
import { redisStore } from 'slidegate/redis'
import { afterAll, it } from 'vitest'
import { costOf, LOADS, startCountingRedis } from '../support/instructions.ts'
import { SHAPES, type ShapeName } from '../support/shapes.ts'
const redis = await startCountingRedis()
const client = new Redis(redis.url)
afterAll(async () => { client.disconnect(); await redis.stop() })
const names = Object.keys(SHAPES).filter((n) => new RegExp(process.env.SHAPE ?? '.').test(n))
it('prints', async () => {
  for (const name of names) {
    const out = []
    for (const load of LOADS) out.push((await costOf(redis, SHAPES[name as ShapeName](redisStore(client)), load)).thousands.toFixed(1))
    process.stdout.write(`@ ${name.padEnd(34)} ${out.join(' / ')}\n`)
  }
}, 200000)
