import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { SlidegateError } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { addressOf, serversOf, type UrlOptions } from '../../src/stores/redis/url.ts'

describe('a url', () => {
  it.each([
    ['redis://localhost', { host: 'localhost', port: 6379, isTls: false, database: 0 }],
    ['valkey://10.0.0.1:7000/3', { host: '10.0.0.1', port: 7000, isTls: false, database: 3 }],
    ['rediss://[::1]:7000', { host: '::1', port: 7000, isTls: true, database: 0 }],
    [
      'valkeys://us%20er:p%40ss@host',
      { host: 'host', port: 6379, isTls: true, username: 'us er', password: 'p@ss', database: 0 },
    ],
    ['redis://:secret@host/', { host: 'host', port: 6379, isTls: false, password: 'secret', database: 0 }],
  ])('a URL is parsed: %s', (url, address) => expect(addressOf(url)).toEqual(address))

  it('a store accepts a URL on its own, and as an option', async () => {
    for (const url of ['redis://127.0.0.1:1', { url: 'redis://127.0.0.1:1' }]) await redisStore(url).close()
    expect(() => redisStore('localhost:6379')).toThrow(/it must be redis:\/\//)
  })
})

const refused: readonly UrlOptions[] = [
  { url: 'http://user:secret@host' },
  { url: 'user:secret@host:6379' },
  { url: 'redis://user:secret@' },
  { url: 'redis://user:secret@host/name' },
  { url: 'redis://user:secret%@host' },
  { url: 'redis://user:secret@host:99999' },
  { url: 7 as unknown as string },
  { url: undefined as unknown as string },
  { url: [] },
  { url: ['redis://user:secret@a', 'redis://b'], cluster: false },
  { url: ['redis://user:secret@a', 'rediss://b'] },
  { url: 'redis://user:secret@a/1', cluster: true },
  { url: 'redis://user:secret@a', cluster: 'yes' as unknown as boolean },
  { url: 'redis://user:secret@a', tls: {} },
]

it.each(refused)('an invalid URL is rejected without showing its password: %#', (options) => {
  let error: unknown
  try {
    serversOf(options)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(SlidegateError)
  expect(error).toMatchObject({ code: 'invalid_option' })
  expect(inspect(error)).not.toContain('secret')
})
