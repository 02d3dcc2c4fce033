import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addressKey,
  apiKeyKey,
  emailKey,
  routeKey,
  sessionKey,
  UNKNOWN_ADDRESS,
  userKey,
} from '../../src/http/index.ts'
import { anyCharacter } from '../support/characters.ts'

describe('userKey', () => {
  it.each([
    [42, 'user:42'],
    ['42', 'user:42'],
    [42n, 'user:42'],
    [0, 'user:0'],
    ['unknown', 'user:unknown'],
    ['', 'user'],
    [null, 'user'],
    [undefined, 'user'],
  ])('for %s is %s', (id, key) => {
    expect(userKey(id)).toBe(key)
  })

  it('a user in place of its id is rejected', () => {
    expect(() => userKey({ id: 42 } as never)).toThrow(/the user id is an object/)
  })
})

describe.each([
  ['a session', sessionKey, 'session'],
  ['an API key', apiKeyKey, 'api-key'],
])('%s', (_, keyOf, what) => {
  it('becomes a hash in the key', () => {
    const hash = createHash('sha256').update('s3cret').digest('base64url')
    expect(keyOf('s3cret')).toBe(`${what}:${hash}`)
  })

  it.each([undefined, null, '', 7 as never, {} as never])(
    'gets a shared key if it is missing: %j',
    (missing) => {
      expect(keyOf(missing)).toBe(what)
    },
  )
})

describe('an email address', () => {
  it.each([
    ['ada@example.com'],
    ['ADA@Example.COM'],
    ['  ada@example.com\t\n'],
    ['\u00a0ada@example.com\u3000'],
    ['ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ'],
    ['𝐚𝐝𝐚@example.com'],
  ])('gets the same key in all spellings: %j', (email) => {
    expect(emailKey(email)).toBe('email:ada@example.com')
  })

  it('gets the same key whether composed or decomposed', () => {
    expect(emailKey('Ame\u0301lie@example.com')).toBe(emailKey('am\u00e9lie@example.com'))
  })

  it.each([undefined, null, 7, {}, ['a@b'], '', ' \t', 'a'.repeat(321)])(
    'gets a shared key if it is invalid: %j',
    (none) => {
      expect(emailKey(none)).toBe('email')
    },
  )

  it('counts up to 320 characters', () => {
    expect(emailKey('a'.repeat(320))).toBe(`email:${'a'.repeat(320)}`)
  })

  it('always gets a well-formed key, and the same key if it is already normalized', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 40 }), (email) => {
        const key = emailKey(email)
        expect(key.isWellFormed()).toBe(true)
        expect(emailKey(key.slice('email:'.length))).toBe(key)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('the key of a route', () => {
  it.each([
    ['of Express', { route: { path: '/users/:id' } }, 'route:/users/:id'],
    ['of Express, several', { route: { path: ['/a', '/b'] } }, 'route:/a,/b'],
    ['of Express, a pattern', { route: { path: /^\/a/ } }, 'route:/^\\/a/'],
    ['of Fastify', { routeOptions: { url: '/users/:id' } }, 'route:/users/:id'],
    ['of Fastify, not found', { routeOptions: { url: undefined } }, 'route'],
    ['without a match', {}, 'route'],
  ])('%s', (_, request, key) => {
    expect(routeKey(request)).toBe(key)
  })

  it('starts with the path of a mounted router', () => {
    expect(routeKey({ route: { path: '/:id' } }, '/users')).toBe('route:/users/:id')
  })
})

it('keys of different kinds never collide', () => {
  const texts = ['203.0.113.7', 'unknown', 'user', 'user:1', '42', 'route:/a', '/a', 'email']
  const keys = texts.flatMap((text) => [
    addressKey(text),
    userKey(text),
    sessionKey(text),
    apiKeyKey(text),
    emailKey(text),
    routeKey({ route: { path: text } }),
  ])
  keys.push(userKey(''), sessionKey(''), apiKeyKey(''), emailKey(''), routeKey({}))
  // Only one of the texts is an address.
  expect(keys.filter((key) => key === UNKNOWN_ADDRESS)).toHaveLength(texts.length - 1)
  expect(new Set(keys).size).toBe(keys.length - (texts.length - 2))
})
