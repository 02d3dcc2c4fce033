// tier: integration
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { anchors, ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { COMMANDS_FOR } from '../../../slidegate/test/support/access.ts'
import { ask } from '../../../slidegate/test/support/ask.ts'
import { startRedisWithClock } from '../../../slidegate/test/support/clock-shim.ts'
import { startCluster } from '../../../slidegate/test/support/redis-cluster.ts'
import { freePort, type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { Check, Diagnosis } from '../../src/doctor/check.ts'
import { adminService } from '../admin/support.ts'
import { type Outcome, slidegateHere, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const NO_ENV = { REDIS_URL: undefined, SLIDEGATE_URL: undefined, SLIDEGATE_TOKEN: undefined }

function doctor(...words: string[]): Promise<Outcome> {
  return slidegateHere(['doctor', ...words], NO_ENV)
}

interface Found extends Diagnosis {
  readonly code: number | null
  named(name: string): Check | undefined
}

async function found(...words: string[]): Promise<Found> {
  const { code, stdout, stderr } = await doctor(...words, '--json')
  if (stderr !== '') throw new Error(stderr)
  const diagnosis = JSON.parse(stdout) as Diagnosis
  expect(code).toBe(diagnosis.problems > 0 ? 1 : 0)
  for (const { status, fix } of diagnosis.checks) if (status === 'problem') expect(fix).toBeTypeOf('string')
  return { ...diagnosis, code, named: (name) => diagnosis.checks.find((check) => check.name === name) }
}

/** Starts a server for the running test. */
async function redis(...settings: string[]): Promise<RedisServer> {
  const server = await startRedis(settings)
  onTestFinished(() => server.stop())
  return server
}

/** Requires the work to end within a few seconds, whatever happens. */
async function bounded<Result>(work: Promise<Result>): Promise<Result> {
  const startMs = performance.now()
  const result = await work
  expect(performance.now() - startMs).toBeLessThan(8000)
  return result
}

describe('slidegate doctor checks Redis', () => {
  it('and finds no problem on a good server, and leaves nothing behind', async () => {
    const { url, port } = await redis('--maxmemory', '64mb', '--appendonly', 'yes')
    const before = await ask(port, 'CONFIG', 'GET', '*')
    const { code, problems, warnings, checks } = await found('--redis', url)
    expect({ code, problems, warnings }).toEqual({ code: 0, problems: 0, warnings: 0 })
    expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      ...['latency ok', 'version ok', 'eviction ok', 'maxmemory ok', 'persistence ok', 'replicas ok'],
      ...['cluster ok', 'script time ok', 'clock ok', 'rights ok', 'connection skipped'],
    ])
    expect(await ask(port, 'KEYS', '*')).toEqual([])
    expect(await ask(port, 'CONFIG', 'GET', '*')).toEqual(before)
  })

  it('and reports evictions, no memory limit and no persistence', async () => {
    const { url, port } = await redis('--maxmemory-policy', 'allkeys-lru')
    const unlimited = await found('--redis', url)
    expect(unlimited.problems).toBe(0)
    for (const name of ['eviction', 'maxmemory', 'persistence'])
      expect(unlimited.named(name)).toMatchObject({ status: 'warning', docs: expect.any(String) })
    await ask(port, 'CONFIG', 'SET', 'maxmemory', '64mb')
    const limited = await found('--redis', url)
    expect(limited.named('eviction')).toMatchObject({
      status: 'problem',
      value: 'allkeys-lru',
      fix: `redis-cli -h 127.0.0.1 -p ${port} CONFIG SET maxmemory-policy noeviction`,
    })
    const { code, stdout } = await doctor('--redis', url, '--human')
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^ {2}problem {2}eviction +allkeys-lru\n {11}should be +noeviction.*\n {11}fix +redis-cli/m,
    )
    expect(stdout).toMatch(/\n1 problem, 1 warning\n$/)
  })

  it('on a managed server, which has no CONFIG', async () => {
    const { url, port } = await redis(
      ...['--rename-command', 'CONFIG', '', '--rename-command', 'ACL', ''],
      ...['--maxmemory', '64mb', '--maxmemory-policy', 'volatile-lru'],
    )
    const { named, problems, warnings } = await found('--redis', url)
    expect({ problems, warnings }).toEqual({ problems: 1, warnings: 0 })
    expect(named('eviction')).toMatchObject({
      status: 'problem',
      value: 'volatile-lru',
      fix: "set maxmemory-policy to noeviction in the provider's settings, or as a user that may run CONFIG",
    })
    expect(named('rights')).toMatchObject({ status: 'ok' })
    expect(await ask(port, 'KEYS', '*')).toEqual([])
  })

  it('and reports a full server', async () => {
    const { url, port } = await redis('--maxmemory', '64mb')
    await ask(port, 'CONFIG', 'SET', 'maxmemory', '1mb')
    const full = await found('--redis', url)
    expect(full.named('maxmemory')).toMatchObject({ status: expect.stringMatching(/warning|problem/) })
    expect(full.named('rights')).toMatchObject({
      status: 'problem',
      value: expect.stringMatching(/^SET failed: OOM/),
    })
  })

  it('and reports a clock that is wrong', async () => {
    const server = await startRedisWithClock()
    onTestFinished(() => server.stop())
    await server.step(90_000)
    expect((await found('--redis', server.url)).named('clock')).toMatchObject({
      status: 'warning',
      value: expect.stringMatching(/^1m \d+s ahead of this machine$/),
    })
  })

  it('and reports a replica, and a primary with replicas', async () => {
    const primary = await redis()
    const replica = await redis('--replicaof', `127.0.0.1 ${primary.port}`)
    await expect
      .poll(async () => String(await ask(primary.port, 'INFO', 'replication')), { timeout: 20_000 })
      .toContain('state=online')
    expect((await found('--redis', primary.url)).named('replicas')).toMatchObject({
      status: 'ok',
      value: expect.stringMatching(/^1, at most \d+ bytes behind$/),
    })
    const other = await found('--redis', replica.url)
    expect(other.named('replicas')).toMatchObject({
      status: 'problem',
      fix: 'set store.redis.url to the primary',
    })
    expect(other.named('rights')).toMatchObject({
      status: 'problem',
      value: expect.stringContaining('READONLY'),
    })
  })

  it('on each node of a Cluster', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const urls = cluster.nodes.map(({ port }) => `redis://127.0.0.1:${port}`)
    const { checks, problems } = await found('--redis', urls.join(','))
    expect(problems).toBe(0)
    expect(checks.filter(({ name }) => name === 'cluster')).toHaveLength(cluster.nodes.length)
    expect(checks.find(({ name }) => name === 'cluster')).toMatchObject({
      value: 'ok, 16,384 of 16,384 slots served',
    })
    expect(checks.find(({ name }) => name === 'rights')).toMatchObject({ status: 'ok' })
    const single = await found('--redis', urls[0]!)
    expect(single.named('cluster')).toMatchObject({
      status: 'problem',
      fix: 'set store.redis.cluster to true',
    })
  })

  it('against the shortest timeout of the configuration, with its prefix', async () => {
    const { url, port } = await redis()
    await ask(port, 'ACL', 'SETUSER', 'team', 'reset', 'on', '>pw', '~team:*', '+@all')
    const config = folder.write(
      'prefix.json',
      JSON.stringify({
        store: { redis: { url: url.replace('//', '//team:pw@'), prefix: 'team' } },
        limiters: { api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1m' }], timeoutMs: 7 } },
      }),
    )
    const { named } = await found('--config', config)
    expect(named('latency')!.value).toContain('timeoutMs is 7')
    // The user has all rights except those for the channel.
    expect(named('rights')).toMatchObject({ status: 'warning', fix: expect.stringContaining("'&team:*'") })
  })

  it('unless the configuration stores in memory', async () => {
    const config = folder.write(
      'memory.yaml',
      'limiters: { api: { limits: [{ kind: slidingWindow, limit: 1, window: 1m }] } }',
    )
    expect((await found('--config', config)).named('store')).toMatchObject({ status: 'ok' })
  })
})

describe('slidegate doctor checks the rights of the user', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.stop())

  async function withRules(...rules: string[]) {
    await ask(server.port, 'ACL', 'SETUSER', 'u', 'reset', 'on', '>pw', ...rules)
    const { named } = await found('--redis', server.url.replace('//', '//u:pw@'))
    expect(await ask(server.port, 'KEYS', '*')).toEqual([])
    return named
  }
  const all = Object.values(COMMANDS_FOR).flat()
  const service = ['publish', 'subscribe', 'info', 'slowlog|get']
  const plus = (commands: readonly string[]) => commands.map((name) => `+${name}`)

  it('and accepts those of docs/production.md', async () => {
    const named = await withRules('~slidegate:*', '&slidegate:*', ...plus(all), ...plus(service))
    expect(named('rights')).toMatchObject({
      status: 'ok',
      value: 'u is allowed to run all commands that the store needs',
    })
    expect(named('settings')).toBeUndefined()
  })

  it.each(all)('and reports that %s is missing', async (missing) => {
    const rest = all.filter((name) => name !== missing)
    const named = await withRules('~slidegate:*', '&slidegate:*', ...plus(rest), ...plus(service))
    const isRequired = (COMMANDS_FOR['any limit'] as readonly string[]).includes(missing)
    expect(named('rights')).toMatchObject({
      status: isRequired ? 'problem' : 'warning',
      value: `u isn't allowed to run ${missing}`,
      fix: `redis-cli ACL SETUSER u +${missing}`,
    })
  })

  it('and reports keys and INFO that it may not use', async () => {
    const named = await withRules('~other:*', ...plus(all))
    expect(named('rights')).toMatchObject({
      status: 'problem',
      fix: "redis-cli ACL SETUSER u '~slidegate:*'",
    })
    expect(named('settings')).toMatchObject({ status: 'skipped', value: expect.stringContaining('INFO') })
  })
})

describe('slidegate doctor reports a Redis that it cannot use', () => {
  it('because nothing listens there', async () => {
    const url = `redis://user:secret@127.0.0.1:${await freePort()}`
    const { stdout, stderr, code } = await bounded(doctor('--redis', url, '--json'))
    expect({ stderr, code }).toEqual({ stderr: '', code: 1 })
    expect(stdout).toContain('ECONNREFUSED')
    expect(stdout).not.toContain('secret')
  })

  it('because it is paused, within seconds', async () => {
    const { url, port } = await redis()
    await ask(port, 'CLIENT', 'PAUSE', '20000')
    const { named } = await bounded(found('--redis', url))
    expect(named('connection')).toMatchObject({ status: 'problem', value: 'no response within 1000 ms' })
  })

  it('because it is frozen, within seconds', async () => {
    const server = await redis()
    server.freeze()
    const { problems } = await bounded(found('--redis', server.url))
    expect(problems).toBe(1)
    server.thaw()
  })

  it('because it is another server', async () => {
    const server = createServer((socket) =>
      socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    expect((await bounded(found('--redis', `redis://127.0.0.1:${port}`))).problems).toBe(1)
  })

  it('because the password is wrong', async () => {
    const { url, port } = await redis()
    await ask(port, 'ACL', 'SETUSER', 'u', 'reset', 'on', '>pw', '+@all')
    const { named } = await found('--redis', url.replace('//', '//u:wrong@'))
    expect(named('connection')).toMatchObject({
      status: 'problem',
      value: expect.stringContaining('WRONGPASS'),
      docs: 'docs/production.md#access',
    })
  })
})

describe('slidegate doctor checks a service', () => {
  const limiters = { api: { limits: [{ kind: 'slidingWindow' as const, limit: 1, window: '1m' }] } }

  it('and finds no problem on a good one', async () => {
    await using service = await adminService({ limiters })
    const { checks, problems } = await found('--url', service.url, '--token', service.token!)
    expect(problems).toBe(0)
    expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      ...['ready ok', 'instances ok', 'version ok', 'clock ok', 'tokens ok'],
    ])
  })

  it('which drains, without a token', async () => {
    await using service = await adminService({ limiters })
    await service.ask('POST', '/v1/admin/drain', { drain: true })
    const { named } = await found('--url', service.url)
    expect(named('ready')).toMatchObject({
      status: 'problem',
      value: 'not ready: draining',
      fix: 'slidegate drain off',
    })
    expect(named('instances')).toMatchObject({ status: 'skipped', fix: 'pass --token-file' })
  })

  it('with tokens, and one open beyond loopback', async () => {
    const auth = { tokens: [{ name: 't', role: 'read' as const, token: 'abcdefghijklmnop' }] }
    await using closed = await adminService({ limiters, auth })
    expect((await found('--url', closed.url)).named('tokens')).toMatchObject({
      status: 'ok',
      value: 'required',
    })
    await using open = await adminService({
      limiters,
      auth: { anonymous: 'admin' },
      listen: { http: '0.0.0.0:0' },
    })
    const { port } = new URL(open.url)
    expect((await found('--url', `http://0.0.0.0:${port}`)).named('tokens')).toMatchObject({
      status: 'problem',
      fix: 'set auth.tokens and remove auth.anonymous',
    })
  })

  it('without an answer in time', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    expect((await found('--url', url)).named('connection')).toMatchObject({ status: 'problem' })
    const silent = createServer((socket) => socket.on('error', () => {}))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void silent.close())
    const { port } = silent.address() as { port: number }
    expect((await bounded(found('--url', `http://127.0.0.1:${port}`))).named('connection')).toMatchObject({
      status: 'problem',
      value: expect.stringContaining('no response within 2 s'),
    })
  })
})

describe('slidegate doctor rejects', () => {
  it.each<[readonly string[], string]>([
    [[], 'nothing to check: pass --config, --redis or --url'],
    [['--redis', 'http://u:secret@x'], 'invalid --redis "http://x"; use a value such as redis://'],
    [['--redis', 'redis://a', '--config', 'b'], 'cannot be used with'],
    [['--config', '/missing.yaml'], "can't read the file"],
    [['--redis', 'redis://a', '--url', 'ftp://x'], 'invalid --url "ftp://x"'],
    [['now'], 'too many arguments'],
  ])('%j', async (words, message) => {
    const { code, stdout, stderr } = await doctor(...words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })
})

it('every link of slidegate doctor leads to a section of the docs', () => {
  const sources = ['doctor', 'commands'].flatMap((name) => {
    const source = join(ROOT, 'packages/server/src', name)
    return readdirSync(source).map((file) => readFileSync(join(source, file), 'utf8'))
  })
  const links = new Set(sources.flatMap((text) => text.match(/docs\/[\w/.-]+\.md#[\w-]+/g) ?? []))
  expect(links.size).toBeGreaterThan(10)
  for (const link of links) {
    const [file, anchor] = link.split('#') as [string, string]
    expect(existsSync(join(ROOT, file))).toBe(true)
    expect(anchors(readFileSync(join(ROOT, file), 'utf8')), link).toContain(anchor)
  }
})
