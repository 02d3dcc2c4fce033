// tier: integration
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { Server, type ServerOptions, type Socket } from 'socket.io'
import { type Socket as ClientSocket, io as connectTo, type ManagerOptions } from 'socket.io-client'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import type { WebSocket } from 'ws'
import { rateLimit as limitHandshakes } from '../../src/adapters/node.ts'
import {
  type ClientEvent,
  type DenialMessage,
  type RateLimitOptions,
  rateLimit,
} from '../../src/adapters/socket.io.ts'
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
} from './messages-suite.ts'

const DENIAL = {
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: expect.any(String),
  status: 429,
  'violated-policies': ['hourly'],
  retryAfterMs: expect.any(Number),
}

interface Chat extends ChatUnderTest {
  readonly url: string
  readonly io: Server
  /** The arguments that handlers of `say` received, in order. */
  readonly handled: unknown[]
  readonly errors: unknown[]
  readonly sockets: Socket[]
  /** Events that arrived at the server, handled or not. */
  arrived: number
  onArrival: (socket: Socket) => void
}

async function serve(options: RateLimitOptions, settings: Partial<ServerOptions> = {}): Promise<Chat> {
  const server = createServer()
  const io = new Server(server, { ...settings })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const chat: Chat = {
    ...{ url: `http://127.0.0.1:${port}`, io, handled: [], errors: [], sockets: [] },
    hangUp: async () => {
      chat.sockets[0]!.disconnect()
    },
    ...{ arrived: 0, onArrival: () => {} },
  }
  io.on('connection', rateLimit(options))
  io.on('connection', (socket) => {
    chat.sockets.push(socket)
    socket.onAny(() => {
      chat.arrived++
      chat.onArrival(socket)
    })
    socket.on('error', (error) => chat.errors.push(error))
    socket.on('say', (text: unknown, acknowledge?: (answer: unknown) => void) => {
      chat.handled.push(text)
      acknowledge?.('said')
    })
  })
  onTestFinished(() => io.close())
  return chat
}

interface Client extends ClientUnderTest {
  readonly socket: ClientSocket
}

async function connect(
  { url }: Pick<Chat, 'url'>,
  options: Partial<ManagerOptions> = {},
  path = '',
): Promise<Client> {
  const settings = { transports: ['websocket'], reconnection: false, forceNew: true, ...options }
  const socket = connectTo(`${url}${path}`, settings)
  onTestFinished(() => void socket.disconnect())
  const denials: DenialMessage[] = []
  socket.on('rate_limited', (denial) => denials.push(denial))
  const closed = new Promise<string>((resolve) => socket.once('disconnect', resolve))
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  return {
    socket,
    denials,
    closed,
    hangUp: (isOrderly) => void (isOrderly ? socket.disconnect() : socket.io.engine.close()),
    say: (...texts) => {
      for (const text of texts) socket.emit('say', text)
    },
  }
}

await messageSuite<ClientEvent, Chat>({
  serve,
  connect,
  rateLimit,
  textOf: ({ args }) => String(args[0]),
  addressOf: ({ socket }) => socket.handshake.address,
})

describe.each(['websocket', 'polling'])('a denied event, by %s', (transport) => {
  const transports = [transport] as NonNullable<ManagerOptions['transports']>

  it('reaches the client as an event', async () => {
    const chat = await serve({ limits: perHour(1) })
    const client = await connect(chat, { transports })
    client.say('a', 'b', 'c')
    await until('denials', async () => client.denials.length === 2)
    expect(client.denials).toEqual([DENIAL, DENIAL])
    expect([chat.handled, client.socket.connected]).toEqual([['a'], true])
  })

  it('reaches the client as the acknowledgement that it requested, and not as an event', async () => {
    const chat = await serve({ limits: perHour(1) })
    const { socket, denials } = await connect(chat, { transports })
    expect(await socket.emitWithAck('say', 'a')).toBe('said')
    expect(await socket.emitWithAck('say', 'b')).toEqual({ error: DENIAL })
    expect(await socket.emitWithAck('say')).toEqual({ error: DENIAL })
    expect([chat.handled, denials]).toEqual([['a'], []])
  })
})

describe('a denied event', () => {
  it('reaches the client without limits if `disclose` is false', async () => {
    const chat = await serve({ limits: perHour(1), disclose: false })
    const { socket } = await connect(chat)
    await socket.emitWithAck('say', 'a')
    const { type, title, status } = DENIAL
    expect(await socket.emitWithAck('say', 'b')).toEqual({ error: { type, title, status } })
  })

  it('calls onDenied, and the next event waits for its promise', async () => {
    const told: string[] = []
    const chat = await serve({
      limits: perHour(1),
      async onDenied({ deniedBy }, { name, args, acknowledge, socket }) {
        told.push(`begun ${args}`)
        await turn()
        told.push(`ended ${args}`)
        expect([name, socket.connected]).toEqual(['say', true])
        acknowledge?.(deniedBy)
      },
    })
    const client = await connect(chat)
    client.say('a', 'b')
    expect(await client.socket.emitWithAck('say', 'c')).toEqual(['hourly'])
    expect(told).toEqual(['begun b', 'ended b', 'begun c', 'ended c'])
    expect(client.denials).toEqual([])
  })
})

describe('events', () => {
  it('arrive unchanged, including binary data', async () => {
    const chat = await serve({ limits: perHour(2), skip: async () => false })
    const { socket } = await connect(chat)
    const sent = { file: Buffer.from([0, 255]), name: 'x' }
    expect(await socket.emitWithAck('say', sent)).toBe('said')
    expect(chat.handled).toEqual([sent])
  })

  it('pass their names and arguments to options, without the acknowledgement', async () => {
    const seen: unknown[] = []
    const chat = await serve({
      limits: perHour(1),
      cost: () => 2,
      skip: ({ name, args, acknowledge }) => {
        seen.push([name, args, acknowledge !== undefined])
        return name === 'typing'
      },
    })
    const { socket } = await connect(chat)
    socket.emit('typing')
    expect(await socket.emitWithAck('say', 'a', 1)).not.toBe('said')
    expect(seen).toEqual([
      ['typing', [], false],
      ['say', ['a', 1], true],
    ])
  })

  it('count per namespace, if the namespace is limited', async () => {
    const chat = await serve({ limits: perHour(1) })
    chat.io.of('/free').on('connection', (socket) => {
      socket.on('say', (_text, acknowledge) => acknowledge('free'))
    })
    const limited = chat.io.of('/limited')
    limited.on('connection', rateLimit({ limits: perHour(2) }))
    limited.on('connection', (socket) => {
      socket.on('say', (_text, acknowledge) => acknowledge('limited'))
    })
    const answersOf = async (path: string) => {
      const { socket } = await connect(chat, {}, path)
      const answers: unknown[] = []
      for (let i = 0; i < 3; i++) answers.push(await socket.emitWithAck('say', i))
      return answers.map((answer) => (typeof answer === 'string' ? answer : 'denied'))
    }
    expect(await answersOf('/')).toEqual(['said', 'denied', 'denied'])
    expect(await answersOf('/limited')).toEqual(['limited', 'limited', 'denied'])
    expect(await answersOf('/free')).toEqual(['free', 'free', 'free'])
  })

  it('get denials for many namespaces of one connection without a listener for each', async () => {
    const chat = await serve({ limits: perHour(1) })
    chat.io.of(/^\/room/).on('connection', rateLimit({ limits: perHour(1) }))
    const { socket } = await connect(chat)
    const rooms = Array.from({ length: 30 }, (_, i) => socket.io.socket(`/room${i}`))
    await Promise.all(rooms.map((room) => new Promise<void>((done) => room.once('connect', done))))
    let most = 0
    const { conn } = chat.sockets[0]!
    conn.on('newListener', () => {
      most = Math.max(most, conn.listenerCount('drain'))
    })
    const denials: unknown[] = []
    for (const room of rooms) room.on('rate_limited', (denial) => denials.push(denial))
    // Sent at once, so that all denials are pending at the same time.
    for (const room of rooms) room.emit('say').emit('say').emit('say')
    await until('denials', async () => denials.length === 60)
    expect(most).toBeLessThan(3)
  })

  it('keep counting after a connection is recovered', async () => {
    const chat = await serve({ limits: perHour(2) }, { connectionStateRecovery: {} })
    const { socket } = await connect(chat, { reconnection: true, reconnectionDelay: 10 })
    expect(await socket.emitWithAck('say', 'a')).toBe('said')
    // A client that has received an event knows its offset, so it can recover.
    chat.sockets[0]!.emit('welcome')
    await new Promise<void>((resolve) => socket.once('welcome', resolve))
    const again = new Promise<void>((resolve) => socket.once('connect', resolve))
    socket.io.engine.close()
    await again
    expect(socket.recovered).toBe(true)
    expect(await socket.emitWithAck('say', 'b')).toBe('said')
    expect(await socket.emitWithAck('say', 'c')).toEqual({ error: DENIAL })
  })
})

describe('the allow and deny lists', () => {
  it('disconnect a denied client before it emits anything', async () => {
    const chat = await serve({ limits: perHour(10), deny: ['127.0.0.1'], skip: () => true })
    const client = await connect(chat)
    client.say('a')
    expect(await client.closed).toBe('io server disconnect')
    expect(chat.handled).toEqual([])
  })

  it('use the address behind proxies, and exempt allowed clients', async () => {
    const chat = await serve({
      limits: perHour(1),
      deny: ['192.0.2.0/24'],
      allow: ['198.51.100.7'],
      address: { trust: 1 },
    })
    const from = (address: string) => connect(chat, { extraHeaders: { 'X-Forwarded-For': address } })
    expect(await (await from('192.0.2.7')).closed).toBe('io server disconnect')
    const friend = await from('198.51.100.7')
    friend.say(...numbered(9))
    expect(await friend.socket.emitWithAck('say', 9)).toBe('said')
    const other = await from('198.51.100.8')
    other.say('a')
    expect(await other.socket.emitWithAck('say', 'b')).toEqual({ error: DENIAL })
  })
})

describe('a client that disconnects', () => {
  it('charges nothing for events behind one whose handler disconnects it', async () => {
    const limiter = limiterOf(10)
    const chat = await serve({ limiter, key: () => 'all' })
    const client = await connect(chat)
    chat.sockets[0]!.on('say', () => {
      chat.sockets[0]!.disconnect()
    })
    client.say('a', 'b', 'c')
    await client.closed
    await until('no charge', async () => (await limiter.peek('all')).remaining === 9)
    expect(chat.handled).toEqual(['a'])
  })
})

describe('a flood of 10,000 events', () => {
  it('closes the connection when more than maxPending events wait', async () => {
    let decided = 0
    let most = 0
    const chat = await serve({
      limits: perHour(20),
      async skip() {
        decided++
        await turn()
        return false
      },
    })
    chat.onArrival = ({ connected }) => {
      if (connected) most = Math.max(most, chat.arrived - decided)
    }
    const client = await connect(chat)
    client.say(...Array(10_000).fill('x'.repeat(100)))
    await client.closed
    expect(most).toBeGreaterThan(900)
    expect(most).toBeLessThan(1_003)
    const handled = chat.handled.length
    for (let i = 0; i < 50; i++) await turn()
    expect(chat.handled.length).toBe(handled)
  })

  it('gets denials if maxPending allows that many', async () => {
    const chat = await serve({ limits: perHour(20), skip: async () => false, maxPending: 10_000 })
    const client = await connect(chat)
    client.say(...numbered(10_000))
    await until('all', async () => client.denials.length === 9_980)
    expect(chat.handled).toEqual(numbered(20))
  })

  it('fills no buffer if the client ignores denials', async () => {
    const limits = Array.from({ length: 20 }, (_, i) =>
      slidingWindow({ limit: 1, window: '1h', name: `${i}`.padStart(64, 'x') }),
    )
    let most = 0
    const chat = await serve({ limits })
    chat.onArrival = ({ conn }) => {
      most = Math.max(most, (conn as unknown as { writeBuffer: unknown[] }).writeBuffer.length)
    }
    const client = await connect(chat)
    const { ws } = client.socket.io.engine.transport as unknown as { ws: WebSocket }
    ws.pause()
    client.say(...Array(10_000).fill('x'))
    await until('a disconnection', async () => !chat.sockets[0]!.connected)
    ws.terminate()
    expect(most).toBeLessThan(3)
  })
})

describe('an error', () => {
  it.each(ERRORS)("reaches the socket, and the event isn't handled: %s", async (_, options, error) => {
    const chat = await serve(options())
    const client = await connect(chat)
    client.say('a', 'b')
    await until('both', async () => chat.errors.length === 2)
    expect(chat.errors).toEqual(Array(2).fill(expect.objectContaining(error)))
    expect([chat.handled, client.socket.connected]).toEqual([[], true])
  })
})

describe.each(['websocket', 'polling'])('handshakes by %s', (transport) => {
  it('pass slidegate/node before there is a connection', async () => {
    const chat = await serve({ limits: perHour(100) })
    chat.io.engine.use(
      limitHandshakes({
        limits: perHour(2),
        skip: ({ url = '' }) => new URL(url, 'http://localhost').searchParams.has('sid'),
      }),
    )
    const transports = [transport] as NonNullable<ManagerOptions['transports']>
    for (let i = 0; i < 2; i++) {
      const { socket } = await connect(chat, { transports })
      for (const n of numbered(5)) expect(await socket.emitWithAck('say', n)).toBe('said')
    }
    const socket = connectTo(chat.url, { transports, reconnection: false, forceNew: true })
    const error = await new Promise<unknown>((resolve) => socket.once('connect_error', resolve))
    if (transport === 'polling') expect(error).toMatchObject({ description: 429 })
    expect(chat.sockets.length).toBe(2)
  })
})

describe('types', () => {
  interface FromClient {
    say(text: string, acknowledge: (answer: string) => void): void
  }
  interface FromServer {
    rate_limited(denial: DenialMessage): void
  }
  interface Data {
    user: string
  }
  type ChatSocket = Socket<FromClient, FromServer, Record<string, never>, Data>

  it('match Socket.IO', () => {
    const limits = perHour(1)
    const plain = new Server()
    plain.on('connection', rateLimit({ limits, key: ({ socket }) => socket.id }))
    plain.of('/x').on('connection', rateLimit({ limits }))
    const io = new Server<FromClient, FromServer, Record<string, never>, Data>()
    io.on('connection', rateLimit({ limits }))
    io.on(
      'connection',
      rateLimit<ChatSocket>({
        limits,
        key: (event) => {
          expectTypeOf(event).toEqualTypeOf<ClientEvent<ChatSocket>>()
          expectTypeOf(event.socket.data.user).toEqualTypeOf<string>()
          return event.socket.data.user
        },
        onDenied: ({ deniedBy }, { acknowledge }) => acknowledge?.(deniedBy),
      }),
    )
    // @ts-expect-error: messages have no responses
    expect(() => rateLimit({ limits, settle: () => 1 })).toThrow()
    // @ts-expect-error: a function
    expect(() => rateLimit({ limits, cost: 1 })).toThrow()
    // @ts-expect-error: a number
    expect(() => rateLimit({ limits, maxPending: '100' })).toThrow()
  })
})
