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

describe('a user', () => {
  it.each([
    [42, 'user:42'],
    ['42', 'user:42'],
    [42n, 'user:42'],
    [0, 'user:0'],
    ['unknown', 'user:unknown'],
    ['', 'user'],
    [null, 'user'],
    [undefined, 'user'],
  ])('%s is %s', (id, key) => {
    expect(userKey(id)).toBe(key)
  })
})

describe.each([
  ['a session', sessionKey, 'session'],
  ['an API key', apiKeyKey, 'api-key'],
])('%s', (_, keyOf, what) => {
  it('is a secret that no key shows', () => {
    const hash = createHash('sha256').update('s3cret').digest('base64url')
    expect(keyOf('s3cret')).toBe(`${what}:${hash}`)
  })

  it.each([undefined, null, '', 7 as never, {} as never])('that is missing is shared: %j', (missing) => {
    expect(keyOf(missing)).toBe(what)
  })
})

describe('an e-mail address', () => {
  it.each([
    ['ada@example.com'],
    ['ADA@Example.COM'],
    ['  ada@example.com\t\n'],
    ['\u00a0ada@example.com\u3000'],
    ['ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ'],
    ['𝐚𝐝𝐚@example.com'],
  ])('has one key in all its spellings: %j', (email) => {
    expect(emailKey(email)).toBe('email:ada@example.com')
  })

  it('composed or not', () => {
    expect(emailKey('Ame\u0301lie@example.com')).toBe(emailKey('am\u00e9lie@example.com'))
  })

  it.each([undefined, null, 7, {}, ['a@b'], '', ' \t', 'a'.repeat(321)])(
    'that is none is shared: %j',
    (none) => {
      expect(emailKey(none)).toBe('email')
    },
  )

  it('of 320 characters is one', () => {
    expect(emailKey('a'.repeat(320))).toBe(`email:${'a'.repeat(320)}`)
  })

  it('is the same when it was normalized before, and always a key', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (email) => {
        const key = emailKey(email)
        expect(key.isWellFormed()).toBe(true)
        expect(emailKey(key.slice('email:'.length))).toBe(key)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('a route', () => {
  it.each([
    ['of Express', { route: { path: '/users/:id' } }, 'route:/users/:id'],
    ['of Express, several', { route: { path: ['/a', '/b'] } }, 'route:/a,/b'],
    ['of Express, a pattern', { route: { path: /^\/a/ } }, 'route:/^\\/a/'],
    ['of Fastify', { routeOptions: { url: '/users/:id' } }, 'route:/users/:id'],
    ['of Fastify that was not found', { routeOptions: { url: undefined } }, 'route'],
    ['that was not matched', {}, 'route'],
  ])('%s', (_, request, key) => {
    expect(routeKey(request)).toBe(key)
  })

  it('of a router that is mounted somewhere', () => {
    expect(routeKey({ route: { path: '/:id' } }, '/users')).toBe('route:/users/:id')
  })
})

it('nobody is called like somebody of another kind', () => {
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
  // All texts but one are no address.
  expect(keys.filter((key) => key === UNKNOWN_ADDRESS)).toHaveLength(texts.length - 1)
  expect(new Set(keys).size).toBe(keys.length - (texts.length - 2))
})
