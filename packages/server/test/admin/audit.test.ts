// tier: integration
import { pino } from 'pino'
import { memoryStore } from 'slidegate'
import { describe, expect, it, onTestFinished } from 'vitest'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { Audit } from '../../src/admin/audit.ts'
import { type AuditLog, MAX_RECORDS, MemoryAuditLog, RedisAuditLog } from '../../src/admin/audit-log.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'
import type { LimiterConfig } from '../../src/config/schema.ts'
import { Service } from '../../src/service/service.ts'
import { ServiceError } from '../../src/service/service-error.ts'

const { server, redis } = await useRedis()

const limits: LimiterConfig['limits'] = [{ kind: 'slidingWindow', limit: 1, window: '1m' }]
const secret = 'a secret of sixteen bytes'

let runs = 0

async function onRedis(): Promise<AuditLog> {
  const link = new RedisLink({ url: server.url, prefix: `slidegate:audit-${++runs}` }, '/')
  onTestFinished(() => link.close())
  await expect.poll(() => link.connected()).toBe(true)
  return new RedisAuditLog(link)
}

function auditOn(entries: AuditLog): { audit: Audit; logged: string[]; service: Service } {
  const logged: string[] = []
  const limiters = { api: { limits }, secretive: { limits, hashKeys: secret } }
  const service = new Service({ limiters }, memoryStore())
  onTestFinished(() => service.close())
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(line) })
  return { audit: new Audit(service, entries, log), logged, service }
}

const all = () => true

describe.each<[string, () => Promise<AuditLog>]>([
  ['in memory', async () => new MemoryAuditLog()],
  ['in Redis', onRedis],
])('the audit log, %s', (_, make) => {
  it('lists who did what to which key, when, where and with what result, newest first', async () => {
    const { audit } = auditOn(await make())
    const beforeMs = Date.now() - 60_000
    await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => {})
    const detail = { duration: '1h' }
    const key = { user: 'bob', address: null }
    const failing = audit.act({ who: 'eve', what: 'ban', limiter: 'api', key, detail }, async () => {
      throw new Error('out of order')
    })
    await expect(failing).rejects.toThrow('out of order')
    const [ban, reset, ...others] = await audit.list(10, all)
    expect(others).toEqual([])
    expect(reset).toMatchObject({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann', result: 'done' })
    expect(ban).toMatchObject({
      ...{ who: 'eve', what: 'ban', limiter: 'api', key: { user: 'bob' }, detail },
      ...{ result: 'failed', error: 'out of order' },
    })
    expect(ban!.instance).toMatch(new RegExp(`/${process.pid}$`))
    expect(ban!.atMs).toBeGreaterThan(beforeMs)
    expect(ban!.atMs).toBeLessThan(Date.now() + 60_000)
  })

  it('shows the result of an unfinished action as unknown', async () => {
    const { audit } = auditOn(await make())
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const acting = audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, () => ended)
    await expect.poll(() => audit.list(10, all)).toMatchObject([{ result: 'unknown' }])
    end()
    await acting
    expect(await audit.list(10, all)).toMatchObject([{ result: 'done' }])
  })

  it('stores even hostile keys unchanged, and only hashes if the limiter has hashKeys', async () => {
    const { audit, service } = auditOn(await make())
    const hostile = '\u001b[2J"}\n{"who":"root' // Tries to end the record, and to control the terminal.
    await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: hostile }, async () => {})
    await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'k'.repeat(60_000) }, async () => {})
    await audit.act({ who: 'ops', what: 'reset', limiter: 'secretive', key: 'ann' }, async () => {})
    const [hashed, long, plain] = await audit.list(10, all)
    expect(plain!.key).toBe(hostile)
    expect(long!.key).toMatch(/^k{200}\.\.\.~[\w-]{22}$/)
    const { overrides } = service.get('secretive').limiter
    await overrides.set('ann', 'exempt')
    for await (const { key } of overrides.list()) expect(hashed!.key).toBe(key)
    expect(hashed!.key).not.toContain('ann')
  })

  it('lists at most the requested number of entries that the caller may see', async () => {
    const { audit } = auditOn(await make())
    for (let i = 0; i < 12; i++) {
      await audit.act(
        { who: 'ops', what: 'reset', limiter: i % 3 === 0 ? 'api' : 'other', key: `k${i}` },
        async () => {},
      )
    }
    const mine = await audit.list(3, ({ limiter }) => limiter === 'api')
    expect(mine.map(({ key }) => key)).toEqual(['k9', 'k6', 'k3'])
  })

  it('keeps about 10,000 records, and lists them page by page', async () => {
    const entries = await make()
    const { audit } = auditOn(entries)
    for (let i = 0; i < MAX_RECORDS + 1000; i += 200) {
      await Promise.all(
        Array.from({ length: 200 }, (_, j) =>
          entries.append({ who: 'ops', what: `w${i + j}`, instance: 'a' }),
        ),
      )
    }
    const found = await audit.list(20_000, all)
    expect(found.length).toBeGreaterThanOrEqual(MAX_RECORDS)
    expect(found.length).toBeLessThanOrEqual(MAX_RECORDS + 500)
    expect(new Set(found.map(({ id }) => id)).size).toBe(found.length)
    expect(found[0]!.what).toBe(`w${MAX_RECORDS + 999}`)
  })

  it('skips records that it cannot read', async () => {
    const entries = await make()
    const { audit } = auditOn(entries)
    await entries.append({ something: 'else' })
    const [who, what, instance, limiter] = ['x', 'y', 'z', 'api']
    for (const detail of ['{', '7', 'null', '[]']) await entries.append({ who, what, instance, detail })
    for (const key of ['5', 'null', '["a"]', '{"a":{"b":"c"}}']) {
      await entries.append({ who, what, instance, limiter, key })
    }
    await entries.append({ of: '1-1', result: 'done' })
    expect(await audit.list(10, all)).toEqual([])
  })
})

describe('an action that cannot be recorded', () => {
  const broken: AuditLog = {
    append: () => Promise.reject(new ServiceError(503, 'store_error', 'gone')),
    page: () => Promise.reject(new ServiceError(503, 'store_error', 'gone')),
  }

  it('never runs', async () => {
    const { audit } = auditOn(broken)
    let wasDone = false
    const acting = audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => {
      wasDone = true
    })
    await expect(acting).rejects.toMatchObject({ status: 503 })
    expect(wasDone).toBe(false)
  })

  it('still runs if it must not depend on the audit log, and is logged', async () => {
    const { audit, logged } = auditOn(broken)
    await audit.note({ who: 'ops', what: 'drain', detail: { drain: true } })
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { msg: 'admin action', who: 'ops', what: 'drain' },
      { msg: 'failed to write the audit log', what: 'drain' },
    ])
  })

  it('counts as done if only its result cannot be recorded', async () => {
    let appended = 0
    const { audit, logged } = auditOn({
      ...broken,
      append: (record) => (appended++ === 0 ? Promise.resolve('1-1') : broken.append(record)),
    })
    expect(
      await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => 7),
    ).toMatchObject({ result: 7 })
    expect(logged.join('')).toContain('failed to write the audit log')
  })
})

it('logs each action without the key', async () => {
  const { audit, logged } = auditOn(new MemoryAuditLog())
  await audit.act({ who: 'ops', what: 'ban', limiter: 'api', key: 'ann@example.com' }, async () => {})
  expect(logged).toHaveLength(1)
  expect(JSON.parse(logged[0]!)).toMatchObject({ who: 'ops', what: 'ban', limiter: 'api' })
  expect(logged[0]).not.toContain('ann@')
})

it('stores the audit log as a stream below the prefix, readable by other programs', async () => {
  const entries = await onRedis()
  const { audit } = auditOn(entries)
  await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => {})
  const found = await redis.xrange(`slidegate:audit-${runs}:{audit}`, '-', '+')
  expect(found).toHaveLength(2)
  expect(found[0]![1]).toEqual(
    expect.arrayContaining(['who', 'ops', 'what', 'reset', 'limiter', 'api', 'key', '"ann"']),
  )
  expect(found[1]![1]).toEqual(['of', found[0]![0], 'result', 'done'])
})
