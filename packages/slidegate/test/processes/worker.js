// @ts-check
// A worker of an audit. Makes requests as fast as it can with the built package, and reports the admissions.
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createLimiter, slidingWindow, withLeases } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { allReady } from '../support/all-ready.js'

/** @typedef {import('./audit.ts').Order} Order */

const CALLERS = 24

process.once('message', async (/** @type {Order} */ order) => {
  const redis = new Redis(order.port)
  const { leaseMs } = order
  // The time when a lease was last used, by the machine's clock, which the server shares.
  let spentAtMs = 0
  const clock = () => {
    spentAtMs = Date.now()
    return performance.now()
  }
  const store = leaseMs === undefined ? redisStore(redis) : withLeases(redisStore(redis), { leaseMs, clock })
  // No request may time out, however slow the machine, because it may have been charged.
  const limits = order.limits.map((limit) => slidingWindow(limit))
  const limiter = createLimiter({ name: 'audit', limits, store, timeoutMs: 60_000 })
  await limiter.peek('ready')
  await allReady(redis, order.processes ?? 1)

  /** @type {import('./audit.ts').Report} */
  const report = { admissions: [], denied: 0 }
  let isDone = false
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let i = caller; !isDone; i++) {
      const key = `key${i % order.keys}`
      const decision = await limiter.consume(key, { cost: 1 + (i % order.costs) })
      const { allowed, atMs, cost, source } = decision
      const isLeased = leaseMs !== undefined && source === 'lease'
      if (source !== 'store' && !isLeased) throw new Error(`a decision came from ${source}`)
      const admission = { key, atMs: isLeased ? spentAtMs : atMs, cost, isLeased }
      if (allowed) report.admissions.push(admission)
      else report.denied++
      if (order.pauseMs !== undefined && i % 10 === 0) await delay(order.pauseMs)
    }
  })
  await delay(order.durationMs)
  isDone = true
  await Promise.all(callers)
  await store.close()
  await redis.quit()
  process.send?.(report, () => process.disconnect())
})
