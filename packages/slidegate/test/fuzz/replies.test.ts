// tier: system
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { Redis as Redis6 } from 'ioredis6'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { afterAll } from 'vitest'
import {
  concurrency,
  createLimiter,
  type Limiter,
  SlidegateError,
  StoreUnavailableError,
  slidingWindow,
  WaitError,
} from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { anyCharacter } from '../support/characters.ts'
import { listed } from '../support/overrides.ts'
import { fuzz } from './harness.ts'
import { numbers, texts } from './hostile.ts'
import { startLyingRedis } from './lying-redis.ts'

const server = await startLyingRedis()
afterAll(() => server.stop())

interface Client {
  readonly redis: RedisClient
  end(): unknown
}

const ofIoredis = { maxRetriesPerRequest: 0, retryStrategy: () => 5, enableOfflineQueue: true } as const
const socket = { port: server.port, host: '127.0.0.1', reconnectStrategy: 5 } as const

function ioredis(Client: typeof Redis): Client {
  const redis = new Client(server.port, '127.0.0.1', ofIoredis)
  redis.on('error', () => {})
  return { redis, end: () => redis.disconnect() }
}

/** Real clients, because they parse garbage before the store sees it. */
const CLIENTS: Readonly<Record<string, () => Client | Promise<Client>>> = {
  ioredis: () => ioredis(Redis),
  ioredis6: () => ioredis(Redis6 as unknown as typeof Redis),
  iovalkey: () => ioredis(Valkey as unknown as typeof Redis),
  redis: async () => {
    const redis = createClient({ socket })
    redis.on('error', () => {})
    await redis.connect()
    return { redis: redis as unknown as RedisClient, end: () => redis.destroy() }
  },
  redis5: async () => {
    const redis = createClient5({ socket })
    redis.on('error', () => {})
    await redis.connect()
    return { redis: redis as unknown as RedisClient, end: () => redis.destroy() }
  },
}

function limiterOn({ redis }: Client): Limiter {
  return createLimiter({
    limits: [slidingWindow({ limit: 5, window: '1m' }), concurrency({ limit: 5, ttl: '1m', name: 'held' })],
    ban: { after: 9, within: '1h', for: '1h' },
    overrides: true,
    store: redisStore(redis),
    timeoutMs: 2000,
    logger: false,
    breaker: { minRequests: 2 ** 20 },
  })
}

const ASKS: Readonly<Record<string, (limiter: Limiter) => unknown>> = {
  consume: (limiter) => limiter.consume('k'),
  consumeMany: (limiter) => limiter.consumeMany([{ key: 'a' }, { key: 'b', cost: 3 }, { key: 'a' }]),
  peek: (limiter) => limiter.peek('k'),
  charge: (limiter) => limiter.charge('k', 3),
  explain: (limiter) => limiter.explain('k', { charges: true }),
  list: (limiter) => limiter.list('k'),
  acquire: async (limiter) => (await limiter.acquire('k')).release(),
  wait: (limiter) => limiter.wait('k', { maxWaitMs: 0 }),
  reset: (limiter) => limiter.reset('k'),
  block: (limiter) => limiter.block('k', '1m'),
  isBlocked: (limiter) => limiter.isBlocked('k'),
  overrides: (limiter) => listed(limiter),
  'set an override': (limiter) => limiter.overrides.set('k', 'exempt'),
  'get an override': (limiter) => limiter.overrides.get('k'),
}

/** Accepts results, and errors that are documented. */
async function expectAnswer(limiter: Limiter, name: string): Promise<void> {
  try {
    await ASKS[name]!(limiter)
  } catch (error) {
    if (error instanceof StoreUnavailableError || error instanceof WaitError) return
    // These include, for example, a refund without effect.
    if (!(error instanceof SlidegateError)) throw new Error('an error of another type', { cause: error })
  }
}

const integer = fc.oneof(
  fc.integer({ min: -7, max: 12 }),
  numbers.filter(Number.isSafeInteger),
  fc.constantFrom(2 ** 24, 2 ** 31, 2 ** 32 - 2, 2 ** 53 - 1, 1_700_000_000_000),
)
const JSONS = [
  '{}',
  '[]',
  '["a","1","5"]',
  '["","k","","exempt","0","0"]',
  '["","k","","{\\"minute\\":{\\"limit\\":5}}","9","9"]',
  '["","k","","{}","x","9"]',
  '["k","k"]',
  '[1e999]',
  '[null]',
  '"',
  '{"0":1}',
]

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

const ERRORS = [
  'NOSCRIPT No',
  'MOVED 1 127.0.0.1:1',
  'ASK 1 127.0.0.1:1',
  'READONLY x',
  'LOADING x',
  'BUSY x',
  'OOM x',
  'TRYAGAIN x',
]

/** Replies that follow the protocol. */
const { reply } = fc.letrec<{ reply: string; array: string }>((tie) => ({
  reply: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    integer.map((number) => `:${number}\r\n`),
    fc.oneof(texts, fc.constantFrom(...JSONS)).map(bulk),
    texts.map((text) => `+${text.replace(/[\r\n]/g, '')}\r\n`),
    fc.oneof(fc.constantFrom(...ERRORS), texts).map((text) => `-${text.replace(/[\r\n]/g, '')}\r\n`),
    fc.constantFrom('$-1\r\n', '*-1\r\n', '$0\r\n\r\n', '*0\r\n'),
    tie('array'),
  ),
  array: fc.array(tie('reply'), { maxLength: 8 }).map((all) => `*${all.length}\r\n${all.join('')}`),
}))

/** Replies that are close to what the script returns. */
const nearlyRight = fc
  .tuple(
    fc.constantFrom(0, 1_700_000_000_000, -1),
    fc.array(
      fc.oneof(
        integer.map((n) => `:${n}\r\n`),
        fc.constantFrom(...JSONS).map(bulk),
      ),
      { maxLength: 40 },
    ),
  )
  .map(([time, all]) => `*${all.length + 1}\r\n:${time}\r\n${all.join('')}`)

const client = fc.constantFrom(...Object.keys(CLIENTS))
const ask = fc.constantFrom(...Object.keys(ASKS))

let clients: Readonly<Record<string, Client>> = {}

fuzz(
  'replies from Redis',
  fc.record({ client, ask, reply: fc.oneof(reply, nearlyRight, nearlyRight) }),
  async ({ client, ask, reply }) => {
    server.answer(Buffer.from(reply), false)
    const limiter = limiterOn(clients[client]!)
    await expectAnswer(limiter, ask)
    limiter.close()
  },
  async () => {
    const started = await Promise.all(
      Object.entries(CLIENTS).map(async ([name, start]) => [name, await start()] as const),
    )
    clients = Object.fromEntries(started)
    return async () => {
      for (const each of Object.values(clients)) each.end()
    }
  },
)

/**
 * An array of more than 2^32 elements, which must not be sent.
 * The parser of ioredis and iovalkey throws it from the socket's listener, where only the process can
 * catch it.
 */
const ENDLESS_ARRAY = /\*[^\r]{10,}\r/

const anyGarbage = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc
    .tuple(fc.constantFrom(...'*$:+-_#,(!=%~>|'), fc.string({ unit: anyCharacter, maxLength: 60 }))
    .map(([type, rest]) => Buffer.from(type + rest)),
  fc
    .tuple(fc.oneof(reply, nearlyRight), fc.nat(), fc.integer({ min: 0, max: 255 }))
    .map(([text, at, byte]) => {
      const bytes = Buffer.from(text)
      bytes[at % bytes.length] = byte
      return at % 3 === 0 ? bytes.subarray(0, at % bytes.length) : bytes
    }),
  fc
    .constantFrom('*999999999\r\n', '$999999999999\r\n', '*-2\r\n', ':\r\n', '*1\r\n'.repeat(50), '\r\n\r\n')
    .map((text) => Buffer.from(text)),
)
const garbage = anyGarbage.filter((bytes) => !ENDLESS_ARRAY.test(bytes.toString('latin1')))

fuzz('raw bytes from Redis', fc.record({ client, ask, garbage }), async ({ client, ask, garbage }) => {
  server.answer(garbage, true)
  const own = await CLIENTS[client]!()
  const limiter = limiterOn(own)
  await expectAnswer(limiter, ask)
  limiter.close()
  own.end()
})
