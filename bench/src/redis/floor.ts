import type { Redis } from 'ioredis'

/** The least that any script of a limiter costs: one EVALSHA with one key, which does nothing. Answers 1. */
export async function floorScript(redis: Redis): Promise<(key: string) => Promise<unknown>> {
  const sha1 = (await redis.script('LOAD', 'return 1')) as string
  return (key) => redis.evalsha(sha1, 1, key)
}
