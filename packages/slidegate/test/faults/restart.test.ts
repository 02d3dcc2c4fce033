// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, type Limiter, type Store, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fullestWindow } from '../audit/fullest-window.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { CLIENTS, type Connection } from './clients.ts'
import { expectExact, expectOrderly, Traffic, untilAnswered } from './traffic.ts'

const TIMEOUT_MS = 100
const LIMIT = 40
const WINDOW_MS = 1000

const limits = [slidingWindow({ limit: LIMIT, window: WINDOW_MS })]

let server: RedisServer
let connection: Connection
let store: Store
let limiter: Limiter
beforeEach(async () => {
  server = await startRedis()
})
afterEach(async () => {
  limiter.close()
  connection.end()
  await server.stop()
})

describe.each(Object.entries(CLIENTS))('%s', (_, connect) => {
  beforeEach(async () => {
    connection = await connect(server.port)
    store = redisStore(connection.client)
    limiter = createLimiter({ limits, store, timeoutMs: TIMEOUT_MS })
    await untilAnswered(limiter)
  })

  it('a Redis that crashes and comes back empty is missed for no longer than it is away', async () => {
    const before = new Traffic(limiter, ['a', 'b', 'c'])
    await delay(300)
    await server.kill()
    await delay(400)
    await until('it is missed', async () => before.errors.length > 0)
    await server.start()
    await untilAnswered(limiter)
    await before.stop()
    expectOrderly(before, TIMEOUT_MS)

    // From here on nothing should be given up, however slow the machine.
    const patient = createLimiter({ limits, store, timeoutMs: 30_000 })
    const after = new Traffic(patient, ['d', 'e', 'f'])
    await delay(WINDOW_MS + 300)
    const fullest = () => fullestWindow(after.admitted, WINDOW_MS)
    await until('all are at their limits', async () => fullest() >= 3 * LIMIT)
    await after.stop()
    expect(after.complaints).toEqual([])
    expect(fullest()).toBe(3 * LIMIT)
    await expectExact(patient, 'new')
  })

  it('a Redis that is away for good gives every request its error in time', async () => {
    await server.kill()
    const traffic = new Traffic(limiter, ['a', 'b', 'c'])
    await delay(600)
    await until('requests have failed', async () => traffic.errors.length > 0)
    await traffic.stop()
    expectOrderly(traffic, TIMEOUT_MS)
    expect(traffic.decisions.length).toBe(0)
  })
})
