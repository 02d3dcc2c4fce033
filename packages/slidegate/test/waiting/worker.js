// @ts-check
// A process with callers that wait for one key again and again, using the built package.
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { allReady } from '../support/all-ready.js'

/** @typedef {import('./waiting-processes.test.ts').Order} Order */

process.once('message', async (/** @type {Order} */ order) => {
  const redis = new Redis(order.port)
  const store = redisStore(redis)
  const limiter = createLimiter({
    name: 'waiting',
    limits: [slidingWindow({ limit: order.limit, window: order.windowMs })],
    store,
    // Nothing may time out, however slow the machine, because it may have been charged.
    timeoutMs: 60_000,
  })
  await limiter.peek('ready')
  await allReady(redis, order.processes)

  /** @type {import('./waiting-processes.test.ts').Report} */
  const report = { admissions: [], endedAtMs: 0 }
  const endMs = performance.now() + order.durationMs
  const callers = Array.from({ length: order.callers }, async () => {
    for (;;) {
      const sinceMs = Date.now()
      if (performance.now() >= endMs) return
      const { atMs, cost } = await limiter.wait('k', { cost: order.cost, maxWaitMs: 60_000 })
      report.admissions.push({ atMs, cost, sinceMs })
    }
  })
  const ended = delay(order.durationMs).then(() => {
    report.endedAtMs = Date.now()
  })
  await Promise.all([ended, ...callers])
  limiter.close()
  await store.close()
  // Through a slow proxy, the reply to a QUIT would arrive too late.
  redis.disconnect()
  process.send?.(report, () => process.disconnect())
})
