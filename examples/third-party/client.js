// @ts-check
// One of several processes that call the same API. The processes only share Redis.
import { Redis } from 'ioredis'
import { limitedFetch, upstreamLimiter } from 'slidegate/outbound'
import { redisStore } from 'slidegate/redis'

const [upstream = '', requests, redisUrl] = process.argv.slice(2)

/** @param {typeof fetch} send */
const sendAll = (send) =>
  Promise.all(Array.from({ length: Number(requests) }, () => send(`${upstream}/orders`)))

if (redisUrl === undefined) {
  await sendAll(fetch)
} else {
  const redis = new Redis(redisUrl)
  const limiter = upstreamLimiter({
    name: 'third-party',
    limits: [{ limit: 50, window: '10s' }],
    store: redisStore(redis),
    timeoutMs: 1000,
  })
  await sendAll(limitedFetch(fetch, limiter))
  limiter.close()
  await redis.quit()
}
