import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, type Decision, type Limiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { callers, inTurn } from '../callers.ts'
import { closedLoop, type Requests } from '../load.ts'
import { interleave, ratios, sum } from '../measure.ts'
import { copyTo, onlyKey } from '../redis/copies.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import { type ZsetAnswer, type ZsetConsume, zsetLimiter } from '../redis/zset.ts'
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
  const limiter = limiterOf(redis, traffic)
  const zset = await zsetLimiter(redis, traffic.limit, traffic.windowMs)

  // One caller is given a past, of which all others then get a copy.
  await Promise.all(keys.map((key) => limiter.consume(key)))
  const logs = await redis.keys('slidegate:*')
  assert.equal(logs.length, KEYS)
  await givePast(redis, traffic, keys[0]!, zset, zsetKeys[0]!)
  const log = await onlyKey(redis, `slidegate:*:${keys[0]}:*`)
  const otherLogs = logs.filter((key) => key !== log)
  await copyTo(redis, log, otherLogs)
  await copyTo(redis, zsetKeys[0]!, zsetKeys.slice(1))

  const turns = await interleave(
    {
      slidegate: () => slidegateTurn(redis, traffic, limiter, keys),
      zset: () => zsetTurn(redis, traffic, zset, zsetKeys),
    },
    { ...effort.rounds, everyMs: traffic.outcome === 'admitted' ? EVERY_MS : 0 },
  )
  limiter.close()
  return figureOf(traffic, turns.slidegate, turns.zset)
}

function limiterOf(redis: Redis, { limit, windowMs }: Traffic, clock?: () => number): Limiter {
  const limits = [slidingWindow({ limit, window: windowMs })]
  return createLimiter({ name: 'bench', limits, store: redisStore(redis, { clock }), timeoutMs: 60_000 })
}

/** Fills the windows of one caller with requests made before now. */
async function givePast(
  redis: Redis,
  traffic: Traffic,
  key: string,
  zset: ZsetConsume,
  zsetKey: string,
): Promise<void> {
  const { requestsBefore, apartMs } = traffic
  const startMs = Date.now() - requestsBefore * apartMs
  let atMs = startMs
  const past = limiterOf(redis, traffic, () => atMs)
  await past.reset(key)
  for (let i = 0; i < requestsBefore; i++) {
    atMs = startMs + i * apartMs
    const [decision, [isAdmitted]] = await Promise.all([past.consume(key), zset(zsetKey, atMs)])
    assert(decision.allowed && decision.atMs === atMs && isAdmitted === 1)
  }
  past.close()
}

interface Turn {
  /** CPU time of Redis per decision. */
  readonly seconds: number
  /** How full the windows were, from 0 to 1. */
  readonly fullness: number
}

function slidegateTurn(redis: Redis, traffic: Traffic, limiter: Limiter, keys: string[]): Promise<Turn> {
  return turn<Decision>(redis, traffic, (tally) => ({
    pick: inTurn(keys.length),
    ask: (caller) => limiter.consume(keys[caller]!),
    check: ({ allowed, remaining }) => tally(allowed, remaining),
  }))
}

function zsetTurn(redis: Redis, traffic: Traffic, zset: ZsetConsume, keys: string[]): Promise<Turn> {
  return turn<ZsetAnswer>(redis, traffic, (tally) => ({
    pick: inTurn(keys.length),
    ask: (caller) => zset(keys[caller]!),
    check: ([admitted, remaining]) => tally(admitted === 1, remaining),
  }))
}

/** Asks for every key once. */
async function turn<Answer>(
  redis: Redis,
  { outcome, limit }: Traffic,
  requestsOf: (tally: (isAdmitted: boolean, remaining: number) => void) => Requests<Answer>,
): Promise<Turn> {
  let admitted = 0
  let used = 0
  const requests = requestsOf((isAdmitted, remaining) => {
    if (isAdmitted) admitted++
    used += limit - remaining
  })
  const before = await mainThreadSeconds(redis)
  await closedLoop(IN_FLIGHT, { requests: KEYS }, requests)
  const seconds = (await mainThreadSeconds(redis)) - before
  assert.equal(admitted, outcome === 'admitted' ? KEYS : 0, 'requests admitted')
  const fullness = used / KEYS / limit
  assert(
    fullness > 0.5 && fullness <= 1,
    `windows are ${Math.round(fullness * 100)}% full: the machine is too busy for steady traffic`,
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
