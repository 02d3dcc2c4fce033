import type { Redis } from 'ioredis'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { anyOf, callers } from '../callers.ts'
import { closedLoop, type Load } from '../load.ts'
import { bytesOf, mainThreadSeconds } from '../redis/info.ts'
import { PATIENCE_MS } from '../sides.ts'
import { slidegateCpuSide } from '../steady/ours.ts'
import { fullFor } from '../steady/traffic.ts'
import { assertFull } from '../steady/turn.ts'

const IN_FLIGHT = 1024
const KEYS = 10_000

export interface Turn {
  readonly load: Load
  readonly redisSeconds: number
}

/** One value on the x axis, with its limiter. */
export interface Point {
  readonly x: number
  turn(): Promise<Turn>
  /** Returns the memory of one key, in bytes. */
  bytes(): Promise<number>
  close(): void
}

/** Creates a point whose keys have full windows. */
export async function fullPoint(redis: Redis, x: number, limit: number, windowMs: number): Promise<Point> {
  const { precisionMs } = slidingWindow({ limit, window: windowMs })
  const name = `slidegate ${x}`
  const side = await slidegateCpuSide(redis, name, fullFor(limit, windowMs, precisionMs))
  return {
    x,
    async turn() {
      const turn = await side.turn()
      assertFull([turn])
      return { load: turn.load, redisSeconds: turn.seconds }
    },
    bytes: async () => bytesOf(redis, (await redis.keys(`slidegate:*:slidegate-${x}:*`)).slice(0, 1)),
    close: side.close,
  }
}

/** Creates a point whose keys never reach their limit. Windows last a few seconds. */
export async function roomyPoint(
  redis: Redis,
  x: number,
  {
    keys = KEYS,
    cost = 1,
    windows = 1,
    turnMs,
  }: { keys?: number; cost?: number; windows?: number; turnMs: number },
): Promise<Point> {
  const names = callers(keys)
  const limiter = createLimiter({
    name: `growth-${x}`,
    limits: Array.from({ length: windows }, (_, i) =>
      slidingWindow({ limit: 1_000_000_000, window: `${2 + i}s` }),
    ),
    store: redisStore(redis),
    timeoutMs: PATIENCE_MS,
  })
  const pick = anyOf(keys)
  return {
    x,
    async turn() {
      const before = await mainThreadSeconds(redis)
      const load = await closedLoop(
        IN_FLIGHT,
        { ms: turnMs },
        {
          pick,
          ask: (caller) => limiter.consume(names[caller]!, { cost }),
          check: ({ allowed, source }) => {
            if (!allowed || source !== 'store') throw new Error('The limiter denied a request that fits')
          },
        },
      )
      return { load, redisSeconds: ((await mainThreadSeconds(redis)) - before) / load.requests }
    },
    async bytes() {
      const first = await limiter.consume(names[0]!)
      if (!first.allowed) throw new Error('The limiter denied a request that fits')
      return bytesOf(redis, await redis.keys(`slidegate:*:growth-${x}:${names[0]}:*`))
    },
    close: () => limiter.close(),
  }
}
