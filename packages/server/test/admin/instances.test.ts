// tier: system
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { COMMANDS } from '../../../slidegate/test/support/access.ts'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { Overview } from '../../src/admin/api-types.ts'
import { Instances } from '../../src/admin/instances.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'
import { type Every, everyByTimer } from '../../src/admin/timer.ts'
import { ServiceClient } from '../../src/client/service-client.ts'
import type { Config } from '../../src/config/schema.ts'
import { OneProcess } from '../../src/service/instance.ts'
import { temporaryFolder } from '../support/cli.ts'
import { startProcess } from '../support/service-process.ts'
import { type AdminService, adminService } from './support.ts'

const limiters: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 3, window: '1h' }], timeoutMs: 9000 },
}

let redis: RedisServer
let lastPrefix = 0
const storeOf = (prefix: string) => ({ redis: { url: redis.url, prefix } })
const newPrefix = () => `slidegate:i${++lastPrefix}`

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

/** Tests poll, because responses leave out instances that answer late. */
const soon = { timeout: 30_000, interval: 100 }

/** Collects the keys of decisions from the tail of a service. */
function tailOf({ url, token }: Pick<AdminService, 'url' | 'token'>): {
  readonly seen: readonly string[]
  end(): Promise<void>
} {
  const stop = new AbortController()
  const tail = new ServiceClient({ url: new URL(url), token }).events('/v1/admin/tail', stop.signal)
  const seen: string[] = []
  const reading = (async () => {
    for await (const { data } of tail) seen.push(JSON.parse(data).key)
  })()
  return {
    seen,
    end: () => {
      stop.abort()
      return reading
    },
  }
}

describe('instances on one Redis', () => {
  it('each report on all: top keys, callers, usage, the overview and the tail', async () => {
    const store = storeOf(newPrefix())
    await using one = await adminService({ limiters, store })
    await using other = await adminService({ limiters, store })
    await using third = await adminService({ limiters, store })
    const services = [one, other, third]
    const overview = async () => (await one.ask('GET', '/v1/admin/overview')).body as Overview
    await expect.poll(async () => (await overview()).instances.length, soon).toBe(3)

    const { seen, end } = tailOf(one)
    // A reader gets decisions of all instances once they all know it.
    await expect
      .poll(async () => {
        await third.ask('POST', '/v1/consume', { limiter: 'api', key: 'early' })
        return seen.length
      }, soon)
      .toBeGreaterThan(0)

    for (const [i, service] of services.entries()) {
      for (let n = 0; n <= i; n++) await service.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
      await service.ask('POST', '/v1/consume', { limiter: 'api', key: `own-${i}` })
    }
    for (const service of services) {
      const top = async (by: string) => {
        const { body } = await service.ask('GET', `/v1/admin/limiters/api/top?by=${by}`)
        return body as { distinct: number; keys: { key: string; count: number }[] }
      }
      await expect
        .poll(async () => {
          const { distinct, keys } = await top('requests')
          return [distinct, keys.find(({ key }) => key === 'ann'), keys.map(({ key }) => key).sort()]
        }, soon)
        .toEqual([5, { key: 'ann', count: 6, error: 0 }, ['ann', 'early', 'own-0', 'own-1', 'own-2']])
      await expect
        .poll(async () => (await top('denials')).keys, soon)
        .toContainEqual({ key: 'ann', count: 3, error: 0 })
    }
    await expect
      .poll(async () => {
        const { body } = await other.ask('GET', '/v1/admin/limiters/api/usage')
        return (body as { usage: { denied: number }[] }).usage[3]!.denied
      }, soon)
      .toBeGreaterThanOrEqual(3)
    // Late batches are lost, so send requests to each instance until the tail shows one.
    for (const [i, service] of services.entries()) {
      await expect
        .poll(async () => {
          await service.ask('POST', '/v1/consume', { limiter: 'api', key: `own-${i}` })
          return seen
        }, soon)
        .toContain(`own-${i}`)
    }
    expect(seen.filter((key) => key === 'ann').length).toBeLessThanOrEqual(6)
    await end()
  })

  it('merge the statistics of each limit', async () => {
    const store = storeOf(newPrefix())
    await using one = await adminService({ limiters, store })
    await using other = await adminService({ limiters, store })
    const instances = async () =>
      ((await one.ask('GET', '/v1/admin/overview')).body as Overview).instances.length
    await expect.poll(instances, soon).toBe(2)
    for (const service of [one, other, one, other, one]) {
      await service.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
    }
    for (const service of [one, other]) {
      const limit = {
        name: '3-per-1h',
        requests: 5,
        denials: 2,
        shadowDenials: 0,
        nearLimit: 1,
        meanUtilization: expect.closeTo(0.8),
      }
      await expect
        .poll(async () => (await service.ask('GET', '/v1/admin/limiters/api/limits')).body, soon)
        .toEqual({ limiter: 'api', limits: [limit] })
    }
  })

  it('stop waiting for an instance at once if it stops, and soon if it is killed', async () => {
    const store = storeOf(newPrefix())
    await using one = await adminService({ limiters, store })
    const instances = async () =>
      ((await one.ask('GET', '/v1/admin/overview')).body as Overview).instances.length
    {
      await using _other = await adminService({ limiters, store })
      await expect.poll(instances, soon).toBe(2)
    }
    await expect.poll(instances, soon).toBe(1)
    const file = new URL('../../examples/slidegate.yaml', import.meta.url).pathname
    // A store from the environment has the default prefix, so this one needs it too.
    await using same = await adminService({ limiters, store: { redis: { url: redis.url } } })
    const both = async () => (await same.ask('GET', '/v1/admin/overview')).body as Overview
    await using killed = await startProcess(['--config', file], { REDIS_URL: redis.url })
    await expect
      .poll(async () => {
        killed.kill('SIGCONT')
        await expect.poll(async () => (await both()).instances.length, soon).toBe(2)
        killed.kill('SIGSTOP')
        // Waits until the instance counts as missing. If it is already gone, the poll tries again.
        for (;;) {
          const { instances, missing } = await both()
          if (instances.length === 1) return missing
        }
      }, soon)
      .toBe(1)
    killed.kill('SIGKILL')
    await expect
      .poll(async () => [(await both()).instances.length, (await both()).missing], soon)
      .toEqual([1, 0])
    // The first one stopped properly, so only this one counts as gone.
    await expect
      .poll(async () => (await both()).gone, soon)
      .toEqual([
        expect.objectContaining({ goneSinceMs: expect.any(Number), lastPerSecond: expect.any(Number) }),
      ])
  })

  it('count workers as one instance, and query each worker once', async () => {
    const folder = temporaryFolder()
    onTestFinished(() => folder.remove())
    const file = folder.write('slidegate.json', JSON.stringify({ limiters }))
    const server = await startRedis()
    onTestFinished(() => server.stop())
    await using workers = await startProcess(['--config', file, '--workers', '2'], { REDIS_URL: server.url })
    await workers.says('slidegate is listening', 2)
    await using other = await adminService({ limiters, store: { redis: { url: server.url } } })
    const [client, elsewhere] = [workers, other].map(
      ({ url, token }) => new ServiceClient({ url: new URL(url), token }),
    ) as [ServiceClient, ServiceClient]
    for (const asker of [client, elsewhere]) {
      await expect
        .poll(async () => {
          const { body } = await asker.answer('GET', '/v1/admin/overview')
          const { instances, missing } = body as Overview
          return [instances.length, missing]
        }, soon)
        .toEqual([2, 0])
    }
    for (let i = 0; i < 20; i++) await client.answer('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
    await other.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
    for (const asker of [client, elsewhere]) {
      await expect
        .poll(async () => (await asker.answer('GET', '/v1/admin/limiters/api/top')).body, soon)
        .toMatchObject({ keys: [{ key: 'ann', count: 21, error: 0 }] })
    }
  })

  it('hide the keys of a limiter with hashKeys from Redis, and still merge their counts', async () => {
    const prefix = newPrefix()
    const secret: Config['limiters'] = { api: { ...limiters.api!, hashKeys: 'a-secret-of-16-bytes' } }
    await using one = await adminService({ limiters: secret, store: storeOf(prefix) })
    await using other = await adminService({ limiters: secret, store: storeOf(prefix) })
    const overview = async () => (await one.ask('GET', '/v1/admin/overview')).body as Overview
    await expect.poll(async () => (await overview()).instances.length, soon).toBe(2)
    const client = new Redis(redis.url)
    onTestFinished(() => client.disconnect())
    const heard: string[] = []
    const processes = new Set<string>()
    const channel = `${prefix}:{instances}`
    client.on('message', (_, text) => {
      heard.push(text)
      const { type, from } = JSON.parse(text)
      if (type === 'here') processes.add(from.process)
    })
    await client.subscribe(channel)
    await expect.poll(() => processes.size, soon).toBe(2)
    await client.subscribe(...Array.from(processes, (process) => `${channel}:${process}`))
    const { seen, end } = tailOf(one)
    await expect
      .poll(async () => {
        await other.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann@example.com' })
        return seen.length
      }, soon)
      .toBeGreaterThan(0)
    await one.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann@example.com' })
    await other.ask('POST', '/v1/consume', { limiter: 'api', key: 'bob@example.com' })
    await expect
      .poll(async () => (await one.ask('GET', '/v1/admin/limiters/api/top')).body, soon)
      .toMatchObject({
        keys: [{ key: 'ann@example.com' }, { key: expect.stringMatching(/^~[\w-]{22}$/) }],
      })
    await expect.poll(async () => (await overview()).limiters[0]!.callers, soon).toBe(2)
    await expect.poll(() => heard.some((text) => text.includes('"summaries":[{')), soon).toBe(true)
    expect(heard.filter((text) => text.includes('example.com'))).toEqual([])
    await end()
  })

  it('ignore instances with another prefix', async () => {
    await using one = await adminService({ limiters, store: storeOf(newPrefix()) })
    await using other = await adminService({ limiters, store: storeOf(newPrefix()) })
    await other.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
    const { body } = await one.ask('GET', '/v1/admin/limiters/api/top')
    expect(body).toMatchObject({ distinct: 0, keys: [] })
  })

  it('ignore messages that they do not understand', async () => {
    const prefix = newPrefix()
    await using one = await adminService({ limiters, store: storeOf(prefix) })
    await one.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
    const client = new Redis(redis.url)
    const channel = `${prefix}:{instances}`
    const stranger = { process: 'x', id: 'x', host: 'x', pid: 1, version: '9', startedAtMs: 1 }
    const messages: unknown[] = [
      ...['', '{', 'null', '[]', '7', '{"v":1}', '{"v":1,"type":"here"}', '{"v":1,"type":"here","from":{}}'],
      { v: 2, type: 'here', from: stranger, perSecond: 0 },
      { v: 1, type: 'here', from: { ...stranger, host: 'x'.repeat(300) }, perSecond: 0 },
      ...[undefined, null, -1, '5'].map((perSecond) => ({ v: 1, type: 'here', from: stranger, perSecond })),
      { v: 1, type: 'ask', from: 'x', round: 1, question: 'top' },
      { v: 1, type: 'answer', from: 'x', round: 1, answer: null },
      { v: 1, type: 'gone', process: 7 },
    ]
    for (const message of messages) {
      await client.publish(channel, typeof message === 'string' ? message : JSON.stringify(message))
    }
    client.disconnect()
    expect((await one.ask('GET', '/v1/admin/limiters/api/top')).body).toMatchObject({
      keys: [{ key: 'ann', count: 1 }],
    })
    const { body } = await one.ask('GET', '/v1/admin/overview')
    expect(body).toMatchObject({ missing: 0, instances: [{ isSelf: true }] })
  })

  it('survive invalid answers', async () => {
    const prefix = newPrefix()
    await using one = await adminService({ limiters, store: storeOf(prefix) })
    await one.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
    // Sends what another version of the service, or anyone with access to this Redis, could send.
    const link = new RedisLink({ url: redis.url, prefix }, '/')
    const log = pino({ level: 'silent' })
    const liar = new Instances({
      ...{ processes: new OneProcess(), link, every: everyByTimer, log },
      perSecond: () => 0,
    })
    for (const question of ['top', 'usage', 'limits', 'live', 'callers', 'seconds', 'states', 'tail']) {
      liar.answer(question, () => ({ unexpected: true }))
    }
    await expect.poll(() => liar.count(), soon).toBe(2)
    for (const path of [
      'overview',
      'history',
      'limiters/api/top',
      'limiters/api/usage',
      'limiters/api/limits',
      'limiters',
    ]) {
      expect([path, (await one.ask('GET', `/v1/admin/${path}`)).status]).toEqual([path, 200])
    }
    expect((await one.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })).status).toBe(200)
    liar.close()
    link.close()
  })
})

describe('an instance', () => {
  const log = pino({ level: 'silent' })
  const never = () => () => {}

  async function setUp(now?: () => number) {
    const prefix = newPrefix()
    const make = (every: Every, clock?: () => number) => {
      const link = new RedisLink({ url: redis.url, prefix }, '/')
      const made = new Instances({
        processes: new OneProcess(),
        link,
        every,
        log,
        perSecond: () => 0,
        ...(clock && { now: clock }),
      })
      onTestFinished(() => {
        made.close()
        link.close()
      })
      return made
    }
    return { prefix, instance: make(now ? never : everyByTimer, now), make }
  }

  it('answers only valid queries', async () => {
    const { instance, make } = await setUp()
    const stranger = make(everyByTimer)
    const accepted: unknown[] = []
    for (const question of ['tail', 'top', 'states', 'secret']) {
      instance.answer(question, (argument) => {
        accepted.push([question, argument])
        return null
      })
    }
    const right = { id: 'x', take: false, filter: { limiters: [] } }
    await expect
      .poll(async () => {
        accepted.length = 0
        for (const argument of [
          undefined,
          7,
          { id: 'x', take: true },
          { ...right, filter: { limiters: 7 } },
        ]) {
          await stranger.ask('tail', argument)
        }
        await stranger.ask('top', { limiter: 'api', by: 'constructor' })
        await stranger.ask('states', 'api')
        await stranger.ask('secret', 'x')
        await stranger.ask('tail', right)
        return accepted
      }, soon)
      .toEqual([['tail', right]])
  })

  it('accepts a new instance after many others have disappeared silently', async () => {
    let nowMs = 0
    const { prefix, instance } = await setUp(() => nowMs)
    const client = new Redis(redis.url)
    onTestFinished(() => client.disconnect())
    const come = (id: string) => {
      const from = { process: id, id, host: 'x', pid: 1, version: '9', startedAtMs: 1 }
      return client.publish(
        `${prefix}:{instances}`,
        JSON.stringify({ v: 1, type: 'here', from, perSecond: 0 }),
      )
    }
    await expect.poll(() => come('0'), soon).toBe(1)
    for (let i = 1; i < 256; i++) await come(`${i}`)
    await expect.poll(() => instance.count(), soon).toBe(257)
    nowMs = 10_000
    instance.answer('shadow', () => 'heard')
    const listening = new Redis(redis.url)
    onTestFinished(() => listening.disconnect())
    const answers: string[] = []
    listening.on('message', (_, text) => answers.push(JSON.parse(text).answer))
    await listening.subscribe(`${prefix}:{instances}:new`)
    await come('new')
    // Only known instances get an answer.
    const question = { v: 1, type: 'ask', from: 'new', round: 1, question: 'shadow' }
    await client.publish(`${prefix}:{instances}`, JSON.stringify(question))
    await expect.poll(() => answers, soon).toEqual(['heard'])
  })

  it('queries other instances once for all limiters', async () => {
    const prefix = newPrefix()
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`l${i}`, limiters.api!]))
    await using one = await adminService({ limiters: many, store: storeOf(prefix) })
    await using _other = await adminService({ limiters: many, store: storeOf(prefix) })
    const instances = async () =>
      ((await one.ask('GET', '/v1/admin/overview')).body as Overview).instances.length
    await expect.poll(instances, soon).toBe(2)
    const client = new Redis(redis.url)
    onTestFinished(() => client.disconnect())
    const questions: string[] = []
    await client.subscribe(`${prefix}:{instances}`)
    client.on('message', (_, text) => {
      const { type, question } = JSON.parse(text)
      if (type === 'ask') questions.push(question)
    })
    await expect
      .poll(async () => {
        questions.length = 0
        const { body } = await one.ask('GET', '/v1/admin/limiters')
        return [(body as { limiters: object[] }).limiters.length, questions]
      }, soon)
      .toEqual([300, ['states']])
  })
})

it('a service with only the ACL rights of the store works, and warns that it sees only itself', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const admin = new Redis(server.url)
  await admin.call(
    'ACL',
    'SETUSER',
    'limiter',
    'reset',
    'on',
    '>secret',
    '~slidegate:*',
    ...COMMANDS.map((name) => `+${name}`),
  )
  admin.disconnect()
  const url = server.url.replace('redis://', 'redis://limiter:secret@')
  await using one = await adminService({ limiters, store: { redis: { url } } })
  const refused = () => one.logged.some(({ msg }) => /can't query other instances/.test(String(msg)))
  await expect.poll(refused, soon).toBe(true)
  expect((await one.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })).status).toBe(200)
  const { body } = await one.ask('GET', '/v1/admin/limiters/api/top')
  expect(body).toMatchObject({ distinct: 1, keys: [{ key: 'ann', count: 1 }] })
})
