// tier: system
import { readFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { networkInterfaces } from 'node:os'
import { credentials, type ServiceError, status } from '@grpc/grpc-js'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { startProxy } from '../../../slidegate/test/support/tcp-proxy.ts'
import { makeCertificates } from '../../../slidegate/test/support/tls.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import { METHOD, type RateLimitClient, type Response, rateLimitClient } from './support/client.ts'
import { type EnvoyService, envoyService } from './support/envoy-service.ts'

/** A generous timeout for slow machines. */
const PATIENT = { files: [], timeoutMs: 10_000 }

const RULES = {
  'rules.yaml': `domain: rl
descriptors:
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: path, rate_limit: { unit: hour, requests_per_unit: 100 } }
`,
}

/** Returns the error of a rejected call. */
async function refusal(call: Promise<Response>): Promise<{ code: string; details: string }> {
  const error = await call.then(
    (response) => expect.unreachable(`unexpected response: ${JSON.stringify(response)}`),
    (thrown) => thrown as ServiceError,
  )
  return { code: status[error.code]!, details: error.details }
}

function remainingIn({ statuses }: Response): number[] {
  return statuses.map(({ limitRemaining }) => limitRemaining)
}

describe('a response', () => {
  it('includes draft header fields with the time to retry', async () => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    const first = await client.ask('rl', [{ user: 'ann' }, { path: '/' }])
    expect(first.responseHeadersToAdd).toMatchObject([
      { key: 'RateLimit-Policy', value: '"user";q=3;w=3600, "path";q=100;w=3600' },
      { key: 'RateLimit', value: '"user";r=2;t=3600, "path";r=99;t=3600' },
    ])
    expect(first.statuses[0]!.durationUntilReset).toEqual({ seconds: 3600, nanos: 0 })
    const denied = await client.ask('rl', [{ user: 'ann' }, { path: '/' }], { hits: 3 })
    expect(denied.overallCode).toBe('OVER_LIMIT')
    const retryAfter = denied.responseHeadersToAdd.find(({ key }) => key === 'Retry-After')!
    expect(Number(retryAfter.value)).toBe(denied.statuses[0]!.durationUntilReset!.seconds)
    const never = await client.ask('rl', [{ user: 'ann' }], { hits: 4 })
    expect(never.statuses[0]!.durationUntilReset!.seconds).toBe(3600)
    expect(never.responseHeadersToAdd.some(({ key }) => key === 'Retry-After')).toBe(false)
  })

  it.each([
    [false, []],
    [true, ['RateLimit-Policy', 'RateLimit']],
    ['draft-6', ['RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']],
    ['legacy', ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']],
  ] as const)('includes the fields for headers: %j', async (headers, names) => {
    await using service = await envoyService(RULES, { envoy: { files: [], headers } })
    using client = rateLimitClient(service.grpcAddress)
    const { responseHeadersToAdd } = await client.ask('rl', [{ user: 'ann' }])
    expect(responseHeadersToAdd.map(({ key }) => key)).toEqual(names)
  })

  it('appears in metrics by limiter and by rule', async () => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    for (let i = 0; i < 2; i++) await client.ask('rl', [{ user: 'ann' }, { path: '/' }], { hits: 2 })
    await client.ask('unknown', [{ user: 'ann' }])
    const { body } = await service.app.inject('/metrics')
    expect(body).toContain('slidegate_decisions_total{limiter="envoy.rl",outcome="allowed",source="store"} 1')
    expect(body).toContain('slidegate_decisions_total{limiter="envoy.rl",outcome="denied",source="store"} 1')
    expect(body).toContain('slidegate_envoy_hits_total{domain="rl",rule="user",outcome="within_limit"} 2')
    expect(body).toContain('slidegate_envoy_hits_total{domain="rl",rule="user",outcome="over_limit"} 2')
    expect(body).toContain('slidegate_envoy_hits_total{domain="rl",rule="path",outcome="not_charged"} 2')
    expect(body).toContain('slidegate_envoy_ignored_total{reason="domain"} 1')
  })
})

it('a denial by quotas reports when the first quota has room again', async () => {
  const quota = (key: string, unit: string) =>
    `  - { key: ${key}, quota_mode: true, rate_limit: { unit: ${unit}, requests_per_unit: 1 } }`
  await using service = await envoyService({
    'rules.yaml': `domain: rl\ndescriptors:\n${quota('own', 'hour')}\n${quota('common', 'day')}`,
  })
  using client = rateLimitClient(service.grpcAddress)
  await client.ask('rl', [{ own: 'ann' }, { common: '' }])
  const denied = await client.ask('rl', [{ own: 'ann' }, { common: '' }])
  expect(denied.overallCode).toBe('OVER_LIMIT')
  const [own, common] = denied.statuses.map((each) => each.durationUntilReset!.seconds)
  expect(own).toBeLessThanOrEqual(3600)
  expect(common).toBeGreaterThan(3600)
  expect(denied.responseHeadersToAdd).toMatchObject([{ key: 'Retry-After', value: `${own}` }])
})

it('a charge is refunded if hits that already happened cannot be charged', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  await using service = await envoyService(RULES, {
    store: { redis: { url: redis.url } },
    envoy: { ...PATIENT, chargeOnStreamDone: ['rl'] },
  })
  using client = rateLimitClient(service.grpcAddress)
  const used = { entries: [{ key: 'path', value: '/' }], hitsAddend: { value: 5 } }
  await client.ask('rl', [used])
  const direct = new Redis(redis.url)
  onTestFinished(() => direct.disconnect())
  // Replaces the log with an invalid value.
  const logs = await direct.keys('*envoy.rl*')
  expect(logs).toHaveLength(1)
  await direct.del(logs)
  await direct.rpush(logs[0]!, 'no log')
  await refusal(client.ask('rl', [{ user: 'ann' }, used]))
  expect(remainingIn(await client.ask('rl', [{ user: 'ann' }]))).toEqual([2])
})

it('metric labels have a bounded length', async () => {
  await using service = await envoyService({
    'rules.yaml':
      'domain: rl\ndescriptors: [{ key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1 } }]',
  })
  using client = rateLimitClient(service.grpcAddress)
  for (const user of ['ann', 'x'.repeat(10_000)]) await client.ask('rl', [{ user }])
  const { body } = await service.app.inject('/metrics')
  expect(body.match(/(?<=slidegate_envoy_hits_total\{domain="rl",rule=")[^"]*/g)).toEqual([
    'user_ann',
    'user',
  ])
})

describe('limit overrides in requests', () => {
  const own = (requestsPerUnit: number, unit: string | number = 'DAY') => [
    { entries: [{ key: 'user', value: 'ann' }], limit: { requestsPerUnit, unit } },
  ]

  it('apply only if configured', async () => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    const { statuses } = await client.ask('rl', own(1000))
    expect(statuses[0]!.currentLimit).toMatchObject({ requestsPerUnit: 3, unit: 'HOUR' })
  })

  it('replace the rules if configured', async () => {
    await using service = await envoyService(RULES, { envoy: { files: [], limitOverrides: true } })
    using client = rateLimitClient(service.grpcAddress)
    const first = await client.ask('rl', own(2))
    expect(first.statuses[0]).toMatchObject({
      currentLimit: { requestsPerUnit: 2, unit: 'DAY' },
      limitRemaining: 1,
    })
    // Another limit with the same key shares the count.
    expect(remainingIn(await client.ask('rl', own(5, 'MONTH')))).toEqual([3])
    expect((await client.ask('rl', own(2))).overallCode).toBe('OVER_LIMIT')
    expect((await client.ask('rl', own(0))).overallCode).toBe('OVER_LIMIT')
    // The rule has a separate count.
    expect(remainingIn(await client.ask('rl', [{ user: 'ann' }]))).toEqual([2])
    expect(await refusal(client.ask('rl', own(1, 0)))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await refusal(client.ask('rl', own(1, 99)))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

describe('hits that have already happened', () => {
  const check = [{ entries: [{ key: 'user', value: 'ann' }], hitsAddend: { value: 0 } }]
  const used = (value: number) => [{ entries: [{ key: 'user', value: 'ann' }], hitsAddend: { value } }]

  it('charge above the limit if configured', async () => {
    await using service = await envoyService(RULES, { envoy: { files: [], chargeOnStreamDone: ['r*'] } })
    using client = rateLimitClient(service.grpcAddress)
    expect((await client.ask('rl', check)).overallCode).toBe('OK')
    expect((await client.ask('rl', used(2))).overallCode).toBe('OK')
    expect((await client.ask('rl', check)).overallCode).toBe('OK')
    expect((await client.ask('rl', used(5))).overallCode).toBe('OVER_LIMIT')
    expect((await client.ask('rl', check)).overallCode).toBe('OVER_LIMIT')
  })

  it('count like any others by default', async () => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    expect((await client.ask('rl', used(5))).overallCode).toBe('OVER_LIMIT')
    expect((await client.ask('rl', check)).overallCode).toBe('OK')
  })
})

describe('a bad request', () => {
  let service: EnvoyService
  let client: RateLimitClient
  beforeAll(async () => {
    service = await envoyService(RULES)
    client = rateLimitClient(service.grpcAddress)
  })
  afterAll(async () => {
    client?.[Symbol.dispose]()
    await service?.stop()
  })

  it.each([
    ['without a domain', '', [{ user: 'ann' }], /the domain is empty/],
    ['no descriptors', 'rl', [], /there are no descriptors/],
    ['no entries', 'rl', [{ entries: [] }], /descriptor 0 has no entries/],
    [
      'without a key',
      'rl',
      [{ user: 'ann' }, { entries: [{ key: '', value: 'x' }] }],
      /descriptor 1 has no key/,
    ],
    [
      'with too many descriptors',
      'rl',
      Array.from({ length: 65 }, () => ({ user: 'x' })),
      /at most 64 are allowed/,
    ],
  ])('%s is rejected', async (_, domain, descriptors, details) => {
    const refused = await refusal(client.ask(domain, descriptors as never))
    expect(refused).toEqual({ code: 'INVALID_ARGUMENT', details: expect.stringMatching(details) })
  })

  it('never results from a value: long or unusual ones are counted', async () => {
    for (const user of ['%'.repeat(200_000), '\u0000\u{1F600}|', '']) {
      expect(remainingIn(await client.ask('rl', [{ user }]))).toEqual([2])
      expect(remainingIn(await client.ask('rl', [{ user }]))).toEqual([1])
    }
  })

  it('results from too many bytes or descriptors, too', async () => {
    await using service = await envoyService(RULES, { caps: { bodyBytes: 1024, descriptors: 2 } })
    using client = rateLimitClient(service.grpcAddress)
    expect(await refusal(client.ask('rl', [{ user: 'x'.repeat(2000) }]))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
    })
    expect(await refusal(client.ask('rl', [{ a: 'x' }, { b: 'x' }, { c: 'x' }]))).toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })
})

describe('access control', () => {
  const tokens = [
    { name: 'gateway', role: 'check', token: 'the token of the gateway', limiters: ['envoy.r*'] },
    { name: 'other', role: 'check', token: 'the token of another one', limiters: ['other'] },
  ] as const
  const config = { auth: { tokens: tokens.map((token) => ({ ...token, limiters: [...token.limiters] })) } }
  // Bearer tokens have no spaces.
  for (const each of config.auth.tokens) each.token = each.token.replaceAll(' ', '-') as never

  it('requires a token for the domain', async () => {
    await using service = await envoyService(RULES, config)
    using client = rateLimitClient(service.grpcAddress)
    const ask = (domain: string, token?: string) =>
      client.ask(domain, [{ user: 'ann' }], token ? { token } : {})
    expect((await ask('rl', 'the-token-of-the-gateway')).overallCode).toBe('OK')
    expect(await refusal(ask('rl'))).toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(await refusal(ask('rl', 'the-token-of-nobody'))).toMatchObject({ code: 'UNAUTHENTICATED' })
    // The error must not reveal whether the domain exists.
    const there = await refusal(ask('rl', 'the-token-of-another-one'))
    expect(there).toMatchObject({ code: 'PERMISSION_DENIED' })
    const notThere = await refusal(ask('xy', 'the-token-of-another-one'))
    expect(notThere).toEqual({ ...there, details: there.details.replace('envoy.rl', 'envoy.xy') })
  })

  it('requires a token if other machines can connect', async () => {
    await using service = await envoyService(RULES, { listen: { grpc: '0.0.0.0:0' } })
    using client = rateLimitClient(service.grpcAddress.replace('0.0.0.0', '127.0.0.1'))
    expect(await refusal(client.ask('rl', [{ user: 'ann' }]))).toMatchObject({ code: 'UNAUTHENTICATED' })
  })

  it.each<Record<string, string>>([
    { forwarded: 'for=192.0.2.7' },
    { via: '2 proxy.example' },
    { 'x-real-ip': '192.0.2.7' },
    { 'x-forwarded-proto': 'https' },
    { 'x-forwarded-for': '192.0.2.7' },
    { 'x-forwarded-for': '127.0.0.1, 192.0.2.7' },
    { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'limits.example' },
  ])('without tokens rejects calls through a proxy: %j', async (more) => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    expect(await refusal(client.ask('rl', [{ user: 'ann' }], { more }))).toMatchObject({
      code: 'PERMISSION_DENIED',
      details: expect.stringContaining('auth.tokens'),
    })
    service.change(RULES, { auth: { anonymous: 'check' } })
    expect((await client.ask('rl', [{ user: 'ann' }], { more })).overallCode).toBe('OK')
  })

  it('without tokens admits an Envoy on this machine, which adds its own address to its calls', async () => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    for (const address of Object.values(networkInterfaces()).map((each) => each![0]!.address)) {
      const more = { 'x-envoy-internal': 'true', 'x-forwarded-for': address }
      for (let i = 0; i < 2; i++) {
        expect((await client.ask('rl', [{ user: address }], { more })).overallCode).toBe('OK')
      }
    }
  })

  it('follows changed tokens immediately', async () => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    await client.ask('rl', [{ user: 'ann' }])
    service.change(RULES, config)
    expect(await refusal(client.ask('rl', [{ user: 'ann' }]))).toMatchObject({ code: 'UNAUTHENTICATED' })
  })

  it('with mutual TLS requires a client certificate', async () => {
    const { files, ca, remove } = await makeCertificates()
    onTestFinished(remove)
    const tls = { cert: files.certificate, key: files.key, clientCa: files.ca }
    await using service = await envoyService(RULES, { listen: { tls } })
    const read = (file: string) => readFileSync(file)
    const authority = Buffer.from(ca)
    const known = credentials.createSsl(authority, read(files.key), read(files.certificate))
    using client = rateLimitClient(service.grpcAddress, known)
    expect((await client.ask('rl', [{ user: 'ann' }])).overallCode).toBe('OK')
    using stranger = rateLimitClient(service.grpcAddress, credentials.createSsl(authority))
    expect(await refusal(stranger.ask('rl', [{ user: 'ann' }]))).toMatchObject({ code: 'UNAVAILABLE' })
    using plain = rateLimitClient(service.grpcAddress)
    expect(await refusal(plain.ask('rl', [{ user: 'ann' }]))).toMatchObject({ code: 'UNAVAILABLE' })
  })
})

describe('changed files', () => {
  it('apply immediately and keep the usage', async () => {
    await using service = await envoyService(RULES)
    using client = rateLimitClient(service.grpcAddress)
    await client.ask('rl', [{ user: 'ann' }], { hits: 2 })
    service.change({
      'rules.yaml': `domain: rl
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 10 } }
`,
      'more.yaml':
        'domain: more\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]',
    })
    expect(remainingIn(await client.ask('rl', [{ user: 'ann' }]))).toEqual([7])
    expect(remainingIn(await client.ask('more', [{ user: 'ann' }]))).toEqual([0])
    expect((await client.ask('rl', [{ path: '/' }])).statuses[0]!.currentLimit).toBeNull()
    service.change(RULES)
    expect((await client.ask('rl', [{ user: 'ann' }])).overallCode).toBe('OVER_LIMIT')
  })

  it('keep the usage even if a larger limit needs another precision', async () => {
    const rules = (count: number) => ({
      'rules.yaml': `domain: rl\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: ${count} } }]`,
    })
    await using service = await envoyService(rules(60_000))
    using client = rateLimitClient(service.grpcAddress)
    await client.ask('rl', [{ user: 'ann' }], { hits: 50_000 })
    service.change(rules(600_000))
    expect(remainingIn(await client.ask('rl', [{ user: 'ann' }], { hits: 1 }))).toEqual([549_999])
  })

  it('change the failure policy, too', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const store = { redis: { url: redis.url } }
    await using service = await envoyService(RULES, { store, envoy: PATIENT })
    using client = rateLimitClient(service.grpcAddress)
    await client.ask('rl', [{ user: 'ann' }])
    await redis.kill()
    service.change(RULES, { store, envoy: { files: [], timeoutMs: 200, onStoreError: 'allow' } })
    expect((await client.ask('rl', [{ user: 'ann' }])).overallCode).toBe('OK')
  })
})

describe("a store that doesn't respond", () => {
  let redis: RedisServer
  let proxy: Awaited<ReturnType<typeof startProxy>>
  const stops: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    redis = await startRedis()
    proxy = await startProxy(redis.port)
  })
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop()
    proxy.heal()
    const direct = new Redis(redis.url)
    await direct.flushall()
    direct.disconnect()
  })
  afterAll(async () => {
    await proxy?.stop()
    await redis?.stop()
  })

  async function behindProxy(
    envoy: object,
    caps = {},
  ): Promise<{
    service: EnvoyService
    client: RateLimitClient
  }> {
    const store = { redis: { url: `redis://127.0.0.1:${proxy.port}` } }
    const service = await envoyService(RULES, { store, caps, envoy: { ...PATIENT, ...envoy } })
    stops.push(() => service.stop())
    const client = rateLimitClient(service.grpcAddress)
    stops.push(async () => client[Symbol.dispose]())
    // With a short timeout, the first call may be too slow.
    await until('it answers', () => client.ask('rl', [{ user: 'before' }]))
    return { service, client }
  }

  it.each([
    ['allow', 'OK'],
    ['deny', 'OVER_LIMIT'],
    ['local', 'OK'],
  ] as const)('%s: the policy decides', async (onStoreError, code) => {
    const { client } = await behindProxy({ onStoreError, timeoutMs: 300 })
    proxy.blackHole()
    const response = await client.ask('rl', [{ user: 'ann' }])
    expect(response.overallCode).toBe(code)
    expect(response.statuses[0]!.code).toBe(code)
  })

  it('throw: the error has no address of Redis', async () => {
    const { client } = await behindProxy({ onStoreError: 'throw', timeoutMs: 300 })
    proxy.refuse()
    const { code, details } = await refusal(client.ask('rl', [{ user: 'ann' }]))
    expect(code).toBe('UNAVAILABLE')
    expect(details).toMatch(/^the store (failed|timed out)/)
  })

  it('local: each rule has one share, in any combination of rules', async () => {
    const { client } = await behindProxy({ onStoreError: 'local', timeoutMs: 300 })
    proxy.refuse()
    const user = { user: 'ann' }
    const codes: string[] = []
    const ask = async (...descriptors: Parameters<RateLimitClient['ask']>[1]) => {
      const { overallCode, statuses } = await client.ask('rl', descriptors)
      codes.push(overallCode)
      return statuses.at(-1)!.limitRemaining
    }
    await ask(user)
    await ask(user, { path: '/' })
    // This request is decided in several steps: the first charge is refunded.
    await ask(user, { path: '/' }, user, user)
    await ask(user, { path: '/' }, { path: '/a' })
    await ask(user)
    await ask(user, { path: '/' })
    expect(codes).toEqual(['OK', 'OK', 'OVER_LIMIT', 'OK', 'OVER_LIMIT', 'OVER_LIMIT'])
    expect(await ask({ path: '/' })).toBe(97)
  })

  it('deny: shadow limits alone deny nothing', async () => {
    const { service, client } = await behindProxy({ onStoreError: 'deny', timeoutMs: 300 })
    service.change({ 'rules.yaml': RULES['rules.yaml'].replace('user,', 'user, shadow_mode: true,') })
    proxy.refuse()
    expect((await client.ask('rl', [{ user: 'ann' }])).overallCode).toBe('OK')
    expect((await client.ask('rl', [{ user: 'ann' }, { path: '/' }])).overallCode).toBe('OVER_LIMIT')
  })

  it('throw: the call fails in time', async () => {
    const { client } = await behindProxy({ onStoreError: 'throw', timeoutMs: 300 })
    proxy.blackHole()
    const deadline = Date.now() + 30_000
    const refused = await refusal(client.ask('rl', [{ user: 'ann' }], { deadline }))
    expect(refused).toMatchObject({ code: 'UNAVAILABLE' })
  })

  it('a reload lets pending requests finish, including their refunds', async () => {
    const { service, client } = await behindProxy({})
    const user = { user: 'ann' }
    proxy.delay(300)
    const asked = client.ask('rl', [{ path: '/' }, user, user, user, user])
    await new Promise((resolve) => setTimeout(resolve, 150))
    service.change(RULES, { envoy: { ...PATIENT, onStoreError: 'deny' } })
    expect((await asked).overallCode).toBe('OVER_LIMIT')
    proxy.heal()
    expect(remainingIn(await client.ask('rl', [user, { path: '/' }]))).toEqual([2, 99])
  })

  it('a missed deadline fails the call, and its charge stays', async () => {
    const { client } = await behindProxy({})
    // The charge is made within the deadline, even if the machine stalls.
    proxy.dropReplies()
    const late = client.ask('rl', [{ user: 'ann' }], { deadline: Date.now() + 4000 })
    expect(await refusal(late)).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    proxy.heal()
    // Envoy allows requests without a response by default, so the charge is right.
    const check = [{ entries: [{ key: 'user', value: 'ann' }], hitsAddend: { value: 0 } }]
    const left = await until('it responds', async () => remainingIn(await client.ask('rl', check)))
    expect(left).toEqual([2])
  })

  it('calls in flight are limited', async () => {
    const { service, client } = await behindProxy({}, { inFlight: 2 })
    redis.freeze()
    const first = [client.ask('rl', [{ user: '1' }]), client.ask('rl', [{ user: '2' }])]
    using another = rateLimitClient(service.grpcAddress, undefined, { 'grpc.use_local_subchannel_pool': 1 })
    // Any of the three may be rejected: until then, the first two get no response.
    const asked = [...first, another.ask('rl', [{ user: '3' }])]
    await Promise.race(asked).catch(() => {})
    redis.thaw()
    const all = await Promise.allSettled(asked)
    const refused = all.filter((each) => each.status === 'rejected')
    expect(refused.map(({ reason }) => status[reason.code])).toEqual(['RESOURCE_EXHAUSTED'])
  })
})

it('a call that is cancelled before its decision costs nothing', async () => {
  await using service = await envoyService(RULES)
  const session = connect(`http://${service.grpcAddress}`)
  onTestFinished(() => session.close())
  const message = METHOD.requestSerialize({
    domain: 'rl',
    descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }],
  })
  const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
  for (let i = 0; i < 20; i++) {
    const stream = session.request({
      ':method': 'POST',
      ':path': METHOD.path,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': '1n',
    })
    stream.on('error', () => {})
    stream.end(frame)
    stream.resume()
    await new Promise((resolve) => stream.on('close', resolve))
  }
  using client = rateLimitClient(service.grpcAddress)
  expect(remainingIn(await client.ask('rl', [{ user: 'ann' }]))).toEqual([2])
})

describe('exact limits', () => {
  const MANY = {
    'rules.yaml': `domain: rl
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 300 } }
  - { key: path, rate_limit: { unit: day, requests_per_unit: 500 } }
`,
  }

  it('hold with 1,024 calls in flight at two services on the same Redis', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const config = { store: { redis: { url: redis.url } }, envoy: { files: [], timeoutMs: 60_000 } }
    await using one = await envoyService(MANY, config)
    await using two = await envoyService(MANY, config)
    using first = rateLimitClient(one.grpcAddress)
    using second = rateLimitClient(two.grpcAddress)
    const responses = await Promise.all(
      Array.from({ length: 1024 }, (_, i) =>
        (i % 2 ? first : second).ask('rl', [{ user: `${i % 4 < 2}` }, { path: '/' }]),
      ),
    )
    expect(responses.filter(({ overallCode }) => overallCode === 'OK')).toHaveLength(500)
    // Denied requests charged nothing.
    const users = await Promise.all(
      ['true', 'false'].map((user) =>
        first.ask('rl', [{ entries: [{ key: 'user', value: user }], hitsAddend: { value: 0 } }]),
      ),
    )
    expect(users.flatMap(remainingIn).reduce((sum, left) => sum + left)).toBe(100)
  })

  it('hold with 1,024 calls in flight in memory, in several steps', async () => {
    await using service = await envoyService(MANY)
    using client = rateLimitClient(service.grpcAddress)
    const responses = await Promise.all(
      Array.from({ length: 1024 }, () => client.ask('rl', [{ user: 'ann' }, { user: 'bob' }, { path: '/' }])),
    )
    expect(responses.filter(({ overallCode }) => overallCode === 'OK')).toHaveLength(300)
    const { statuses } = await client.ask('rl', [{ path: '/' }])
    expect(statuses[0]!.limitRemaining).toBe(199)
  })
})

it('ignored limit overrides are logged once, without keys', async () => {
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  await using service = await envoyService(RULES, {}, log)
  using client = rateLimitClient(service.grpcAddress)
  for (let i = 0; i < 3; i++) {
    const entries = [{ key: 'user', value: 'the-secret-user' }]
    await client.ask('rl', [{ entries, limit: { requestsPerUnit: 1, unit: 'DAY' } }])
  }
  expect(lines.filter((line) => line.includes('limitOverrides'))).toHaveLength(1)
  expect(lines.join()).not.toContain('the-secret-user')
})
