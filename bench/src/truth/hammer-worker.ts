import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../redis/with-redis.ts'
import { serve } from '../workers.ts'
import { type Hammering, isHammered, POLICY, QUIET_EVERY_TICKS, TICK_MS } from './hammer.ts'
import type { Seen } from './judge.ts'
import { type Asked, askedOnRedis, machineMs } from './limiters.ts'

let limiters: Asked[] = []

/** First told a server, it connects; then told a time, it hammers. */
serve<Hammering, Seen[][]>(async (told) => {
  if ('url' in told) {
    limiters = await askedOnRedis(connect(told.url), POLICY, told.writer)
    // Scripts are loaded, connections are warm.
    await Promise.all(limiters.map(({ ask }) => ask('warm-up', 0)))
    return []
  }
  const { startMs, endMs } = told
  const answers = limiters.map(() => [] as Promise<Seen>[])
  for (let tick = 0; ; tick++) {
    const dueMs = startMs + tick * TICK_MS
    if (dueMs >= endMs) break
    await delay(Math.max(0, dueMs - machineMs()))
    if (!isHammered(dueMs - startMs) && tick % QUIET_EVERY_TICKS !== 0) continue
    for (const [i, { ask }] of limiters.entries()) answers[i]!.push(ask('user:1', 0))
  }
  return Promise.all(answers.map((each) => Promise.all(each)))
})
