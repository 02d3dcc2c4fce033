// slidegate demo race: sends requests from many callers at once, and shows how many each limiter admits.

import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { connectRedis, parseRedisUrl } from '../decider.ts'
import { alignColumns } from '../text.ts'

const CALLERS = 50
const LIMIT = 10
const WINDOW_MS = 10_000

/** Decides one request on the caller's own connection. */
type Ask = () => Promise<boolean>

/** Returns the limiter for one caller. All callers share `key`. */
export type Racer = (redis: Redis, key: string) => Ask | Promise<Ask>

/** Counts with a list of times, oldest first. */
const list: Racer = (redis, key) => async () => {
  const nowMs = Date.now()
  const times = await redis.lrange(key, 0, -1)
  if (times.filter((atMs) => Number(atMs) > nowMs - WINDOW_MS).length >= LIMIT) return false
  await redis.rpush(key, nowMs)
  await redis.pexpire(key, WINDOW_MS)
  return true
}

let members = 0

const sortedSet: Racer = (redis, key) => async () => {
  const nowMs = Date.now()
  await redis.zremrangebyscore(key, 0, nowMs - WINDOW_MS)
  if ((await redis.zcard(key)) >= LIMIT) return false
  await redis.zadd(key, nowMs, `${members++}`)
  await redis.pexpire(key, WINDOW_MS)
  return true
}

/** Uses the sorted set while holding a lock, so that callers take turns. */
const locked: Racer = async (redis, key) => {
  const ask = await sortedSet(redis, key)
  const lock = `${key}:lock`
  return async () => {
    while ((await redis.set(lock, '1', 'PX', WINDOW_MS, 'NX')) === null) await delay(1)
    try {
      return await ask()
    } finally {
      await redis.del(lock)
    }
  }
}

const slidegate: Racer = async (redis, key) => {
  const prefix = key.slice(0, key.indexOf(':'))
  const limiter = createLimiter({
    ...{ name: 'race', store: redisStore(redis, { prefix }) },
    limits: [slidingWindow({ limit: LIMIT, window: WINDOW_MS })],
    ...{ timeoutMs: 30_000, logger: false, warnings: false },
  })
  // Loads the script.
  await limiter.peek(key)
  return async () => (await limiter.consume(key)).allowed
}

export const RACERS: Readonly<Record<string, Racer>> = {
  'list, one command at a time': list,
  'sorted set, one command at a time': sortedSet,
  'sorted set, under a lock': locked,
  slidegate,
}

interface Raced {
  readonly admitted: number
  /** Number of round trips per caller. */
  readonly tripsEach: number
  readonly ms: number
}

/** Sends one request per caller at the same time, each on its own connection. */
export async function race(connections: readonly Redis[], racer: Racer, key: string): Promise<Raced> {
  const asks = await Promise.all(connections.map((redis) => racer(redis, key)))
  let trips = 0
  for (const redis of connections) {
    const { sendCommand } = redis
    redis.sendCommand = (...command) => {
      trips++
      return sendCommand.apply(redis, command)
    }
  }
  const beganMs = performance.now()
  const answers = await Promise.all(asks.map((ask) => ask()))
  const ms = performance.now() - beganMs
  return { admitted: answers.filter(Boolean).length, tripsEach: trips / connections.length, ms }
}

/** @param store the URL of a Redis server; the demo deletes its own keys afterwards */
export async function runRace(store: string): Promise<void> {
  const connection = await connectRedis(parseRedisUrl(store))
  const { redis, prefix } = connection
  const rows = [['limiter', 'admitted', 'round trips per caller', 'time']]
  let admittedLast = 0
  try {
    for (const [name, racer] of Object.entries(RACERS)) {
      const connections = Array.from({ length: CALLERS }, () => redis.duplicate())
      try {
        await Promise.all(connections.map((each) => each.connect()))
        const { admitted, tripsEach, ms } = await race(connections, racer, `${prefix}:${rows.length}`)
        rows.push([name, `${admitted}`, tripsEach.toFixed(1), `${ms.toFixed(0)} ms`])
        admittedLast = admitted
      } finally {
        for (const each of connections) each.disconnect()
      }
    }
  } finally {
    await connection.close()
  }
  process.stdout.write(`${textOf(rows)}\n`)
  if (admittedLast !== LIMIT) {
    throw new Error(`slidegate admitted ${admittedLast} callers; expected exactly ${LIMIT}`)
  }
}

function textOf(rows: readonly (readonly string[])[]): string {
  return [
    `${CALLERS} callers, each with its own connection to Redis, send a request at the same time. The limit is ${LIMIT} per ${WINDOW_MS / 1000} s.`,
    '',
    ...alignColumns(rows),
    '',
    'Between the command that counts and the command that adds, other callers read the same count. A lock prevents this, but makes',
    'callers wait for each other. slidegate counts and adds in one script, which Redis runs without interruption.',
  ].join('\n')
}
