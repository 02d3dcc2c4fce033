// tier: integration
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
} from 'node:http2'
import { type AddressInfo, connect as connectSocket, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type RateLimitOptions, rateLimit } from '../../src/adapters/node.ts'
import type { NodeResponse } from '../../src/http/node.ts'
import { createLimiter, type Limiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { listen } from '../adapters/listen.ts'
import { until } from '../adapters/suite/fixture.ts'

const START_MS = 1_700_000_000_000

function limiterOf(limit: number): { readonly limiter: Limiter; readonly time: { nowMs: number } } {
  const time = { nowMs: START_MS }
  const store = memoryStore({ clock: () => time.nowMs })
  return { limiter: createLimiter({ limits: [slidingWindow({ limit, window: '1m' })], store }), time }
}

async function serve(options: RateLimitOptions): Promise<URL> {
  const limit = rateLimit(options)
  const server = await listen((req, res) => limit(req, res, () => res.end(`served ${req.url}`)))
  onTestFinished(() => server.close())
  return new URL(server.url)
}

describe('HTTP/1.1', () => {
  it('a connection stays open after denials', async () => {
    const url = await serve({ limiter: limiterOf(2).limiter })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const sockets = new Set<Socket>()
    const statuses: (number | undefined)[] = []
    for (let i = 0; i < 5; i++) {
      const sent = request(url, { agent }).end()
      const [response] = await once(sent, 'response')
      sockets.add(sent.socket!)
      statuses.push(response.statusCode)
      response.resume()
      await once(response, 'end')
    }
    expect(statuses).toEqual([200, 200, 429, 429, 429])
    expect(sockets.size).toBe(1)
  })

  it("the body of a denied request isn't parsed as the next request", async () => {
    const url = await serve({ limiter: limiterOf(1).limiter })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const statuses: (number | undefined)[] = []
    for (let i = 0; i < 3; i++) {
      const sent = request(url, { agent, method: 'POST' }).end(
        'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000),
      )
      const [response] = await once(sent, 'response')
      statuses.push(response.statusCode)
      response.resume()
      await once(response, 'end')
    }
    expect(statuses).toEqual([200, 429, 429])
  })

  it('pipelined requests get responses in order, and waiting ones hold back later ones', async () => {
    const { limiter } = limiterOf(3)
    const url = await serve({ limiter, key: () => 'k' })
    const text = await pipelined(url, ['/1', '/2', '/3', '/4', '/5'])
    const heads = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
    expect(heads).toEqual(['200', '200', '200', '429', '429'])
    expect([...text.matchAll(/served (\/\d)/g)].map(([, path]) => path)).toEqual(['/1', '/2', '/3'])
  })

  it('queued pipelined requests are served in order', async () => {
    const limiter = createLimiter({ limits: [slidingWindow({ limit: 2, window: '100ms' })] })
    const url = await serve({ limiter, key: () => 'k', denied: { queue: 10 } })
    const text = await pipelined(url, ['/1', '/2', '/3', '/4', '/5', '/6'])
    expect([...text.matchAll(/served (\/\d)/g)].map(([, path]) => path)).toEqual([
      '/1',
      '/2',
      '/3',
      '/4',
      '/5',
      '/6',
    ])
  })

  it('a response is complete when it was fully sent, not when its connection breaks', async () => {
    const told: unknown[] = []
    const { limiter } = limiterOf(10)
    const limit = rateLimit({
      limiter,
      key: () => 'k',
      refundIf(response) {
        told.push([response.status, response.isComplete])
        return response.isComplete
      },
    })
    const body = Buffer.alloc(64 * 2 ** 20)
    const server = await listen((req, res) =>
      limit(req, res, () => res.end(req.url === '/big' ? body : 'ok')),
    )
    onTestFinished(() => server.close())
    await (await fetch(server.url)).text()
    await until(() => told.length === 1)
    for (const end of ['destroy', 'resetAndDestroy'] as const) {
      const socket = connectSocket(Number(new URL(server.url).port), '127.0.0.1')
      socket.write('GET /big HTTP/1.1\r\nHost: x\r\n\r\n')
      await once(socket, 'data')
      socket[end]()
      const before = told.length
      await until(() => told.length > before)
    }
    expect(told).toEqual([
      [200, true],
      [200, false],
      [200, false],
    ])
    expect((await limiter.peek('k')).remaining).toBe(8)
  })

  it('many limiters on one route add one listener', async () => {
    const warnings: Error[] = []
    const warned = (warning: Error) => warnings.push(warning)
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    const limits = Array.from({ length: 8 }, () =>
      rateLimit({ limiter: limiterOf(10).limiter, denied: { queue: 5 }, settle: () => 1 }),
    )
    const server = await listen((req, res) => {
      const next = (i: number): void => {
        if (i === limits.length) res.end('served')
        else limits[i]!(req, res, () => next(i + 1))
      }
      next(0)
    })
    onTestFinished(() => server.close())
    expect(await (await fetch(server.url)).text()).toBe('served')
    // Node emits warnings later.
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings).toEqual([])
  })

  it('a client that disconnects frees the places of all its queued requests', async () => {
    const { limiter, time } = limiterOf(1)
    const url = await serve({ limiter, key: () => 'k', denied: { queue: 10, maxWait: '1h' } })
    const socket = connectSocket(Number(url.port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(5))
    await until(() => limiter.waiting().length === 4)
    socket.destroy()
    await until(() => limiter.waiting().length === 0)
    time.nowMs += 60_000
    expect((await limiter.peek('k')).remaining).toBe(1)
  })
})

/** Sends requests at once on one connection and returns the responses. The last request closes the connection. */
async function pipelined(url: URL, paths: readonly string[]): Promise<string> {
  const socket = connectSocket(Number(url.port), '127.0.0.1')
  const lines = paths.map((path, i) => {
    const close = i === paths.length - 1 ? 'Connection: close\r\n' : ''
    return `GET ${path} HTTP/1.1\r\nHost: x\r\n${close}\r\n`
  })
  socket.write(lines.join(''))
  let text = ''
  for await (const chunk of socket) text += chunk
  return text
}

describe('HTTP/2', () => {
  async function serveHttp2(
    options: RateLimitOptions,
    handle = (res: NodeResponse): unknown => res.end('served'),
  ): Promise<ClientHttp2Session> {
    const limit = rateLimit(options)
    const server = createServer((req, res) => limit(req, res, () => handle(res)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    onTestFinished(async () => {
      session.destroy()
      server.close()
      await once(server, 'close')
    })
    await once(session, 'connect')
    return session
  }

  const send = (session: ClientHttp2Session): ClientHttp2Stream => session.request({ ':path': '/' })

  async function answer(stream: ClientHttp2Stream): Promise<[IncomingHttpHeaders, string]> {
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    let body = ''
    for await (const chunk of stream) body += chunk
    return [headers, body]
  }

  it('requests get the usual response with all headers', async () => {
    const session = await serveHttp2({ limiter: limiterOf(1).limiter })
    const [served, text] = await answer(send(session))
    expect([served[':status'], served.ratelimit, text]).toEqual([200, '"1-per-1m";r=0;t=60', 'served'])
    const [denied, body] = await answer(send(session))
    expect(denied).toMatchObject({
      ':status': 429,
      ratelimit: '"1-per-1m";r=0;t=60',
      'retry-after': '60',
      'content-type': 'application/problem+json',
    })
    expect(JSON.parse(body)).toMatchObject({ status: 429 })
  })

  it("drop closes only the request's stream", async () => {
    const session = await serveHttp2({ limiter: limiterOf(1).limiter, denied: 'drop' })
    const kept = send(session)
    const dropped = send(session)
    expect((await answer(kept))[0][':status']).toBe(200)
    const responses: unknown[] = []
    dropped.on('response', (headers) => responses.push(headers))
    dropped.on('error', () => {})
    await until(() => dropped.closed)
    expect([responses, dropped.rstCode]).toEqual([[], 8])
    expect(session.destroyed).toBe(false)
  })

  it("a stream that is canceled while it waits frees its place and isn't charged", async () => {
    const { limiter, time } = limiterOf(1)
    const session = await serveHttp2({ limiter, key: () => 'k', denied: { queue: 10, maxWait: '1h' } })
    await answer(send(session))
    const streams = [send(session), send(session)]
    for (const stream of streams) stream.on('error', () => {})
    await until(() => limiter.waiting().length === 2)
    streams[0]!.close(8)
    await until(() => limiter.waiting().length === 1)
    streams[1]!.close(8)
    await until(() => limiter.waiting().length === 0)
    time.nowMs += 60_000
    expect((await answer(send(session)))[0][':status']).toBe(200)
  })

  it("a stream that is canceled before it has to wait doesn't wait and isn't charged", async () => {
    const { limiter } = limiterOf(1)
    let gone = 0
    const session = await serveHttp2({
      limiter,
      async key(req) {
        await once((req as Http2ServerRequest).stream, 'close')
        gone++
        return 'k'
      },
      denied: { queue: 10, maxWait: '1h' },
    })
    await limiter.consume('k')
    const stream = send(session)
    stream.on('error', () => {})
    await once(session, 'remoteSettings')
    stream.close(8)
    await until(() => gone === 1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(limiter.waiting().length).toBe(0)
  })

  it.each<[string, (res: NodeResponse) => unknown]>([
    ['before its response', () => undefined],
    ['during its response', (res) => (res as Http2ServerResponse).write('some of it')],
  ])("a stream that is canceled %s isn't complete and gets no refund", async (_, handle) => {
    const { limiter } = limiterOf(10)
    const told: boolean[] = []
    let handled = 0
    const session = await serveHttp2(
      {
        limiter,
        key: () => 'k',
        refundIf: ({ isComplete }) => {
          told.push(isComplete)
          return isComplete
        },
      },
      (res) => {
        handle(res)
        handled++
      },
    )
    const stream = send(session)
    stream.on('error', () => {})
    await until(() => handled === 1)
    stream.close(8)
    await until(() => told.length === 1)
    expect([told, (await limiter.peek('k')).remaining]).toEqual([[false], 9])
  })

  it('responses are settled when their stream ends', async () => {
    const { limiter } = limiterOf(10)
    const told: boolean[] = []
    const session = await serveHttp2({
      limiter,
      key: () => 'k',
      cost: () => 5,
      settle: ({ isComplete, status }) => {
        told.push(isComplete && status === 200)
        return 2
      },
    })
    await answer(send(session))
    await until(async () => (await limiter.peek('k')).remaining === 8)
    expect(told).toEqual([true])
  })
})
