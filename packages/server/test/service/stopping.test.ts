// tier: system
import { afterEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { slidegate, temporaryFolder } from '../support/cli.ts'
import { startFlow } from '../support/flow.ts'
import { startProcess } from '../support/service-process.ts'

const folder = temporaryFolder()
const config = folder.write(
  'slidegate.yaml',
  'limiters: { api: { timeoutMs: 10000, limits: [{ kind: slidingWindow, limit: 1000000, window: 1h }] } }',
)

let redis: RedisServer | undefined
afterEach(() => redis?.stop())

const body = (number: number) => ({ limiter: 'api', key: `key-${number % 100}` })

describe('a graceful stop', () => {
  it.each([0, 500])('loses no request, with %i ms to drain', async (drainMs) => {
    await using service = await startProcess(['--config', config, '--drain', `${drainMs}ms`])
    await using other = await startProcess(['--config', config])
    let answers = 0
    const flow = startFlow({
      url: service.url,
      nextUrl: other.url,
      width: 32,
      most: 100_000,
      body,
      answered: ({ status }) => {
        expect(status).toBe(200)
        answers++
      },
    })
    await expect.poll(() => answers).toBeGreaterThan(500)
    service.kill('SIGTERM')
    expect(await service.ended).toEqual({ code: 0, signal: null })
    const atTheEnd = answers
    await expect.poll(() => answers).toBeGreaterThan(atTheEnd + 500)
    flow.stop()
    expect((await flow.done).errors).toEqual([])
  })

  it('reports not ready while it drains', async () => {
    await using service = await startProcess(['--config', config, '--drain', '60s'])
    service.kill('SIGTERM')
    await service.says('slidegate is stopping')
    const ready = await fetch(`${service.url}/readyz`)
    expect(ready.status).toBe(503)
    expect(await ready.json()).toMatchObject({ ready: false, reasons: ['draining'] })
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
  })
})

describe('workers', () => {
  it('share a listener and their counts, and replace dead workers', async () => {
    redis = await startRedis()
    await using service = await startProcess(['--config', config, '--workers', '2'], { REDIS_URL: redis.url })
    await service.says('all workers are ready')
    await service.says('slidegate is listening', 2)
    const workers = () => new Set(service.lines.filter(({ http }) => http).map(({ pid }) => pid as number))
    expect(workers().size).toBe(2)
    const flow = startFlow({
      url: service.url,
      width: 16,
      most: 1000,
      body: () => ({ limiter: 'api', key: 'ann' }),
    })
    expect(await flow.done).toEqual({ answered: 1000, errors: [] })
    // Polls, because the metrics of a slow worker may be missing.
    await expect
      .poll(async () => (await fetch(`${service.url}/metrics`)).text())
      .toContain('slidegate_decisions_total{limiter="api",outcome="allowed",source="store"} 1000\n')
    process.kill([...workers()][0]!, 'SIGKILL')
    await service.says('slidegate is listening', 3)
    expect(workers().size).toBe(3)
    service.kill('SIGTERM')
    expect(await service.ended).toEqual({ code: 0, signal: null })
  })

  it('require a store that they can share', async () => {
    const { code, stderr } = await slidegate(['serve', '--config', config, '--workers', '2'], '', {
      REDIS_URL: '',
    })
    expect(code).toBe(2)
    expect(stderr).toContain('REDIS_URL')
  })

  it('stop at once if none can start', async () => {
    redis = await startRedis()
    await using first = await startProcess(['--config', config])
    const port = new URL(first.url).port
    const words = ['serve', '--config', config, '--workers', '2', '--http', `127.0.0.1:${port}`]
    const { code } = await slidegate(words, '', { REDIS_URL: redis.url })
    expect(code).toBe(1)
  })
})
