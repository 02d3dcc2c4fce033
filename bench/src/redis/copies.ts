import type { Redis } from 'ioredis'

/** Returns the only key that matches a pattern. */
export async function onlyKey(redis: Redis, pattern: string): Promise<string> {
  const keys = await redis.keys(pattern)
  if (keys.length !== 1) throw new Error(`${keys.length} keys match ${pattern}, expected one`)
  return keys[0]!
}

/** Copies a key, with its TTL, over other keys. */
export async function copyTo(redis: Redis, from: string, others: readonly string[]): Promise<void> {
  const copied = await Promise.all(others.map((to) => redis.copy(from, to, 'REPLACE')))
  if (copied.some((count) => count !== 1)) throw new Error(`Failed to copy ${from}`)
}
