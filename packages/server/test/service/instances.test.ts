// tier: system
import { afterEach, describe, expect, it } from 'vitest'
import { FullestWindow } from '../../../replay/src/counts/fullest-window.ts'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { temporaryFolder } from '../support/cli.ts'
import { startFlow } from '../support/flow.ts'
import { startProcess } from '../support/service-process.ts'

/** A small limit, which even a slow machine exceeds. */
const LIMIT = 20
const WINDOW_MS = 1000

const folder = temporaryFolder()
const config = folder.write(
  'slidegate.json',
  JSON.stringify({
    limiters: {
      audited: { limits: [{ kind: 'slidingWindow', limit: LIMIT, window: WINDOW_MS }] },
      open: {
        limits: [{ kind: 'slidingWindow', limit: LIMIT, window: WINDOW_MS }],
        onStoreError: 'allow',
        timeoutMs: 100,
      },
      shut: {
        limits: [{ kind: 'slidingWindow', limit: LIMIT, window: WINDOW_MS }],
        onStoreError: 'deny',
        timeoutMs: 100,
      },
    },
  }),
)

let redis: RedisServer | undefined
afterEach(() => redis?.stop())

const flowTo = (url: string, most: number, admitted: number[], width = 16) =>
  startFlow({
    url,
    width,
    most,
    body: (number) => ({ limiter: 'audited', key: `key-${number % 3}` }),
    answered: ({ body }) => {
      if (body.allowed === true) admitted.push(body.atMs)
    },
  })

/** Returns the fullest window of three keys together, by the times of their charges. The limit applies to each key. */
function fullest(admitted: readonly number[]): number {
  const window = new FullestWindow(WINDOW_MS)
  for (const atMs of admitted.toSorted((a, b) => a - b)) window.add('all', atMs)
  return window.count
}

describe('two instances on the same Redis', () => {
  it('admit exactly the limit together, and lose only responses in flight when one dies', async () => {
    redis = await startRedis()
    const env = { REDIS_URL: redis.url }
    await using first = await startProcess(['--config', config], env)
    await using second = await startProcess(['--config', config], env)
    const admitted: number[] = []
    const ofFirst = flowTo(first.url, 4000, admitted)
    const ofSecond = flowTo(second.url, 6000, admitted)
    await expect.poll(() => admitted.length).toBeGreaterThan(3 * LIMIT)
    first.kill('SIGKILL')
    const broken = await ofFirst.done
    const whole = await ofSecond.done
    expect(whole).toEqual({ answered: 6000, errors: [] })
    // Only requests in flight or during connecting fail, one per connection. After that, connections are refused.
    expect(broken.errors.length).toBeLessThanOrEqual(3 * 16)
    expect(fullest(admitted)).toBeLessThanOrEqual(3 * LIMIT)
    expect(fullest(admitted)).toBeGreaterThanOrEqual(3 * LIMIT - 16)
  })

  it('apply the failure policy in time when Redis is down', async () => {
    redis = await startRedis()
    await using service = await startProcess(['--config', config], { REDIS_URL: redis.url })
    const ask = async (limiter: string) => {
      const startedAtMs = performance.now()
      const response = await fetch(`${service.url}/v1/consume`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ limiter, key: 'ann' }),
      })
      const body = (await response.json()) as Record<string, unknown>
      return { status: response.status, body, tookMs: performance.now() - startedAtMs }
    }
    // The first request may time out on a busy machine.
    await expect.poll(() => ask('open')).toMatchObject({ status: 200, body: { source: 'store' } })
    await redis.kill()
    const tookMs: number[] = []
    for (let i = 0; i < 20; i++) {
      const open = await ask('open')
      expect(open).toMatchObject({ status: 200, body: { allowed: true, source: 'failOpen' } })
      const shut = await ask('shut')
      expect(shut).toMatchObject({ status: 503, body: { allowed: false, source: 'failClosed' } })
      const thrown = await ask('audited')
      expect(thrown).toMatchObject({ status: 503 })
      tookMs.push(open.tookMs, shut.tookMs, thrown.tookMs)
    }
    // The policy's timeout is 100 ms. The margin is for a busy machine, where a pause makes a few requests late.
    expect(tookMs.toSorted((a, b) => b - a)[2]).toBeLessThan(2000)
    // The latest result of the store is cached for a moment.
    const isDegraded = async () => (await (await fetch(`${service.url}/readyz`)).json()).degraded
    await expect.poll(isDegraded).toBe(true)
    await redis.start()
    await expect.poll(async () => (await ask('audited')).status).toBe(200)
    await expect.poll(isDegraded).toBe(false)
  })
})
