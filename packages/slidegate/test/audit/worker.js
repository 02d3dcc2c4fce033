// @ts-check
// One process of an audit: asks as fast as it can, on the package as it was built, and tells what was admitted.
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'

/** @typedef {import('./audit.ts').Order} Order */

const CALLERS = 24

process.once('message', async (/** @type {Order} */ order) => {
  const redis = new Redis(order.port)
  const limiter = createLimiter({
    name: 'audit',
    limits: order.limits.map((limit) => slidingWindow(limit)),
    store: redisStore(redis),
    // Nothing is to be given up, however slow the machine: what is given up may have been charged.
    timeoutMs: 60_000,
  })
  await limiter.peek('ready')

  /** @type {import('./audit.ts').Report} */
  const report = { admissions: [], denied: 0 }
  let isDone = false
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let i = caller; !isDone; i++) {
      const key = `key${i % order.keys}`
      const { allowed, atMs, cost, source } = await limiter.consume(key, { cost: 1 + (i % order.costs) })
      if (source !== 'store') throw new Error(`a decision came from ${source}`)
      if (allowed) report.admissions.push({ key, atMs, cost })
      else report.denied++
    }
  })
  await delay(order.durationMs)
  isDone = true
  await Promise.all(callers)
  await redis.quit()
  process.send?.(report, () => process.disconnect())
})
