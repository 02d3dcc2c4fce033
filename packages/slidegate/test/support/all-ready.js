// @ts-check
import { setTimeout as delay } from 'node:timers/promises'

const KEY = 'slidegate:ready'

/**
 * Resolves when `processes` processes are ready. On a slow machine, some start seconds after others.
 *
 * @param {import('ioredis').Redis | import('ioredis').Cluster} redis
 * @param {number} processes
 */
export async function allReady(redis, processes) {
  // If another process failed to start, this one would wait forever.
  process.once('disconnect', () => process.exit())
  await redis.incr(KEY)
  while (Number(await redis.get(KEY)) < processes) await delay(5)
}
