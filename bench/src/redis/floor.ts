import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

/** A call that no limiter can be cheaper than, and a check of its answer. */
export interface Floor {
  readonly name: string
  /** The part that distinguishes the call's keys, if it writes to them. See {@link floorKeys}. */
  readonly slug?: string
  readonly ask: (key: string) => Promise<unknown>
  readonly isAnswer: (answer: unknown) => boolean
}

/** Returns keys as long as a limiter's. */
export function floorKeys(keys: readonly string[], slug = 'bench'): string[] {
  return keys.map((key) => `floor:{0}:${slug}:${key}:w1`)
}

/** The cheapest possible script: an EVALSHA with one key that does nothing. */
export async function evalshaFloor(redis: Redis): Promise<Floor> {
  const sha1 = (await redis.script('LOAD', 'return 1')) as string
  return {
    name: 'EVALSHA `return 1`',
    ask: (key) => redis.evalsha(sha1, 1, key),
    isAnswer: (answer) => answer === 1,
  }
}

/** The cheapest command. */
export function pingFloor(redis: Redis): Floor {
  return { name: 'PING', ask: () => redis.ping(), isAnswer: (answer) => answer === 'PONG' }
}

/** A counter without a limit. */
export function incrFloor(redis: Redis): Floor {
  return { name: 'INCR', ask: (key) => redis.incr(key), isAnswer: (answer) => Number(answer) > 0 }
}

const PHYSICAL_FLOOR = readFileSync(new URL('./physical-floor.lua', import.meta.url), 'utf8')

/** Size of the string per key. */
const STATE_BYTES = 64

/** Creates small strings. Returns a function that reads and writes back some of them in one call. */
export async function physicalFloor(
  redis: Redis,
  keys: readonly string[],
): Promise<(keys: readonly string[]) => Promise<void>> {
  const sha1 = (await redis.script('LOAD', PHYSICAL_FLOOR)) as string
  const state = 'x'.repeat(STATE_BYTES)
  await Promise.all(keys.map((key) => redis.set(key, state, 'PX', 3_600_000)))
  return async (some) => {
    const reply = (await redis.evalsha(sha1, some.length, ...some)) as number[]
    if (reply.length !== some.length || reply.some((one) => one !== 1)) {
      throw new Error('The script did not write back every key')
    }
  }
}
