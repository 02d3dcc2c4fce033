// tier: integration
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request as ask, type RequestOptions } from 'node:http'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { type TestService, testService } from '../support/service.ts'

const limiters: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 100, window: '1h' }] },
  billing: { limits: [{ kind: 'slidingWindow', limit: 100, window: '1h' }] },
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const body = { limiter: 'api', key: 'ann' }

/** Sends any headers, including those that `fetch` forbids. */
async function raw(service: TestService, options: RequestOptions, sent?: string) {
  const request = ask(service.httpUrl, { agent: false, ...options })
  request.end(sent)
  const [response] = await once(request, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, headers: response.headers, text }
}

/** Sends bytes, and returns the response until the connection closes. */
async function bytes(service: TestService, sent: string | Buffer): Promise<string> {
  const { port } = new URL(service.httpUrl)
  const socket = connect(Number(port), '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  socket.write(sent)
  await once(socket, 'close')
  return text
}

describe('tokens', () => {
  const auth: Config['auth'] = {
    tokens: [
      { name: 'shop', role: 'check', token: 'shop-0123456789abcdef', limiters: ['api'] },
      {
        name: 'ops',
        role: 'read',
        sha256: createHash('sha256').update('ops-0123456789abcdef').digest('hex'),
      },
      { name: 'root', role: 'admin', token: 'root-0123456789abcdef' },
    ],
  }

  it('fail if they are missing or unknown', async () => {
    await using service = await testService({ limiters, auth })
    for (const headers of [
      {},
      bearer('nobody-0123456789abcdef'),
      bearer('shop-0123456789abcde'),
      bearer('shop-0123456789abcdef0'),
      { authorization: 'Bearer' },
      { authorization: 'Basic c2hvcDo=' },
      { authorization: 'shop-0123456789abcdef' },
      { authorization: 'Bearer shop-0123456789abcdef x' },
    ]) {
      const { status, headers: answered } = await service.post(
        '/v1/consume',
        body,
        headers as Record<string, string>,
      )
      expect([headers, status]).toEqual([headers, 401])
      expect(answered.get('www-authenticate')).toBe('Bearer realm="slidegate"')
    }
    for (const token of ['shop-0123456789abcdef', 'ops-0123456789abcdef', 'root-0123456789abcdef'])
      expect((await service.post('/v1/consume', body, bearer(token))).status).toBe(200)
    // The body of an unauthorized request isn't read.
    const wrong = await service.ask('/v1/consume', { method: 'POST', body: 'x'.repeat(2 ** 21) })
    expect(wrong.status).toBe(401)
  })

  it('allow only what their role allows', async () => {
    await using service = await testService({ limiters, auth })
    const explain = (token: string) => service.post('/v1/explain', body, bearer(token))
    expect(await explain('shop-0123456789abcdef')).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    expect((await explain('ops-0123456789abcdef')).status).toBe(200)
    expect((await service.get('/metrics', bearer('shop-0123456789abcdef'))).status).toBe(403)
    expect((await service.get('/metrics', bearer('ops-0123456789abcdef'))).status).toBe(200)
  })

  it('reach only their limiters, and others do not exist for them', async () => {
    await using service = await testService({ limiters, auth })
    const post = (path: string, limiter: string) =>
      service.post(path, { limiter, key: 'ann' }, bearer('shop-0123456789abcdef'))
    for (const path of ['/v1/consume', '/v1/peek', '/v1/wait']) {
      expect((await post(path, 'api')).status).toBe(200)
      const hidden = await post(path, 'billing')
      const absent = await post(path, 'absent')
      expect(hidden.status).toBe(404)
      expect(hidden.body.detail.replace('billing', 'absent')).toBe(absent.body.detail)
    }
    const many = { requests: [body, { limiter: 'billing', key: 'ann' }] }
    expect((await service.post('/v1/consume', many, bearer('shop-0123456789abcdef'))).status).toBe(404)
    // The token of a reservation only works for its limiter.
    const root = bearer('root-0123456789abcdef')
    const { token } = (
      await service.post('/v1/reserve', { limiter: 'billing', key: 'ann', estimate: 5 }, root)
    ).body
    for (const limiter of ['billing', 'api']) {
      const { status } = await service.post('/v1/cancel', { limiter, token }, bearer('shop-0123456789abcdef'))
      expect(status).toBe(limiter === 'billing' ? 404 : 400)
    }
  })

  it('become optional with auth.anonymous', async () => {
    await using service = await testService({ limiters, auth: { ...auth, anonymous: 'check' } })
    expect((await service.post('/v1/consume', body)).status).toBe(200)
    expect((await service.post('/v1/explain', body)).status).toBe(403)
    // A wrong token is rejected even if none is needed.
    expect((await service.post('/v1/consume', body, bearer('nobody-0123456789abcdef'))).status).toBe(401)
  })

  it('change with a reload of the configuration', async () => {
    await using service = await testService({ limiters })
    expect((await service.post('/v1/consume', body)).status).toBe(200)
    service.reload({ config: { limiters, auth }, folder: '/' } as Parameters<typeof service.reload>[0])
    expect((await service.post('/v1/consume', body)).status).toBe(401)
    expect((await service.post('/v1/consume', body, bearer('shop-0123456789abcdef'))).status).toBe(200)
  })
})

describe('requests from web pages', () => {
  const auth: Config['auth'] = {
    hosts: ['limits.example.com', '*.internal'],
    origins: ['https://app.example.com'],
  }

  it('fail with an unknown Host, which prevents DNS rebinding', async () => {
    await using service = await testService({ limiters, auth })
    const status = async (host: string) =>
      (await raw(service, { path: '/healthz', headers: { host } })).status
    const { port } = new URL(service.httpUrl)
    for (const host of ['127.0.0.1', '127.0.0.1:80', '[::1]:80', '[::1]', 'localhost', `LOCALHOST:${port}`])
      expect([host, await status(host)]).toEqual([host, 200])
    for (const host of ['limits.example.com', 'Limits.Example.com:8080', 'a.internal'])
      expect([host, await status(host)]).toEqual([host, 200])
    for (const host of [
      'evil.example',
      'localhost.evil.example',
      'evil.example:80',
      '127.0.0.1.evil.example',
      'limits.example.com.evil.example',
      '2130706433',
      '[::1',
      'internal',
    ])
      expect([host, await status(host)]).toEqual([host, 421])
    // An accepted host doesn't affect the next request.
    expect(await status('127.0.0.1')).toBe(200)
    expect(await status('evil.example')).toBe(421)
  })

  it('fail with an unlisted origin', async () => {
    await using service = await testService({ limiters, auth })
    for (const origin of [
      'https://evil.example',
      'null',
      'http://app.example.com',
      'https://app.example.com.evil',
    ])
      expect((await service.post('/v1/consume', body, { origin })).status).toBe(403)
    const right = await service.post('/v1/consume', body, { origin: 'https://app.example.com' })
    expect(right.status).toBe(200)
    expect(right.headers.get('access-control-allow-origin')).toBe('https://app.example.com')
    expect(right.headers.get('access-control-expose-headers')).toBe(
      'RateLimit-Policy, RateLimit, Retry-After',
    )
    expect(right.headers.get('vary')).toBe('Origin')
    // Pages of an allowed origin can read errors too.
    const wrong = await service.post('/v1/consume', {}, { origin: 'https://app.example.com' })
    expect(wrong.status).toBe(400)
    expect(wrong.headers.get('access-control-allow-origin')).toBe('https://app.example.com')
    expect((await service.post('/v1/consume', body)).headers.get('access-control-allow-origin')).toBeNull()
  })

  it('succeed from the origin of the service, under any of its names and behind a TLS proxy', async () => {
    await using service = await testService({ limiters, auth: { hosts: ['limits.example.com'] } })
    const status = async (host: string, origin: string) => {
      const headers = { host, origin, 'content-type': 'application/json' }
      const text = JSON.stringify(body)
      return (await raw(service, { method: 'POST', path: '/v1/consume', headers }, text)).status
    }
    for (const [host, origin] of [
      ['127.0.0.1:8080', 'http://127.0.0.1:8080'],
      ['[::1]:8080', 'http://[::1]:8080'],
      ['limits.example.com', 'https://limits.example.com'],
      ['Limits.Example.com', 'https://limits.example.com'],
    ] as const)
      expect([origin, await status(host, origin)]).toEqual([origin, 200])
    for (const [host, origin] of [
      ['127.0.0.1:8080', 'http://127.0.0.1:3000'],
      ['127.0.0.1:8080', 'http://127.0.0.1'],
      ['127.0.0.1:8080', 'http://localhost:8080'],
      ['127.0.0.1:8080', 'file://127.0.0.1:8080'],
      ['limits.example.com', 'https://limits.example.com.evil'],
      ['limits.example.com', 'https://evil@limits.example.com'],
    ] as const)
      expect([origin, await status(host, origin)]).toEqual([origin, 403])
    expect(await status('evil.example', 'http://evil.example')).toBe(421)
  })

  it('get answers to preflight requests', async () => {
    await using service = await testService({ limiters, auth })
    const preflight = (headers: Record<string, string>) =>
      raw(service, { method: 'OPTIONS', path: '/v1/consume', headers })
    const requested = { 'access-control-request-method': 'POST' }
    const right = await preflight({ ...requested, origin: 'https://app.example.com' })
    expect(right.status).toBe(204)
    expect(right.headers).toMatchObject({
      'access-control-allow-origin': 'https://app.example.com',
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization, content-type',
    })
    const wrong = await preflight({ ...requested, origin: 'https://evil.example' })
    expect(wrong.status).toBe(403)
    expect(wrong.headers).not.toHaveProperty('access-control-allow-origin')
    expect((await preflight({})).status).toBe(404)
  })
})

describe('caps', () => {
  it('limit the size of bodies', async () => {
    await using service = await testService({ limiters, caps: { bodyBytes: 1024 } })
    const headers = { 'content-type': 'application/json' }
    const long = JSON.stringify({ ...body, key: 'x'.repeat(1100) })
    const answer = await service.ask('/v1/consume', { method: 'POST', headers, body: long })
    expect(answer).toMatchObject({ status: 413, body: { code: 'body_too_large' } })
    // The cap also holds without Content-Length.
    const chunked = await raw(
      service,
      { method: 'POST', path: '/v1/consume', headers: { ...headers, 'transfer-encoding': 'chunked' } },
      long,
    )
    expect(chunked.status).toBe(413)
  })

  it.each(['/v1/consume', '/v1/store'])('limit bodies of %s to 512 KiB by default', async (path) => {
    await using service = await testService({ limiters })
    const headers = { 'content-type': 'application/json' }
    const statusOf = async (length: number) =>
      (await service.ask(path, { method: 'POST', headers, body: '{}'.padEnd(length) })).status
    expect([await statusOf(2 ** 19), await statusOf(2 ** 19 + 1)]).toEqual([400, 413])
  })

  it('limit requests in flight', async () => {
    await using service = await testService({
      limiters: { one: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h' }] } },
      caps: { inFlight: 2, wait: '2h' },
    })
    const wait = { limiter: 'one', key: 'ann', maxWaitMs: 7_000_000 }
    expect((await service.post('/v1/consume', { limiter: 'one', key: 'ann' })).status).toBe(200)
    const gone = [new AbortController(), new AbortController()]
    for (const { signal } of gone)
      service
        .ask('/v1/wait', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(wait),
          signal,
        })
        .catch(() => {})
    const { limiter } = service.service.get('one')
    await expect.poll(() => limiter.waiting().length).toBe(2)
    const refused = await service.post('/v1/peek', { limiter: 'one', key: 'ann' })
    expect(refused).toMatchObject({ status: 503, body: { code: 'overloaded' } })
    expect(refused.headers.get('retry-after')).toBe('1')
    // Health checks still work.
    expect((await service.get('/healthz')).status).toBe(200)
    // Rejected and disconnected requests don't count.
    for (const each of gone) each.abort()
    await expect.poll(() => limiter.waiting().length).toBe(0)
    for (let i = 0; i < 5; i++)
      expect((await service.post('/v1/peek', { limiter: 'one', key: 'ann' })).status).toBe(200)
  })
})

describe('connections', () => {
  it('get an error and are closed if they send malformed HTTP', async () => {
    await using service = await testService({ limiters })
    expect(await bytes(service, 'hello\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 Bad Request\r\n.*"code":"invalid_request"/s,
    )
    expect(
      await bytes(service, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
    ).toMatch(/^HTTP\/1\.1 431 .*the headers are too long/s)
    const smuggled =
      'POST /v1/consume HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    expect(await bytes(service, smuggled)).toMatch(/^HTTP\/1\.1 400 /)
    expect((await service.get('/healthz')).status).toBe(200)
  })

  it('close after an error even if the client keeps its side open', async () => {
    await using service = await testService({ limiters })
    const port = Number(new URL(service.httpUrl).port)
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    await using _ = { [Symbol.asyncDispose]: async () => void socket.destroy() }
    socket.on('error', () => {}).resume()
    socket.write('hello\r\n\r\n')
    await once(socket, 'end')
    const open = () =>
      new Promise((resolve) => service.app.server.getConnections((_, count) => resolve(count)))
    // The connection closes sooner than a slow connection would time out.
    await expect.poll(open, { timeout: 9000 }).toBe(0)
  })

  it('close after their last response when the service stops', async () => {
    const service = await testService({ limiters })
    const { limiter } = service.service.get('api')
    const peek = limiter.peek.bind(limiter)
    let begin = () => {}
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    limiter.peek = async (key) => {
      begin()
      // This is longer than idle connections stay open.
      await setTimeout(2500)
      return peek(key)
    }
    const agent = new Agent({ keepAlive: true })
    const request = ask(`${service.httpUrl}/v1/peek`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    }).end(JSON.stringify(body))
    const answer = once(request, 'response')
    await begun
    const startedAtMs = performance.now()
    const stopped = service.stop()
    const [response] = await answer
    expect(response.statusCode).toBe(200)
    response.resume()
    await stopped
    // Stopping doesn't take the 30 s after which all connections are cut off.
    expect(performance.now() - startedAtMs).toBeLessThan(15_000)
    agent.destroy()
  })

  it('close if they are too slow', async () => {
    await using service = await testService({ limiters })
    const { server } = service.app
    expect(server.headersTimeout).toBe(10_000)
    expect(server.requestTimeout).toBe(30_000)
    // The server checks timeouts once a second.
    server.headersTimeout = 1
    const head = 'POST /v1/consume HTTP/1.1\r\nHost: localhost\r\n'
    expect(await bytes(service, head)).toMatch(/^HTTP\/1\.1 408 .*didn't arrive in time/s)
    server.requestTimeout = 1
    const type = 'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{'
    expect(await bytes(service, head + type)).toMatch(/^HTTP\/1\.1 408 /)
    const socket = connect(Number(new URL(service.httpUrl).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.on('error', () => {})
    await once(socket.resume(), 'close')
  })

  it('send no header that reveals the software', async () => {
    await using service = await testService({ limiters })
    const { headers } = await service.get('/healthz')
    expect(Array.from(headers.keys()).sort()).toEqual([
      'connection',
      'content-length',
      'content-type',
      'date',
      'keep-alive',
    ])
  })
})
