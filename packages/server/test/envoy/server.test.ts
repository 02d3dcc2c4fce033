// tier: system
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { service as healthDefinition } from 'grpc-health-check'
import { expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { startProxy } from '../../../slidegate/test/support/tcp-proxy.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import type { Config } from '../../src/config/schema.ts'
import { testService } from '../support/service.ts'
import { rateLimitClient } from './support/client.ts'
import { envoyService } from './support/envoy-service.ts'

const RULES = {
  'rules.yaml': 'domain: rl\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 3 } }]',
}

function clientOf(address: string): Client {
  const client = new Client(address, credentials.createInsecure())
  onTestFinished(() => client.close())
  return client
}

function healthOf(client: Client, service = ''): Promise<string> {
  const { path, requestSerialize, responseDeserialize } = healthDefinition.Check!
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, { service }, (error, response) =>
      error ? reject(error) : resolve((response as { status: string }).status),
    )
  })
}

it('gRPC needs an Envoy or gRPC configuration to start', async () => {
  await using without = await testService({ limiters: {} })
  expect(without.grpcAddress).toBeUndefined()
  await using off = await testService({ limiters: {}, envoy: { files: [] }, listen: { grpc: false } })
  expect(off.grpcAddress).toBeUndefined()
})

it('a port that is in use is an error at startup', async () => {
  await using service = await envoyService(RULES)
  await expect(envoyService(RULES, { listen: { grpc: service.grpcAddress } })).rejects.toThrow(
    /EADDRINUSE|bind/,
  )
})

it('health follows readiness: store, for every service name', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const proxy = await startProxy(redis.port)
  onTestFinished(() => proxy.stop())
  await using service = await envoyService(RULES, {
    store: { redis: { url: `redis://127.0.0.1:${proxy.port}` } },
    envoy: { files: [], onStoreError: 'throw', timeoutMs: 10_000 },
    readiness: 'store',
  })
  const client = clientOf(service.grpcAddress)
  for (const name of ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService']) {
    await until(`${name} serves`, async () => (await healthOf(client, name)) === 'SERVING')
  }
  const unknown = await healthOf(client, 'other').catch((error: ServiceError) => status[error.code])
  expect(unknown).toBe('NOT_FOUND')
  proxy.refuse()
  await until('it stops serving', async () => (await healthOf(client)) === 'NOT_SERVING')
  expect((await service.readiness.state()).ready).toBe(false)
  // Only Envoy's own policy matters here: Envoy must keep using a service that still decides.
  const others: Pick<Config, 'limiters'> = {
    limiters: { api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1m' }], onStoreError: 'throw' } },
  }
  service.change(RULES, { ...others, envoy: { files: [], onStoreError: 'local' } })
  await until('it decides without the store', async () => (await healthOf(client)) === 'SERVING')
  service.change(RULES)
  await until('it stops serving', async () => (await healthOf(client)) === 'NOT_SERVING')
  service.change(RULES, { ...others, envoy: { files: [], onStoreError: 'deny' } })
  await until('it denies', async () => (await healthOf(client)) === 'SERVING')
  service.change(RULES)
  await until('it stops serving', async () => (await healthOf(client)) === 'NOT_SERVING')
  service.change(RULES, { readiness: 'always' })
  await until('it is ready without the store', async () => (await healthOf(client)) === 'SERVING')
  service.change(RULES)
  proxy.heal()
  await until('it serves', async () => (await healthOf(client)) === 'SERVING')
})

it('a health watcher does not keep the server from stopping', async () => {
  const service = await envoyService(RULES)
  const { path, requestSerialize, responseDeserialize } = healthDefinition.Watch!
  const watch = clientOf(service.grpcAddress).makeServerStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    { service: '' },
  )
  watch.on('error', () => {})
  await new Promise((resolve) => watch.once('data', resolve))
  const started = performance.now()
  await service.stop()
  // Stopping doesn't take the 10 s that calls in flight get to finish.
  expect(performance.now() - started).toBeLessThan(9500)
})

it('draining reports NOT_SERVING and still answers calls', async () => {
  const service = await envoyService(RULES)
  const client = clientOf(service.grpcAddress)
  using asking = rateLimitClient(service.grpcAddress)
  await until('it serves', async () => (await healthOf(client)) === 'SERVING')
  // This is long enough even if the machine stalls.
  const ended = service.stop(6000)
  await until('it stops serving', async () => (await healthOf(client)) === 'NOT_SERVING')
  expect((await asking.ask('rl', [{ user: 'ann' }])).overallCode).toBe('OK')
  await ended
})

it('stopping completes calls in flight and accepts no others', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const proxy = await startProxy(redis.port)
  onTestFinished(() => proxy.stop())
  const service = await envoyService(RULES, {
    store: { redis: { url: `redis://127.0.0.1:${proxy.port}` } },
    envoy: { files: [], timeoutMs: 20_000 },
  })
  using asking = rateLimitClient(service.grpcAddress)
  await asking.ask('rl', [{ user: 'ann' }])
  proxy.delay(1500)
  const { requests } = proxy
  const underWay = asking.ask('rl', [{ user: 'ann' }])
  await until('it is in flight', async () => proxy.requests > requests)
  const ended = service.stop()
  expect((await underWay).overallCode).toBe('OK')
  await ended
  const refused = await asking.ask('rl', [{ user: 'ann' }]).catch((error: ServiceError) => status[error.code])
  expect(refused).toBe('UNAVAILABLE')
})

it('reflection lists the services', async () => {
  await using service = await envoyService(RULES)
  const client = clientOf(service.grpcAddress)
  const { pathname } = new URL('../../../../node_modules/@grpc/reflection/build/proto/', import.meta.url)
  const reflection = loadSync('grpc/reflection/v1/reflection.proto', {
    includeDirs: [pathname],
    keepCase: true,
  })['grpc.reflection.v1.ServerReflection'] as unknown as Record<string, typeof healthDefinition.Check>
  const { path, requestSerialize, responseDeserialize } = reflection.ServerReflectionInfo!
  const ask = (question: object) =>
    new Promise<never>((resolve, reject) => {
      const call = client.makeBidiStreamRequest(path, requestSerialize as never, responseDeserialize)
      call.on('error', reject)
      call.on('data', (answer) => {
        resolve(answer as never)
        call.end()
      })
      call.write(question)
    })
  const { list_services_response: list } = await ask({ list_services: '' })
  expect((list as { service: { name: string }[] }).service.map(({ name }) => name)).toContain(
    'envoy.service.ratelimit.v3.RateLimitService',
  )
  for (const symbol of [
    'envoy.service.ratelimit.v3.RateLimitRequest',
    'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor',
  ]) {
    const { file_descriptor_response: files } = await ask({ file_containing_symbol: symbol })
    expect((files as { file_descriptor_proto: Buffer[] }).file_descriptor_proto.length).toBeGreaterThan(0)
  }
})
