import { describe, expect, test } from 'vitest'
import { readingsOf } from '../../src/gateway/path.ts'
import { cpuMsOf } from '../support/cpu-time.ts'

describe('what servers may take a path for', () => {
  test.each([
    ['/', '/'],
    ['/orders/7?page=2&x=/../', '/orders/7'],
    ['/orders/', '/orders/'],
    ['/Orders/Ab', '/orders/ab'],
    ['/%6Frders', '/orders'],
    ['/a%20b', '/a b'],
    ['/a..b/.c/d...e', '/a..b/.c/d...e'],
    ['/100%', '/100%'],
    ['/%zz', '/%zz'],
    // Decoded once.
    ['/%252e%252e/x', '/%2e%2e/x'],
    ['/caf%C3%A9', '/caf\xc3\xa9'],
    ['/CAFÉ'.replace('É', '\xc3\x89'), '/caf\xc3\x89'],
    ['*', '*'],
  ])('%s is read in one way', (uri, reading) => {
    expect(readingsOf(uri)).toEqual([reading])
  })

  test.each([
    ['//login', ['/login', '//login']],
    ['/login;v=1', ['/login', '/login;v=1']],
    ['/static/../login', ['/login', '/static/../login']],
    ['/static/%2e%2e/login', ['/login', '/static/../login']],
    ['/a%2flogin', ['/a/login', '/a%2flogin']],
    ['/static/..;/login', ['/login', '/static/..;/login', '/static/../login']],
    ['/static/;/../login', ['/login', '/static/login']],
    ['/a//../login', ['/login', '/a/login']],
    ['/static/..%2flogin', ['/login', '/static/..%2flogin']],
    ['/../../login', ['/login']],
    ['/login/.', ['/login/']],
    ['/x/..', ['/']],
    ['/login.', ['/login', '/login.']],
    ['/login%20', ['/login', '/login ']],
  ])('%s in several', (uri, some) => {
    const readings = readingsOf(uri)
    expect(readings).toEqual(expect.arrayContaining(some))
    expect(readings![0]).toBe(some[0])
  })

  test.each([
    '',
    'login',
    'http://other.example/',
    '/a b',
    '/a#b',
    '/a\\b',
    '/a%5Cb',
    '/\x7f',
    'localhost:80',
  ])('%j cannot be read', (uri) => {
    expect(readingsOf(uri)).toBeUndefined()
  })

  test('a long path takes no longer than its length asks for', async () => {
    const cpuMs = await cpuMsOf(() => {
      for (const piece of ['/..', '//', ';', '/.;', '%2f', '/a/../', '.', '%20', '. ', '%']) {
        for (const end of ['', 'x', '//x;']) readingsOf(`/${piece.repeat(16_384 / piece.length)}${end}`)
      }
    })
    expect(cpuMs).toBeLessThan(2000)
  })
})
