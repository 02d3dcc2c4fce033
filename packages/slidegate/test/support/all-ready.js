// @ts-check
import { setTimeout as delay } from 'node:timers/promises'

const KEY = 'slidegate:ready'

/**
 * Resolves when so many processes are ready: on a slow machine some take seconds longer to start than others.
 *
 * @param {import('ioredis').Redis | import('ioredis').Cluster} redis
 * @param {number} processes
 */
export async function allReady(redis, processes) {
  // Whoever waits for one that has failed would wait for ever.
  process.once('disconnect', () => process.exit())
  await redis.incr(KEY)
  while (Number(await redis.get(KEY)) < processes) await delay(5)
}
