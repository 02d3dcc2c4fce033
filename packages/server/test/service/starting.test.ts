// tier: system
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { ServiceClient } from '../../src/client/service-client.ts'
import type { Config } from '../../src/config/schema.ts'
import { adminService } from '../admin/support.ts'
import { slidegate, slidegateHere, temporaryFolder } from '../support/cli.ts'
import { testService } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'

const folder = temporaryFolder()
const config = folder.write(
  'slidegate.yaml',
  'limiters: { api: { limits: [{ kind: slidingWindow, limit: 10, window: 1h }] } }',
)

const AWAY = 'Redis is unreachable: the service runs without it, and limiters follow their onStoreError'
const BACK = 'Redis is reachable again'

describe('a Redis that is down', () => {
  const limits: Config['limiters'][string]['limits'] = [{ kind: 'slidingWindow', limit: 10, window: '1h' }]
  const limiters: Config['limiters'] = {
    api: { limits },
    llm: { limits, onStoreError: 'deny' },
    web: { limits, onStoreError: 'local' },
    other: { limits, onStoreError: 'local' },
  }

  it('causes one log line with its address and the reason but no password, and one when it is back', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    await server.kill()
    const url = `redis://default:secret-word@127.0.0.1:${server.port}`
    await using service = await adminService({ limiters, store: { redis: { url } } })
    // The state is unknown during the first attempt, which a machine stall may prolong.
    const told = () =>
      service.logged.filter(
        ({ msg, reason }) =>
          /Redis is|shadow settings/.test(String(msg)) && !String(reason).includes('not connected yet'),
      )
    const isAway = async () => {
      await service.steer()
      return told().length > 0
    }
    await expect.poll(isAway).toBe(true)
    for (let i = 0; i < 3; i++) {
      await service.steer()
      for (const limiter of ['api', 'web']) await service.ask('POST', '/v1/consume', { limiter, key: 'ann' })
    }
    expect(told()).toEqual([
      expect.objectContaining({
        level: 40,
        redis: `127.0.0.1:${server.port}`,
        reason: expect.stringMatching(`^connect (ECONNREFUSED 127.0.0.1:${server.port}|ETIMEDOUT)$`),
        onStoreError: ['throw', 'deny', 'local'],
        msg: AWAY,
      }),
    ])
    await server.start()
    const isBack = async () => {
      await service.steer()
      return told().some(({ msg }) => msg === BACK)
    }
    await expect.poll(isBack).toBe(true)
    await service.steer()
    expect(told().filter(({ msg }) => msg === AWAY)).toHaveLength(1)
    expect(told().filter(({ msg }) => msg === BACK)).toEqual([
      expect.objectContaining({ level: 30, downMs: expect.any(Number) }),
    ])
    expect(JSON.stringify(service.logged)).not.toContain('secret-word')
  })

  it('still lets the service start', async () => {
    const port = await freePort()
    await using service = await startProcess(['--config', config], { REDIS_URL: `redis://127.0.0.1:${port}` })
    expect(await service.says(AWAY)).toMatchObject({ redis: `127.0.0.1:${port}`, onStoreError: ['throw'] })
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
    const ready = await fetch(`${service.url}/readyz`)
    expect(ready.status).toBe(200)
    expect(await ready.json()).toMatchObject({ ready: true, degraded: true, limiters: { api: 'throw' } })
  })

  it('causes a log line with all servers of a Cluster', async () => {
    const ports = [await freePort(), await freePort()]
    const url = ports.map((port) => `redis://:secret-word@127.0.0.1:${port}`)
    await using service = await adminService({ limiters, store: { redis: { url } } })
    // The state is unknown before the first attempt.
    const told = async () => {
      await service.steer()
      return service.logged.find(({ msg }) => msg === AWAY)
    }
    await expect.poll(told).toMatchObject({
      redis: ports.map((port) => `127.0.0.1:${port}`).join(', '),
      reason: "can't connect to any node",
    })
  })
})

describe('serve without --config', () => {
  it('runs the built-in example and prints first steps on standard error', async () => {
    await using service = await startProcess([])
    await expect.poll(() => service.stderr).toContain(`Open ${service.url}/?token=${service.token}\n`)
    const [, url, type, body] = /curl -i (\S+) -H '(.*?)' -d '(.*?)'\n/.exec(service.stderr)!
    const headers = { [type!.split(': ')[0]!]: type!.split(': ')[1]! }
    const answer = await fetch(url!, { method: 'POST', headers, body })
    expect(await answer.json()).toMatchObject({ allowed: true, remaining: 9 })
    const [, example] = /^ *cp '(.*)' slidegate\.yaml$/m.exec(service.stderr)!
    expect(existsSync(example!)).toBe(true)
  })
})

describe('the admin link', () => {
  const read = async (url: string, token: string | undefined) =>
    (await fetch(`${url}/v1/admin/audit`, { headers: { authorization: `Bearer ${token}` } })).status

  it('a start with a configuration prints one line with a new link, the only place with its token', async () => {
    await using service = await startProcess(['--config', config])
    await using other = await startProcess(['--config', config])
    expect(service.lines[0]).toMatchObject({
      msg: 'slidegate is listening',
      adminLink: `${service.url}/?token=${service.token}`,
    })
    await fetch(`${service.url}/?token=${service.token}`)
    await fetch(`${service.url}/v1/nothing?token=${service.token}`)
    expect(await read(service.url, `${service.token}x`)).toBe(401)
    expect(await read(service.url, other.token)).toBe(401)
    expect(await read(service.url, service.token)).toBe(200)
    service.kill('SIGTERM')
    expect(await service.ended).toEqual({ code: 0, signal: null })
    expect(service.stderr).toBe('')
    expect(service.lines.filter((line) => JSON.stringify(line).includes(service.token!))).toHaveLength(1)
  })

  it('every worker accepts the token of the link, and one worker prints the link', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    await using service = await startProcess(['--workers', '3'], { REDIS_URL: server.url })
    await service.says('slidegate is listening', 3)
    await service.says('all workers are ready')
    // A connection per request, so that every worker gets some.
    const statuses = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const client = new ServiceClient({ url: new URL(service.url), token: service.token })
        return (await client.answer('GET', '/v1/admin/audit')).status
      }),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
    await expect.poll(() => service.stderr.match(/Open /g)).toHaveLength(1)
    expect(service.lines.filter(({ adminLink }) => adminLink !== undefined)).toHaveLength(1)
  })

  it('a reload without tokens prints the link, and one with tokens disables it', async () => {
    const limiters = 'limiters: { api: { limits: [{ kind: slidingWindow, limit: 10, window: 1h }] } }\n'
    const secret = 'a-token-of-the-operator'
    const tokens = `auth: { tokens: [{ name: operator, role: admin, token: ${secret} }] }\n`
    const file = folder.write('reloaded.yaml', limiters + tokens)
    await using service = await startProcess(['--config', file])
    expect(service.token).toBeUndefined()
    expect(await read(service.url, secret)).toBe(200)
    for (const time of [1, 2]) {
      folder.write('reloaded.yaml', limiters)
      service.kill('SIGHUP')
      await service.says('the configuration was applied', 2 * time - 1)
      await service.says('the configuration no longer has tokens')
      expect([await read(service.url, service.token), await read(service.url, secret)]).toEqual([200, 401])
      folder.write('reloaded.yaml', limiters + tokens)
      service.kill('SIGHUP')
      await service.says('the configuration was applied', 2 * time)
      expect([await read(service.url, service.token), await read(service.url, secret)]).toEqual([401, 200])
    }
    expect(service.lines.filter(({ adminLink }) => adminLink !== undefined)).toHaveLength(1)
  })

  it('a command without a token mentions the link if it needs one', async () => {
    await using service = await startProcess(['--config', config])
    const env = { SLIDEGATE_URL: service.url, SLIDEGATE_TOKEN: undefined }
    expect(await slidegateHere(['consume', 'api', 'ann'], env)).toMatchObject({ code: 0 })
    expect(await slidegateHere(['explain', 'api', 'ann'], env)).toMatchObject({ code: 0 })
    const refused = await slidegateHere(['audit'], env)
    expect(refused).toMatchObject({ code: 5, stdout: '' })
    expect(refused.stderr).toContain('the admin link that the service printed at startup')
    expect(await slidegateHere(['audit', '--token', service.token!], env)).toMatchObject({ code: 0 })
    expect(await slidegateHere(['audit'], { ...env, SLIDEGATE_TOKEN: service.token })).toMatchObject({
      code: 0,
    })
  })
})

describe('slidegate-server', () => {
  const server = (word: string) => slidegateHere([word], {}, 'slidegate-server')

  it('--help lists the options of serve and mentions the main command', async () => {
    const [all, serve] = [await server('--help'), await slidegateHere(['serve', '--help'])]
    expect(all.stdout).toMatch(/^Usage: slidegate-server \[options\]\n/)
    const flags = (text: string) => text.match(/^ {2}(-., )?--\w+( <\w+>)?/gm)
    expect(flags(all.stdout)).toEqual(['  -V, --version', ...flags(serve.stdout)!])
    expect(all.stdout).toContain('npx -p slidegate-server slidegate help')
  })

  it('--version prints the version of slidegate', async () => {
    expect(await server('--version')).toEqual(await slidegateHere(['--version']))
  })

  it('arguments are rejected, so that no command of slidegate is mistaken for one', async () => {
    expect(await server('replay')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'slidegate: too many arguments. Expected 0 arguments but got 1.\n',
    })
  })
})

describe('an address that is already in use', () => {
  async function takenAddress(): Promise<string> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it.each(['http', 'grpc'])(
    'stops serve with one line that has the address and the settings: %s',
    async (name) => {
      const address = await takenAddress()
      const words = ['serve', '--config', config, '--http', '127.0.0.1:0', `--${name}`, address]
      expect(await slidegate(words, '', { REDIS_URL: '' })).toEqual({
        code: 1,
        stdout: '',
        stderr: `slidegate: can't listen on ${address}: the address is already in use (EADDRINUSE); set another address with --${name}, SLIDEGATE_${name.toUpperCase()} or listen.${name}\n`,
      })
    },
  )

  it('stops serve in the same way with the built-in example', async () => {
    const address = await takenAddress()
    const { code, stderr } = await slidegate(['serve', '--http', address], '', { REDIS_URL: '' })
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(`^slidegate: can't listen on ${address}: .*\n$`),
    ])
  })

  it('leaves no other listener behind', async () => {
    const http = `127.0.0.1:${await freePort()}`
    const starting = testService({ limiters: {}, listen: { http, grpc: await takenAddress() } })
    await expect(starting).rejects.toThrow(/^can't listen on .*EADDRINUSE.*listen\.grpc/)
    await expect(fetch(`http://${http}/healthz`)).rejects.toThrow()
  })
})

it('a start that fails after it has connected to Redis ends the process', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const source = fileURLToPath(new URL('../..', import.meta.url))
  // A copy of the package without lua/, in a folder from which it finds its dependencies.
  const cache = join(source, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const copy = mkdtempSync(join(cache, 'incomplete-'))
  onTestFinished(() => rmSync(copy, { recursive: true }))
  for (const name of ['bin', 'dist', 'package.json'])
    cpSync(join(source, name), join(copy, name), { recursive: true })
  const words = [join(copy, 'bin/slidegate.js'), 'serve', '--config', config, '--http', '127.0.0.1:0']
  const env = { ...process.env, REDIS_URL: server.url }
  await expect(promisify(execFile)(process.execPath, words, { env })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^slidegate: ENOENT: .*add-history\.lua.*\n$/),
  })
})
