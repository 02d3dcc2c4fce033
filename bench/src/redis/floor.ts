import type { Redis } from 'ioredis'

/** The least that any script of a limiter costs: one EVALSHA with one key, which does nothing. */
export async function floorScript(redis: Redis): Promise<(key: string) => Promise<void>> {
  const sha1 = (await redis.script('LOAD', 'return 1')) as string
  return async (key) => {
    if ((await redis.evalsha(sha1, 1, key)) !== 1) throw new Error('the script did not return 1')
  }
}
