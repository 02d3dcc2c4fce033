import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import {
  type ConsumeOptions,
  createLimiter,
  type Decision,
  type Limit,
  type Limiter,
  slidingWindow,
} from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { callers } from '../callers.ts'
import { copyTo } from '../redis/copies.ts'
import { scriptCallsOf } from '../redis/info.ts'
import { PATIENCE_MS } from '../sides.ts'
import { KNOWN_VALUE, nameOf, type Traffic, timesOf } from './traffic.ts'
import { type CpuSide, type CpuTurn, turnOf } from './turn.ts'

/** Requests in flight while keys are prepared. */
const STEP = 512

/** The limits of one of our limiters, and how it is called. */
export interface Use {
  readonly limits: readonly Limit[]
  /** For `distinct`: a new value per request, or always the same. */
  readonly values?: 'new' | 'known'
  /** For `concurrency`: whether a slot is released as soon as it is acquired. */
  readonly isHeld?: boolean
}

function windowsOf({ limit, windowMs, shorter }: Traffic): Use {
  return {
    limits: [...shorter, { limit, windowMs }].map(({ limit, windowMs }) =>
      slidingWindow({ limit, window: windowMs }),
    ),
  }
}

export async function slidegateCpuSide(
  redis: Redis,
  name: string,
  traffic: Traffic,
  use: Use = windowsOf(traffic),
): Promise<CpuSide> {
  const keys = callers(traffic.keys)
  const limiterName = name.replace(/\W+/g, '-')
  const limiter = limiterOf(redis, limiterName, use)
  await fill(redis, limiterName, traffic, use, keys)
  let batchSize = 1
  let sent = 0
  // The limit whose usage is checked. A decision's `remaining` is the minimum over all limits.
  const place = use.limits.findIndex(({ limit }) => limit === traffic.limit)
  return {
    name,
    role: 'ours',
    async turn() {
      let turn: CpuTurn | undefined
      const { calls } = await scriptCallsOf(redis, async () => {
        turn = await turnOf(redis, traffic, async (caller) => {
          const { allowed, limits } = await ask(limiter, keys[caller]!, use, sent++)
          return [allowed, limits[place]!.remaining]
        })
      })
      batchSize = Math.round(turn!.load.requests / calls)
      return turn!
    },
    close: () => limiter.close(),
    batchSize: () => batchSize,
  }
}

async function ask(limiter: Limiter, key: string, use: Use, number: number): Promise<Decision> {
  if (!use.isHeld) return limiter.consume(key, optionsOf(use, `new-${number}`))
  const permit = await limiter.acquire(key)
  if (permit.allowed) assert(await permit.release(), 'the permit is held until its release')
  return permit.decision
}

/** The options of a request with a new name. */
function optionsOf({ limits, values }: Use, name: string): ConsumeOptions {
  if (values !== undefined) return { value: values === 'known' ? KNOWN_VALUE : name }
  return limits.some(({ kind }) => kind.entries?.are === 'holder') ? { requestId: name } : {}
}

export function limiterOf(redis: Redis, name: string, { limits }: Use, clock?: () => number): Limiter {
  return createLimiter({ name, limits, store: redisStore(redis, { clock }), timeoutMs: PATIENCE_MS })
}

/** Fills one key's logs, then copies them to all other keys. */
async function fill(redis: Redis, name: string, traffic: Traffic, use: Use, keys: readonly string[]) {
  const [first, ...others] = keys
  // Creates the logs to copy to.
  const limiter = limiterOf(redis, name, use)
  await Promise.all(keys.map((key) => limiter.consume(key, optionsOf(use, KNOWN_VALUE))))
  limiter.close()
  const logs = logsByKey(await redis.keys(`slidegate:*:${name}:*`), name)
  assert.equal(logs.size, keys.length)
  await makePast(redis, name, traffic, use, first!)
  for (const log of logs.get(first!)!.keys()) {
    await copyTo(
      redis,
      logs.get(first!)!.get(log)!,
      others.map((key) => logs.get(key)!.get(log)!),
    )
  }
}

/** Returns a map: key -> name of a log -> key in Redis. */
function logsByKey(stored: readonly string[], name: string): Map<string, Map<string, string>> {
  const logs = new Map<string, Map<string, string>>()
  for (const key of stored) {
    const [caller, log] = key.slice(key.indexOf(`:${name}:`) + name.length + 2).split(/:(?=[^:]+$)/) as [
      string,
      string,
    ]
    logs.set(caller, (logs.get(caller) ?? new Map<string, string>()).set(log, key))
  }
  return logs
}

/** Fills one key's windows with past requests. */
async function makePast(redis: Redis, name: string, traffic: Traffic, use: Use, key: string): Promise<void> {
  let nowMs = 0
  const past = limiterOf(redis, name, use, () => nowMs)
  await past.reset(key)
  const times = timesOf(traffic)
  for (let first = 0; first < times.length; first += STEP) {
    const made = times.slice(first, first + STEP).map((atMs, i) => {
      nowMs = atMs
      const name = nameOf(traffic, first + i)
      return past.consume(key, {
        cost: traffic.cost,
        ...optionsOf(use, name),
        ...(use.values && { value: name }),
      })
    })
    for (const [i, { allowed, atMs }] of (await Promise.all(made)).entries()) {
      assert(allowed && atMs <= times[first + i]!, 'the limits admit all past requests')
    }
  }
  past.close()
}
