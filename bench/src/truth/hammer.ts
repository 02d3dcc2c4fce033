import type { Policy } from '../peers/peer.ts'
import { connect, startOpenRedis } from '../redis/with-redis.ts'
import { startWorkers } from '../workers.ts'
import { judge, type Seen, type Verdict } from './judge.ts'
import { machineMs, redisSubjects } from './limiters.ts'

const PROCESSES = 8

export const POLICY: Policy = { limit: 100, windowMs: 1000 }

/** Time between two of a process's requests to a limiter while the process hammers it. */
export const TICK_MS = 10
/** Ticks between two requests at other times. */
export const QUIET_EVERY_TICKS = 20

/** The hammering lasts half a second, after a pause that isn't aligned with windows. */
const QUIET_MS = 780
const HAMMERED_MS = 500

export function isHammered(afterMs: number): boolean {
  return afterMs % (QUIET_MS + HAMMERED_MS) >= QUIET_MS
}

/** Connects a worker, or makes it hammer. */
export type Hammering =
  | { readonly url: string; readonly writer: string }
  | { readonly startMs: number; readonly endMs: number }

/** Lets several processes hammer all limiters on one Redis at the same time. */
export async function measureHammering(ms: number): Promise<Verdict[]> {
  const server = await startOpenRedis()
  const workers = startWorkers<Hammering, Seen[][]>(new URL('./hammer-worker.ts', import.meta.url), PROCESSES)
  const redis = connect(server.url)
  try {
    await Promise.all(workers.map(({ ask }, i) => ask({ url: server.url, writer: `${i}-` })))
    const startMs = machineMs() + 100
    const seen = await Promise.all(workers.map(({ ask }) => ask({ startMs, endMs: startMs + ms })))
    const limiters = await redisSubjects(redis, POLICY, '')
    return limiters.map((limiter, i) =>
      judge(
        limiter,
        seen.flatMap((each) => each[i]!),
        POLICY,
      ),
    )
  } finally {
    for (const worker of workers) worker.end()
    redis.disconnect()
    await server.stop()
  }
}
