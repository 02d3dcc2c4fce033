// tier: integration
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { restore, type Stored, versionsIn } from '../../../slidegate/test/compatibility/fixture.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { Audit } from '../../src/admin/audit.ts'
import { RedisAuditLog } from '../../src/admin/audit-log.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'
import { RedisShadowSwitches } from '../../src/admin/shadow-switches.ts'
import { Capture } from '../../src/capture/capture.ts'
import { limiterNameOf, partOf, ruleOf } from '../../src/envoy/domain.ts'
import { claimOf, tokenOf } from '../../src/http/reservations.ts'
import { Service } from '../../src/service/service.ts'

// Tests state other than limits that released versions left in Redis. The current code must read it and write the same format.

const FOLDER = join(import.meta.dirname, 'fixtures')
const versions = versionsIn(FOLDER).map((version) => {
  const lines = readFileSync(join(FOLDER, version), 'utf8').trimEnd().split('\n')
  return { version, stored: lines.map((line) => JSON.parse(line).stored as Stored) }
})

const { server, redis } = await useRedis()

const SECRET = 'a secret of sixteen bytes'
const log = pino({ level: 'silent' })

async function linked(): Promise<RedisLink> {
  const link = new RedisLink({ url: server.url }, '/')
  onTestFinished(() => link.close())
  await expect.poll(() => link.connected()).toBe(true)
  return link
}

async function auditOn(): Promise<Audit> {
  const service = new Service(
    { limiters: { api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1m' }] } } },
    memoryStore(),
  )
  onTestFinished(() => service.close())
  return new Audit(service, new RedisAuditLog(await linked()), log)
}

async function captureOn(): Promise<Capture> {
  const store = { redis: { url: server.url } }
  const capture = new Capture({ config: { stream: true, secret: SECRET }, store, folder: '/', log })
  onTestFinished(() => capture.close())
  // Waits for the connection.
  await expect.poll(() => capture.newest(1, () => true).catch(() => 'not yet')).not.toBe('not yet')
  return capture
}

describe.each(versions)('a service with the state of $version', ({ stored }) => {
  it('applies its shadow switches', async () => {
    await restore(redis, stored)
    const words = { api: { '*': true, hourly: false }, login: { hourly: true } }
    expect(await new RedisShadowSwitches(await linked()).read()).toEqual(words)
  })

  it('lists its audit log', async () => {
    await restore(redis, stored)
    const [last, reload, ban, reset, ...others] = await (await auditOn()).list(10, () => true)
    expect(others).toEqual([])
    expect(reset).toMatchObject({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann', result: 'done' })
    expect(reset).toMatchObject({ atMs: 1_700_000_000_000, instance: 'host-1/42' })
    expect(ban).toMatchObject({ key: { user: 'bob' }, detail: { duration: '1h' }, error: 'it cannot be' })
    expect(reload).toMatchObject({ who: 'configuration', what: 'reload', result: 'done' })
    expect(last).toMatchObject({ what: 'drain', result: 'unknown' })
  })

  it('returns its captured requests', async () => {
    await restore(redis, stored)
    const capture = stored.find(({ key }) => key.endsWith('{capture}')) as Stored & { type: 'stream' }
    const lines = capture.entries.map(([, [, line]]) => line)
    expect(await (await captureOn()).newest(10, () => true)).toEqual(lines)
  })
})

describe('new state has the format of the newest version', () => {
  const { stored } = versions.at(-1)!
  const entriesOf = (name: string): readonly (readonly string[])[] =>
    stored.flatMap((each) =>
      each.key === name && each.type === 'stream' ? each.entries.map(([, fields]) => fields) : [],
    )

  it('in shadow switches', async () => {
    await redis.flushall()
    const switches = new RedisShadowSwitches(await linked())
    await switches.set('api', '*', true)
    await switches.set('api', 'hourly', false)
    await switches.set('login', 'hourly', true)
    const words = stored.find(({ key }) => key === 'slidegate:{shadow}') as Stored & { type: 'zset' }
    expect(await redis.zrange('slidegate:{shadow}', 0, -1, 'WITHSCORES')).toEqual(words.members.flat())
    expect(await redis.keys('*')).toEqual(['slidegate:{shadow}'])
  })

  it('in the audit log', async () => {
    await redis.flushall()
    const audit = await auditOn()
    await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => {})
    const failing = audit.act(
      { who: 'eve', what: 'ban', limiter: 'api', key: { user: 'bob' }, detail: { duration: '1h' } },
      () => Promise.reject(new Error('it cannot be')),
    )
    await expect(failing).rejects.toThrow()
    await audit.note({ who: 'configuration', what: 'reload' })
    // Process and record IDs are random.
    const told = (fields: readonly string[]) =>
      fields.map((word, i) => (['instance', 'of'].includes(fields[i - 1]!) ? '' : word))
    const added = await redis.xrange('slidegate:{audit}', '-', '+')
    expect(added.map(([, fields]) => told(fields))).toEqual(
      entriesOf('slidegate:{audit}').slice(0, 5).map(told),
    )
  })

  it('in captured requests', async () => {
    await redis.flushall()
    const capture = await captureOn()
    const clock = new ManualClock()
    const limits = [slidingWindow({ limit: 3, window: '1h' })]
    const limiter = createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
    capture.decided('api', 'user:42', await limiter.consume('k', { cost: 1 }))
    await limiter.charge('k', 2)
    clock.advance(1000)
    capture.decided('api', 'user:42', await limiter.consume('k', { cost: 2 }))
    await capture.flush()
    const added = await redis.xrange('slidegate:{capture}', '-', '+')
    expect(added.map(([, fields]) => fields)).toEqual(entriesOf('slidegate:{capture}'))
  })
})

describe('keys and names', () => {
  it('stay the same', () => {
    expect(limiterNameOf('rl')).toBe('envoy.rl')
    expect(limiterNameOf('a domain/b')).toBe('envoy.a_domain_b-HkmZ4CMG2TR0UrdX')
    const options = {
      requestsPerUnit: 3,
      isUnlimited: false,
      isShadow: false,
      isQuota: false,
      name: '',
    } as const
    const rule = ruleOf(['user', 'path_/a'], {
      ...options,
      unit: 'HOUR',
      replaces: [],
      hasDetailedMetric: false,
      metadata: undefined,
    })
    expect(rule.id).toBe('user_path__a-JOARSKmzjOhQScVH')
    expect(rule.limits!.map((limit) => limit.kind.logName(limit))).toEqual(['w1'])
    expect([partOf('user', 'ann'), partOf('a=b', 'c|d'), partOf('user', '~x')]).toEqual([
      ...['user=ann', 'a%253Db=c%7Cd'],
      `user=~${createHash('sha256').update('~x').digest('base64url')}`,
    ])
  })

  it('include reservation tokens of earlier versions', () => {
    const claim = { token: 'WzFd', units: 5, plan: 'gold' }
    expect(tokenOf(claim)).toBe('WzFd~5~gold')
    expect(claimOf('WzFd~5~gold')).toEqual(claim)
    expect(claimOf('WzFd~5~')).toEqual({ ...claim, plan: undefined })
  })
})
