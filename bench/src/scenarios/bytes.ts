import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { onlyKey } from '../redis/copies.ts'
import { bytesOf } from '../redis/info.ts'
import { COMMON_SCRIPTS, type CommonScript } from '../redis/scripts.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { LinePlot } from '../report/plot.ts'
import type { Figure, Measured, Scenario } from '../scenario.ts'
import { PATIENCE_MS } from '../sides.ts'
import { WEIGHED_WINDOW_MS, weigh } from '../steady/weigh.ts'

/** Limits with a figure. */
const LIMITS = [1000, 10_000, 50_000]
const TARGET = { atMost: 20 }

/** Limits in the plot. The largest is slow for common scripts. */
const PLOTTED = { short: [100, 1000, 10_000], full: [100, ...LIMITS] }

const KEY = 'user:1'

export const bytes: Scenario = {
  name: 'bytes',
  title: 'Peak memory of a key in Redis per unit of its limit, over three windows of steady traffic',
  async run({ mode }): Promise<Measured> {
    const figures: Figure[] = []
    const weights = new Map<string, [limit: number, bytes: number][]>()
    const measure = async (name: string, limit: number, weigh: (redis: Redis) => Promise<number[]>) => {
      const bytes = await withRedis(weigh)
      weights.set(name, [...(weights.get(name) ?? []), [limit, Math.max(...bytes)]])
      if (LIMITS.includes(limit)) figures.push(figureOf(name, limit, bytes))
    }
    for (const limit of new Set([...PLOTTED[mode], ...LIMITS])) {
      await measure('slidegate', limit, (redis) => slidegateBytes(redis, limit))
      for (const script of PLOTTED[mode].includes(limit) ? COMMON_SCRIPTS : []) {
        await measure(script.name, limit, (redis) => scriptBytes(redis, script, limit))
      }
    }
    return { figures, plots: [plotOf(weights)] }
  },
}

async function slidegateBytes(redis: Redis, limit: number): Promise<number[]> {
  let nowMs = 0
  const limiter = createLimiter({
    name: 'bench',
    limits: [slidingWindow({ limit, window: WEIGHED_WINDOW_MS })],
    store: redisStore(redis, { clock: () => nowMs }),
    timeoutMs: PATIENCE_MS,
  })
  return weigh(limit, {
    async isAdmitted(atMs) {
      nowMs = atMs
      const decision = await limiter.consume(KEY)
      assert.equal(decision.atMs, atMs, 'the decision uses the time that was passed')
      return decision.allowed
    },
    bytesAt: async () => bytesOf(redis, [await onlyKey(redis, 'slidegate:*')]),
    admitsAll: true,
  })
}

async function scriptBytes(redis: Redis, script: CommonScript, limit: number): Promise<number[]> {
  const limiter = await script.open(redis, { limit, windowMs: WEIGHED_WINDOW_MS })
  return weigh(limit, {
    isAdmitted: async (atMs) => (await limiter.consume(KEY, atMs))[0] === 1,
    bytesAt: (atMs) => bytesOf(redis, script.keysOf(KEY, atMs, WEIGHED_WINDOW_MS)),
    // Counters are approximate, and deny some of this traffic. Their size doesn't depend on it.
    admitsAll: script.isLog,
  })
}

function figureOf(name: string, limit: number, weights: readonly number[]): Figure {
  const largest = Math.max(...weights)
  return {
    name: `${name}, limit ${limit}`,
    value: largest / limit,
    unit: 'bytes',
    target: name === 'slidegate' ? TARGET : undefined,
    note: `${largest} bytes`,
    raw: { bytes: weights },
  }
}

function plotOf(weights: ReadonlyMap<string, readonly (readonly [number, number])[]>): LinePlot {
  return {
    kind: 'lines',
    name: 'bytes-per-key',
    title: 'Peak memory of a key in Redis over three windows of steady traffic',
    note: "Logs store every admitted request, so they grow with the limit. They never admit too many requests. Counters don't grow.",
    x: { label: 'limit', isLog: true },
    y: { label: 'bytes', isLog: true },
    lines: Array.from(weights, ([label, points]) => ({
      label,
      role: label === 'slidegate' ? 'ours' : 'peer',
      points,
    })),
  }
}
