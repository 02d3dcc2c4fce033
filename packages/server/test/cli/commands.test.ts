// tier: integration
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import type { Config, LimiterConfig } from '../../src/config/schema.ts'
import { type AdminService, adminService, forEachStore } from '../admin/support.ts'
import { type Outcome, slidegateHere, temporaryFolder } from '../support/cli.ts'

const BIN = fileURLToPath(new URL('../../bin/slidegate.js', import.meta.url))

const limits = (limit: number): LimiterConfig['limits'] => [{ kind: 'slidingWindow', limit, window: '1h' }]

/** Less than the client's timeout, and longer than machine stalls. */
const timeoutMs = 9000

const limiters: Config['limiters'] = {
  api: { limits: limits(3)!, timeoutMs },
  both: { dimensions: { user: limits(2)!, address: limits(20)! }, timeoutMs },
}

/** Timeout for tests that run many commands on a busy machine. */
const PATIENCE_MS = 120_000

/** Returns the exit code and the JSON output of a command. */
async function json(service: AdminService, words: string): Promise<{ code: number | null; body: unknown }> {
  const { code, stdout, stderr } = await run(service, words.split(' '))
  if (stderr !== '') throw new Error(stderr)
  return { code, body: JSON.parse(stdout) }
}

function run(service: AdminService, words: readonly string[], env = {}): Promise<Outcome> {
  return slidegateHere(words, { SLIDEGATE_URL: service.url, SLIDEGATE_TOKEN: service.token, ...env })
}

/** Returns the options for a service without tokens. */
function of({ url, token }: AdminService): string[] {
  return ['--url', url, '--token', token!]
}

/** Starts a command that runs until it is stopped. */
function start(...words: string[]) {
  const child = spawn(process.execPath, [BIN, ...words])
  const said = { out: '', complaints: '' }
  child.stdout.on('data', (text) => {
    said.out += text
  })
  child.stderr.on('data', (text) => {
    said.complaints += text
  })
  return { child, said, ended: new Promise<number | null>((resolve) => child.on('close', resolve)) }
}

forEachStore((store) => {
  it(
    'every command works',
    async () => {
      await using service = await adminService({ limiters, store: store() })
      const said = async (words: string) => {
        const { code, body } = await json(service, words)
        return [code, body]
      }
      expect(await said('consume api ann --cost 2')).toMatchObject([0, { allowed: true, remaining: 1 }])
      expect(await said('peek api ann')).toMatchObject([0, { allowed: true, remaining: 1 }])
      expect(await said('peek api ann --cost 2')).toMatchObject([3, { allowed: false }])
      expect(await said('consume api ann --cost 2')).toMatchObject([3, { deniedBy: ['3-per-1h'] }])
      expect(await said('explain api ann --cost 3')).toMatchObject([3, { limits: [{ used: 2 }] }])
      expect(await said('consume both user=ann address=192.0.2.7')).toMatchObject([0, { remaining: 1 }])
      expect(await said('consume both user=ann address=')).toMatchObject([0, { remaining: 0 }])
      expect(await said('explain both user=ann')).toMatchObject([3, { limits: [{ name: 'user.2-per-1h' }] }])
      expect(await said('consume api --key a=b')).toMatchObject([0, { remaining: 2 }])
      expect(await said('limiters')).toMatchObject([0, { limiters: [{ name: 'api' }, { name: 'both' }] }])
      expect(await said('usage api')).toMatchObject([0, { usage: [{}, {}, {}, { spanSeconds: 300 }] }])
      expect(await said('top api')).toMatchObject([
        0,
        { by: 'requests', keys: [{ key: 'ann' }, { key: 'a=b' }] },
      ])
      expect(await said('top api --denials --count 1')).toMatchObject([
        0,
        { keys: [{ key: 'ann', count: 1 }] },
      ])
      expect(await said('reset api ann')).toEqual([0, { done: true }])
      expect(await said('block api ann --ttl 1h')).toEqual([0, { done: true }])
      expect(await said('consume api ann')).toMatchObject([3, { deniedBy: ['block'] }])
      expect(await said('bans api')).toMatchObject([0, { bans: [{ key: 'ann', type: 'block' }] }])
      expect(await said('find ann')).toMatchObject([
        0,
        {
          found: [
            { limiter: 'api', allowed: false },
            { limiter: 'both', dimension: 'user' },
          ],
          checked: 3,
        },
      ])
      expect(await said('unblock api ann')).toEqual([0, { done: true }])
      expect(await said('override set api ann --limit 7 --ttl 1h')).toEqual([0, { done: true }])
      expect(await said('consume api ann --cost 7')).toMatchObject([0, { remaining: 0 }])
      expect(await said('override list api')).toMatchObject([0, { key: 'ann', limits: { '': { limit: 7 } } }])
      expect(await said('override delete api ann')).toMatchObject([0, { existed: true }])
      expect(await said('override set both user=bob --limits {"limit":50}')).toEqual([0, { done: true }])
      expect(await said('override set both address=192.0.2.7 --exempt')).toEqual([0, { done: true }])
      expect(await said('shadow api on')).toMatchObject([0, { limits: [{ shadow: true }] }])
      expect(await said('shadow api off --limit 3-per-1h')).toMatchObject([
        0,
        { limits: [{ shadow: false }] },
      ])
      expect(await said('shadow api file')).toMatchObject([0, { limits: [{ shadow: false }] }])
      expect(await said('drain on')).toMatchObject([0, { draining: true }])
      expect(await said('drain off')).toMatchObject([0, { draining: false }])
      const [, audit] = await said('audit --count 2')
      expect(audit).toMatchObject({ entries: [{ what: 'drain' }, { what: 'drain' }] })
      expect(await said('block api ann --reason spam')).toEqual([0, { done: true }])
      const [, last] = await said('audit --count 1')
      const [{ id, ...entry }] = (last as { entries: [{ id: string }] }).entries
      expect(entry).toMatchObject({ what: 'block', reason: 'spam', summary: 'blocked until unblocked' })
      expect(await said('override set api ann --limit 9')).toMatchObject([
        0,
        { hint: expect.stringContaining('stays blocked') },
      ])
      expect((await run(service, ['undo', id])).stderr).toMatch(
        /a later change prevents this undo: 3-per-1h: 3 → 9 in any 1 h/,
      )
      expect(await said('override delete api ann --reason done')).toMatchObject([0, { existed: true }])
      expect(await said('block api ann')).toEqual([0, { done: true }])
      const [, again] = await said('audit --count 1')
      const change = (again as { entries: [{ id: string }] }).entries[0].id
      expect(await said(`undo ${change} --reason mistaken`)).toEqual([
        0,
        { done: true, summary: 'no longer blocked' },
      ])
    },
    PATIENCE_MS,
  )
})

describe('an error', () => {
  let service: AdminService
  const auth: Config['auth'] = {
    tokens: [{ name: 'reader', role: 'read', token: 'reader-reader-reader' }],
    anonymous: 'check',
  }

  beforeAll(async () => {
    service = await adminService({ limiters, auth })
  })
  afterAll(() => service[Symbol.asyncDispose]())

  it.each<[string, number, RegExp]>([
    ['consume nobody ann', 2, /unknown limiter "nobody" \(HTTP 404, unknown_limiter\)/],
    ['consume api user=ann', 2, /invalid_key/],
    ['consume api', 2, /missing key/],
    ['consume api ann bob', 2, /"ann" isn't of the form name=value/],
    ['consume both user=ann user=bob', 2, /a dimension appears twice/],
    ['consume api ann --key bob', 2, /use only one of them/],
    ['consume api ann --cost 0', 2, /must be a positive integer/],
    ['consume api ann --json --human', 2, /cannot be used with/],
    ['consume api ann --url ftp://127.0.0.1', 2, /invalid --url "ftp:/],
    ['consume api ann --token-file /nowhere', 2, /--token-file: ENOENT/],
    ['consume api ann --token a\u0007b', 2, /invalid characters/],
    [
      'consume api ann --url http://127.0.0.1:1',
      4,
      /cannot reach http:\/\/127\.0\.0\.1:1: connect ECONNREFUSED/,
    ],
    ['consume api ann --token wrong-wrong-wrong', 5, /unknown token \(HTTP 401/],
    ['explain api ann', 5, /HTTP 403, forbidden/],
    ['block api ann --ttl long', 2, /must be a duration/],
    ['override set api ann', 2, /no limits are given/],
    ['override set api ann --limit many', 2, /use a value such as 300, 300\/1m or minute=300/],
    ['override set api ann --limits []', 2, /must be a JSON object/],
    ['override set api ann --limit 3 --exempt', 2, /pass only one of them/],
    ['override set api ann --limit 3 --limit day=9', 2, /each needs a name, such as minute=300/],
    ['shadow api maybe', 2, /must be on, off or file/],
    ['drain maybe', 2, /on or off/],
    ['top api --count 1001', 2, /from 1 to 1000/],
    ['tail nobody --token reader-reader-reader', 2, /unknown limiter/],
    ['bench api --seconds 61', 2, /from 1 to 60/],
    ['bench api --connections 5000', 2, /from 1 to 1024/],
    ['bench api --url http://example.invalid', 2, /another machine; pass --yes/],
    ['bench nobody', 2, /unknown limiter/],
  ])('slidegate %s: exit code %i', async (words, code, message) => {
    const outcome = await run(service, words.split(' '))
    expect(outcome).toMatchObject({ code, stdout: '' })
    expect(outcome.stderr).toMatch(/^slidegate: .*\n$/)
    expect(outcome.stderr).toMatch(message)
  })

  it('the token comes from the file, the option or the environment', async () => {
    const folder = temporaryFolder()
    onTestFinished(() => folder.remove())
    const file = folder.write('token', 'reader-reader-reader\n')
    const token = 'reader-reader-reader'
    expect(await run(service, ['limiters', '--token-file', file])).toMatchObject({ code: 0 })
    expect(await run(service, ['limiters', '--token', token])).toMatchObject({ code: 0 })
    expect(await run(service, ['limiters'], { SLIDEGATE_TOKEN: token })).toMatchObject({ code: 0 })
    expect(await run(service, ['limiters'], { SLIDEGATE_TOKEN_FILE: file })).toMatchObject({ code: 0 })
  })

  it('a store that is down causes exit code 1', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    await using onRedis = await adminService({ limiters, store: { redis: { url: server.url } } })
    await server.kill()
    const outcome = await run(onRedis, ['reset', 'api', 'ann'])
    expect(outcome).toMatchObject({ code: 1, stdout: '' })
    expect(outcome.stderr).toMatch(/(the Redis command failed|Redis is unreachable): .*HTTP 503, store_error/)
  })

  async function somethingElse(status: number, body: string): Promise<string> {
    const server = createServer((_request, response) => response.writeHead(status).end(body))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it.each<[string, number, string, RegExp]>([
    ['HTML', 500, '<h1>oops</h1>', /gives no reason \(HTTP 500\)/],
    ['an overloaded service', 429, '{"detail":"later","code":"busy"}', /later \(HTTP 429, busy\)/],
    ['control characters', 500, '{"detail":"\\u001b[2Jgone"}', /\\u001b\[2Jgone/],
  ])('another server causes exit code 1: %s', async (_, status, body, message) => {
    const url = await somethingElse(status, body)
    const outcome = await slidegateHere(['consume', 'api', 'ann', '--url', url])
    expect(outcome).toMatchObject({ code: 1, stdout: '' })
    expect(outcome.stderr).toMatch(message)
  })

  it.each([
    [200, '<h1>Welcome</h1>'],
    [200, '{}'],
    [200, 'null'],
    [204, ''],
    [302, ''],
  ])('a response of another server never counts as success: %i %s', async (status, body) => {
    const url = await somethingElse(status, body)
    const keyed = ['consume', 'peek', 'explain', 'reset', 'unblock', 'block', 'override delete'].map(
      (word) => `${word} api a`,
    )
    const looking = [
      'limiters',
      'usage api',
      'top api',
      'history api',
      'audit',
      'override list api',
      'bench api',
    ]
    const changing = ['block api a --ttl 1h', 'override set api a --limit 1', 'shadow api on', 'drain on']
    for (const words of [...keyed, ...looking, ...changing]) {
      for (const form of ['--human', '--json']) {
        const outcome = await slidegateHere([...words.split(' '), form, '--url', url])
        expect([words, outcome.code, outcome.stdout]).toEqual([words, 1, ''])
        expect(outcome.stderr).toMatch(/unexpected response from .*; is it a slidegate service\?/)
      }
    }
  })

  it('the URL of a service may have a path', async () => {
    const paths: (string | undefined)[] = []
    const server = createServer((request, response) => {
      paths.push(request.url)
      response.end('{"allowed":true,"limits":[]}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/limits`
    await slidegateHere(['bench', 'api', '--seconds', '1', '--connections', '1', '--url', `${url}/`])
    expect(new Set(paths)).toEqual(new Set(['/limits/v1/peek', '/limits/v1/consume']))
  })
})

describe('the output', () => {
  it(
    'escapes control characters in keys',
    async () => {
      await using service = await adminService({ limiters })
      const key = '\u001b]0;owned\u0007\u202e\n'
      const words = ['consume', 'explain', 'reset', 'block', 'unblock', 'override set', 'override delete']
      const more: Record<string, string[]> = { block: ['--ttl', '1h'], 'override set': ['--limit', '5'] }
      let printed = ''
      for (const word of words) {
        for (const form of ['--human', '--json']) {
          const { stdout, stderr } = await run(service, [
            ...word.split(' '),
            'api',
            '--key',
            key,
            form,
            ...(more[word] ?? []),
          ])
          expect(stderr).toBe('')
          printed += stdout
        }
      }
      for (const word of ['top api', 'bans', 'audit', 'override list api']) {
        for (const form of ['--human', '--json'])
          printed += (await run(service, [...word.split(' '), form])).stdout
      }
      expect(printed).toContain('\\u001b]0;owned\\u0007\\u202e')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
      expect(printed).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    },
    PATIENCE_MS,
  )

  it('explains a key in a short report', async () => {
    const usual: LimiterConfig = {
      limits: [...limits(10)!, { kind: 'slidingWindow', limit: 5, window: '1d', shadow: true, name: 'try' }],
    }
    await using service = await adminService({
      limiters: { api: { ...usual, ban: { after: 3, within: '1h', for: '1h' } } },
    })
    await run(service, ['consume', 'api', 'ann', '--cost', '9'])
    await run(service, ['consume', 'api', 'ann', '--cost', '9'])
    const { stdout } = await run(service, ['explain', 'api', 'ann', '--cost', '5', '--human'])
    expect(stdout.replaceAll(/\bin [\w ]+/g, 'in <time>')).toBe(`ann at api
  a request that costs 5 would be denied by 10-per-1h; try again in <time>

  10-per-1h     [######################..]  9 of 10 used, 1 left
                units that free up: 9 in <time>
  try (shadow)  [........................]  0 of 5 used, 5 left

  consecutive bans: 0, denials toward the next ban: 1
`)
    for (let i = 0; i < 2; i++) await run(service, ['consume', 'api', 'ann', '--cost', '9'])
    const banned = (await run(service, ['explain', 'api', 'ann', '--human'])).stdout
    expect(banned).toMatch(
      /banned for \w[\w ]*, since 2\d{3}-[\dT:.-]+Z; consecutive bans: 1, denials toward the next ban: 0\n$/,
    )
  })

  it('lists bans and blocks with their causes, and where a key is known', async () => {
    await using service = await adminService({
      limiters: {
        api: { limits: limits(1)!, ban: { after: 2, within: '1h', for: '1d' } },
        login: { dimensions: { user: limits(5)!, address: limits(50)! } },
      },
    })
    const said = async (words: string) => (await run(service, [...words.split(' '), '--human'])).stdout
    expect(await said('bans')).toBe('no keys are banned or blocked\n')
    expect(await said('find ann')).toBe('ann: found in 0 of 3 limiters and dimensions\n')
    for (let i = 0; i < 3; i++) await said('consume api ann')
    await said('block login user=bob')
    await said('consume login user=ann address=192.0.2.7')
    const lasting = (text: string) =>
      text.replaceAll(/for \d+[hd][\w ]*/g, 'for <time>').replace(/denied \S+ ago/, 'denied <time> ago')
    await expect
      .poll(async () => lasting(await said('bans')))
      .toBe(
        'user=bob at login  blocked until unblocked, by admin-link\n' +
          'ann at api         banned for <time>, level 1, after 2 denials in 1h, by 1-per-1h\n',
      )
    expect(await said('bans login')).toMatch(
      /^user=bob at login {2}blocked until unblocked, by admin-link\n$/,
    )
    expect(lasting(await said('find ann'))).toBe(
      'ann: found in 2 of 3 limiters and dimensions\n' +
        '  api         1-per-1h: 1 of 1 used, banned for <time>, last denied <time> ago\n' +
        '  login user  user.5-per-1h: 1 of 5 used\n',
    )
  })
})

it('an override is shown with its limits and its end', async () => {
  const named: LimiterConfig = {
    limits: [
      { kind: 'slidingWindow', limit: 3, window: '1h', name: 'hourly' },
      { kind: 'tokenBucket', capacity: 9, refill: 1, interval: '1m', name: 'burst' },
    ],
    plans: { small: { keys: ['bob'], limits: limits(1)! } },
  }
  await using service = await adminService({ limiters: { named } })
  const said = async (words: string) => (await run(service, [...words.split(' '), '--human'])).stdout
  const burst = '--limits {"burst":{"capacity":20,"refill":5}}'
  expect(await said('override list named')).toBe('no overrides\n')
  expect(await said(`override set named ann --limit hourly=5000/2h ${burst}`)).toBe(
    'ann at named: hourly 5,000 per 2h, burst capacity 20 refill 5, until deleted\n',
  )
  expect(await said('block named ann')).toBe('ann at named: blocked until unblocked\n')
  expect(await said('consume named ann')).toMatch(
    /^denied by block, blocked until unblocked; retrying won't help\n/,
  )
  expect(await said('explain named ann')).toMatch(
    /\n\n {2}override: hourly 5,000 per 2h, burst capacity 20 refill 5, until deleted, blocked until unblocked\n$/,
  )
  expect(await said('override set named bob --limit hourly=7 --ttl 1h')).toBe(
    'bob at named: hourly 7, for 1h\n',
  )
  expect(await said('override list named')).toBe(
    'ann  hourly 5,000 per 2h, burst capacity 20 refill 5, until deleted, blocked until unblocked\n' +
      'bob  hourly 7 (unused), for 1h\n',
  )
  expect(await said('override set named bob --exempt --ttl 1h')).toBe('bob at named: exempt, for 1h\n')
  expect(await said('override delete named bob')).toBe('bob at named: override deleted\n')
  expect(await said('override delete named bob')).toBe('bob at named: no override found\n')
})

it('a closed pipe causes no error message', async () => {
  await using service = await adminService({ limiters })
  for (let i = 0; i < 200; i++) await service.ask('POST', '/v1/consume', { limiter: 'api', key: `${i}` })
  const following = start('top', 'api', '--count', '1000', ...of(service))
  following.child.stdout.destroy()
  expect(await following.ended).toBe(0)
  expect(following.said.complaints).toBe('')
})

describe('slidegate tail', () => {
  it('prints one value per line and stops after --count', async () => {
    await using service = await adminService({ limiters })
    const tailing = run(service, ['tail', 'api', '--denied', '--count', '2'])
    let isOver = false
    void tailing.finally(() => {
      isOver = true
    })
    while (!isOver) await service.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
    const { code, stdout } = await tailing
    expect(code).toBe(0)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { key: 'ann', allowed: false },
      { key: 'ann', allowed: false },
    ])
  })

  it.each(['SIGINT', 'SIGTERM'] as const)('stops cleanly on %s', async (signal) => {
    await using service = await adminService({ limiters })
    const following = start('tail', '--human', ...of(service))
    await until('it prints', async () => {
      await service.ask('POST', '/v1/consume', { limiter: 'api', key: '\u001b[31mred' })
      return following.said.out !== ''
    })
    following.child.kill(signal)
    expect(await following.ended).toBe(0)
    expect(following.said.complaints).toBe('')
    expect(following.said.out).toMatch(
      /^[\d:.]{12} {2}(allowed|denied ) {2}api {2}\\u001b\[31mred {2}(\d left|by 3-per-1h, retry in [\w ]+)\n/,
    )
  })

  it('stops cleanly on Ctrl-C before the service has responded', async () => {
    const server = createServer(() => {})
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const asked = once(server, 'request')
    const { port } = server.address() as AddressInfo
    const following = start('tail', '--url', `http://127.0.0.1:${port}`)
    await asked
    following.child.kill('SIGINT')
    expect(await following.ended).toBe(0)
    expect(following.said.complaints).toBe('')
  })

  it('reports when the service stops', async () => {
    const service = await adminService({ limiters })
    const following = start('tail', ...of(service))
    await until('it prints', async () => {
      await service.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' })
      return following.said.out !== ''
    })
    await service[Symbol.asyncDispose]()
    expect(await following.ended).toBe(4)
    expect(following.said.complaints).toMatch(/^slidegate: .*\n$/)
  })
})

describe('slidegate bench', () => {
  it('counts the decisions of the service', async () => {
    await using service = await adminService({ limiters })
    const { code, body } = await json(service, 'bench api --seconds 1 --connections 2 --keys 3')
    const report = body as Record<string, number>
    expect(code).toBe(0)
    expect(report).toMatchObject({ allowed: 9, errors: 0, other: {}, connections: 2, keys: 3 })
    expect(report.denied).toBeGreaterThan(0)
    expect(report.allowed! + report.denied!).toBe(report.requests)
  })

  it('stops on Ctrl-C with its results so far', async () => {
    await using service = await adminService({ limiters })
    const benching = start('bench', 'api', '--seconds', '60', ...of(service))
    await until('it asks', async () => {
      const { body } = await service.ask('GET', '/v1/admin/limiters/api/top')
      return (body as { keys: unknown[] }).keys.length > 0
    })
    benching.child.kill('SIGINT')
    expect(await benching.ended).toBe(0)
    expect(JSON.parse(benching.said.out).seconds).toBeLessThan(60)
  })

  it('reports a failure if requests got no decision', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    await using service = await adminService({ limiters, store: { redis: { url: server.url } } })
    const benching = start('bench', 'api', '--seconds', '60', '--connections', '2', ...of(service))
    await until('it asks', async () => {
      const { body } = await service.ask('GET', '/v1/admin/limiters/api/top')
      return (body as { keys: unknown[] }).keys.length > 0
    })
    await server.kill()
    // Later failures of the same kind aren't logged, only counted.
    const counted = () =>
      service.logged.flatMap(({ requests }) => Object.values((requests ?? {}) as Record<string, number>))
    // Waits for more failures than the limit of requests in flight.
    await expect
      .poll(() => counted().reduce((sum, count) => sum + count, 0), { timeout: 10_000 })
      .toBeGreaterThan(10)
    benching.child.kill('SIGINT')
    expect(await benching.ended).toBe(1)
    expect(JSON.parse(benching.said.out).other['503']).toBeGreaterThan(0)
    expect(benching.said.complaints).toContain('some requests got no decision')
  })
})
