// tier: system
import { type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startCluster } from '../../../slidegate/test/support/redis-cluster.ts'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { StoreConfig } from '../../src/config/schema.ts'
import { type RateLimitClient, type Response, rateLimitClient, type Status } from './support/client.ts'
import { type EnvoyService, envoyService } from './support/envoy-service.ts'
import { structIn } from './support/struct.ts'
import { type Case, type Step, TABLE } from './support/table.ts'

const stores: readonly {
  name: string
  start: () => Promise<{ store: StoreConfig; stop(): Promise<unknown> }>
}[] = [
  { name: 'memory', start: async () => ({ store: { memory: {} }, stop: async () => {} }) },
  {
    name: 'Redis',
    start: async () => {
      const redis = await startRedis()
      return { store: { redis: { url: redis.url } }, stop: () => redis.stop() }
    },
  },
  {
    name: 'a Cluster',
    start: async () => {
      const cluster = await startCluster({ replicas: 0 })
      return {
        store: {
          redis: { url: cluster.nodes.map(({ port }) => `redis://127.0.0.1:${port}`), cluster: true },
        },
        stop: () => cluster.stop(),
      }
    },
  },
]

describe.each(stores)('behavior documented by envoyproxy/ratelimit, on $name', ({ start }) => {
  let backend: Awaited<ReturnType<typeof start>>
  let service: EnvoyService
  let client: RateLimitClient
  beforeAll(async () => {
    backend = await start()
    // A timeout that even a slow machine doesn't exceed.
    const envoy = { files: [], timeoutMs: 10_000 }
    service = await envoyService({}, { store: backend.store, envoy })
    client = rateLimitClient(service.grpcAddress)
  })
  afterAll(async () => {
    client?.[Symbol.dispose]()
    await service?.stop()
    await backend?.stop()
  })

  it.each(TABLE)('$name', async ({ files, domain, steps }: Case) => {
    service.change(files)
    for (const [index, step] of steps.entries()) {
      for (let time = 1; time < (step.times ?? 1); time++) await asked(client, domain, step)
      const response = await asked(client, domain, step)
      const label = `step ${index + 1}`
      if (typeof response === 'string') {
        expect([response], label).toEqual(step.statuses)
        continue
      }
      expect(response.statuses.map(wordOf), label).toEqual(step.statuses)
      const isOver = step.statuses.some((word) => word.startsWith('OVER'))
      expect(response.overallCode, label).toBe(step.overall ?? (isOver ? 'OVER_LIMIT' : 'OK'))
      expect(structIn(response.dynamicMetadata), label).toEqual(step.metadata)
    }
  })
})

async function asked(
  client: RateLimitClient,
  domain: string,
  { send, hits = 0 }: Step,
): Promise<Response | string> {
  try {
    return await client.ask(domain, send, { hits })
  } catch (error) {
    return status[(error as ServiceError).code]!
  }
}

function wordOf({ code, currentLimit, limitRemaining, durationUntilReset }: Status): string {
  if (currentLimit === null) {
    expect(durationUntilReset).toBeNull()
    return code === 'OK' && limitRemaining === 2 ** 32 - 1 ? 'unlimited' : code === 'OK' ? 'none' : code
  }
  const { name, requestsPerUnit, unit } = currentLimit
  const word = `${code.replace('_LIMIT', '')} ${limitRemaining}/${requestsPerUnit} ${unit}`
  return name === '' ? word : `${word} ${name}`
}
