// tier: system

import { runInThisContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as nodeAdapter from '../../src/adapters/fetch.ts'
import * as nodeCalendar from '../../src/calendar.ts'
import * as nodeHttp from '../../src/http/index.ts'
import * as nodeCore from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { anyCharacter } from '../support/characters.ts'
import { useRedis } from '../support/use-redis.ts'
import {
  bareRuntime,
  edgeRuntime,
  edgeRuntimeOfNext,
  type Library,
  type Runtime,
  runtimeWith,
} from './runtimes.ts'

const { redis } = await useRedis()

const NODE: Library = { core: nodeCore, calendar: nodeCalendar, http: nodeHttp, adapter: nodeAdapter }

const SECRET = 'correct horse battery staple'

const WEIRD_KEYS = [
  'x'.repeat(129),
  'user 7',
  '~',
  'Zo\u00eb \u{1f600} \u4e16\u754c',
  '\u0000',
  '\ufeffbom',
  'a'.repeat(64 * 1024),
  '\u4e16'.repeat(21_845),
]

describe.each<[string, () => Promise<Runtime>]>([
  ['the edge runtime', edgeRuntime],
  ['the edge runtime of Next.js', edgeRuntimeOfNext],
  ['a runtime with only Web globals', bareRuntime],
])('in %s', async (_, start) => {
  const { library, evaluate } = await start()
  const { core, http, adapter } = library

  it("Node's globals are missing", () => {
    expect(evaluate('String([typeof Buffer, typeof require])')).toBe('undefined,undefined')
    expect(evaluate('typeof process === "undefined" || Object.keys(process.env).length === 0')).toBe(true)
    expect(core.createLimiter).not.toBe(nodeCore.createLimiter)
  })

  describe('a limiter', () => {
    const oneIn = (window: nodeCore.Duration, more: Partial<nodeCore.LimiterOptions> = {}) =>
      core.createLimiter({ limits: [core.slidingWindow({ limit: 1, window })], ...more })

    it("uses the runtime's clock", async () => {
      const limiter = oneIn('1m')
      const before = Date.now()
      const { allowed, atMs } = await limiter.consume('key')
      expect(allowed).toBe(true)
      expect(Math.abs(atMs - before)).toBeLessThan(60_000)
      expect(limiter.consumeSync('key')).toMatchObject({ allowed: false, source: 'store' })
      expect(limiter.consumeSync('another').allowed).toBe(true)
    })

    it('makes requests wait, and ends a wait when it is aborted', async () => {
      const clock = new ManualClock()
      const limiter = oneIn('200ms', { store: core.memoryStore({ clock: clock.now }) })
      await limiter.consume('key')
      const waiting = limiter.wait('key')
      expect(limiter.waiting('key').length).toBe(1)
      clock.advance(200)
      expect((await waiting).allowed).toBe(true)
      const ended = evaluate('new AbortController()') as AbortController
      const given = limiter.wait('key', { signal: ended.signal })
      ended.abort()
      await expect(given).rejects.toMatchObject({ reason: 'aborted' })
      await expect(limiter.wait('key', { maxWaitMs: 10 })).rejects.toMatchObject({ reason: 'timeout' })
      await limiter.close()
    })

    it('holds permits, and releases them at the end of a compiled `await using`', async () => {
      const clock = new ManualClock()
      const store = core.memoryStore({ clock: clock.now })
      const limiter = core.createLimiter({ limits: [core.concurrency({ limit: 1, ttl: '600ms' })], store })
      const permit = await limiter.acquire('key')
      const renewedAtMs = async () => (await limiter.list('key'))[0]!.entries[0]!.atMs
      clock.advance(500)
      await expect.poll(renewedAtMs).toBe(clock.now())
      clock.advance(500)
      expect((await limiter.acquire('key')).allowed).toBe(false)
      expect(permit.signal.aborted).toBe(false)
      // This is the method that esbuild, Babel and others call.
      const dispose = evaluate("Symbol.asyncDispose || Symbol.for('Symbol.asyncDispose')") as symbol
      await (permit as unknown as Record<symbol, () => Promise<void>>)[dispose]!()
      expect((await limiter.acquire('key')).allowed).toBe(true)
      await limiter.close()
    })

    it("decides in time if its store doesn't respond", async () => {
      const silent: nodeCore.Store = {
        failurePolicy: core.failurePolicy,
        apply: () => {},
        close: () => {},
      }
      const limiter = oneIn('1m', { store: silent, timeoutMs: 30, onStoreError: 'deny' })
      expect(await limiter.consume('key')).toMatchObject({ allowed: false, source: 'failClosed' })
      await limiter.close()
    })
  })

  describe('and on Node with the same store', () => {
    const store = redisStore(redis)
    const limiterOf = (from: Library, options: Partial<nodeCore.LimiterOptions> = {}) =>
      from.core.createLimiter({
        name: 'api',
        limits: [from.core.slidingWindow({ limit: 100, window: '1m' })],
        store,
        timeoutMs: 30_000,
        ...options,
      })

    it.each<[string, string | undefined]>([
      ['plain', undefined],
      ['with a secret', JSON.stringify(SECRET)],
      ['with a binary secret', 'new Uint8Array(40).fill(7)'],
    ])('keys are stored the same, %s', async (_, secret) => {
      await redis.flushall()
      // A Uint8Array belongs to the runtime that created it, so each runtime creates its own.
      const onNode = limiterOf(NODE, secret === undefined ? {} : { hashKeys: runInThisContext(secret) })
      const there = limiterOf(library, secret === undefined ? {} : { hashKeys: evaluate(secret) as string })
      for (const [i, key] of WEIRD_KEYS.entries()) {
        await onNode.consume(key, { cost: i + 1 })
        expect((await there.consume(key, { cost: 50 })).remaining).toBe(49 - i)
        expect((await onNode.peek(key)).remaining).toBe(49 - i)
      }
      expect(await redis.keys('*')).toHaveLength(WEIRD_KEYS.length)
    })

    it('one runtime settles the reservations of the other', async () => {
      await redis.flushall()
      const both = [limiterOf(NODE), limiterOf(library)]
      for (const [from, to] of [both, both.toReversed()]) {
        for (const key of WEIRD_KEYS) {
          const { token } = await from!.reserve(key, 60)
          expect(await to!.settle(token, 10)).toEqual({ returned: 50, added: 0 })
          expect((await from!.peek(key)).remaining).toBe(90)
          await expect(from!.settle(token, 10)).rejects.toMatchObject({ code: 'invalid_reservation' })
          await from!.reset(key)
        }
      }
    })
  })

  it('withRateLimit limits a handler', async () => {
    const limits = [core.slidingWindow({ limit: 2, window: '1m' })]
    const served = evaluate("() => new Response('served')") as () => Response
    const handler = adapter.withRateLimit(served, {
      limits,
      address: { trust: 1, header: 'cf-connecting-ip' },
    })
    const ask = async (address: string) => {
      const options = JSON.stringify({ headers: { 'cf-connecting-ip': address } })
      return await handler(evaluate(`new Request('https://example.com/', ${options})`) as Request)
    }
    expect(await (await ask('203.0.113.7')).text()).toBe('served')
    expect((await ask('::ffff:203.0.113.7')).headers.get('ratelimit')).toMatch(/^"2-per-1m";r=0;/)
    const denied = await ask('203.0.113.7')
    expect(denied.status).toBe(429)
    expect(await denied.json()).toMatchObject({ status: 429, 'violated-policies': ['2-per-1m'] })
    expect((await ask('203.0.113.8')).status).toBe(200)
  })

  it('forged tokens are rejected', async () => {
    const limiter = core.createLimiter({ limits: [core.slidingWindow({ limit: 1, window: '1m' })] })
    for (const token of ['', '%', 'A', '____', btoa('[1]'), '\u4e16', '/+=='] as string[]) {
      await expect(limiter.settle(token, 0)).rejects.toMatchObject({ code: 'invalid_reservation' })
    }
  })

  it('callers have the same keys as on Node', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.string({ unit: anyCharacter }),
      lone,
    )
    fc.assert(
      fc.property(text, (secret) => {
        expect(http.apiKeyKey(secret)).toBe(nodeHttp.apiKeyKey(secret))
      }),
      { numRuns: 1000 },
    )
    const address = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV4().map((v4) => `::ffff:${v4}`),
      fc.string(),
    )
    fc.assert(
      fc.property(address, (given) => {
        expect(http.addressKey(given)).toBe(nodeHttp.addressKey(given))
      }),
      { numRuns: 1000 },
    )
    const request = {
      headers: { forwarded: 'for="[2001:db8::7]:80";proto=https' },
      socket: { remoteAddress: '10.0.0.1' },
    }
    expect(http.clientAddress({ trust: 1, header: 'forwarded' })(request)).toBe('2001:db8::/64')
  })

  it('errors are the same as on Node', () => {
    for (const from of [NODE, library]) {
      const limiter = from.core.createLimiter({
        limits: [from.core.slidingWindow({ limit: 1, window: '1m' })],
      })
      for (const key of ['x'.repeat(65_537), `${'\u4e16'.repeat(21_845)}xx`, '\ud800']) {
        expect(() => limiter.consumeSync(key)).toThrow(/more than 65536 bytes of UTF-8|lone surrogate/)
      }
      expect(limiter.consumeSync(`${'\u4e16'.repeat(21_845)}x`).allowed).toBe(true)
    }
    expect(() => core.createLimiter({ limits: [] })).toThrow(nodeCore.SlidegateError)
    expect(() =>
      core.createLimiter({ limits: [core.slidingWindow({ limit: 1, window: '1m' })], hashKeys: 'short' }),
    ).toThrow('the hashKeys secret is 5 bytes')
  })
})

const lone = fc.array(fc.integer({ min: 0xd700, max: 0xe000 })).map((units) => String.fromCharCode(...units))

const nodeModule = process.getBuiltinModule as (id: string) => unknown

/** Loads modules like a Node that was built without OpenSSL. */
function withoutCrypto(id: string): unknown {
  if (id === 'node:crypto') throw new Error('Node.js is not compiled with OpenSSL crypto support')
  return nodeModule(id)
}

it.each<[string, (id: string) => unknown]>([
  ['throw for one module', withoutCrypto],
  ['are null', () => null],
  ['are empty', () => ({})],
])("the library works if Node's modules %s", async (_, getBuiltinModule) => {
  const { library } = await runtimeWith(getBuiltinModule)
  const { core, http } = library
  const limits = [core.slidingWindow({ limit: 1, window: '1m' })]
  const limiter = core.createLimiter({ limits, hashKeys: SECRET })
  expect((await limiter.wait('key')).allowed).toBe(true)
  expect((await limiter.consume('key')).allowed).toBe(false)
  expect(http.apiKeyKey('secret')).toBe(nodeHttp.apiKeyKey('secret'))
})

it('at startup the library uses no random numbers, timers or clocks, which Workers reject before a request', async () => {
  let isRequested = false
  const { library, evaluate } = await bareRuntime(() => isRequested)
  const { core, calendar, http, adapter } = library
  expect(() => evaluate('crypto.getRandomValues(new Uint8Array(1))')).toThrow('before the first request')
  const limits = [
    core.slidingWindow({ limit: 5, window: '1m', log: 'zset' }),
    calendar.calendarWindow({ limit: 5, unit: 'day', timeZone: 'Asia/Tokyo' }),
    core.concurrency({ limit: 5, ttl: '1m', name: 'at-once' }),
  ]
  const store = core.withDenyCache(core.withLeases(core.memoryStore()))
  const limiter = core.createLimiter({
    limits,
    store,
    hashKeys: SECRET,
    ban: { after: 9, within: '1h', for: '1h' },
    overrides: true,
    onStoreError: 'local',
  })
  limiter.on('decision', () => {})
  const key = http.clientAddress({ trust: 1, header: 'cf-connecting-ip' })
  const handler = adapter.withRateLimit(() => new Response('served'), {
    limits: limits.slice(0, 1),
    key: () => 'all',
  })
  isRequested = true
  expect((await handler(new Request('https://example.com/'))).status).toBe(200)
  const name = key({ headers: { 'cf-connecting-ip': '203.0.113.7' }, socket: { remoteAddress: '10.0.0.1' } })
  const permit = await limiter.acquire(name)
  expect(permit.allowed).toBe(true)
  expect((await limiter.wait(name)).allowed).toBe(true)
  await permit.release()
  await limiter.close()
})
