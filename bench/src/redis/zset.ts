import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

const SCRIPT = readFileSync(new URL('./zset.lua', import.meta.url), 'utf8')

/** What the script answers: 1 if admitted, else 0; requests that still fit. */
export type ZsetAnswer = readonly [admitted: number, remaining: number]

export type ZsetConsume = (key: string, nowMs?: number) => Promise<ZsetAnswer>

/** A limiter on the sorted set script, one EVALSHA per request. */
export async function zsetLimiter(redis: Redis, limit: number, windowMs: number): Promise<ZsetConsume> {
  const sha1 = (await redis.script('LOAD', SCRIPT)) as string
  let requests = 0
  return (key, nowMs) =>
    redis.evalsha(sha1, 1, key, limit, windowMs, ++requests, nowMs ?? '') as Promise<ZsetAnswer>
}
