import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

/** What a limiter cannot cost less than, and the answer by which it is known to have taken place. */
export interface Floor {
  readonly name: string
  /** Tells its keys from those of others, where it writes to them; {@link floorKeys}. */
  readonly slug?: string
  readonly ask: (key: string) => Promise<unknown>
  readonly isAnswer: (answer: unknown) => boolean
}

/** Keys as long as those of a limiter. */
export function floorKeys(keys: readonly string[], slug = 'bench'): string[] {
  return keys.map((key) => `floor:{0}:${slug}:${key}:w1`)
}

/** The least that any script of a limiter costs: one EVALSHA with one key, which does nothing. */
export async function evalshaFloor(redis: Redis): Promise<Floor> {
  const sha1 = (await redis.script('LOAD', 'return 1')) as string
  return {
    name: 'EVALSHA `return 1`',
    ask: (key) => redis.evalsha(sha1, 1, key),
    isAnswer: (answer) => answer === 1,
  }
}

/** The least that any command costs. */
export function pingFloor(redis: Redis): Floor {
  return { name: 'PING', ask: () => redis.ping(), isAnswer: (answer) => answer === 'PONG' }
}

/** A counter that limits nothing. */
export function incrFloor(redis: Redis): Floor {
  return { name: 'INCR', ask: (key) => redis.incr(key), isAnswer: (answer) => Number(answer) > 0 }
}

const PHYSICAL_FLOOR = readFileSync(new URL('./physical-floor.lua', import.meta.url), 'utf8')

/** Bytes of the string that is read and written back. */
const STATE_BYTES = 64

/** Reads and writes back a small string for each of some keys, in one call; the keys are those that it was made with. */
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
      throw new Error('the script did not write back each key')
    }
  }
}
