import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

const SCRIPT = readFileSync(new URL('./zset.lua', import.meta.url), 'utf8')

/** Answers how many requests still fit, -1 where the request was denied. */
export type ZsetConsume = (key: string, nowMs?: number) => Promise<number>

/** A limiter on the sorted set script, one EVALSHA per request. */
export async function zsetLimiter(redis: Redis, limit: number, windowMs: number): Promise<ZsetConsume> {
  const sha1 = (await redis.script('LOAD', SCRIPT)) as string
  let requests = 0
  return async (key, nowMs) => {
    const reply = await redis.evalsha(sha1, 1, key, limit, windowMs, ++requests, nowMs ?? '')
    const [admitted, remaining] = reply as [number, number]
    return admitted === 1 ? remaining : -1
  }
}
