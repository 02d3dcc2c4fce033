// tier: integration
import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { MemoryAuditLog } from '../../src/admin/audit-log.ts'
import { type BanLog, type BanRecord, MAX_BANS, MemoryBanLog, RedisBanLog } from '../../src/admin/ban-log.ts'
import { BanRecorder } from '../../src/admin/ban-recorder.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'
import type { Config } from '../../src/config/schema.ts'
import { Service } from '../../src/service/service.ts'
import { type AdminService, adminService, forEachStore } from './support.ts'

const TOKENS = { admin: 'a-token-for-everything', login: 'a-token-for-login-only' } as const
const ban = { after: 2, within: '1h' as const, for: ['10m' as const, '1h' as const] }
const timeoutMs = 30_000

const LIMITERS: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h', name: 'hourly' }], ban, timeoutMs },
  login: {
    dimensions: {
      user: [{ kind: 'slidingWindow', limit: 1, window: '1h', name: 'tries' }],
      address: [{ kind: 'slidingWindow', limit: 100, window: '1h' }],
    },
    ban,
    timeoutMs,
  },
  secretive: {
    limits: [{ kind: 'slidingWindow', limit: 1, window: '1h' }],
    hashKeys: 'a secret of sixteen bytes',
    ban,
    timeoutMs,
  },
}

const configOn = (store: NonNullable<Config['store']>): Config => ({
  limiters: LIMITERS,
  store,
  auth: {
    tokens: [
      { name: 'ops', role: 'admin', token: TOKENS.admin },
      { name: 'login-team', role: 'read', token: TOKENS.login, limiters: ['login'] },
    ],
  },
})

async function consume(service: AdminService, limiter: string, key: unknown, times = 3): Promise<void> {
  for (let i = 0; i < times; i++) await service.ask('POST', '/v1/consume', { limiter, key }, TOKENS.admin)
}

async function act(service: AdminService, what: string, body: object): Promise<void> {
  expect(await service.ask('POST', `/v1/admin/${what}`, body, TOKENS.admin)).toMatchObject({ status: 200 })
}

interface Listed {
  readonly bans: readonly Record<string, unknown>[]
  readonly isComplete: boolean
}

async function bansOf(service: AdminService, query = '', token: string = TOKENS.admin): Promise<Listed> {
  const { status, body } = await service.ask('GET', `/v1/admin/bans${query}`, undefined, token)
  expect(status).toBe(200)
  return body as Listed
}

/** Waits until a list has these keys: bans are recorded after the response. */
async function expectKeys(service: AdminService, keys: readonly string[], query = ''): Promise<Listed> {
  let listed: Listed | undefined
  await expect
    .poll(async () => {
      listed = await bansOf(service, query)
      return listed.bans.map(({ key }) => key)
    })
    .toEqual(keys)
  return listed!
}

forEachStore((store) => {
  it('lists a ban with its cause, its level and its times', async () => {
    await using service = await adminService(configOn(store()))
    const beforeMs = Date.now() - 60_000
    await consume(service, 'api', 'ann')
    const { bans, isComplete } = await expectKeys(service, ['ann'])
    expect(isComplete).toBe(true)
    expect(bans).toEqual([
      {
        ...{ limiter: 'api', key: 'ann', type: 'ban', who: 'rule', level: 1 },
        ...{ limits: ['hourly'], denials: 2, withinMs: 3_600_000 },
        ...{ sinceMs: expect.any(Number), untilMs: (bans[0]!.sinceMs as number) + 600_000 },
      },
    ])
    expect(bans[0]!.sinceMs).toBeGreaterThan(beforeMs)
  })

  it('lists only the dimension that is banned, and the limits of that dimension', async () => {
    await using service = await adminService(configOn(store()))
    await consume(service, 'login', { user: 'ann', address: '192.0.2.7' })
    const { bans } = await expectKeys(service, ['ann'])
    expect(bans).toMatchObject([{ limiter: 'login', dimension: 'user', limits: ['user.tries'] }])
  })

  it('lists blocks with the operator, those that never end first', async () => {
    await using service = await adminService(configOn(store()))
    await consume(service, 'api', 'ann')
    await expectKeys(service, ['ann'])
    await act(service, 'block', { limiter: 'api', key: 'bob' })
    await act(service, 'block', { limiter: 'login', key: { user: 'eve', address: null }, ttl: '30s' })
    const body = { limiter: 'api', key: 'joe', block: true, ttl: '1d' }
    await service.ask('PUT', '/v1/admin/overrides', body, TOKENS.admin)
    const { bans } = await expectKeys(service, ['bob', 'joe', 'ann', 'eve'])
    expect(bans[0]).toEqual({
      ...{ limiter: 'api', key: 'bob', type: 'block', who: 'ops' },
      ...{ sinceMs: expect.any(Number), untilMs: null },
    })
    expect(bans[3]).toMatchObject({ limiter: 'login', dimension: 'user', type: 'block' })
    // The service reads the block after it has set it.
    const lastsMs = (bans[3]!.untilMs as number) - (bans[3]!.sinceMs as number)
    expect(30_000 - lastsMs).toBeLessThan(10_000)
  })

  it('leaves out bans and blocks that were lifted', async () => {
    await using service = await adminService(configOn(store()))
    for (const key of ['ann', 'bob', 'eve', 'joe', 'sue']) await consume(service, 'api', key)
    await act(service, 'block', { limiter: 'api', key: 'kim' })
    await expect.poll(async () => (await bansOf(service)).bans.length).toBe(6)
    await act(service, 'unblock', { limiter: 'api', key: 'ann' })
    await act(service, 'reset', { limiter: 'api', key: 'bob' })
    await service.ask('DELETE', '/v1/admin/overrides', { limiter: 'api', key: 'kim' }, TOKENS.admin)
    const left = (await bansOf(service)).bans.map(({ key }) => key)
    expect(left.toSorted()).toEqual(['eve', 'joe', 'sue'])
  })

  it('lists a key that is banned again once, with the new level', async () => {
    await using service = await adminService(configOn(store()))
    await consume(service, 'api', 'ann')
    await expectKeys(service, ['ann'])
    await act(service, 'unblock', { limiter: 'api', key: 'ann' })
    await consume(service, 'api', 'ann', 2)
    await expect.poll(async () => (await bansOf(service)).bans).toMatchObject([{ key: 'ann', level: 1 }])
    await act(service, 'block', { limiter: 'api', key: 'ann', ttl: '1m' })
    await act(service, 'block', { limiter: 'api', key: 'ann', ttl: '2m' })
    expect((await bansOf(service)).bans).toMatchObject([{ type: 'ban' }, { type: 'block' }])
  })

  it('filters by limiter, bounds the list, and shows only the limiters of the token', async () => {
    await using service = await adminService(configOn(store()))
    for (const key of ['ann', 'bob']) await consume(service, 'api', key)
    await consume(service, 'login', { user: 'eve', address: null })
    await expect.poll(async () => (await bansOf(service)).bans.length).toBe(3)
    await expectKeys(service, ['eve'], '?limiter=login')
    expect(await bansOf(service, '?count=2')).toMatchObject({ bans: [{}, {}], isComplete: false })
    expect((await bansOf(service, '', TOKENS.login)).bans).toMatchObject([{ key: 'eve' }])
    const other = await service.ask('GET', '/v1/admin/bans?limiter=api', undefined, TOKENS.login)
    expect(other).toMatchObject({ status: 404, body: { code: 'unknown_limiter' } })
    const wrong = await service.ask('GET', '/v1/admin/bans?count=0', undefined, TOKENS.admin)
    expect(wrong).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })

  it('stores only hashes if the limiter has hashKeys, and forgets them once they are lifted', async () => {
    await using service = await adminService(configOn(store()))
    await consume(service, 'secretive', 'ann')
    await act(service, 'block', { limiter: 'secretive', key: 'bob' })
    await expect.poll(async () => (await bansOf(service)).bans.length).toBe(2)
    for (const each of (await bansOf(service)).bans) {
      expect(each).toMatchObject({ isHashed: true, key: expect.stringMatching(/^~[\w-]{22}$/) })
    }
    await act(service, 'reset', { limiter: 'secretive', key: 'ann' })
    expect((await bansOf(service)).bans).toMatchObject([{ type: 'block' }])
    await act(service, 'unblock', { limiter: 'secretive', key: 'bob' })
    expect((await bansOf(service)).bans).toEqual([])
  })

  it('shows automatic bans in the audit, with the actor rule, also after they end', async () => {
    await using service = await adminService(configOn(store()))
    await consume(service, 'login', { user: 'ann', address: '192.0.2.7' })
    await expectKeys(service, ['ann'])
    await act(service, 'unblock', { limiter: 'login', key: { user: 'ann', address: null } })
    const { body } = await service.ask('GET', '/v1/admin/audit', undefined, TOKENS.admin)
    expect(body).toMatchObject({
      entries: [
        { who: 'ops', what: 'unblock' },
        {
          ...{ who: 'rule', what: 'ban', limiter: 'login', key: { user: 'ann' }, result: 'done' },
          detail: { limits: ['user.tries'], level: 1, denials: 2, forMs: expect.any(Number) },
        },
      ],
    })
  })
})

it('shares the list between instances and after a restart, and notices what other programs lift', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const config = configOn({ redis: { url: server.url } })
  await using one = await adminService(config)
  await using two = await adminService(config)
  for (const key of ['ann', 'bob', 'eve']) await consume(one, 'api', key)
  await act(two, 'block', { limiter: 'api', key: 'kim', ttl: '5m' })
  for (const service of [one, two]) await expect.poll(async () => (await bansOf(service)).bans.length).toBe(4)

  const store = redisStore({ url: server.url })
  const limits = [slidingWindow({ limit: 1, window: '1h', name: 'hourly' })]
  const limiter = createLimiter({ name: 'api', limits, ban, overrides: true, store, timeoutMs })
  onTestFinished(() => store.close())
  await limiter.unblock('ann')
  await limiter.reset('bob')
  await limiter.unblock('kim')
  for (const service of [one, two]) {
    expect((await bansOf(service)).bans).toMatchObject([{ key: 'eve', limits: ['hourly'] }])
  }
  // A ban that the library causes isn't listed; one that replaces a listed one has another cause.
  await limiter.unblock('eve')
  for (const key of ['eve', 'joe']) for (let i = 0; i < 3; i++) await limiter.consume(key)
  const [replaced, ...others] = (await bansOf(one)).bans
  expect([replaced?.limits, others]).toEqual([undefined, []])

  await using restarted = await adminService(config)
  await consume(restarted, 'api', 'sue')
  await expect.poll(async () => (await bansOf(two)).bans.some(({ key }) => key === 'sue')).toBe(true)
})

const record = (key: string, untilMs: number | null): BanRecord => ({
  ...{ limiter: 'api', key, type: 'ban', who: 'rule', sinceMs: 1, untilMs },
})

it.each<[string, () => Promise<BanLog>]>([
  ['memory', async () => new MemoryBanLog()],
  [
    'Redis',
    async () => {
      const server = await startRedis()
      const link = new RedisLink({ url: server.url, prefix: `slidegate:${randomUUID()}` }, '/')
      onTestFinished(async () => {
        link.close()
        await server.stop()
      })
      await expect.poll(() => link.connected()).toBe(true)
      return new RedisBanLog(link)
    },
  ],
])('the records in %s are bounded, and those that end last are kept', async (_, make) => {
  const log = await make()
  const endMs = Date.now() + 3_600_000
  await log.add([record('over', Date.now() - 120_000), record('forever', null)])
  for (let from = 0; from < MAX_BANS + 500; from += 500) {
    await log.add(Array.from({ length: 500 }, (_, i) => record(`k${from + i}`, endMs + from + i)))
  }
  const first = await log.page(0, 2)
  expect(first.map(({ key }) => key)).toEqual(['forever', `k${MAX_BANS + 499}`])
  const last = await log.page(MAX_BANS - 1, 10)
  expect(last.map(({ key }) => key)).toEqual(['k501'])
  await log.remove(first)
  expect((await log.page(0, 1)).map(({ key }) => key)).toEqual([`k${MAX_BANS + 498}`])
})

it('skips members of the set that it cannot read', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  await using service = await adminService(configOn({ redis: { url: server.url } }))
  const link = new RedisLink({ url: server.url }, '/')
  onTestFinished(() => link.close())
  await expect.poll(() => link.connected()).toBe(true)
  await link.ask((redis) =>
    redis.zadd('slidegate:{bans}', '+inf', '{', '+inf', '[]', '+inf', '{"limiter":"api"}'),
  )
  expect(await bansOf(service)).toEqual({ bans: [], isComplete: true })
})

it('drops bans that it cannot record, logs that, and answers requests', async () => {
  const logged: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) })
  const broken: BanLog = {
    add: () => Promise.reject(new Error('gone')),
    page: async () => [],
    remove: async () => {},
  }
  let recorder: BanRecorder | undefined
  const service = new Service({ limiters: LIMITERS }, memoryStore(), {
    decided: (...decided) => recorder?.decided(...decided),
  })
  onTestFinished(() => service.close())
  recorder = new BanRecorder(service, broken, new MemoryAuditLog(), log)
  const { limiter } = service.get('api')
  for (let i = 0; i < 3; i++) await limiter.consume('ann')
  await expect.poll(() => logged.length).toBe(1)
  expect(JSON.parse(logged[0]!)).toMatchObject({ msg: 'failed to record a ban', reason: 'gone' })
})

it('records up to 1,000 bans that begin at once, and drops more', async () => {
  const begun: Parameters<BanRecorder['decided']>[] = []
  const service = new Service({ limiters: LIMITERS }, memoryStore(), {
    decided: (...decided) => void begun.push(decided),
  })
  onTestFinished(() => service.close())
  const { limiter } = service.get('api')
  for (let i = 0; i < 1100; i++) for (let j = 0; j < 3; j++) await limiter.consume(`k${i}`)
  const records = new MemoryBanLog()
  const recorder = new BanRecorder(service, records, new MemoryAuditLog(), pino({ level: 'silent' }))
  for (const decided of begun) recorder.decided(...decided)
  await expect.poll(async () => (await records.page(0, MAX_BANS)).length).toBe(1000)
  // The next ban has room.
  for (const decided of begun.slice(-3)) recorder.decided(...decided)
  await expect.poll(async () => (await records.page(0, MAX_BANS)).length).toBe(1001)
})
