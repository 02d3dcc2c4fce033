// tier: system
import { expect, it, onTestFinished } from 'vitest'
import { until } from '../../../slidegate/test/support/until.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { ServiceClient } from '../../src/client/service-client.ts'
import { temporaryFolder } from '../support/cli.ts'
import { startProcess } from '../support/service-process.ts'

const { server } = await useRedis()

const COUNT = 60

it('two workers act as one service for reads and changes', async () => {
  const folder = temporaryFolder()
  onTestFinished(() => folder.remove())
  const limits = '[{ kind: slidingWindow, limit: 10, window: 1h }]'
  const file = folder.write(
    'slidegate.yaml',
    `store: { redis: { url: '${server.url}' } }\nlisten: { grpc: false }\nlimiters: { api: { limits: ${limits}, timeoutMs: 9000 } }\n`,
  )
  await using service = await startProcess(['--config', file, '--workers', '2'])
  await service.says('slidegate is listening', 2)
  await service.says('all workers are ready')
  // Each request has its own connection, so both workers get some.
  const client = new ServiceClient({ url: new URL(service.url), token: service.token })
  const stop = new AbortController()
  const seen: { key: string; allowed: boolean }[] = []
  const reading = (async () => {
    for await (const { event, data } of client.events('/v1/admin/tail', stop.signal)) {
      if (event === 'decision') seen.push(JSON.parse(data))
    }
  })()
  await until('the tail shows a decision', async () => {
    await Promise.all(
      [1, 2, 3, 4].map((i) => client.answer('POST', '/v1/peek', { limiter: 'api', key: `k${i}` })),
    )
    await client.answer('POST', '/v1/consume', { limiter: 'api', key: 'first' })
    return seen.length > 0
  })
  const requests = Array.from({ length: COUNT }, () =>
    client.answer('POST', '/v1/consume', { limiter: 'api', key: 'ann' }),
  )
  const statuses = (await Promise.all(requests)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(10)

  // Polls, since a late worker is left out of the answer.
  await expect
    .poll(() => client.ask('GET', '/v1/admin/limiters/api/top', 'keys'))
    .toMatchObject({ keys: expect.arrayContaining([{ key: 'ann', count: COUNT, error: 0 }]) })
  const mine = await until('all decisions are seen', async () => {
    const found = seen.filter(({ key }) => key === 'ann')
    return found.length === COUNT && found
  })
  expect(mine.filter(({ allowed }) => allowed)).toHaveLength(10)

  await client.ask('POST', '/v1/admin/shadow', 'limits', { limiter: 'api', shadow: true })
  const after = await Promise.all(
    Array.from({ length: 20 }, () => client.answer('POST', '/v1/consume', { limiter: 'api', key: 'ann' })),
  )
  expect(after.map(({ status }) => status)).toEqual(Array(20).fill(200))

  await client.ask('POST', '/v1/admin/drain', 'done', { drain: true })
  const ready = await Promise.all(Array.from({ length: 20 }, () => client.answer('GET', '/readyz')))
  expect(ready.map(({ status }) => status)).toEqual(Array(20).fill(503))
  stop.abort()
  await reading
})
