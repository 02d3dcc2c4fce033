import express, { type RequestHandler } from 'express'
import { rateLimit as before } from 'express-rate-limit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { rateLimit } from '../../../packages/slidegate/src/adapters/express.ts'
import { createLimiter, memoryStore, slidingWindow } from '../../../packages/slidegate/src/index.ts'
import { redisStore } from '../../../packages/slidegate/src/stores/redis/index.ts'
import { ManualClock } from '../../../packages/slidegate/src/testing/index.ts'
import { startOpenRedis } from '../../../packages/slidegate/test/docs/open-redis.ts'
import { START, setDate } from './fake-date.ts'
import { aroundAnEdge, serve, statuses } from './serve.ts'

// Tests the statements of docs/migrate/README.md.

function app(...handlers: RequestHandler[]) {
  const app = express()
  app.use(...handlers)
  app.get('/', (_req, res) => {
    res.send('hello')
  })
  return serve(app)
}

describe('a shadow limit behind the old limiter', () => {
  it('reports requests over the limit that the old limiter admitted, and denies none', async () => {
    setDate(START)
    const clock = new ManualClock(START)
    let named = 0
    const shadow = rateLimit({
      limits: [slidingWindow({ limit: 10, window: '1m', shadow: true })],
      store: memoryStore({ clock: clock.now }),
      onAllowed: ({ limits }) => {
        if (limits.some(({ allowed }) => !allowed)) named++
      },
    })
    const ask = await app(before({ limit: 10, windowMs: 60_000 }), shadow)
    const setTime = (ms: number) => {
      vi.setSystemTime(ms)
      clock.set(ms)
    }
    expect(await aroundAnEdge(ask, setTime)).toEqual([1, 9, 10])
    // One of the ten fit, because the first request was a minute old.
    expect(named).toBe(9)
  })
})

describe('a limiter that charged the requests of the old one', () => {
  it('continues with their count', async () => {
    const { redis, stop } = await startOpenRedis()
    onTestFinished(stop)
    const declared = { name: 'api', limits: [slidingWindow({ limit: 5, window: '1h' })], timeoutMs: 30_000 }
    const version = () => createLimiter({ ...declared, store: redisStore(redis) })

    const counting = version()
    const charge: RequestHandler = async (_req, _res, next) => {
      await counting.charge('127.0.0.1', 1)
      next()
    }
    const old = await app(before({ limit: 3, windowMs: 3_600_000 }), charge)
    expect(await statuses(old, 4)).toEqual([200, 200, 200, 429])

    const next = await app(rateLimit({ limiter: version() }))
    expect(await statuses(next, 3)).toEqual([200, 200, 429])
  })
})
