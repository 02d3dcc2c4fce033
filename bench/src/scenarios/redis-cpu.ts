import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, type Limiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { callers, inTurn } from '../callers.ts'
import { closedLoop } from '../load.ts'
import { interleave, ratios, sum } from '../measure.ts'
import { copyTo, onlyKey } from '../redis/copies.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import { type ZsetConsume, zsetLimiter } from '../redis/zset.ts'
import type { Effort, Figure, Scenario } from '../scenario.ts'

const LIMITS = [10, 100, 1000]
const KEYS = 10_000
const IN_FLIGHT = 1024

/** Steady traffic asks for each key once in this time. */
const EVERY_MS = 1000

/** Requests that would still fit in steady traffic, so that one that comes a little early is admitted too. */
const spare = (limit: number) => Math.max(1.5, limit / 20)

/** Traffic of which everything is admitted into nearly full windows, or everything denied by full ones. */
interface Traffic {
  readonly outcome: 'admitted' | 'denied'
  readonly limit: number
  readonly windowMs: number
  /** Time between the requests that are in the windows at the start. */
  readonly apartMs: number
  /** How many those are. */
  readonly requestsBefore: number
}

export const redisCpu: Scenario = {
  name: 'redis-cpu',
  title: 'CPU time of Redis per decision, against a ZSET log, 10,000 keys, 1,024 in flight',
  run: async (effort) => {
    const figures: Figure[] = []
    for (const limit of LIMITS) {
      for (const traffic of [steady(limit), denied(limit)]) {
        figures.push(await withRedis((redis) => measure(redis, traffic, effort)))
      }
    }
    return figures
  },
}

/** With each request that comes, the oldest has left the window. */
function steady(limit: number): Traffic {
  const windowMs = (limit - spare(limit)) * EVERY_MS
  return { outcome: 'admitted', limit, windowMs, apartMs: EVERY_MS, requestsBefore: limit - 1 }
}

function denied(limit: number): Traffic {
  return { outcome: 'denied', limit, windowMs: 3_600_000, apartMs: 10, requestsBefore: limit }
}

async function measure(redis: Redis, traffic: Traffic, effort: Effort): Promise<Figure> {
  const keys = callers(KEYS)
  const zsetKeys = keys.map((key) => `zset:${key}`)
  let beforeMs = 0
  const limiterOf = (clock?: () => number) =>
    createLimiter({
      name: 'bench',
      limits: [slidingWindow({ limit: traffic.limit, window: traffic.windowMs })],
      store: redisStore(redis, { clock }),
      timeoutMs: 60_000,
    })
  const limiter = limiterOf()
  const zset = await zsetLimiter(redis, traffic.limit, traffic.windowMs)

  // One key is used as long as the windows reach back, the others become copies of it.
  await Promise.all(keys.map((key) => limiter.consume(key)))
  const stored = await redis.keys('slidegate:*')
  assert.equal(stored.length, KEYS)
  const [first, last] = [keys[0]!, await onlyKey(redis, `slidegate:*:${keys[0]}:*`)]
  const past = limiterOf(() => beforeMs)
  await past.reset(first)
  const startMs = Date.now() - traffic.requestsBefore * traffic.apartMs
  for (let i = 0; i < traffic.requestsBefore; i++) {
    beforeMs = startMs + i * traffic.apartMs
    const [decision, remaining] = await Promise.all([past.consume(first), zset(zsetKeys[0]!, beforeMs)])
    assert(decision.allowed && decision.atMs === beforeMs && remaining >= 0)
  }
  await copyTo(
    redis,
    last,
    stored.filter((key) => key !== last),
  )
  await copyTo(redis, zsetKeys[0]!, zsetKeys.slice(1))

  const isSteady = traffic.outcome === 'admitted'
  const turns = await interleave(
    {
      slidegate: () => turn(redis, traffic, slidegateSide(limiter, keys)),
      zset: () => turn(redis, traffic, zsetSide(zset, zsetKeys, traffic.limit)),
    },
    { ...effort.rounds, everyMs: isSteady ? EVERY_MS : 0 },
  )
  return figureOf(traffic, turns.slidegate, turns.zset)
}

/** Asks for the next key; answers how many more requests fit, -1 if this one was denied. */
type Ask = () => Promise<number>

function slidegateSide(limiter: Limiter, keys: readonly string[]): Ask {
  const pick = inTurn(keys.length)
  return async () => {
    const { allowed, remaining } = await limiter.consume(keys[pick()]!)
    return allowed ? remaining : -1
  }
}

function zsetSide(zset: ZsetConsume, keys: readonly string[], limit: number): Ask {
  const pick = inTurn(keys.length)
  return async () => {
    const remaining = await zset(keys[pick()]!)
    assert(remaining < limit)
    return remaining
  }
}

interface Turn {
  /** CPU time of Redis per decision. */
  readonly seconds: number
  /** How full the windows were, from 0 to 1. */
  readonly fullness: number
}

/** Every key once. */
async function turn(redis: Redis, { outcome, limit }: Traffic, ask: Ask): Promise<Turn> {
  let admitted = 0
  let used = 0
  const before = await mainThreadSeconds(redis)
  await closedLoop(IN_FLIGHT, { requests: KEYS }, async () => {
    const remaining = await ask()
    if (remaining >= 0) admitted++
    used += limit - Math.max(0, remaining)
  })
  const seconds = (await mainThreadSeconds(redis)) - before
  assert.equal(admitted, outcome === 'admitted' ? KEYS : 0, 'requests admitted')
  const fullness = used / KEYS / limit
  assert(
    fullness > 0.5,
    `windows are only ${Math.round(fullness * 100)}% full: the machine is too busy for steady traffic`,
  )
  return { seconds: seconds / KEYS, fullness }
}

function figureOf(traffic: Traffic, ours: readonly Turn[], zset: readonly Turn[]): Figure {
  const [ourSeconds, zsetSeconds] = [ours.map(({ seconds }) => seconds), zset.map(({ seconds }) => seconds)]
  const [ourFullness, zsetFullness] = [
    ours.map(({ fullness }) => fullness),
    zset.map(({ fullness }) => fullness),
  ]
  const [ourMean, zsetMean] = [mean(ourSeconds), mean(zsetSeconds)]
  const isSteady = traffic.outcome === 'admitted'
  return {
    name: `limit ${traffic.limit}, ${isSteady ? 'full windows in steady traffic, all admitted' : 'full windows, all denied'}`,
    // The whole, not the median round: what is done only every few requests, such as renewing a TTL, counts.
    value: ourMean / zsetMean,
    unit: 'x',
    target: isSteady ? { atMost: 0.55 } : undefined,
    spread: ratios(ourSeconds, zsetSeconds),
    note: `${(ourMean * 1e6).toFixed(2)} µs against ${(zsetMean * 1e6).toFixed(2)} µs; windows ${percent(ourFullness)} and ${percent(zsetFullness)} full`,
    raw: { slidegateSeconds: ourSeconds, zsetSeconds, slidegateFullness: ourFullness, zsetFullness },
  }
}

function mean(numbers: readonly number[]): number {
  return sum(numbers) / numbers.length
}

function percent(shares: readonly number[]): string {
  return `${Math.round(mean(shares) * 100)}%`
}
