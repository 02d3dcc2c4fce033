// @ts-check
// One of the processes that share a budget. Its callers send requests in a loop, with the built package.
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { limitedFetch, limitedInterceptor, upstreamLimiter } from 'slidegate/outbound'
import { redisStore } from 'slidegate/redis'
import { Agent, fetch as undiciFetch } from 'undici'
import { allReady } from '../support/all-ready.js'

/** @typedef {import('./outbound-processes.test.ts').Order} Order */

/** Reads a clock that all processes of the machine share. */
function machineMs() {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}

process.once('message', async (/** @type {Order} */ order) => {
  const redis = new Redis(order.port)
  const store = redisStore(redis)
  const limiter = upstreamLimiter({
    name: 'upstream',
    limits: [{ limit: order.limit, window: order.windowMs }],
    marginMs: order.marginMs,
    store,
    // No call may time out, however slow the machine, since a timed-out call may have been charged.
    timeoutMs: 60_000,
  })

  /** @type {import('./outbound-processes.test.ts').Report} */
  const report = { sent: {}, taughtAtMs: undefined, pausedMs: 0, failures: [] }

  /** Returns a transit time, which is sometimes longer than the margin. */
  function transit() {
    const [usualMs, rareMs] = order.transitMs
    return Math.random() * (Math.random() < 0.03 ? rareMs : usualMs)
  }

  /** @type {typeof fetch} */
  const slowFetch = async (input, init) => {
    report.sent[new Headers(init?.headers).get('x-id') ?? ''] = machineMs()
    await delay(transit())
    return fetch(input, init)
  }

  /** @param {{ get(name: string): string | null }} headers */
  function learn(headers) {
    const told = headers.get('ratelimit-policy') ?? headers.get('x-ratelimit-limit') ?? ''
    if (
      report.taughtAtMs === undefined &&
      /q=(\d+)|^(\d+)/.exec(told)?.slice(1).includes(`${order.lowered}`)
    ) {
      report.taughtAtMs = machineMs()
    }
  }

  const options = { key: 'upstream', maxWaitMs: 600_000, retry: /** @type {const} */ (false) }
  const limited = limitedFetch(slowFetch, limiter, options)
  /** @type {import('undici').Dispatcher.DispatcherComposeInterceptor} */
  const slowly = (dispatch) => (call, handler) => {
    report.sent[new Headers(/** @type {any} */ (call.headers)).get('x-id') ?? ''] = machineMs()
    setTimeout(() => dispatch(call, handler), transit())
    return true
  }
  const agent = new Agent().compose(slowly, limitedInterceptor(limiter, options))

  /** @param {string} id */
  async function ask(id) {
    const headers = { 'x-id': id }
    const response = order.isInterceptor
      ? await undiciFetch(order.url, { headers, dispatcher: agent })
      : await limited(order.url, { headers })
    learn(response.headers)
    await response.arrayBuffer()
    return response.status
  }

  await limiter.peek('ready')
  await allReady(redis, order.processes)
  let isOver = false
  let end = () => {}
  const ended = /** @type {Promise<void>} */ (
    new Promise((resolve) => {
      end = resolve
    })
  )
  let count = 0
  const callers = Array.from({ length: order.callers }, async () => {
    while (!isOver) {
      const status = await Promise.race([ask(`${process.pid}-${count++}`), ended])
      if (status !== 410) continue
      isOver = true
      end()
    }
  })
  // Measures pauses of this process or the store.
  const watching = async () => {
    while (!isOver) {
      const sinceMs = machineMs()
      await delay(50)
      await limiter.peek('ready')
      report.pausedMs = Math.max(report.pausedMs, machineMs() - sinceMs - 50)
    }
  }
  await Promise.all([watching(), ...callers]).catch((error) => report.failures.push(`${error?.stack}`))
  process.send?.(report, () => process.exit(0))
})
