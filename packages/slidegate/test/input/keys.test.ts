// tier: integration
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, type Limiter, SlidegateError, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { anyCharacter } from '../support/characters.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { errorOf } from './refusal.ts'

let server: RedisServer
let redis: Redis
let limiter: Limiter
beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port, { autoResendUnfulfilledCommands: false })
  limiter = createLimiter({
    name: 'api',
    limits: [slidingWindow({ limit: 1, window: '1m' })],
    store: redisStore(redis),
    timeoutMs: 30_000,
  })
})
afterAll(async () => {
  await redis.quit()
  await server.stop()
})
beforeEach(() => redis.flushall())

/** Returns the only key in Redis, without its bucket. */
async function onlyKey(): Promise<string> {
  const keys = await redis.keys('*')
  expect(keys).toHaveLength(1)
  return keys[0]!.replace(/^slidegate:\{\d+\}:api:(.*):w1$/s, '$1')
}

const titled = (key: string): [string, string] => [JSON.stringify(key).slice(0, 20), key]

const hashOf = (key: string) => `~${createHash('sha256').update(key).digest('base64url')}`

describe('a key is stored', () => {
  it.each(
    [
      ...[
        'user:42',
        '{user}:42',
        '{}',
        '}{',
        '*',
        '?',
        '[a-z]',
        'a\\',
        '"',
        "'",
        '$(x)',
        '__proto__',
        '!',
        '}',
        'a~',
      ],
      ...['x'.repeat(128), ':w1', ':', '::', '2001:db8::/64', '0'],
    ].map(titled),
  )('unchanged if it is short and printable: %s', async (_, key) => {
    await limiter.consume(key)
    expect(await onlyKey()).toBe(key)
  })

  it.each(
    [
      ...['x'.repeat(129), 'x'.repeat(65_536), 'é'.repeat(32_768), '~', '~user', hashOf('user')],
      ...['a b', ' ', '\0', 'a\0', '\n', '\x7F', 'é', '\u{1F600}', '\uFEFF', '\u202Ea'],
    ].map(titled),
  )('as a hash if it is long, unprintable or looks like a hash: %s', async (_, key) => {
    await limiter.consume(key)
    expect(await onlyKey()).toBe(hashOf(key))
    expect((await limiter.consume(key)).allowed).toBe(false)
  })
})

it('in memory, the stored form of a long key is a different key', () => {
  const alone = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1m' })] })
  const long = 'x'.repeat(129)
  expect(alone.consumeSync(long).allowed).toBe(true)
  expect(alone.consumeSync(hashOf(long)).allowed).toBe(true)
  expect(alone.consumeSync(long).allowed).toBe(false)
})

const anyText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 300 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    .map((units) => String.fromCharCode(...units)),
  fc
    .constantFrom('{', '}', ':', '*', '?', '\0', '~', 'a')
    .chain((char) => fc.nat(200).map((n) => char.repeat(n))),
)

it('any text is either rejected, or names exactly one key of the documented layout', async () => {
  await fc.assert(
    fc.asyncProperty(anyText, fc.context(), async (text, context) => {
      await redis.flushall()
      const error = await errorOf(() => limiter.consume(text))
      const keys = await redis.keys('*')
      context.log(JSON.stringify(keys))
      if (error === undefined) {
        expect(text.isWellFormed() && text !== '').toBe(true)
        expect(keys).toHaveLength(1)
        expect(keys[0]).toMatch(/^slidegate:\{\d{1,5}\}:api:([!-}][!-~]{0,127}|~[A-Za-z0-9_-]{43}):w1$/)
      } else {
        expect(error).toBeInstanceOf(SlidegateError)
        expect((error as SlidegateError).code).toBe('invalid_key')
        expect(text.isWellFormed() && text !== '').toBe(false)
        expect(keys).toHaveLength(0)
      }
    }),
    { numRuns: 500 },
  )
})

it('distinct keys are stored as distinct keys', () =>
  fc.assert(
    fc.asyncProperty(fc.uniqueArray(anyText, { minLength: 2, maxLength: 20 }), async (texts) => {
      await redis.flushall()
      const keys = texts.filter((text) => text !== '' && text.isWellFormed())
      const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
      expect(decisions.every(({ allowed }) => allowed)).toBe(true)
      expect(await redis.dbsize()).toBe(keys.length)
    }),
    { numRuns: 100 },
  ))
