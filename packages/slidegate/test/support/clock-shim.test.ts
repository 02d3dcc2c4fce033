// tier: system
import { Redis } from 'ioredis'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { startRedisWithClock } from './clock-shim.ts'
import { until } from './until.ts'

const server = await startRedisWithClock()
const redis = new Redis(server.port)
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})
beforeEach(() => redis.flushall())

async function serverMs(): Promise<number> {
  const [seconds = 0, microseconds = 0] = (await redis.time()).map(Number)
  return seconds * 1000 + microseconds / 1000
}

const uptimeS = async () => Number(/uptime_in_seconds:(-?\d+)/.exec(await redis.info('server'))?.[1])

/** What a slow machine may add between two readings; less than any step. */
const SLACK_MS = 30_000

describe.each([60_000, 3_600_000])('a step of %s ms', (stepMs) => {
  it.each([stepMs, -stepMs])('moves TIME by %s ms at once', async (ms) => {
    const beforeMs = await serverMs()
    await server.step(ms)
    const movedMs = (await serverMs()) - beforeMs
    expect(movedMs).toBeGreaterThanOrEqual(ms)
    expect(movedMs).toBeLessThan(ms + SLACK_MS)
    const scriptMs = Number(await redis.eval("return redis.call('TIME')[1]", 0)) * 1000
    expect(Math.abs(scriptMs - (await serverMs()))).toBeLessThan(SLACK_MS)
  })

  it('takes keys with it: forward they expire early, back they last longer', async () => {
    await redis.set('slidegate:short', 'x', 'PX', stepMs - SLACK_MS)
    await redis.set('slidegate:long', 'x', 'PX', stepMs + SLACK_MS)
    await server.step(stepMs)
    expect(await redis.get('slidegate:short')).toBe(null)
    expect(await redis.get('slidegate:long')).toBe('x')
    expect(await redis.pttl('slidegate:long')).toBeLessThanOrEqual(SLACK_MS)
    await server.step(-stepMs)
    expect(await redis.get('slidegate:short')).toBe(null)
    expect(await redis.pttl('slidegate:long')).toBeGreaterThan(stepMs)
    expect(await redis.pttl('slidegate:long')).toBeLessThanOrEqual(stepMs + SLACK_MS)
  })
})

// Redis' timers run by the monotonic clock, and one of them notes the time: set back, it would stand still for an hour.
it('leaves the monotonic clock alone', async () => {
  const notedS = async () => Number(/lru_clock:(\d+)/.exec(await redis.info('server'))?.[1])
  const beforeS = await notedS()
  await server.step(-3_600_000)
  await until('the time is noted', async () => (await notedS()) < beforeS - 3500)
  await server.step(3_600_000)
  await until('the time is noted', async () => (await notedS()) >= beforeS)
})

it('keeps its clock over a restart', async () => {
  await server.step(3_600_000)
  await server.kill()
  await server.start()
  expect((await serverMs()) - Date.now()).toBeGreaterThan(3_600_000 - SLACK_MS)
  expect(await uptimeS()).toBeLessThan(60)
  expect(server.offsetMs).toBe(3_600_000)
  await server.step(-3_600_000)
})
