import { describe, expect, test } from 'vitest'
import { readingsOf } from '../../src/gateway/path.ts'
import { cpuMsOf } from '../support/cpu-time.ts'

describe('readings of a path', () => {
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
    ['/files/100%25', '/files/100%'],
    ['/files/100%25 of it'.replaceAll(' ', '%20'), '/files/100% of it'],
    ['/caf%C3%A9', '/caf\xc3\xa9'],
    ['/CAFÉ'.replace('É', '\xc3\x89'), '/caf\xc3\x89'],
    ['*', '*'],
  ])('include one for %s', (uri, reading) => {
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
    // These paths are decoded twice.
    ['/%252e%252e/x', ['/x', '/%2e%2e/x', '/../x']],
    ['/log%2569n', ['/login', '/log%69n']],
    ['/a%252flogin', ['/a/login', '/a%2flogin']],
    ['/login%2500.png', ['/login', '/login%00.png', '/login\0.png']],
    ['/files/100%2525', ['/files/100%', '/files/100%25']],
    // These paths are decoded before the query is split off.
    ['/login%3fx', ['/login', '/login?x']],
    ['/login%23x', ['/login', '/login#x']],
    ['/login%253Fx', ['/login', '/login?x', '/login%3fx']],
    ['/login%3fx/../../a', ['/login', '/a']],
  ])('include several for %s', (uri, some) => {
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
    '/a%255cb',
    '/login%00',
    '/login%00.png',
    '/log%09in',
    '/login%0a',
    '/login%7F',
    '/\x7f',
    'localhost:80',
  ])("don't exist for %j", (uri) => {
    expect(readingsOf(uri)).toBeUndefined()
  })

  test('take linear time for a long path', async () => {
    const cpuMs = await cpuMsOf(() => {
      for (const piece of [
        '/..',
        '//',
        ';',
        '/.;',
        '%2f',
        '/a/../',
        '.',
        '%20',
        '. ',
        '%',
        '%25',
        '%2541',
        '%3f',
      ]) {
        for (const end of ['', 'x', '//x;']) readingsOf(`/${piece.repeat(16_384 / piece.length)}${end}`)
      }
    })
    expect(cpuMs).toBeLessThan(2000)
  })
})
