// @ts-check
// One process of those that wait for one key, on the package as it was built: callers that wait again and again.
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
    // Nothing is to be given up, however slow the machine: what is given up may have been charged.
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
  // Through a proxy that is slow, the reply to a QUIT would come too late.
  redis.disconnect()
  process.send?.(report, () => process.disconnect())
})
