import { randomUUID } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { DenialMessage } from '../../src/http/denial-message.ts'
import type { MessageOptions } from '../../src/http/messages.ts'
import {
  createLimiter,
  type Limit,
  type Limiter,
  memoryStore,
  type Store,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { failing } from '../resilience/failing-store.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'

/** The parts of a message adapter that the shared tests need. */
export interface MessageAdapter<Message, Chat extends ChatUnderTest> {
  serve(options: MessageOptions<Message>): Promise<Chat>
  connect(chat: Chat): Promise<ClientUnderTest>
  textOf(message: Message): string
  addressOf(message: Message): string | undefined
  rateLimit(options: MessageOptions<Message>): unknown
}

export interface ChatUnderTest {
  /** The messages that handlers received, in order. */
  readonly handled: readonly unknown[]
  /** Closes the first client's connection on the server. Resolves when it is closed. */
  hangUp(): Promise<unknown>
}

export interface ClientUnderTest {
  readonly denials: readonly DenialMessage[]
  readonly closed: Promise<unknown>
  /** Disconnects, with or without a closing handshake. */
  hangUp(isOrderly: boolean): void
  say(...texts: string[]): void
}

export function perHour(limit: number): readonly Limit[] {
  return [slidingWindow({ limit, window: '1h', name: 'hourly' })]
}

/** Creates a limiter that tests inspect. Its timeout is long enough for a slow machine. */
export function limiterOf(limit: number, store: Store = memoryStore()): Limiter {
  return createLimiter({ limits: perHour(limit), store, timeoutMs: 30_000 })
}

/** Creates a limiter whose store is down. */
export function unavailable(onStoreError: 'throw' | 'allow' | 'deny'): Limiter {
  const store = failing(memoryStore(), { reason: 'error', fail: (call) => call.reject(new Error('gone')) })
  return createLimiter({ limits: perHour(5), store, onStoreError, logger: false })
}

export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i}`)
}

/** Options that make every message fail with the expected error. */
export const ERRORS: readonly [title: string, options: () => MessageOptions<unknown>, expected: object][] = [
  ['the store is down', () => ({ limiter: unavailable('throw') }), { code: 'store_unavailable' }],
  ['the cost is invalid', () => ({ limits: perHour(5), cost: () => 0 }), { code: 'invalid_cost' }],
  [
    'key throws a non-error',
    () => ({
      limits: perHour(5),
      key: () => {
        throw undefined
      },
    }),
    { message: 'thrown: undefined' },
  ],
  [
    'onDenied rejects',
    () => ({
      limits: perHour(1),
      cost: () => 2,
      onDenied: async () => Promise.reject(new Error('unwilling')),
    }),
    { message: 'unwilling' },
  ],
]

async function late(turns: number): Promise<number> {
  for (let i = 0; i < turns; i++) await turn()
  return 1
}

/** Tests the guarantees of `rateLimit` for messages, in every framework. */
export async function messageSuite<Message, Chat extends ChatUnderTest>(
  adapter: MessageAdapter<Message, Chat>,
): Promise<void> {
  const { serve, connect, textOf, addressOf } = adapter
  const { redis } = await useRedis()
  const stores: readonly [string, () => Store][] = [
    ['memory', () => memoryStore()],
    ['Redis', () => redisStore(redis, { prefix: `slidegate:${randomUUID()}:` })],
  ]

  describe.each(stores)('on %s', (_, newStore) => {
    it('admits exactly the limit for each connection, in order', async () => {
      const chat = await serve({ limiter: limiterOf(20, newStore()) })
      const clients = [await connect(chat), await connect(chat)]
      for (const { say } of clients) say(...numbered(50))
      await until('all denials', async () => clients.every(({ denials }) => denials.length === 30))
      expect(chat.handled.length).toBe(40)
      expect(chat.handled.toSorted((a, b) => Number(a) - Number(b))).toEqual(
        numbered(20).flatMap((n) => [n, n]),
      )
    })

    it('keeps the order of each connection', async () => {
      const chat = await serve({ limiter: limiterOf(1000, newStore()) })
      const client = await connect(chat)
      client.say(...numbered(500))
      await until('all', async () => chat.handled.length === 500)
      expect(chat.handled).toEqual(numbered(500))
    })

    it('limits connections with the same key together', async () => {
      const key = (message: Message) => addressOf(message) ?? 'nobody'
      const chat = await serve({ limiter: limiterOf(20, newStore()), key })
      const clients = [await connect(chat), await connect(chat)]
      for (const { say } of clients) say(...numbered(50))
      await until('all denials', async () => clients.reduce((sum, c) => sum + c.denials.length, 0) === 80)
      expect(chat.handled.length).toBe(20)
    })

    it('charges nothing for messages behind one that dropped the connection', async () => {
      const limiter = limiterOf(2, newStore())
      const cost = (message: Message) => Number(textOf(message))
      const chat = await serve({ limiter, key: () => 'all', denied: 'drop', cost })
      const client = await connect(chat)
      client.say('1', '2', '1', '1')
      await client.closed
      // Messages that were already admitted are handled, unless the client has disconnected.
      await until(
        'handled messages are charged',
        async () => (await limiter.peek('all')).remaining === 2 - chat.handled.length,
      )
      expect(chat.handled.length).toBeLessThan(2)
      expect(client.denials).toEqual([])
    })

    it('admits waiting messages in order when there is room', async () => {
      const limiter = limiterOf(1, newStore())
      const chat = await serve({ limiter, key: () => 'all', denied: { delay: '2h' } })
      const client = await connect(chat)
      client.say('a', 'b', 'c')
      for (const handled of [['a'], ['a', 'b'], ['a', 'b', 'c']]) {
        await until('the next', async () => chat.handled.length === handled.length)
        expect(chat.handled).toEqual(handled)
        if (handled.length === 3) break
        await until('one that waits', async () => limiter.waiting('all').length > 0)
        // One message per connection waits, and the others stay behind it.
        expect(limiter.waiting('all').length).toBe(1)
        await limiter.reset('all')
      }
      expect(client.denials).toEqual([])
    })

    it('neither handles nor charges a message if the connection closes during its decision', async () => {
      const limiter = limiterOf(10, newStore())
      let goOn = (): void => {}
      // Waits until the message is charged.
      const onAllowed = () => new Promise<void>((resolve) => (goOn = resolve))
      const chat = await serve({ limiter, key: () => 'all', onAllowed })
      const client = await connect(chat)
      client.say('a', 'b')
      await until('a charge', async () => (await limiter.peek('all')).remaining === 9)
      await chat.hangUp()
      goOn()
      await until('no charge', async () => (await limiter.peek('all')).remaining === 10)
      expect(chat.handled).toEqual([])
    })
  })

  describe('a message that exceeds the limits', () => {
    it('gets a denial if it would have to wait too long', async () => {
      const chat = await serve({ limits: perHour(1), denied: { delay: '1m' } })
      const client = await connect(chat)
      client.say('a', 'b')
      await until('a denial', async () => client.denials.length > 0)
      expect(chat.handled).toEqual(['a'])
    })

    it('gets a denial if the queue of waiting connections is full', async () => {
      const limiter = limiterOf(1)
      const chat = await serve({ limiter, key: () => 'all', denied: { queue: 1, maxWait: '2h' } })
      const [first, second] = [await connect(chat), await connect(chat)]
      first.say('a', 'b', 'c')
      await until('one that waits', async () => limiter.waiting('all').length === 1)
      second.say('d')
      await until('a denial', async () => second.denials.length === 1)
      expect([chat.handled, first.denials]).toEqual([['a'], []])
    })

    it('gets the policy that a function returns for it', async () => {
      const denied = (message: Message) => (textOf(message) === 'last' ? 'drop' : 'reject')
      const chat = await serve({ limits: perHour(1), denied })
      const client = await connect(chat)
      client.say('a', 'b')
      await until('a denial', async () => client.denials.length > 0)
      client.say('last')
      await client.closed
      expect(client.denials.length).toBe(1)
    })
  })

  it('handles messages one after the other, however long a decision takes', async () => {
    // Earlier messages take longer to decide, and every third is decided immediately.
    const cost = (message: Message) => {
      const place = Number(textOf(message))
      return place % 3 === 2 ? 1 : late(20 - place)
    }
    const chat = await serve({ limits: perHour(100), cost })
    const client = await connect(chat)
    client.say(...numbered(20))
    await until('all', async () => chat.handled.length === 20)
    expect(chat.handled).toEqual(numbered(20))
  })

  it.each([true, false])(
    'frees the place of a client that disconnects and charges it nothing: orderly %s',
    async (isOrderly) => {
      const limiter = limiterOf(1)
      const chat = await serve({ limiter, key: () => 'all', denied: { delay: '2h' } })
      const client = await connect(chat)
      client.say('a', 'b', 'c', 'd')
      await until('one that waits', async () => limiter.waiting('all').length === 1)
      client.hangUp(isOrderly)
      await until('no waiters', async () => limiter.waiting('all').length === 0)
      await limiter.reset('all')
      for (let i = 0; i < 20; i++) await turn()
      expect(chat.handled).toEqual(['a'])
      expect((await limiter.peek('all')).remaining).toBe(1)
    },
  )

  describe('rejected options:', () => {
    const limits = perHour(1)
    it.each<[string, unknown]>([
      ['none', undefined],
      ['neither limits nor a limiter', {}],
      ['a key that is not a function', { limits, key: 'user' }],
      ['an unknown policy', { limits, denied: 'wait' }],
      ['a list that is not an array', { limits, deny: 'localhost' }],
      ['an invalid address in a list', { limits, deny: ['localhost'] }],
      ['a misspelled name', { limits, maxPendin: 5 }],
      ['headers', { limits, headers: 'draft-11' }],
      ['headers: false', { limits, headers: false }],
      ['refundIf', { limits, refundIf: 'failed' }],
      ['settle', { limits, settle: () => 1 }],
      ['onSettleError', { limits, onSettleError: () => {} }],
      ['a maxPending of 0', { limits, maxPending: 0 }],
      ['an infinite maxPending', { limits, maxPending: Number.POSITIVE_INFINITY }],
      ['a maxPending that is not a number', { limits, maxPending: '100' }],
    ])('%s', (_, options) => {
      expect(() => adapter.rateLimit(options as MessageOptions<Message>)).toThrow(
        expect.objectContaining({ code: 'invalid_option' }),
      )
    })
  })
}
