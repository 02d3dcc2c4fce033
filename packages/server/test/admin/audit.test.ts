// tier: integration
import { pino } from 'pino'
import { memoryStore } from 'slidegate'
import { describe, expect, it, onTestFinished } from 'vitest'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { Audit, type AuditLog, MAX_RECORDS, MemoryAuditLog, RedisAuditLog } from '../../src/admin/audit.ts'
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
])('the audit, %s', (_, make) => {
  it('says who has done what to which key, when, where, and how it ended; the newest first', async () => {
    const { audit } = auditOn(await make())
    const beforeMs = Date.now() - 60_000
    await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => {})
    const detail = { duration: '1h' }
    const key = { user: 'bob', address: null }
    const failing = audit.act({ who: 'eve', what: 'ban', limiter: 'api', key, detail }, async () => {
      throw new Error('it cannot be')
    })
    await expect(failing).rejects.toThrow('it cannot be')
    const [ban, reset, ...others] = await audit.list(10, all)
    expect(others).toEqual([])
    expect(reset).toMatchObject({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann', result: 'done' })
    expect(ban).toMatchObject({
      ...{ who: 'eve', what: 'ban', limiter: 'api', key: { user: 'bob' }, detail },
      ...{ result: 'failed', error: 'it cannot be' },
    })
    expect(ban!.instance).toMatch(new RegExp(`/${process.pid}$`))
    expect(ban!.atMs).toBeGreaterThan(beforeMs)
    expect(ban!.atMs).toBeLessThan(Date.now() + 60_000)
  })

  it('has an action that was begun and never ended: how is not known', async () => {
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

  it('has keys as they are, hostile ones too, and those of limiters with hashKeys as they are stored', async () => {
    const { audit, service } = auditOn(await make())
    const hostile = '\u001b[2J"}\n{"who":"root' // What would end a record, or a line of a terminal.
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

  it('is told in part: as many as are asked for, of those who may see them', async () => {
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

  it('keeps some 10,000 records, in pages', async () => {
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

  it('passes over what it cannot read', async () => {
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

describe('an action that cannot be written down', () => {
  const broken: AuditLog = {
    append: () => Promise.reject(new ServiceError(503, 'store_error', 'gone')),
    page: () => Promise.reject(new ServiceError(503, 'store_error', 'gone')),
  }

  it('is not done', async () => {
    const { audit } = auditOn(broken)
    let wasDone = false
    const acting = audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => {
      wasDone = true
    })
    await expect(acting).rejects.toMatchObject({ status: 503 })
    expect(wasDone).toBe(false)
  })

  it('is done all the same where it must not depend on that, and is in the log', async () => {
    const { audit, logged } = auditOn(broken)
    await audit.note({ who: 'ops', what: 'drain', detail: { drain: true } })
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { msg: 'admin', who: 'ops', what: 'drain' },
      { msg: 'the audit could not be written', what: 'drain' },
    ])
  })

  it('has happened where only its end cannot be written down', async () => {
    let appended = 0
    const { audit, logged } = auditOn({
      ...broken,
      append: (record) => (appended++ === 0 ? Promise.resolve('1-1') : broken.append(record)),
    })
    expect(await audit.act({ who: 'ops', what: 'reset', limiter: 'api', key: 'ann' }, async () => 7)).toBe(7)
    expect(logged.join('')).toContain('the audit could not be written')
  })
})

it('is in the log of the process, without the key', async () => {
  const { audit, logged } = auditOn(new MemoryAuditLog())
  await audit.act({ who: 'ops', what: 'ban', limiter: 'api', key: 'ann@example.com' }, async () => {})
  expect(logged).toHaveLength(1)
  expect(JSON.parse(logged[0]!)).toMatchObject({ who: 'ops', what: 'ban', limiter: 'api' })
  expect(logged[0]).not.toContain('ann@')
})

it('is one stream under the prefix, which others can read', async () => {
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
