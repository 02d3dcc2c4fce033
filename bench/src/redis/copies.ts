import type { Redis } from 'ioredis'

/** The one key in Redis that matches a pattern. */
export async function onlyKey(redis: Redis, pattern: string): Promise<string> {
  const keys = await redis.keys(pattern)
  if (keys.length !== 1) throw new Error(`${keys.length} keys match ${pattern} where there should be one`)
  return keys[0]!
}

/** Makes other keys hold what one holds, TTL and all. */
export async function copyTo(redis: Redis, from: string, others: readonly string[]): Promise<void> {
  const copied = await Promise.all(others.map((to) => redis.copy(from, to, 'REPLACE')))
  if (copied.some((count) => count !== 1)) throw new Error(`${from} could not be copied`)
}
