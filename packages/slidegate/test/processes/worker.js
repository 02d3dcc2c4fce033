// @ts-check
// One process of an audit: asks as fast as it can, on the package as it was built, and tells what was admitted.
import { setTimeout as delay } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import { createLimiter, slidingWindow, withLeases } from 'slidegate'
import { redisStore } from 'slidegate/redis'
// The instants of a charge are not public.
import { chargeOf } from '../../dist/limiter/refund.js'
import { allReady } from '../support/all-ready.js'

/** @typedef {import('./audit.ts').Order} Order */

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
  // Nothing is to be given up, however slow the machine: what is given up may have been charged.
  const options = { name: 'audit', store, timeoutMs: 60_000 }
  const limiter = order.dimensions
    ? createLimiter({ ...options, dimensions: dimensionsOf(order.dimensions) })
    : createLimiter({ ...options, limits: order.limits.map((limit) => slidingWindow(limit)) })
  await limiter.peek(keyFrom(order, 0, 'ready'))
  await allReady(redis, order.processes ?? 1)

  /** @type {import('./audit.ts').Report} */
  const report = { admissions: [], denied: 0 }
  let isDone = false
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let i = caller; !isDone; i++) {
      const key = keyFrom(order, i)
      const decision = await limiter.consume(key, { cost: 1 + (i % order.costs) })
      const { allowed, atMs, cost, source } = decision
      const isLeased = leaseMs !== undefined && source === 'lease'
      if (source !== 'store' && !isLeased) throw new Error(`a decision came from ${source}`)
      const admission = {
        key: typeof key === 'string' ? key : Object.values(key)[0],
        atMs: isLeased ? spentAtMs : atMs,
        cost,
        isLeased,
        ...(order.dimensions && allowed && { charges: chargesOf(key, decision) }),
      }
      if (allowed) report.admissions.push(admission)
      else report.denied++
      if (order.pauseMs !== undefined && i % 10 === 0) await delay(order.pauseMs)
    }
  })
  await delay(order.durationMs)
  isDone = true
  await Promise.all(callers)
  // What is on its way back to a key gets there before what is asked of it now.
  for (const [name, { keys }] of Object.entries(order.dimensions ?? {})) {
    const nobody = keyFrom(order, 0, 'ready')
    await Promise.all(
      Array.from({ length: keys }, (_, i) => limiter.peek({ ...nobody, [name]: `${name}${i}` })),
    )
  }
  await store.close()
  await redis.quit()
  process.send?.(report, () => process.disconnect())
})

/** @param {NonNullable<Order['dimensions']>} dimensions */
function dimensionsOf(dimensions) {
  return Object.fromEntries(
    Object.entries(dimensions).map(([name, { limits }]) => [
      name,
      limits.map((limit) => slidingWindow(limit)),
    ]),
  )
}

/**
 * The key of the nth request, or of one that is of no other.
 *
 * @param {Order} order
 * @param {number} n
 * @param {string} [other]
 * @returns {any}
 */
function keyFrom({ dimensions, keys }, n, other) {
  if (!dimensions) return other ?? `key${n % keys}`
  return Object.fromEntries(
    Object.entries(dimensions).map(([name, { keys }]) => [
      name,
      other ?? `${name}${Math.floor(keys * Math.random() ** 2)}`,
    ]),
  )
}

/**
 * @param {Record<string, string>} keys
 * @param {import('slidegate').Decision} decision
 */
function chargesOf(keys, decision) {
  const debits = chargeOf(decision)?.debits
  return Object.fromEntries(
    Object.entries(keys).map(([name, key], i) => [name, { key, atMs: debits?.[i]?.atMs ?? decision.atMs }]),
  )
}
