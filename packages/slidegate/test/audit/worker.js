// @ts-check
// One process of an audit: asks as fast as it can, on the package as it was built, and tells what was admitted.
import { setTimeout as delay } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import {
  concurrency,
  createLimiter,
  distinct,
  fixedWindow,
  slidingCounter,
  slidingWindow,
  tokenBucket,
  withLeases,
} from 'slidegate'
import { redisStore } from 'slidegate/redis'

/** @typedef {import('./audit.ts').Order} Order */
/** @typedef {import('./audit.ts').LimitOrder} LimitOrder */

/** @type {Record<NonNullable<LimitOrder['kind']>, (options: any) => import('slidegate').Limit>} */
const KINDS = { concurrency, distinct, fixedWindow, slidingCounter, slidingWindow, tokenBucket }

const CALLERS = 24

process.once('message', async (/** @type {Order} */ order) => {
  const redis = order.isCluster
    ? new Cluster([{ host: '127.0.0.1', port: order.port }])
    : new Redis(order.port)
  const { leaseMs } = order
  // The machine's clock, which is the server's too, whenever a lease is looked at.
  let spentAtMs = 0
  const clock = () => {
    spentAtMs = Date.now()
    return performance.now()
  }
  const store = leaseMs === undefined ? redisStore(redis) : withLeases(redisStore(redis), { leaseMs, clock })
  const limiter = createLimiter({
    name: 'audit',
    limits: order.limits.map(limitOf),
    store,
    // Nothing is to be given up, however slow the machine: what is given up may have been charged.
    timeoutMs: 60_000,
  })
  await limiter.peek('ready', order.values ? { value: 'ready' } : {})

  /** @type {import('./audit.ts').Report} */
  const report = { admissions: [], denied: 0 }
  let isDone = false
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let i = caller; !isDone; i++) {
      const key = `key${i % order.keys}`
      const options = { cost: 1 + (i % order.costs), value: valueFrom(order) }
      const permit = order.holdMs === undefined ? undefined : await limiter.acquire(key, options)
      const { allowed, atMs, cost, source } = permit?.decision ?? (await limiter.consume(key, options))
      const isLeased = leaseMs !== undefined && source === 'lease'
      if (source !== 'store' && !isLeased) throw new Error(`a decision came from ${source}`)
      const { value } = options
      const admission = { key, atMs: isLeased ? spentAtMs : atMs, cost, isLeased, ...(value && { value }) }
      if (permit?.allowed) {
        await delay(order.holdMs)
        const releasedAtMs = Date.now()
        if (!(await permit.release())) throw new Error('what was held was lost')
        report.admissions.push({ ...admission, releasedAtMs })
      } else if (allowed) {
        report.admissions.push(admission)
      } else {
        report.denied++
      }
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

/** @param {LimitOrder} order */
function limitOf({ kind = 'slidingWindow', ...options }) {
  return KINDS[kind](options)
}

/** @param {Order} order */
function valueFrom({ values }) {
  return values === undefined ? undefined : `value${Math.floor(Math.random() * values)}`
}
