// tier: system
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { OwnConnection } from '../../src/stores/redis/connect.ts'
import { loadIoredis, loadNodeRedis } from '../../src/stores/redis/create-client.ts'
import { runScript } from '../../src/stores/redis/transport.ts'
import type { UrlOptions } from '../../src/stores/redis/url.ts'
import { rulesFor } from '../support/access.ts'
import { ask } from '../support/ask.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import { makeCertificates, startTlsRedis } from '../support/tls.ts'
import { limiterOn } from './store-on.ts'

const LOADS = { 'node-redis': loadNodeRedis, ioredis: loadIoredis }

/** Longer than a busy machine may hang. */
const patient = { timeout: 30_000, interval: 50 }

/** Checks that a promise rejects without waiting for a timer. */
async function expectRejectedAtOnce(promise: Promise<unknown>, message: string | RegExp): Promise<void> {
  let error: unknown
  promise.catch((reason: unknown) => {
    error = reason
  })
  for (let turn = 0; turn < 100 && error === undefined; turn++) await nextTurn()
  expect(String(error)).toMatch(message)
}

function scriptOn(connection: OwnConnection) {
  const send = connection.sender()
  return { run: (keys: string[]) => runScript(connection, send, keys.length, keys) }
}

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe.each(Object.entries(LOADS))('with %s', (_, load) => {
  function connect(options: UrlOptions): OwnConnection {
    const connection = new OwnConnection(options, load)
    onTestFinished(() => connection.close())
    return connection
  }

  it('the first request waits for the connection', async () => {
    const limiter = limiterOn(connect({ url: server.url }))
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 999, source: 'store' })
  })

  it('TLS works with a custom certificate authority', async () => {
    const certificates = await makeCertificates()
    const safe = await startTlsRedis(certificates)
    onTestFinished(async () => {
      await safe.stop()
      await certificates.remove()
    })
    const limiter = limiterOn(connect({ url: safe.url, tls: { ca: certificates.ca } }))
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 999 })
    const stranger = limiterOn(connect({ url: safe.url }))
    await expect(stranger.consume('k')).rejects.toMatchObject({
      reason: 'error',
      message: expect.stringContaining('certificate'),
    })
  })

  it('a user with only the documented rights is enough', async () => {
    const admin = new Redis(server.port)
    // ioredis uses INFO to check whether the server is ready.
    await admin.call('ACL', 'SETUSER', 'us@er', 'on', '>p@ss/word', ...rulesFor(), '+info')
    await admin.quit()
    const url = `redis://us%40er:p%40ss%2Fword@127.0.0.1:${server.port}`
    const connection = connect({ url })
    expect(await limiterOn(connection, { prefix: 'slidegate:mine' }).consume('k')).toMatchObject({
      remaining: 999,
    })
    await expect(limiterOn(connection, { prefix: 'yours' }).consume('k')).rejects.toThrow(
      /NOPERM|script tried/,
    )
  })

  it('a wrong password is reported without showing it', async () => {
    const limiter = limiterOn(connect({ url: `redis://nobody:topsecret@127.0.0.1:${server.port}` }))
    const error = await limiter.consume('k').catch((error: unknown) => error)
    expect(error).toMatchObject({ reason: 'error', message: expect.stringContaining('WRONGPASS') })
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('topsecret')
  })

  it('a store connects to a server that starts late', async () => {
    const late = await startRedis()
    onTestFinished(() => late.stop())
    await late.kill()
    const connection = connect({ url: late.url })
    const limiter = limiterOn(connection)
    // Requests wait until the first attempt has failed. After that, they fail immediately.
    expect(connection.isReady).toBe(false)
    await expect(limiter.consume('k')).rejects.toThrow('ECONNREFUSED')
    expect(connection.isReady).toBe(true)
    await late.start()
    await vi.waitFor(() => limiter.consume('k'), patient)
  })

  it('the first request waits for a slow server', async () => {
    const slow = await startRedis()
    onTestFinished(() => slow.stop())
    slow.freeze()
    const limiter = limiterOn(connect({ url: slow.url }))
    const first = limiter.consume('k')
    await delay(1200)
    slow.thaw()
    expect(await first).toMatchObject({ allowed: true, source: 'store' })
  })

  it('the first request is rejected if its connection is closed', async () => {
    const slow = await startRedis()
    onTestFinished(() => slow.stop())
    slow.freeze()
    const connection = connect({ url: slow.url })
    const first = scriptOn(connection).run(['k'])
    first.catch(() => {})
    await delay(100)
    connection.close()
    await expectRejectedAtOnce(first, 'is closed')
  })

  it('requests without a connection fail immediately, and work again after a restart', async () => {
    const mortal = await startRedis()
    onTestFinished(() => mortal.stop())
    const connection = connect({ url: mortal.url })
    const limiter = limiterOn(connection)
    await limiter.consume('k')
    await mortal.kill()
    const script = scriptOn(connection)
    const reason = `no connection to Redis at 127.0.0.1:${mortal.port} (connect ECONNREFUSED)`
    await vi.waitFor(() => expect(script.run(['k'])).rejects.toThrow(reason), {
      timeout: 30_000,
      interval: 5,
    })
    await expectRejectedAtOnce(script.run(['k']), reason)
    await mortal.start()
    await vi.waitFor(() => limiter.consume('k'), patient)
  })

  it("a lost command isn't resent", async () => {
    const mortal = await startRedis()
    onTestFinished(() => mortal.stop())
    const connection = connect({ url: mortal.url })
    expect(connection.resends).toBe(false)
    const limiter = limiterOn(connection, { timeoutMs: 5000 })
    await limiter.consume('k')
    mortal.freeze()
    const lost = expect(limiter.consume('k')).rejects.toThrow()
    await delay(50)
    await mortal.kill()
    await mortal.start()
    await lost
    await vi.waitFor(() => scriptOn(connection).run(['slidegate:k']), patient)
    await delay(100)
    expect(await ask(mortal.port, 'DBSIZE')).toBe(0)
  })

  it('a dead connection is replaced', async () => {
    const proxy = await startProxy(server.port)
    onTestFinished(() => proxy.stop())
    const connection = connect({ url: `redis://127.0.0.1:${proxy.port}` })
    const limiter = limiterOn(connection, { timeoutMs: 50 })
    await vi.waitFor(() => limiter.consume('k'), patient)
    proxy.blackHole()
    await expect(limiter.consume('k')).rejects.toMatchObject({ reason: 'timeout' })
    // The connection stays open and silent. Only a new one is answered.
    proxy.heal({ leaveSilent: true })
    await vi.waitFor(() => limiter.consume('k'), patient)
  })

  it('a Cluster works, and survives a restart of a server', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 0 })
    onTestFinished(() => cluster.stop())
    const connection = connect({ url: cluster.nodes.map(({ port }) => `redis://127.0.0.1:${port}`) })
    expect(connection).toMatchObject({ isCluster: true, resends: false })
    const limiter = limiterOn(connection)
    // On all servers at once, before any of them is connected.
    const keys = Array.from({ length: 60 }, (_, i) => `k${i}`)
    const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(keys.map(() => 999))
    const [node] = cluster.nodes
    await node!.kill()
    await node!.start()
    await vi.waitFor(() => Promise.all(['a', 'b', 'c'].map((key) => limiter.consume(key))), patient)
  })
})

it('if no client is installed, the error and a warning contain the reason', async () => {
  // Other code may emit warnings too.
  const warned = new Promise<Error>((resolve) => {
    const hear = (warning: Error) => void (warning.name === 'SlidegateWarning' && resolve(warning))
    process.on('warning', hear)
    onTestFinished(() => void process.off('warning', hear))
  })
  const connection = new OwnConnection({ url: server.url }, async () => undefined)
  await expect(scriptOn(connection).run(['k'])).rejects.toMatchObject({ code: 'invalid_option' })
  expect(await warned).toMatchObject({
    name: 'SlidegateWarning',
    message: expect.stringContaining('install redis'),
  })
  connection.close()
})
