import type { Redis } from 'ioredis'
import type { Load } from './load.ts'
import { interleave } from './measure.ts'
import { mainThreadSeconds } from './redis/info.ts'
import type { Effort } from './scenario.ts'
import type { Side } from './sides.ts'

/** One turn's load and Redis CPU time. */
export interface Turn extends Load {
  /** CPU time of Redis per request. */
  readonly redisSeconds: number
}

export interface Turns {
  readonly side: Side
  readonly turns: readonly Turn[]
}

/** Runs the sides in turns on one Redis, then closes them. */
export async function takeTurns(
  redis: Redis,
  sides: readonly Side[],
  inFlight: number,
  { turnMs, rounds }: Effort,
): Promise<Turns[]> {
  const turn = async (side: Side): Promise<Turn> => {
    const before = await mainThreadSeconds(redis)
    const load = await side.load(inFlight, { ms: turnMs })
    return { ...load, redisSeconds: ((await mainThreadSeconds(redis)) - before) / load.requests }
  }
  const turns = await interleave(
    Object.fromEntries(sides.map((side) => [side.name, () => turn(side)])),
    rounds,
  )
  for (const side of sides) await side.close?.()
  return sides.map((side) => ({ side, turns: turns[side.name]! }))
}
