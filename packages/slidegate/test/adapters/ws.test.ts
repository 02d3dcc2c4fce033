// tier: integration
import { once } from 'node:events'
import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect as connectTo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import { rateLimit as limitHandshakes } from '../../src/adapters/node.ts'
import { type DenialMessage, type Message, type RateLimitOptions, rateLimit } from '../../src/adapters/ws.ts'
import { clientAddress } from '../../src/http/index.ts'
import { slidingWindow } from '../../src/index.ts'
import { until } from '../support/until.ts'
import {
  type ChatUnderTest,
  type ClientUnderTest,
  ERRORS,
  limiterOf,
  messageSuite,
  numbered,
  perHour,
  unavailable,
} from './messages-suite.ts'
import { newStore } from './suite/fixture.ts'

const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

interface Chat extends ChatUnderTest {
  readonly port: number
  /** The messages that handlers received, in order. */
  readonly handled: string[]
  readonly errors: unknown[]
  readonly sockets: WebSocket[]
  /** Messages that arrived at the server, handled or not. */
  arrived: number
  /** Called after each message that arrived. */
  onArrival: (socket: WebSocket, request: IncomingMessage) => void
}

interface Settings {
  readonly handle?: (data: RawData, isBinary: boolean, socket: WebSocket) => void
  readonly hasErrorListener?: boolean
}

async function serve(options: RateLimitOptions, settings: Settings = {}): Promise<Chat> {
  const { handle, hasErrorListener = true } = settings
  const limit = rateLimit(options)
  const wss = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(wss, 'listening')
  const { port } = wss.address() as AddressInfo
  const chat: Chat = {
    port,
    handled: [],
    errors: [],
    sockets: [],
    arrived: 0,
    hangUp: async () => {
      chat.sockets[0]!.terminate()
      await once(chat.sockets[0]!, 'close')
    },
    onArrival: () => {},
  }
  wss.on('connection', (socket, request) => {
    chat.sockets.push(socket)
    if (hasErrorListener) socket.on('error', (error) => chat.errors.push(error))
    const limited = limit(socket, request, (data, isBinary) => {
      chat.handled.push(data.toString())
      handle?.(data, isBinary, socket)
    })
    socket.on('message', (data, isBinary) => {
      chat.arrived++
      limited(data, isBinary)
      chat.onArrival(socket, request)
    })
  })
  onTestFinished(async () => {
    for (const client of wss.clients) client.terminate()
    await new Promise((resolve) => wss.close(resolve))
  })
  return chat
}

interface Client extends ClientUnderTest {
  readonly socket: WebSocket
}

async function connect(chat: Chat, headers: Record<string, string> = {}): Promise<Client> {
  const socket = new WebSocket(`ws://127.0.0.1:${chat.port}`, { headers })
  const denials: DenialMessage[] = []
  socket.on('message', (data, isBinary) => {
    expect(isBinary).toBe(false)
    denials.push(JSON.parse(data.toString()))
  })
  socket.on('error', () => {})
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  await once(socket, 'open')
  onTestFinished(() => socket.terminate())
  return {
    socket,
    denials,
    closed,
    hangUp: (isOrderly) => (isOrderly ? socket.close() : socket.terminate()),
    say: (...messages) => {
      for (const message of messages) socket.send(message)
    },
  }
}

/** Resolves when all earlier messages have arrived and have been decided. */
async function roundTrips(chat: Chat, count = 3): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${chat.port}`)
  await once(socket, 'open')
  for (let i = 0; i < count; i++) {
    socket.ping()
    await once(socket, 'pong')
    await turn()
  }
  socket.terminate()
}

await messageSuite<Message, Chat>({
  serve,
  connect,
  rateLimit,
  textOf: ({ data }) => data.toString(),
  addressOf: ({ request }) => request.socket.remoteAddress,
})

describe('a denied message', () => {
  it('gets a problem as JSON', async () => {
    const chat = await serve({ limits: perHour(1) })
    const client = await connect(chat)
    client.say('a', 'b')
    await until('a denial', async () => client.denials.length > 0)
    expect(client.denials).toEqual([
      {
        type: QUOTA_EXCEEDED,
        title: expect.any(String),
        status: 429,
        'violated-policies': ['hourly'],
        retryAfterMs: expect.any(Number),
      },
    ])
    expect(client.denials[0]!.retryAfterMs).toBeGreaterThan(3_500_000)
    expect(client.socket.readyState).toBe(WebSocket.OPEN)
  })

  it('gets a problem without limits if `disclose` is false', async () => {
    const chat = await serve({ limits: perHour(1), disclose: false })
    const client = await connect(chat)
    client.say('a', 'b')
    await until('a denial', async () => client.denials.length > 0)
    expect(client.denials).toEqual([{ type: QUOTA_EXCEEDED, title: expect.any(String), status: 429 }])
  })

  it("gets a problem without a time if waiting doesn't help", async () => {
    const chat = await serve({ limits: perHour(1), cost: () => 2 })
    const client = await connect(chat)
    client.say('a')
    await until('a denial', async () => client.denials.length > 0)
    expect(client.denials[0]).not.toHaveProperty('retryAfterMs')
  })

  it('calls onDenied, and the next message waits for its promise', async () => {
    const told: string[] = []
    const chat = await serve({
      limits: perHour(1),
      async onDenied({ deniedBy }, { data, isBinary, socket, request, connectionId }) {
        told.push(`begun ${data}`)
        await turn()
        told.push(`ended ${data}`)
        expect([isBinary, request.url, connectionId.length]).toEqual([false, '/', 36])
        socket.send(JSON.stringify({ deniedBy }))
      },
    })
    const client = await connect(chat)
    client.say('a', 'b', 'c')
    await until('both', async () => client.denials.length === 2)
    expect(client.denials).toEqual(Array(2).fill({ deniedBy: ['hourly'] }))
    expect(told).toEqual(['begun b', 'ended b', 'begun c', 'ended c'])
  })
})

describe('messages', () => {
  it('arrive unchanged, whether binary or text', async () => {
    const received: unknown[] = []
    const chat = await serve(
      { limits: perHour(2), skip: async () => false },
      { handle: (data, isBinary) => received.push([data, isBinary]) },
    )
    const client = await connect(chat)
    client.socket.send(Buffer.from([0, 255, 254]))
    client.say('text')
    client.socket.send(Buffer.from([1]))
    await until('a denial', async () => client.denials.length > 0)
    expect(received).toEqual([
      [Buffer.from([0, 255, 254]), true],
      [Buffer.from('text'), false],
    ])
  })

  it('cost the units that `cost` returns, for example by bytes', async () => {
    const chat = await serve({ limits: perHour(10), cost: ({ data }) => (data as Buffer).length })
    const client = await connect(chat)
    client.say('12345678', '123', '12')
    await until('a denial', async () => client.denials.length > 0 && chat.handled.length === 2)
    expect(chat.handled).toEqual(['12345678', '12'])
  })

  it("don't count if they are skipped or the address is allowed", async () => {
    const skipping = await serve({ limits: perHour(1), skip: ({ data }) => data.toString() === 'typing' })
    const client = await connect(skipping)
    client.say('typing', 'a', 'typing', 'b', 'typing')
    await until('all', async () => skipping.handled.length === 4 && client.denials.length === 1)
    expect(skipping.handled).toEqual(['typing', 'a', 'typing', 'typing'])

    const allowing = await serve({ limits: perHour(1), allow: ['127.0.0.0/8'] })
    const friend = await connect(allowing)
    friend.say(...numbered(10))
    await until('all', async () => allowing.handled.length === 10)
    expect(friend.denials).toEqual([])
  })

  it('reach the handler if they were sent before the client closed', async () => {
    const chat = await serve({ limits: perHour(10) })
    const client = await connect(chat)
    client.say('a', 'b', 'c')
    client.socket.close()
    await client.closed
    expect(chat.handled).toEqual(['a', 'b', 'c'])
  })

  it('keep arriving after a handler throws', async () => {
    const thrown = new Error('thrown by the handler')
    const limit = rateLimit({ limits: perHour(10) })
    const calls: string[] = []
    const chat = await serve({ limits: perHour(10) })
    await connect(chat)
    const listener = limit(chat.sockets[0]!, { socket: {} } as IncomingMessage, (data) => {
      calls.push(data.toString())
      throw thrown
    })
    expect(() => listener(Buffer.from('a'), false)).toThrow(thrown)
    expect(() => listener(Buffer.from('b'), false)).toThrow(thrown)
    expect(calls).toEqual(['a', 'b'])
  })
})

describe('a client in the deny list', () => {
  it('gets disconnected with 1008 before it sends anything', async () => {
    const chat = await serve({ limits: perHour(10), deny: ['127.0.0.1'], skip: () => true })
    const client = await connect(chat)
    client.say('a')
    expect(await client.closed).toBe(1008)
    expect([chat.handled, client.denials]).toEqual([[], []])
  })

  it('matches by its address behind proxies', async () => {
    const chat = await serve({ limits: perHour(10), deny: ['192.0.2.0/24'], address: { trust: 1 } })
    const denied = await connect(chat, { 'X-Forwarded-For': '192.0.2.7' })
    expect(await denied.closed).toBe(1008)
    const other = await connect(chat, { 'X-Forwarded-For': '198.51.100.7' })
    other.say('a')
    await until('it', async () => chat.handled.length === 1)
  })
})

describe('a flood of 10,000 messages', () => {
  const message = 'x'.repeat(4096)
  /** Messages that the server reads in one chunk or has already read. */
  const CHUNKS = (2 * 65_536) / message.length

  it('stays unread until it is decided', async () => {
    const chat = await serve({
      limits: perHour(20),
      async skip() {
        await turn()
        return false
      },
    })
    let most = 0
    const client = await connect(chat)
    chat.onArrival = () => {
      most = Math.max(most, chat.arrived - chat.handled.length - client.denials.length)
    }
    client.say(...Array(10_000).fill(message))
    await until('all of it', async () => client.denials.length === 9980)
    expect(chat.handled.length).toBe(20)
    // This only includes messages that are being decided and denials in flight.
    expect(most).toBeLessThan(2 * CHUNKS)
  })

  it('stays unread while its first message waits', async () => {
    const limiter = limiterOf(1)
    const chat = await serve({ limiter, key: () => 'all', denied: { delay: '2h' }, maxPending: 50 })
    const client = await connect(chat)
    client.say(...Array(10_000).fill(message))
    await until('a pause', async () => chat.sockets[0]!.isPaused)
    await roundTrips(chat, 50)
    expect(chat.arrived).toBeGreaterThan(50)
    expect(chat.arrived).toBeLessThan(50 + CHUNKS)
    expect(limiter.waiting('all').length).toBe(1)
    expect(chat.sockets[0]!.isPaused).toBe(true)
  })

  it('fills no buffer if the client ignores denials', async () => {
    const limits = numbered(20).map((n) =>
      slidingWindow({ limit: 1, window: '1h', name: n.padStart(64, 'x') }),
    )
    const chat = await serve({ limits })
    const client = await connect(chat)
    client.socket.pause()
    client.say(...Array(20_000).fill('x'))
    const [socket] = chat.sockets
    await until('the unread denials', async () => socket!.bufferedAmount > 0)
    await roundTrips(chat, 50)
    expect(socket!.bufferedAmount).toBeLessThan(2_000)
    client.socket.resume()
    await until('all of them', async () => client.denials.length === 19_999)
  })
})

describe('an error', () => {
  it.each(ERRORS)('closes the connection with 1011 and reaches the socket: %s', async (_, options, error) => {
    const chat = await serve(options())
    const client = await connect(chat)
    client.say('a', 'b', 'c')
    expect(await client.closed).toBe(1011)
    expect(chat.errors).toEqual([expect.objectContaining(error)])
    expect(chat.handled.length).toBeLessThan(2)
  })

  it('goes to the console if the socket has no listener', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => print.mockRestore())
    const chat = await serve({ limiter: unavailable('throw') }, { hasErrorListener: false })
    const client = await connect(chat)
    client.say('a')
    expect(await client.closed).toBe(1011)
    expect(print.mock.calls).toEqual([['slidegate:', expect.objectContaining({ code: 'store_unavailable' })]])
    expect(chat.handled).toEqual([])
  })

  it("doesn't occur if the limiter has a policy for store failures", async () => {
    for (const [onStoreError, handled] of [
      ['allow', ['a']],
      ['deny', []],
    ] as const) {
      const chat = await serve({ limiter: unavailable(onStoreError) })
      const client = await connect(chat)
      client.say('a')
      await until('an end', async () => chat.handled.length + client.denials.length > 0)
      expect(chat.handled).toEqual(handled)
      if (onStoreError === 'deny') expect(client.denials[0]).toMatchObject({ status: 503 })
    }
  })
})

describe('handshakes', () => {
  async function serveHandshakes(): Promise<number> {
    const limit = limitHandshakes({ limits: perHour(2), store: newStore() })
    const wss = new WebSocketServer({ noServer: true })
    const server = createServer()
    server.on('upgrade', (request, socket, head) => {
      socket.on('error', () => socket.destroy())
      const response = new ServerResponse(request)
      response.assignSocket(socket as never)
      response.shouldKeepAlive = false
      response.on('finish', () => socket.end())
      limit(request, response, (error) => {
        response.detachSocket(socket as never)
        if (error !== undefined) socket.destroy()
        else wss.handleUpgrade(request, socket, head, (ws) => ws.send('welcome'))
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    return (server.address() as AddressInfo).port
  }

  it("don't crash the process if they are reset while it responds", async () => {
    const port = await serveHandshakes()
    const request =
      'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    for (let i = 0; i < 20; i++) {
      const socket = connectTo(port, '127.0.0.1')
      await once(socket, 'connect')
      socket.write(request)
      socket.resetAndDestroy()
    }
    const answers: unknown[] = []
    for (let i = 0; i < 3; i++) {
      const client = new WebSocket(`ws://127.0.0.1:${port}`)
      answers.push(await new Promise((resolve) => client.once('open', resolve).once('error', resolve)))
      client.terminate()
    }
    expect(String(answers[2])).toContain('429')
  })

  it('pass slidegate/node before there is a connection', async () => {
    const port = await serveHandshakes()
    const attempt = () => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}`)
      return new Promise<unknown>((resolve) => {
        socket.once('message', (data) => {
          socket.terminate()
          resolve(data.toString())
        })
        socket.once('error', () => {})
        socket.once('unexpected-response', async (_, response: IncomingMessage) => {
          let body = ''
          for await (const chunk of response) body += chunk
          resolve([response.statusCode, JSON.parse(body).status, response.headers['retry-after']])
        })
      })
    }
    expect([await attempt(), await attempt(), await attempt()]).toEqual([
      'welcome',
      'welcome',
      [429, 429, '3600'],
    ])
  })
})

describe('types', () => {
  it('match ws', () => {
    const limits = perHour(1)
    rateLimit({
      limits,
      key: (message) => {
        expectTypeOf(message).toEqualTypeOf<Message>()
        expectTypeOf(message.socket).toEqualTypeOf<WebSocket>()
        expectTypeOf(message.request).toEqualTypeOf<IncomingMessage>()
        expectTypeOf(message.data).toEqualTypeOf<RawData>()
        return message.connectionId
      },
      onDenied: (decision, { socket }) => socket.send(`${decision.retryAfterMs}`),
    })
    const address = clientAddress({ trust: 1 })
    rateLimit({ limits, key: ({ request }) => address(request) })
    type Authenticated = IncomingMessage & { user: string }
    rateLimit<WebSocket, Authenticated>({ limits, key: ({ request }) => request.user })
    // @ts-expect-error: messages have no responses
    expect(() => rateLimit({ limits, refundIf: 'failed' })).toThrow()
    // @ts-expect-error: messages have no headers
    expect(() => rateLimit({ limits, headers: 'draft-11' })).toThrow()
    // @ts-expect-error: a function
    expect(() => rateLimit({ limits, key: 'user' })).toThrow()
    // @ts-expect-error: a request has no user
    rateLimit({ limits, key: ({ request }) => request.user })
    // @ts-expect-error: an unknown policy
    expect(() => rateLimit({ limits, denied: { wait: '1s' } })).toThrow()
  })
})
