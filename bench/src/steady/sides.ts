import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, type Limiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { callers, inTurn } from '../callers.ts'
import { closedLoop, type Load } from '../load.ts'
import { copyTo, onlyKey } from '../redis/copies.ts'
import type { FieldScript } from '../redis/field.ts'
import { floorKeys, physicalFloor } from '../redis/floor.ts'
import { mainThreadSeconds, scriptCallsOf } from '../redis/info.ts'
import type { Role } from '../report/plot.ts'
import { PATIENCE_MS } from '../sides.ts'
import { REQUESTS, type Traffic } from './traffic.ts'

const IN_FLIGHT = 1024

/** Requests at once while a past is made. */
const STEP = 512

export interface CpuTurn {
  /** CPU time of Redis per decision. */
  readonly seconds: number
  /** How full the windows were, from 0 to 1; 1 where it has no meaning. */
  readonly fullness: number
  readonly load: Load
}

export interface CpuSide {
  readonly name: string
  readonly role: Role
  turn(): Promise<CpuTurn>
  /** Decisions that travelled in one call, in the last turn. */
  batchSize(): number
  close(): void
}

/** Asks for every key, as often as makes a turn; each answer is `[admitted, remaining]`. */
async function turnOf(
  redis: Redis,
  traffic: Traffic,
  ask: (caller: number) => Promise<readonly [isAdmitted: boolean, remaining: number]>,
): Promise<CpuTurn> {
  const { outcome, limit, keys } = traffic
  let admitted = 0
  let used = 0
  const check = ([isAdmitted, remaining]: readonly [boolean, number]) => {
    if (isAdmitted) admitted++
    used += limit - remaining
  }
  const before = await mainThreadSeconds(redis)
  const load = await closedLoop(IN_FLIGHT, { requests: REQUESTS }, { pick: inTurn(keys), ask, check })
  const seconds = ((await mainThreadSeconds(redis)) - before) / REQUESTS
  assert.equal(admitted, outcome === 'admitted' ? REQUESTS : 0, 'requests admitted')
  return { seconds, fullness: used / REQUESTS / limit, load }
}

/** Windows that are meant to be full must not have run empty. */
export function assertFull(turns: readonly CpuTurn[]): void {
  for (const { fullness } of turns) {
    const percent = Math.round(fullness * 100)
    assert(
      fullness > 0.5 && fullness <= 1,
      `windows are ${percent}% full: the machine is too busy for steady traffic`,
    )
  }
}

export async function slidegateCpuSide(redis: Redis, name: string, traffic: Traffic): Promise<CpuSide> {
  const keys = callers(traffic.keys)
  const limiterName = name.replace(/\W+/g, '-')
  const limiter = limiterOf(redis, limiterName, traffic)
  // One caller is given a past, of which all others then get a copy.
  await Promise.all(keys.map((key) => limiter.consume(key)))
  const logs = await redis.keys(`slidegate:*:${limiterName}:*`)
  assert.equal(logs.length, keys.length)
  await slidegatePast(redis, limiterName, traffic, keys[0]!)
  const log = await onlyKey(redis, `slidegate:*:${limiterName}:${keys[0]}:*`)
  await copyTo(
    redis,
    log,
    logs.filter((other) => other !== log),
  )
  let batchSize = 1
  // `remaining` is the least of several windows, and the share in use is asked of the longest.
  const longest = traffic.shorter.length
  return {
    name,
    role: 'ours',
    async turn() {
      let turn: CpuTurn | undefined
      const { calls } = await scriptCallsOf(redis, async () => {
        turn = await turnOf(redis, traffic, async (caller) => {
          const { allowed, limits } = await limiter.consume(keys[caller]!)
          return [allowed, limits[longest]!.remaining]
        })
      })
      batchSize = Math.round(REQUESTS / calls)
      return turn!
    },
    close: () => limiter.close(),
    batchSize: () => batchSize,
  }
}

function limiterOf(
  redis: Redis,
  name: string,
  { limit, windowMs, shorter }: Traffic,
  clock?: () => number,
): Limiter {
  const limits = [...shorter, { limit, windowMs }].map(({ limit, windowMs }) =>
    slidingWindow({ limit, window: windowMs }),
  )
  return createLimiter({ name, limits, store: redisStore(redis, { clock }), timeoutMs: PATIENCE_MS })
}

/** Fills the windows of one caller with what was admitted before now. */
async function slidegatePast(redis: Redis, name: string, traffic: Traffic, key: string): Promise<void> {
  let nowMs = 0
  const past = limiterOf(redis, name, traffic, () => nowMs)
  await past.reset(key)
  const times = timesOf(traffic)
  for (let first = 0; first < times.length; first += STEP) {
    const made = times.slice(first, first + STEP).map((atMs) => {
      nowMs = atMs
      return past.consume(key, { cost: traffic.cost })
    })
    for (const [i, { allowed, atMs }] of (await Promise.all(made)).entries()) {
      assert(allowed && atMs <= times[first + i]!, 'a past that the limits admit')
    }
  }
  past.close()
}

function timesOf({ charges, apartMs }: Traffic): number[] {
  const startMs = Date.now() - charges * apartMs
  return Array.from({ length: charges }, (_, i) => Math.floor(startMs + i * apartMs))
}

export async function fieldCpuSide(redis: Redis, script: FieldScript, traffic: Traffic): Promise<CpuSide> {
  const keys = callers(traffic.keys)
  const limiter = await script.open(redis, traffic)
  for (const atMs of timesOf(traffic)) {
    const [admitted] = await limiter.consume(keys[0]!, atMs)
    assert.equal(admitted, 1, `a past that ${script.name} admits`)
  }
  const first = script.prefix + keys[0]
  for (const state of await redis.keys(`${first}*`)) {
    const rest = state.slice(first.length)
    await copyTo(
      redis,
      state,
      keys.slice(1).map((key) => script.prefix + key + rest),
    )
  }
  return {
    name: script.name,
    role: 'peer',
    async turn() {
      const turn = await turnOf(redis, traffic, async (caller) => {
        const [admitted, remaining] = await limiter.consume(keys[caller]!)
        return [admitted === 1, remaining]
      })
      return script.isLog ? turn : { ...turn, fullness: 1 }
    },
    batchSize: () => 1,
    close: () => {},
  }
}

/** Each key's small string read and written back, as many in one call as our decisions travel in. */
export async function floorCpuSide(redis: Redis, batchSize: () => number): Promise<CpuSide> {
  const keys = floorKeys(callers(REQUESTS))
  const writeBack = await physicalFloor(redis, keys)
  return {
    name: 'read and write back 64 bytes',
    role: 'floor',
    async turn() {
      const size = batchSize()
      const calls = Math.ceil(REQUESTS / size)
      const before = await mainThreadSeconds(redis)
      const load = await closedLoop(
        Math.max(1, Math.round(IN_FLIGHT / size)),
        { requests: calls },
        {
          pick: inTurn(calls),
          ask: (call) => writeBack(keys.slice(call * size, (call + 1) * size)),
          check: () => {},
        },
      )
      return { seconds: ((await mainThreadSeconds(redis)) - before) / REQUESTS, fullness: 1, load }
    },
    batchSize,
    close: () => {},
  }
}
