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

/** What a request came to, and after how long: counted from before it was made, however busy the machine then was. */
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

/** For how long a machine may stand still. */
const SLACK_MS = 10_000

const silent: RedisClient = { command: () => new Promise(() => {}) }

it.each([1, 20, 300])('a store that is silent is given up after %i ms, not before', async (timeoutMs) => {
  const limiter = limiterOn(silent, timeoutMs)
  for (const ask of [() => limiter.consume('k'), () => limiter.peek('k'), () => limiter.charge('k', 1)]) {
    const { ms, error } = await outcomeOf(ask)
    expect(error).toMatchObject({ reason: 'timeout', message: expect.stringContaining(`${timeoutMs} ms`) })
    expect(ms).toBeGreaterThan(timeoutMs - 2)
    expect(ms).toBeLessThan(timeoutMs + SLACK_MS)
  }
})

it('unless told otherwise, after 50 ms', async () => {
  const { ms, error } = await outcomeOf(() => limiterOn(silent).consume('k'))
  expect(error?.reason).toBe('timeout')
  expect(ms).toBeGreaterThan(48)
  expect(ms).toBeLessThan(50 + SLACK_MS)
})

it('each request has a deadline of its own, counted from when it came', async () => {
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

it('a client that has nobody to talk to is given up like any other', async () => {
  const client = new Redis(await freePort())
  client.on('error', () => {})
  const { ms, error } = await outcomeOf(() => limiterOn(client, 80).consume('k'))
  expect(error?.reason).toBe('timeout')
  expect(ms).toBeLessThan(80 + SLACK_MS)
  client.disconnect()
})

it('a reply that came while the process was busy is an answer, though the deadline has passed', async () => {
  const patient = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  await patient.consume('busy')
  const limiter = limiterOn(redis, 250)
  for (let i = 0; i < 3; i++) {
    const request = outcomeOf(() => limiter.consume('busy'))
    // Until it has been sent.
    await nextTurn()
    block(300)
    expect((await request).error).toBeUndefined()
  }
})

/** Asks the server, and ends with its answer. */
const ASKING = `
  const socket = require('node:net').connect(${server.port}, '127.0.0.1', () => socket.write('PING\\r\\n'))
  socket.once('data', () => process.exit())`

/** Nothing else happens in this process meanwhile. However busy the machine, the server has answered what was asked before. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  execFileSync(process.execPath, ['-e', ASKING])
}

it('a reply that comes too late is dropped, and troubles nobody', async () => {
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

it('closing the limiter leaves those who wait their deadline', async () => {
  const limiter = limiterOn(silent, 40)
  const waiting = outcomeOf(() => limiter.consume('k'))
  limiter.close()
  expect((await waiting).error?.reason).toBe('timeout')
})
