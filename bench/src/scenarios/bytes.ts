import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { onlyKey } from '../redis/copies.ts'
import { withRedis } from '../redis/with-redis.ts'
import { zsetLimiter } from '../redis/zset.ts'
import type { Figure, Scenario } from '../scenario.ts'

const LIMITS = [1000, 10_000, 50_000]
const WINDOW_MS = 60_000
const WINDOWS = 3

/** Times per window that the key is weighed. */
const WEIGHINGS = 50

export const bytes: Scenario = {
  name: 'bytes',
  title:
    'Memory of a key in Redis per request that its limit admits, the largest over three windows of steady traffic',
  run: async () => {
    const figures: Figure[] = []
    for (const limit of LIMITS) {
      figures.push(await withRedis((redis) => slidegateBytes(redis, limit)))
      figures.push(await withRedis((redis) => zsetBytes(redis, limit)))
    }
    return figures
  },
}

async function slidegateBytes(redis: Redis, limit: number): Promise<Figure> {
  let nowMs = 0
  const limiter = createLimiter({
    name: 'bench',
    limits: [slidingWindow({ limit, window: WINDOW_MS })],
    store: redisStore(redis, { clock: () => nowMs }),
    timeoutMs: 60_000,
  })
  const weights = await weigh(redis, 'slidegate:*', limit, async (atMs) => {
    nowMs = atMs
    const decision = await limiter.consume('user:1')
    assert.equal(decision.atMs, atMs, 'the time that was handed in')
    return decision.allowed
  })
  return figureOf('slidegate', limit, weights, { atMost: 20 })
}

async function zsetBytes(redis: Redis, limit: number): Promise<Figure> {
  const zset = await zsetLimiter(redis, limit, WINDOW_MS)
  const weights = await weigh(
    redis,
    'zset:*',
    limit,
    async (atMs) => (await zset('zset:user:1', atMs))[0] === 1,
  )
  return figureOf('ZSET', limit, weights, undefined)
}

/** Steady traffic, just as much as the limit admits. Answers the bytes of the key from time to time. */
async function weigh(
  redis: Redis,
  pattern: string,
  limit: number,
  ask: (atMs: number) => Promise<boolean>,
): Promise<number[]> {
  const startMs = Date.now()
  const atOnce = limit / WEIGHINGS
  const weights: number[] = []
  for (let sent = 0; sent < WINDOWS * limit; sent += atOnce) {
    const answers = Array.from({ length: atOnce }, (_, i) =>
      ask(startMs + Math.floor(((sent + i) * WINDOW_MS) / limit)),
    )
    assert(
      (await Promise.all(answers)).every((isAdmitted) => isAdmitted),
      'all of what the limit admits',
    )
    weights.push((await redis.memory('USAGE', await onlyKey(redis, pattern), 'SAMPLES', 0)) ?? 0)
  }
  return weights
}

function figureOf(side: string, limit: number, weights: readonly number[], target: Figure['target']): Figure {
  const largest = Math.max(...weights)
  return {
    name: `${side}, limit ${limit}`,
    value: largest / limit,
    unit: 'bytes',
    target,
    note: `${largest} bytes`,
    raw: { bytes: weights },
  }
}
