import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLimiter, type LimiterOptions, memoryStore, slidingWindow } from '../../src/index.ts'
import { WIRE_VERSION } from '../../src/stores/remote/bodies.ts'
import { serveStore, serviceStore } from '../../src/stores/remote/index.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'

// Whatever a service or an impostor does, each request must be decided in time and nothing charged twice.

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => unknown

interface FakeServer {
  readonly url: string
  readonly bodies: string[]
  /** The headers of each request. */
  readonly headers: IncomingMessage['headers'][]
}

async function startServer(answer: Answer): Promise<FakeServer> {
  const bodies: string[] = []
  const headers: FakeServer['headers'] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    bodies.push(body)
    headers.push(request.headers)
    await answer(request, response, body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, headers }
}

const UNBREAKABLE = { minRequests: 2 ** 20 }

function limiterAt(url: string, options: Partial<LimiterOptions> = {}) {
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 2, window: '1h' })],
    ...{ store: serviceStore(url), timeoutMs: 30_000, breaker: UNBREAKABLE, logger: false },
    ...options,
  } as LimiterOptions)
  onTestFinished(() => limiter.close())
  return limiter
}

const says =
  (status: number, body: unknown): Answer =>
  (_request, response) => {
    response.statusCode = status
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

const outcome = { source: 'store', atMs: 1, admitted: 1, limits: [0, 0, 1000], waitMs: 0 }
const told = (...outcomes: unknown[]) => says(200, { version: WIRE_VERSION, outcomes })

describe('these responses are errors and not denials:', () => {
  const cases: readonly (readonly [string, Answer, string, RegExp])[] = [
    ['no token', says(401, { detail: 'a token is needed' }), 'error', /answered 401: a token is needed/],
    ['no role', says(403, { detail: 'not yours' }), 'error', /answered 403: not yours/],
    ['no such route', says(404, 'Not Found'), 'error', /answered 404$/],
    ['an invalid body', says(400, { code: 'invalid_option', detail: 'ops is 1' }), 'error', /400: ops is 1/],
    ['a crash', says(500, '<html>'), 'error', /answered 500$/],
    ['a store that is down', says(503, { code: 'store_down', detail: 'down' }), 'down', /503: down/],
    ['a store that is full', says(503, { code: 'store_full' }), 'full', /503/],
    ['an unknown reason', says(503, { code: 'store_constructor' }), 'error', /503/],
    ['a service that is overloaded', says(503, { code: 'overloaded' }), 'overload', /503/],
    ['too many requests', says(429, {}), 'overload', /429/],
    [
      'an error of the store',
      told({ error: { reason: 'invalid_state' } }),
      'invalid_state',
      /unavailable: invalid_state$/,
    ],
    ['a rejection', told({ error: { message: 'not yours' } }), 'error', /rejected the request: not yours$/],
    ['garbage', says(200, 'ok'), 'error', /JSON/],
    ['nothing', says(200, ''), 'error', /JSON/],
    ['a truncated body', says(200, '{"version":2,"outcomes":['), 'error', /JSON/],
    ['a later version', says(200, { version: 3, other: [] }), 'error', /version 3 .* supports version 2;/],
    [
      'an earlier version',
      says(200, { version: 1, outcomes: [outcome] }),
      'error',
      /version 1 .* version 2;/,
    ],
    ['no version', says(200, { outcomes: [outcome] }), 'error', /version undefined .* version 2;/],
    ['too few outcomes', told(), 'error', /an array of 0/],
    ['too many outcomes', told(outcome, outcome), 'error', /an array of 2/],
    ['no outcome', told(null), 'error', /outcome is null/],
    ['an outcome of another op', told({ held: true }), 'error', /outcome has "held"/],
    ['more admitted than requested', told({ ...outcome, admitted: 2 }), 'error', /admitted is 2/],
    ['a number as text', told({ ...outcome, limits: [0, 0, '1000'] }), 'error', /limits is "1000"/],
    ['too few numbers', told({ ...outcome, limits: [0, 0] }), 'error', /limits is an array of 2/],
    ['negative numbers', told({ ...outcome, limits: [-1, 0, 0] }), 'error', /limits is -1/],
    ['an invalid override', told({ ...outcome, overrides: [{ rule: 'none' }] }), 'error', /rule is "none"/],
    [
      'too many overrides',
      told({ ...outcome, overrides: [null, null] }),
      'error',
      /overrides is an array of 2/,
    ],
    ['no ban', told({ ...outcome, admitted: 0, ban: { ms: -1, parts: [0] } }), 'error', /is -1/],
    ['another source', told({ ...outcome, source: 'failOpen' }), 'error', /source is "failOpen"/],
  ]
  it.each(cases)('%s', async (_, answer, reason, message) => {
    const { url } = await startServer(answer)
    await expect(limiterAt(url).consume('k')).rejects.toMatchObject({
      ...{ name: 'StoreUnavailableError', reason },
      message: expect.stringMatching(message),
    })
    const local = await limiterAt(url, { onStoreError: 'local' }).consume('k')
    expect(local).toMatchObject({ allowed: true, source: 'fallback' })
  })

  it('no server', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    await expect(limiterAt(url).consume('k')).rejects.toMatchObject({
      reason: 'error',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('a redirect, which is not followed', async () => {
    const other = await startServer(told(outcome))
    for (const status of [301, 302, 307, 308]) {
      const { url } = await startServer((_request, response) => {
        response.writeHead(status, { location: `${other.url}/v1/store` }).end()
      })
      await expect(
        limiterAt(url, { store: serviceStore(url, { token: 'secret' }) }).consume('k'),
      ).rejects.toMatchObject({ reason: 'error', message: expect.stringContaining(`${status}`) })
    }
    expect(other.bodies).toEqual([])
  })

  it('an endless body, which is aborted', async () => {
    let written = 0
    let isGone = false
    const { url } = await startServer(async (_request, response) => {
      const closed = once(response, 'close').then(() => {
        isGone = true
      })
      const chunk = Buffer.alloc(2 ** 20, ' ')
      while (!isGone && written < 2 ** 30) {
        written += chunk.length
        if (!response.write(chunk)) await Promise.race([once(response, 'drain'), closed])
      }
    })
    await expect(limiterAt(url).consume('k')).rejects.toMatchObject({
      message: expect.stringContaining('more than'),
    })
    await until('the end of the connection', async () => isGone)
    expect(written).toBeLessThan(2 ** 27)
  })
})

function once(response: ServerResponse, event: string): Promise<void> {
  return new Promise((resolve) => {
    response.once(event, () => resolve())
  })
}

describe('a request that may have arrived', () => {
  it('never gets sent again', async () => {
    const { url, bodies } = await startServer((request) => request.socket.destroy())
    const limiter = limiterAt(url)
    for (let i = 1; i <= 5; i++) {
      await expect(limiter.consume('k')).rejects.toMatchObject({ reason: 'error' })
      expect(bodies.length).toBe(i)
    }
  })

  it('gets a refund if its response arrives after the timeout', async () => {
    const behind = memoryStore()
    const serve = serveStore(behind)
    const held: (() => void)[] = []
    let isHolding = true
    const { url } = await startServer(async (_request, response, body) => {
      const answer = JSON.stringify(await serve(JSON.parse(body), () => {}))
      if (isHolding) held.push(() => response.end(answer))
      else response.end(answer)
    })
    const direct = createLimiter({ limits: [slidingWindow({ limit: 2, window: '1h' })], store: behind })
    const remaining = async () => (await direct.peek('k')).remaining
    const limiter = limiterAt(url, { timeoutMs: 50 })
    await expect(limiter.consume('k', { cost: 2 })).rejects.toMatchObject({ reason: 'timeout' })
    await until('the request', async () => held.length === 1)
    expect(await remaining()).toBe(0)
    isHolding = false
    held[0]!()
    await until('the refund', async () => (await remaining()) === 2)
  })

  it('never delays later requests after it timed out', async () => {
    const serve = serveStore(memoryStore())
    let isSilent = true
    const { url } = await startServer(async (_request, response, body) => {
      if (!isSilent) response.end(JSON.stringify(await serve(JSON.parse(body), () => {})))
    })
    const store = serviceStore(url)
    const hasty = limiterAt(url, { store, timeoutMs: 50 })
    await Promise.allSettled(Array.from({ length: 10 }, () => hasty.consume('k')))
    isSilent = false
    // Uses another key, because some of the ten requests may only be sent and charged now, on a busy machine.
    expect((await limiterAt(url, { store }).consume('later')).allowed).toBe(true)
    await store.close()
  })

  it('fails when the store is closed, as do later requests', async () => {
    const { url, bodies } = await startServer(() => {})
    const store = serviceStore(url)
    const asked = expect(limiterAt(url, { store }).consume('k')).rejects.toMatchObject({ reason: 'error' })
    await until('the request', async () => bodies.length === 1)
    await store.close()
    await asked
    await expect(limiterAt(url, { store }).consume('k')).rejects.toMatchObject({ code: 'closed' })
  })
})

it("a service that doesn't respond opens the breaker, which closes when it responds", async () => {
  const serve = serveStore(memoryStore())
  let isSilent = true
  const { url, bodies } = await startServer(async (_request, response, body) => {
    if (!isSilent) response.end(JSON.stringify(await serve(JSON.parse(body), () => {})))
  })
  const limiter = limiterAt(url, { timeoutMs: 200, breaker: { minRequests: 3 }, onStoreError: 'allow' })
  for (let i = 0; i < 30; i++) expect((await limiter.consume(`k${i}`)).source).toBe('failOpen')
  const asked = bodies.length
  expect(asked).toBeLessThan(20)
  isSilent = false
  await until('a decision of the store', async () => (await limiter.consume('other')).source === 'store')
})

it('each call sends the current token', async () => {
  const { url, headers } = await startServer(told(outcome))
  let token = 'one'
  const later = limiterAt(url, { store: serviceStore(url, { token: async () => token }) })
  await later.consume('k')
  token = 'two'
  await later.consume('k')
  await limiterAt(url, { store: serviceStore(new URL(`${url}/`), { token: 'three' }) }).consume('k')
  await limiterAt(url).consume('k')
  expect(headers.map(({ authorization }) => authorization)).toEqual([
    ...['Bearer one', 'Bearer two', 'Bearer three'],
    undefined,
  ])
})

it('a failing token function makes the store unavailable', async () => {
  const { url, bodies } = await startServer(told(outcome))
  const store = serviceStore(url, { token: () => Promise.reject(new Error('no vault')) })
  await expect(limiterAt(url, { store }).consume('k')).rejects.toMatchObject({
    ...{ reason: 'error', message: expect.stringContaining('no vault') },
  })
  expect(bodies).toEqual([])
})

it.each(['secret\nand more', 'secret\u20ac', 'secret\n', '', undefined])(
  'an invalid token is neither sent nor part of an error message: %j',
  async (token) => {
    const { url, bodies } = await startServer(told(outcome))
    const store = serviceStore(url, { token: () => token as string })
    const error = await limiterAt(url, { store })
      .consume('k')
      .catch((reason: Error) => reason)
    expect(error).toMatchObject({ reason: 'error', message: expect.stringContaining('the token is of type') })
    expect(inspect(error)).not.toContain('secret')
    expect(bodies).toEqual([])
  },
)
