import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../redis/with-redis.ts'
import { serve } from '../workers.ts'
import { type Hammering, isHammered, POLICY, QUIET_EVERY_TICKS, TICK_MS } from './hammer.ts'
import type { Seen } from './judge.ts'
import { machineMs, redisSubjects, type Subject } from './limiters.ts'

let limiters: Subject[] = []

/** Connects at the first message. Sends requests at the second. */
serve<Hammering, Seen[][]>(async (message) => {
  if ('url' in message) {
    limiters = await redisSubjects(connect(message.url), POLICY, message.writer)
    // Loads scripts and opens connections.
    await Promise.all(limiters.map(({ ask }) => ask('warm-up', 0)))
    return []
  }
  const { startMs, endMs } = message
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
