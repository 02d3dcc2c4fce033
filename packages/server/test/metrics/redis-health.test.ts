// tier: system
import { type Logger, pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask } from '../../../slidegate/test/support/ask.ts'
import { type RedisCluster, startCluster } from '../../../slidegate/test/support/redis-cluster.ts'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'
import type { Config } from '../../src/config/schema.ts'
import { RedisHealth, RedisInfo } from '../../src/metrics/redis-health.ts'
import { type TestService, testService } from '../support/service.ts'
import { promtool, Scraped } from './support.ts'

const LIMITERS: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 1000, window: '1h' }], timeoutMs: 5000 },
}

async function scrape(service: Pick<TestService, 'get'>): Promise<Scraped> {
  return new Scraped((await service.get('/metrics')).body)
}

const consume = (service: TestService, key = 'ann') => service.post('/v1/consume', { limiter: 'api', key })

describe('metrics of a Redis server', () => {
  it("match the server's own numbers", async () => {
    await using redis = disposable(await startRedis(['--maxmemory', '64mb']))
    await using service = await testService({ store: { redis: { url: redis.url } }, limiters: LIMITERS })
    for (let i = 0; i < 20; i++) await consume(service)
    const node = { node: `127.0.0.1:${redis.port}` }
    // Calls of the service may come between the two readings.
    const { scraped, info } = await until('both readings to include the same calls', async () => {
      const found = await scrape(service)
      const told = new RedisInfo(String(await ask(redis.port, 'INFO', 'everything')))
      const calls = found.value('slidegate_redis_script_calls_total', node)
      return calls === told.scripts!.calls && { scraped: found, info: told }
    })
    const value = (name: string) => scraped.value(`slidegate_redis_${name}`, node)
    expect(value('up')).toBe(1)
    expect(value('memory_max_bytes')).toBe(64 * 2 ** 20)
    expect(value('memory_used_bytes')! / info.number('used_memory')!).toBeCloseTo(1, 0)
    expect(value('commands_total')).toBeGreaterThan(20)
    expect(value('commands_total')).toBeLessThanOrEqual(info.number('total_commands_processed')!)
    expect(value('cpu_seconds_total')).toBeGreaterThan(0)
    expect(value('cpu_seconds_total')).toBeLessThanOrEqual(info.cpuSeconds!)
    for (const [name, field] of [
      ['network_received_bytes_total', 'total_net_input_bytes'],
      ['network_sent_bytes_total', 'total_net_output_bytes'],
    ] as const) {
      expect(value(name)).toBeGreaterThan(1000)
      expect(value(name)).toBeLessThanOrEqual(info.number(field)!)
    }
    expect(value('evicted_keys_total')).toBe(0)
    expect(value('connected_clients')).toBeGreaterThanOrEqual(2)
    // One call without the script, one that loads it, and one per request.
    expect(value('script_calls_total')).toBeGreaterThanOrEqual(21)
    expect(value('script_seconds_total')).toBe(info.scripts!.seconds)
    expect(scraped.values('slidegate_redis_replica_lag_bytes')).toEqual({})
  })

  it('report an outage, and all other metrics within two seconds', async () => {
    await using redis = disposable(await startRedis())
    await using service = await testService({
      store: { redis: { url: redis.url } },
      limiters: { api: { ...LIMITERS.api, timeoutMs: 500 } },
    })
    await consume(service)
    const node = { node: `127.0.0.1:${redis.port}` }
    // A machine stall makes some scrapes slower, never faster.
    const down = () =>
      until('a scrape within two seconds', async () => {
        const startMs = performance.now()
        const scraped = await scrape(service)
        return performance.now() - startMs < 2000 && scraped
      })
    expect((await down()).value('slidegate_store_down', { limiter: 'api' })).toBe(0)
    // A server that hangs delays requests. A server that is gone doesn't.
    redis.freeze()
    for (let i = 0; i < 8; i++) expect((await consume(service)).status).toBe(503)
    const hung = await down()
    expect(hung.value('slidegate_redis_up', node)).toBe(0)
    expect(hung.values('slidegate_redis_memory_used_bytes')).toEqual({})
    await redis.kill()
    for (let i = 0; i < 8; i++) expect((await consume(service)).status).toBe(503)
    const failed = 'slidegate_store_failed_calls_total'
    const gone = await until('a failed call', async () => {
      expect((await consume(service)).status).toBe(503)
      const scraped = await down()
      return scraped.value(failed)! > hung.value(failed)! && scraped
    })
    expect(gone.value('slidegate_redis_up', node)).toBe(0)
    expect(gone.value('slidegate_store_down', { limiter: 'api' })).toBe(1)
    expect(gone.value('slidegate_store_breaker_opened_total', { limiter: 'api' })).toBe(1)
    // Errors of requests and of other reads.
    const errors = gone.values('slidegate_store_errors_total', { limiter: 'api' })
    expect(errors.timeout! + errors.error! + errors.down!).toBeGreaterThanOrEqual(16)
    expect(errors.timeout).toBeGreaterThan(0)
    expect(errors.down).toBeGreaterThan(0)
    expect(await promtool(gone.text)).toBe('')
    // Another limiter replaces it, and no counter falls.
    const another = { limits: [{ kind: 'slidingWindow' as const, limit: 999, window: '1h' }], timeoutMs: 500 }
    const store = { redis: { url: redis.url } }
    service.reload({ config: { store, limiters: { api: another } }, folder: '', files: [], shown: '' })
    const reloaded = await down()
    expect(reloaded.value('slidegate_store_breaker_opened_total', { limiter: 'api' })).toBe(1)
    const after = reloaded.values('slidegate_store_errors_total', { limiter: 'api' })
    expect(after.down).toBeGreaterThanOrEqual(errors.down!)
    await redis.start()
    const up = await until('it to be up again', async () => {
      await consume(service)
      const scraped = await scrape(service)
      return scraped.value('slidegate_store_down', { limiter: 'api' }) === 0 && scraped
    })
    await until('the metric', async () => (await scrape(service)).value('slidegate_redis_up', node) === 1)
    expect(up.value('slidegate_store_breaker_opened_total', { limiter: 'api' })).toBeGreaterThan(0)
  })

  it('count a script that had to be loaded again', async () => {
    await using redis = disposable(await startRedis())
    await using service = await testService({ store: { redis: { url: redis.url } }, limiters: LIMITERS })
    const loads = async () => (await scrape(service)).value('slidegate_store_script_loads_total')
    await consume(service)
    const before = (await loads())!
    expect(before).toBeGreaterThan(0)
    await ask(redis.port, 'SCRIPT', 'FLUSH')
    await consume(service)
    const after = await loads()
    expect(after).toBeGreaterThan(before)
    await consume(service)
    expect(await loads()).toBe(after)
  })

  it('count each slow call of slidegate once', async () => {
    await using redis = disposable(await startRedis(['--slowlog-log-slower-than', '0']))
    const own = { url: redis.url, prefix: 'slidegate:own' }
    const call = (prefix: string) => ask(redis.port, 'EVAL', 'return 1', '1', `${prefix}:{0}:api:ann:log`)
    await call('slidegate:own')
    await using health = await readHealth(own)
    const slow = async () => (await health.read())[0]?.slowScripts
    // Earlier entries don't count. A server that takes longer than a second is read again.
    await expect.poll(slow).toBe(0)
    for (let i = 0; i < 3; i++) await call('slidegate:own')
    for (let i = 0; i < 2; i++) await call('slidegate')
    await ask(redis.port, 'GET', 'slidegate:own:{0}:api:ann:log')
    await expect.poll(slow).toBe(3)
    await expect.poll(slow).toBe(3)
    await ask(redis.port, 'SLOWLOG', 'RESET')
    await expect.poll(slow).toBe(3)
    await call('slidegate:own')
    await expect.poll(slow).toBe(4)
    // After a restart, IDs start again from 0.
    await redis.kill()
    await redis.start()
    await call('slidegate:own')
    expect(await until('the next reading', slow)).toBe(5)
    // Calls of a real service are counted too.
    await using service = await testService({ store: { redis: own }, limiters: LIMITERS })
    await consume(service)
    await expect.poll(slow).toBeGreaterThan(5)
  })

  it('omit what the user may not read, and log that once', async () => {
    await using redis = disposable(await startRedis())
    const rights = ['allkeys', 'allchannels', '+@all', '-info', '-slowlog']
    await ask(redis.port, 'ACL', 'SETUSER', 'poor', 'on', '>pw', ...rights)
    const lines: { msg: string; command?: string }[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const url = redis.url.replace('//', '//poor:pw@')
    await using service = await testService({ store: { redis: { url } }, limiters: LIMITERS })
    await consume(service)
    const node = `127.0.0.1:${redis.port}`
    const scraped = await until('Redis is up', async () => {
      const found = await scrape(service)
      return found.value('slidegate_redis_up', { node }) === 1 && found
    })
    expect(await promtool(scraped.text)).toBe('')
    expect(scraped.values('slidegate_redis_memory_used_bytes')).toEqual({})
    expect(scraped.values('slidegate_redis_slow_scripts_total')).toEqual({})
    expect(scraped.value('slidegate_store_call_requests_count')).toBeGreaterThan(0)
    await using health = await readHealth({ url }, log)
    for (let i = 0; i < 3; i++) await expect.poll(health.read).toEqual([{ node, up: true }])
    expect(lines.map(({ command }) => command).sort()).toEqual(['INFO', 'SLOWLOG GET'])
    expect(JSON.stringify(lines)).not.toContain(':pw')
  })

  it('read the server at most once a second', async () => {
    await using redis = disposable(await startRedis())
    await using service = await testService({ store: { redis: { url: redis.url } }, limiters: LIMITERS })
    const asked = async () => {
      const text = String(await ask(redis.port, 'INFO', 'commandstats'))
      return Number(/cmdstat_slowlog\|get:calls=(\d+)/.exec(text)?.[1] ?? 0)
    }
    const startMs = performance.now()
    await until('the next reading', async () => {
      await scrape(service)
      return (await asked()) > 0
    })
    await Promise.all(Array.from({ length: 50 }, () => scrape(service)))
    for (let i = 0; i < 10; i++) await service.get('/v1/admin/overview')
    expect(await asked()).toBeLessThanOrEqual(1 + Math.floor((performance.now() - startMs) / 1000))
  })
})

/** Returns the nodes that report the lag of their replicas. */
function lagging(scraped: Scraped): string[] {
  return Object.keys(scraped.values('slidegate_redis_replica_lag_bytes')).sort()
}

/** After a pause, a Cluster reconnects its replicas gradually. */
const PATIENT = { timeout: 60_000 }

describe('metrics of a Cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 1 })
  })
  afterAll(() => cluster?.stop())

  it('include each node and the lag of its replicas', async () => {
    const url = cluster.nodes.slice(0, 2).map(({ port }) => `redis://127.0.0.1:${port}`)
    await using service = await testService({ store: { redis: { url } }, limiters: LIMITERS })
    const nodes = cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).sort()
    await expect
      .poll(async () => {
        for (let i = 0; i < 30; i++) await consume(service, `caller ${i}`)
        const scraped = await scrape(service)
        // A replica may replace a master that has paused for long.
        const masters = (await cluster.masters()).map(({ port }) => `127.0.0.1:${port}`)
        const calls = scraped.values('slidegate_redis_script_calls_total')
        return {
          up: scraped.values('slidegate_redis_up'),
          told: Object.keys(scraped.values('slidegate_redis_memory_used_bytes')).length,
          areMasters: masters.sort().join() === lagging(scraped).join(),
          areAsked: masters.every((master) => calls[master]! > 0),
        }
      }, PATIENT)
      .toEqual({
        up: Object.fromEntries(nodes.map((node) => [node, 1])),
        told: nodes.length,
        areMasters: true,
        areAsked: true,
      })

    // A frozen replica accepts nothing and falls behind.
    const [master] = await cluster.masters()
    const [replica] = await cluster.replicasOf(master!)
    replica!.freeze()
    const node = `127.0.0.1:${replica!.port}`
    const behind = await until('it to fall behind', async () => {
      for (let i = 0; i < 30; i++) await consume(service, `caller ${i}`)
      const found = await scrape(service)
      const lag = found.value('slidegate_redis_replica_lag_bytes', { node: `127.0.0.1:${master!.port}` })!
      return lag > 1000 && found.value('slidegate_redis_up', { node }) === 0 && found
    })
    expect(behind.values('slidegate_redis_memory_used_bytes')[node]).toBeUndefined()
    expect(await promtool(behind.text)).toBe('')
    replica!.thaw()
    await until(
      'it to be back',
      async () => (await scrape(service)).value('slidegate_redis_up', { node }) === 1,
    )
  })

  it('include a replica that was down at first', async () => {
    const [master] = await cluster.masters()
    const [replica] = await cluster.replicasOf(master!)
    await replica!.kill()
    const seeds = cluster.nodes.filter((node) => node !== replica)
    await until('all nodes to forget it', async () => {
      const told = await Promise.all(seeds.map(({ port }) => ask(port, 'CLUSTER', 'SLOTS')))
      return !String(told).includes(`${replica!.port}`)
    })
    const url = seeds.map(({ port }) => `redis://127.0.0.1:${port}`)
    await using service = await testService({ store: { redis: { url } }, limiters: LIMITERS })
    const node = `127.0.0.1:${replica!.port}`
    expect((await scrape(service)).value('slidegate_redis_up', { node })).toBeUndefined()
    await replica!.start()
    await expect
      .poll(async () => (await scrape(service)).value('slidegate_redis_up', { node }), PATIENT)
      .toBe(1)
  })
})

/** Creates a reader that reads again each time. */
async function readHealth(
  config: { url: string; prefix?: string },
  log: Logger = pino({ level: 'silent' }),
): Promise<{ read: RedisHealth['read'] } & AsyncDisposable> {
  const link = new RedisLink(config, '/')
  await link.connected()
  let nowMs = 0
  const health = new RedisHealth(link, log, () => nowMs)
  return {
    read: () => {
      nowMs += 1000
      return health.read()
    },
    [Symbol.asyncDispose]: async () => link.close(),
  }
}

function disposable<Server extends { stop(): Promise<unknown> }>(server: Server): Server & AsyncDisposable {
  return Object.assign(server, {
    [Symbol.asyncDispose]: async () => {
      await server.stop()
    },
  })
}
