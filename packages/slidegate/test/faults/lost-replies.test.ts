// tier: system
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { createLimiter, type StoreUnavailableError, slidingWindow } from '../../src/index.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import { startRedis } from '../support/redis-server.ts'
import { useRedis } from '../support/use-redis.ts'
import { expectExact } from './traffic.ts'

// Some clients never settle a command whose connection was lost: it neither resolves nor rejects.

const { redis } = await useRedis()

/** A client whose commands are executed, but whose replies are lost. */
class Losing implements CommandClient {
  isLosing = true

  async command([name = '', ...words]: readonly string[]): Promise<unknown> {
    const reply = await redis.call(name, ...words)
    return this.isLosing ? new Promise(() => {}) : reply
  }
}

/** A breaker that never opens, so that each request is sent. */
const UNBREAKABLE = { minRequests: 2 ** 20 }

/** A long deadline. Once replies arrive again, no request may take longer than this. */
const PATIENT_MS = 20_000

it.each([1, 2, 20, 200])(
  'after %i requests in a row whose replies were lost, the next one is answered',
  async (requests) => {
    const client = new Losing()
    const limits = [slidingWindow({ limit: 300, window: '1h' })]
    const store = redisStore(client, { prefix: `slidegate:lost:${requests}` })
    const limiter = createLimiter({ limits, store, timeoutMs: 10, breaker: UNBREAKABLE, logger: false })
    for (let i = 0; i < requests; i++) {
      const error = await limiter.consume('k').catch((reason: unknown) => reason)
      expect((error as StoreUnavailableError).reason).toBe('timeout')
    }
    client.isLosing = false
    const patient = createLimiter({ limits, store, timeoutMs: PATIENT_MS })
    expect((await patient.peek('k')).allowed).toBe(true)
    await expectExact(patient, 'new')
  },
)

it("requests that timed out while they waited for a silent Redis don't delay later ones", async () => {
  const client = new Losing()
  const limits = [slidingWindow({ limit: 300, window: '1h' })]
  const store = redisStore(client, { prefix: 'slidegate:given-up' })
  const limiter = createLimiter({ limits, store, timeoutMs: 10, breaker: UNBREAKABLE, logger: false })
  for (let i = 0; i < 20; i++) await limiter.consume('k').catch(() => undefined)
  await Promise.allSettled(Array.from({ length: 2000 }, (_, i) => limiter.consume(`key${i}`)))
  client.isLosing = false
  // If each of those requests were sent as a probe after a pause, this would take a minute.
  const patient = createLimiter({ limits, store, timeoutMs: PATIENT_MS })
  expect((await patient.consume('next')).remaining).toBe(299)
})

it("with ioredis that doesn't resend, commands lost in a crash don't block later ones", async () => {
  const own = await startRedis()
  const client = new Redis(own.port, { autoResendUnfulfilledCommands: false })
  client.on('error', () => {})
  onTestFinished(async () => {
    client.disconnect()
    await own.stop()
  })
  const limits = [slidingWindow({ limit: 100, window: '1h' })]
  const store = redisStore(client)
  const limiter = createLimiter({ limits, store, timeoutMs: 100, breaker: UNBREAKABLE, logger: false })
  const patient = createLimiter({ limits, store, timeoutMs: PATIENT_MS })
  await patient.consume('k')
  process.kill(own.pid, 'SIGSTOP')
  const swallowed: Promise<unknown>[] = []
  for (let i = 0; i < 10; i++) {
    swallowed.push(limiter.consume(`swallowed${i}`))
    await nextTurn()
  }
  await Promise.allSettled(swallowed)
  await own.kill()
  await own.start()
  await expectExact(patient, 'new')
})
