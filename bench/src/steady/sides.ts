import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { callers, inTurn } from '../callers.ts'
import { closedLoop } from '../load.ts'
import { copyTo } from '../redis/copies.ts'
import { floorKeys, physicalFloor } from '../redis/floor.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import type { CommonScript } from '../redis/scripts.ts'
import type { Use } from './ours.ts'
import { IN_FLIGHT, KNOWN_VALUE, nameOf, REQUESTS, type Traffic, timesOf } from './traffic.ts'
import { type CpuSide, turnOf } from './turn.ts'

/** Runs a common script with the same traffic as our limiter. */
export async function scriptCpuSide(
  redis: Redis,
  script: CommonScript,
  traffic: Traffic,
  { values, isHeld }: Pick<Use, 'values' | 'isHeld'> = {},
): Promise<CpuSide> {
  const keys = callers(traffic.keys)
  const limiter = await script.open(redis, traffic)
  for (const [i, atMs] of timesOf(traffic).entries()) {
    const [admitted] = await limiter.consume(keys[0]!, atMs, nameOf(traffic, i))
    assert.equal(admitted, 1, `${script.name} admits all past requests`)
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
  let sent = 0
  return {
    name: script.name,
    role: 'peer',
    async turn() {
      const turn = await turnOf(redis, traffic, async (caller) => {
        const name = values === 'known' ? KNOWN_VALUE : `new-${sent++}`
        const [admitted, remaining] = await limiter.consume(keys[caller]!, undefined, name)
        if (isHeld && admitted === 1) {
          assert(await limiter.release(keys[caller]!, name), 'the slot is held until its release')
        }
        return [admitted === 1, remaining]
      })
      return script.isLog ? turn : { ...turn, fullness: 1 }
    },
    batchSize: () => 1,
    close: () => {},
  }
}

/** Reads and writes back a small string per key, in batches as large as ours. */
export async function floorCpuSide(redis: Redis, batchSize: () => number): Promise<CpuSide> {
  const keys = floorKeys(callers(REQUESTS))
  const writeBack = await physicalFloor(redis, keys)
  return {
    name: 'read and write 64 bytes',
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
