// tier: integration
import { spawn } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Runs a program in its own process, using the built package. There is no exit code if it doesn't exit. */
async function run(program: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: import.meta.dirname,
    timeout: 50_000,
  })
  let output = ''
  child.stdout.on('data', (data) => (output += data))
  child.stderr.on('data', (data) => (output += data))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output }
}

describe('a process exits without any output', () => {
  it('with limits on a memory store, even with long windows', async () => {
    const { code, output } = await run(`
      import { createLimiter, fixedWindow, slidingWindow } from 'slidegate'
      const limiter = createLimiter({
        limits: [slidingWindow({ limit: 10, window: '366d' }), fixedWindow({ limit: 10, window: '25d' })],
      })
      for (let i = 0; i < 1000; i++) await limiter.consume('key' + i)
    `)
    expect({ code, output }).toEqual({ code: 0, output: '' })
  })

  it("with limits on Redis, once its client has closed, even if the limiter wasn't closed", async () => {
    const { code, output } = await run(`
      import { Redis } from 'ioredis'
      import { createLimiter, slidingWindow } from 'slidegate'
      import { redisStore } from 'slidegate/redis'
      const redis = new Redis(${server.port})
      const limiter = createLimiter({
        limits: [slidingWindow({ limit: 10, window: '366d' })],
        store: redisStore(redis),
        timeoutMs: 2 ** 31 - 1,
      })
      for (let i = 0; i < 100; i++) await limiter.consume('key' + i)
      await redis.quit()
    `)
    expect({ code, output }).toEqual({ code: 0, output: '' })
  })

  it.each(['throw', 'deny', 'allow', 'local'])(
    'with a silent store and an open circuit breaker, onStoreError: %s',
    async (policy) => {
      const { code, output } = await run(`
      import { createLimiter, failurePolicy, slidingWindow } from 'slidegate'
      const limiter = createLimiter({
        limits: [slidingWindow({ limit: 10, window: '366d' })],
        store: { failurePolicy, apply() {}, close() {} },
        onStoreError: '${policy}',
        instances: 1,
        breaker: { maxBackoffMs: 60_000 },
        logger: false,
      })
      const awake = setInterval(() => {}, 1000)
      await Promise.allSettled(Array.from({ length: 100 }, () => limiter.consume('k')))
      await Promise.allSettled([limiter.consume('k'), limiter.charge('k', 1)])
      clearInterval(awake)
      limiter.consume('k').catch(() => {})
    `)
      expect({ code, output }).toEqual({ code: 0, output: '' })
    },
  )
})
