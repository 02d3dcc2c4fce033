import { expect, it, onTestFinished } from 'vitest'
import { Client, credentials } from '@grpc/grpc-js'
import { service as healthDefinition } from 'grpc-health-check'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { rateLimitClient } from './support/client.ts'
import { envoyService } from './support/envoy-service.ts'

const d = (o: Record<string,string>, value?: number) => ({ entries: Object.entries(o).map(([key, value]) => ({key, value})), ...(value !== undefined && { hitsAddend: { value } }) })

it('quota only denial', async () => {
  await using service = await envoyService({ 'r.yaml': `domain: rl
descriptors:
  - { key: q1, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: q2, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
` })
  using client = rateLimitClient(service.grpcAddress)
  await client.ask('rl', [{ q1: 'a' }, { q2: 'a' }])
  console.log(JSON.stringify(await client.ask('rl', [{ q1: 'a' }, { q2: 'a' }]), null, 1))
})

it('shadow settle', async () => {
  await using service = await envoyService({ 'r.yaml': `domain: rl
descriptors:
  - { key: s, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 10 } }
` }, { envoy: { files: [], chargeAfterwards: ['*'] } })
  using client = rateLimitClient(service.grpcAddress)
  await client.ask('rl', [d({ s: 'a' }, 20)])
  const ex = await service.app.inject('/metrics')
  console.log(JSON.stringify((await client.ask('rl', [d({ s: 'a' }, 0)])).statuses), ex.body.match(/slidegate_envoy.*/g))
})

it('huge settle', async () => {
  await using service = await envoyService({ 'r.yaml': `domain: rl
descriptors:
  - { key: s, rate_limit: { unit: hour, requests_per_unit: 10 } }
` }, { envoy: { files: [], chargeAfterwards: ['*'] } })
  using client = rateLimitClient(service.grpcAddress)
  for (const n of [2**32, 2**53, 2**63, 2**64-2048]) console.log(n, JSON.stringify(await client.ask('rl', [d({ s: 'a' }, n)]).catch((e) => e.message)))
  console.log(JSON.stringify(await client.ask('rl', [d({ s: 'b' })], { hits: 2**32-1 }).catch((e) => e.message)))
  console.log(JSON.stringify(await client.ask('rl', [d({ s: 'b' })], { hits: 2**32-1 }).catch((e) => e.message)))
})

it('local', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  await using service = await envoyService({ 'r.yaml': `domain: rl
descriptors:
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: path, rate_limit: { unit: hour, requests_per_unit: 100 } }
` }, { store: { redis: { url: redis.url } }, envoy: { files: [], onStoreError: 'local', timeoutMs: 1000 } })
  using client = rateLimitClient(service.grpcAddress)
  await client.ask('rl', [{ path: 'x' }])
  await redis.kill()
  let ok = 0
  for (const ds of [[{ user: 'a' }], [{ user: 'a' }, { path: '/' }], [d({user: 'a'}), d({path: '/'}), d({path: '/b'})]]) for (let i = 0; i < 4; i++) if ((await client.ask('rl', ds as never)).overallCode === 'OK') ok++
  console.log('LOCAL ok', ok)
})

it('watch', async () => {
  const service = await envoyService({ 'r.yaml': 'domain: rl\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 3 } }]' })
  const client = new Client(service.grpcAddress, credentials.createInsecure())
  const { path, requestSerialize, responseDeserialize } = healthDefinition.Watch!
  const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { service: '' })
  call.on('error', (e) => console.log('watch error', e.message))
  await new Promise<void>((r) => call.on('data', (x) => { console.log('watch', x); r() }))
  const t = performance.now()
  await service.stop()
  console.log('STOP', performance.now() - t)
  client.close()
}, 30000)
