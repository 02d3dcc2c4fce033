import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { onlyKey } from '../redis/copies.ts'
import { FIELD_SCRIPTS, type FieldScript } from '../redis/field.ts'
import { bytesOf } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { LinePlot } from '../report/plot.ts'
import type { Figure, Measured, Scenario } from '../scenario.ts'
import { PATIENCE_MS } from '../sides.ts'
import { WEIGHED_WINDOW_MS, weigh } from '../steady/weigh.ts'

/** What is asked for. */
const LIMITS = [1000, 10_000, 50_000]
const TARGET = { atMost: 20 }

/** For the plot too. The greatest takes the scripts of the field its time. */
const PLOTTED = { short: [100, 1000, 10_000], full: [100, ...LIMITS] }

const KEY = 'user:1'

export const bytes: Scenario = {
  name: 'bytes',
  title:
    'Memory of a key in Redis per request that its limit admits, the largest over three windows of steady traffic',
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
      for (const script of PLOTTED[mode].includes(limit) ? FIELD_SCRIPTS : []) {
        await measure(script.name, limit, (redis) => fieldBytes(redis, script, limit))
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
      assert.equal(decision.atMs, atMs, 'the time that was handed in')
      return decision.allowed
    },
    bytesAt: async () => bytesOf(redis, [await onlyKey(redis, 'slidegate:*')]),
    admitsAll: true,
  })
}

async function fieldBytes(redis: Redis, script: FieldScript, limit: number): Promise<number[]> {
  const limiter = await script.open(redis, { limit, windowMs: WEIGHED_WINDOW_MS })
  return weigh(limit, {
    isAdmitted: async (atMs) => (await limiter.consume(KEY, atMs))[0] === 1,
    bytesAt: (atMs) => bytesOf(redis, script.keysOf(KEY, atMs, WEIGHED_WINDOW_MS)),
    // Counters guess, and deny some of this traffic; they take no more for what they admit.
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
    title: 'Memory of a key in Redis, the largest over three windows of steady traffic',
    note: 'What grows keeps every admitted request: a log, which never admits too many. What does not is a counter.',
    x: { label: 'limit', isLog: true },
    y: { label: 'bytes', isLog: true },
    lines: Array.from(weights, ([label, points]) => ({
      label,
      role: label === 'slidegate' ? 'ours' : 'peer',
      points,
    })),
  }
}
