// tier: system
import { execFileSync } from 'node:child_process'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createLimiter, type Limiter, StoreUnavailableError, slidingWindow } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { freePort } from '../support/redis-server.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis, server } = await useRedis()

const limits = [slidingWindow({ limit: 1000, window: '1h' })]
const limiterOn = (client: RedisClient, timeoutMs?: number): Limiter =>
  createLimiter({ limits, store: redisStore(client), timeoutMs })

/** Measures a request. Its time starts before it is made, however busy the machine is. */
async function outcomeOf(
  ask: () => Promise<unknown>,
): Promise<{ ms: number; error?: StoreUnavailableError }> {
  const startMs = performance.now()
  try {
    await ask()
    return { ms: performance.now() - startMs }
  } catch (error) {
    expect(error).toBeInstanceOf(StoreUnavailableError)
    return { ms: performance.now() - startMs, error: error as StoreUnavailableError }
  }
}

/** How long a busy machine may hang. */
const SLACK_MS = 10_000

const silent: RedisClient = { command: () => new Promise(() => {}) }

it.each([1, 20, 300])('requests to a silent store time out after %i ms, not before', async (timeoutMs) => {
  const limiter = limiterOn(silent, timeoutMs)
  for (const ask of [() => limiter.consume('k'), () => limiter.peek('k'), () => limiter.charge('k', 1)]) {
    const { ms, error } = await outcomeOf(ask)
    expect(error).toMatchObject({ reason: 'timeout', message: expect.stringContaining(`${timeoutMs} ms`) })
    expect(ms).toBeGreaterThan(timeoutMs - 2)
    expect(ms).toBeLessThan(timeoutMs + SLACK_MS)
  }
})

it('requests time out after 50 ms by default', async () => {
  const { ms, error } = await outcomeOf(() => limiterOn(silent).consume('k'))
  expect(error?.reason).toBe('timeout')
  expect(ms).toBeGreaterThan(48)
  expect(ms).toBeLessThan(50 + SLACK_MS)
})

it('each request has its own deadline, counted from its start', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const limiter = limiterOn(silent, 1000)
  const first = outcomeOf(() => limiter.consume('first'))
  await vi.advanceTimersByTimeAsync(100)
  const second = outcomeOf(() => limiter.consume('second'))
  await vi.advanceTimersByTimeAsync(2000)
  for (const { ms } of [await first, await second]) {
    expect(ms).toBeGreaterThanOrEqual(1000)
    expect(ms).toBeLessThan(1010)
  }
})

it("requests time out if the client can't connect", async () => {
  const client = new Redis(await freePort())
  client.on('error', () => {})
  const { ms, error } = await outcomeOf(() => limiterOn(client, 80).consume('k'))
  expect(error?.reason).toBe('timeout')
  expect(ms).toBeLessThan(80 + SLACK_MS)
  client.disconnect()
})

it('a reply that arrives while the process is busy counts, even if it is read after the deadline', async () => {
  const patient = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  await patient.consume('busy')
  const limiter = limiterOn(redis, 250)
  for (let i = 0; i < 3; i++) {
    const request = outcomeOf(() => limiter.consume('busy'))
    // Waits until the request is sent.
    await nextTurn()
    block(300)
    expect((await request).error).toBeUndefined()
  }
})

/** A script that sends a PING and exits after the reply. */
const ASKING = `
  const socket = require('node:net').connect(${server.port}, '127.0.0.1', () => socket.write('PING\\r\\n'))
  socket.once('data', () => process.exit())`

/** Blocks this process. When it returns, the server has answered all earlier commands, however busy the machine is. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  execFileSync(process.execPath, ['-e', ASKING])
}

it('a late reply is dropped without an error', async () => {
  let answer: (reply: unknown) => void = () => {}
  const late: RedisClient = {
    command: () =>
      new Promise((resolve) => {
        answer = resolve
      }),
  }
  const limiter = limiterOn(late, 10)
  expect((await outcomeOf(() => limiter.consume('k'))).error?.reason).toBe('timeout')
  answer([0, 0, 1, 0, 0, 3_600_000])
  await nextTurn()
  expect((await outcomeOf(() => limiter.consume('k'))).error?.reason).toBe('timeout')
})

it('requests that wait keep their deadline when the limiter is closed', async () => {
  const limiter = limiterOn(silent, 40)
  const waiting = outcomeOf(() => limiter.consume('k'))
  limiter.close()
  expect((await waiting).error?.reason).toBe('timeout')
})
