import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { anyCharacter } from '../../slidegate/test/support/characters.ts'
import { LOG_FORMATS, lineParser } from '../src/log/parse-line.ts'
import { MAX_LINE_CHARS } from '../src/log/split-lines.ts'
import { parseAccessLogTime, parseJsonTime } from '../src/log/time.ts'

const T = Date.UTC(2015, 4, 17, 10, 5, 3)
const REST = '[17/May/2015:10:05:03 +0000] "GET /a/b?c=d HTTP/1.1" 200 2326'

function parse(text: string, key = 'ip', timeField = 'time') {
  return lineParser({ format: 'auto', key, timeField })(text)
}

test.each([
  ['a common line', `83.149.9.216 - - ${REST}`, 'ip', '83.149.9.216'],
  [
    'a combined line',
    `83.149.9.216 - - ${REST} "http://a.example/" "Mozilla/5.0 (\\"x\\")"`,
    'ip',
    '83.149.9.216',
  ],
  ['bytes as a dash', '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 304 -', 'ip', '1.2.3.4'],
  ['another zone', '1.2.3.4 - - [17/May/2015:03:35:03 -0630] "GET / HTTP/1.1" 304 -', 'ip', '1.2.3.4'],
  ['a line cut short', '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /index', 'ip', '1.2.3.4'],
  ['a missing request', '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "-" 408 -', 'ip', '1.2.3.4'],
  ['a host name', `crawl.example.com - - ${REST}`, 'ip', 'crawl.example.com'],
  ['an IPv6 address as its network', `2001:db8:1:2:3:4:5:6 - - ${REST}`, 'ip', '2001:db8:1:2::/64'],
  ['IPv4 in IPv6', `::ffff:1.2.3.4 - - ${REST}`, 'ip', '1.2.3.4'],
  ['the user', `1.2.3.4 - frank ${REST}`, 'user', 'frank'],
  ['the method', `1.2.3.4 - - ${REST}`, 'method', 'GET'],
  ['the path without its query', `1.2.3.4 - - ${REST}`, 'path', '/a/b'],
  ['the status', `1.2.3.4 - - ${REST}`, 'status', '200'],
  [
    'quotes in the request',
    '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /\\"x\\" HTTP/1.1" 404 1',
    'path',
    '/\\"x\\"',
  ],
  ['a JSON line', '{"time":"2015-05-17T10:05:03Z","ip":"1.2.3.4"}', 'ip', '1.2.3.4'],
  ['JSON after blanks', '  {"time":"2015-05-17T10:05:03Z","ip":"1.2.3.4"}', 'ip', '1.2.3.4'],
  ['a nested field', '{"time":1431857103,"client":{"ip":"1.2.3.4"}}', 'client.ip', '1.2.3.4'],
  [
    'a field with a dot',
    '{"time":1431857103,"client.ip":"5.6.7.8","client":{"ip":"1.2.3.4"}}',
    'client.ip',
    '5.6.7.8',
  ],
  ['a number as key', '{"time":1431857103000,"tenant":42}', 'tenant', '42'],
  ['a boolean as key', '{"time":1431857103000,"bot":false}', 'bot', 'false'],
  ['a field named like a method', '{"time":1431857103,"__proto__":"a"}', '__proto__', 'a'],
])('the line parser reads %s', (_, text, key, expected) => {
  expect(parse(text, key)).toEqual({ timeMs: T, key: expected })
})

test.each([
  ['an empty line', '', 'ip', 'empty line'],
  ['blanks', ' \t ', 'ip', 'empty line'],
  ['words', 'hello', 'ip', 'neither an access log line nor a JSON object'],
  [
    'a virtual host in front',
    `www.example.com:80 1.2.3.4 - - ${REST}`,
    'ip',
    'neither an access log line nor a JSON object',
  ],
  ['a JSON array', '[1]', 'ip', 'neither an access log line nor a JSON object'],
  ['broken JSON', '{"time":', 'ip', 'not a JSON object'],
  [
    'a day that does not exist',
    '1.2.3.4 - - [31/Apr/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1',
    'ip',
    'no readable time',
  ],
  ['no user', `1.2.3.4 - - ${REST}`, 'user', 'no user'],
  ['no request', '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "-" 408 -', 'path', 'no path'],
  [
    'a field of JSON only',
    `1.2.3.4 - - ${REST}`,
    'tenant',
    'no such key: access logs have ip, user, method, path, status',
  ],
  ['no time', '{"ip":"1.2.3.4"}', 'ip', 'no readable time in field "time"'],
  ['no such field', '{"time":1431857103}', 'a.b', 'no key in field "a.b"'],
  ['a field within a text', '{"time":1431857103,"a":"b"}', 'a.length', 'no key in field "a.length"'],
  ['an inherited field', '{"time":1431857103}', 'constructor.name', 'no key in field "constructor.name"'],
  ['null as key', '{"time":1431857103,"ip":null}', 'ip', 'no key in field "ip"'],
  ['an empty key', '{"time":1431857103,"ip":""}', 'ip', 'no key in field "ip"'],
])('the line parser reports why it skips %s', (_, text, key, reason) => {
  expect(parse(text, key)).toEqual({ bad: reason })
})

test('the line parser distinguishes keys of any length and content', () => {
  const long = 'k'.repeat(70_000)
  const keys = ['a', `${long}1`, `${long}2`].map((ip) => parse(JSON.stringify({ time: T, ip })))
  expect(new Set(keys.map((parsed) => ('key' in parsed ? parsed.key : parsed.bad))).size).toBe(3)
  expect(parse('{"time":1431857103,"ip":"\\ud800"}')).toEqual({ timeMs: T, key: '\ufffd' })
})

describe('the cost of a request', () => {
  const parseCost = lineParser({ format: 'auto', key: 'ip', timeField: 'time', costField: 'use.units' })
  const line = (units: unknown) => JSON.stringify({ time: T, ip: 'a', use: { units } })

  it('comes from the named field', () => {
    expect(parseCost(line(7))).toEqual({ timeMs: T, key: 'a', cost: 7 })
    expect(parse(line(7))).toEqual({ timeMs: T, key: 'a' })
  })

  it.each([0, -1, 1.5, '7', null, undefined, 2 ** 53])('rejects %j', (units) => {
    expect(parseCost(line(units))).toEqual({ bad: 'no cost in field "use.units"' })
  })

  it('defaults to 1 in access logs', () => {
    expect(parseCost(`1.2.3.4 - - ${REST}`)).toEqual({ timeMs: T, key: '1.2.3.4' })
  })
})

describe('parsing a time', () => {
  it.each([
    ['2015-05-17T10:05:03Z', T],
    ['2015-05-17T10:05:03.123456Z', T + 123],
    ['2015-05-17 10:05:03,5', T + 500],
    ['2015-05-17T12:05:03+02:00', T],
    ['2015-05-17t12:05:03+0200', T],
    ['2015-05-17T10:05', T - 3000],
    ['2015-05-17', T - 36_303_000],
    [1431857103, T],
    [1431857103.25, T + 250],
    [1431857103000, T],
    ['1431857103.250', T + 250],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
  ])('accepts %j', (value, expected) => {
    expect(parseJsonTime(value)).toBe(expected)
  })

  it.each([
    '2015-02-30T00:00:00Z',
    '2015-13-01',
    '2015-05-17T24:00:00Z',
    '2015-05-17T10:60:00Z',
    '2015-05-17T10:05:03+25:00',
    '9999-12-31T23:59:59Z',
    '1969-12-31T23:59:59Z',
    '1970-01-01',
    0,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e300,
    1e15,
    '',
    'now',
    'NaN',
    '-5',
    null,
    true,
    {},
    [],
    undefined,
  ])('rejects %j', (value) => {
    expect(parseJsonTime(value)).toBeUndefined()
  })

  it('accepts every day of a year in access logs', () => {
    expect(parseAccessLogTime('29/Feb/2024:00:00:00 +0000')).toBe(Date.UTC(2024, 1, 29))
    expect(parseAccessLogTime('29/Feb/2023:00:00:00 +0000')).toBeUndefined()
    expect(parseAccessLogTime('00/Feb/2024:00:00:00 +0000')).toBeUndefined()
    expect(parseAccessLogTime('01/Fev/2024:00:00:00 +0000')).toBeUndefined()
  })
})

it('a key of up to 256 characters stays as it is, and a longer one ends in a hash', () => {
  const keyOf = (key: string) => parse(JSON.stringify({ time: T, ip: key }))
  const long = 'x'.repeat(256)
  expect(keyOf(long)).toMatchObject({ key: long })
  expect(keyOf(`${long}y`)).toMatchObject({ key: expect.stringMatching(/^x{64}~[\w-]{43}$/) })
  expect(keyOf(`${long}y`)).not.toEqual(keyOf(`${long}z`))
})

describe('parsing garbage', () => {
  const valid = [`1.2.3.4 - - ${REST} "-" "x"`, '{"time":"2015-05-17T10:05:03Z","ip":"1.2.3.4"}']
  const damaged = fc
    .tuple(fc.constantFrom(...valid), fc.nat(100), fc.nat(20), fc.string({ unit: anyCharacter }))
    .map(([text, at, length, inserted]) => text.slice(0, at) + inserted + text.slice(at + length))

  it('never throws, and returns a valid request or a reason', () => {
    const anything = fc.oneof(fc.string({ unit: anyCharacter, maxLength: 300 }), fc.json(), damaged)
    fc.assert(
      fc.property(
        anything,
        fc.constantFrom(...LOG_FORMATS),
        fc.constantFrom('ip', 'user', 'path', 'a.b', ''),
        (text, format, key) => {
          const parsed = lineParser({ format, key, timeField: 'time' })(text)
          if ('bad' in parsed) return parsed.bad !== ''
          return Number.isSafeInteger(parsed.timeMs) && parsed.timeMs > 0 && parsed.key !== ''
        },
      ),
      { numRuns: 5000 },
    )
  })

  it('rejects garbage of the maximum length, too', () => {
    const n = MAX_LINE_CHARS - 60
    const lines = [
      'a'.repeat(n),
      ' '.repeat(n),
      '"'.repeat(n),
      '[ '.repeat(n / 2),
      `{"a":${'['.repeat(n / 2)}`,
      '{'.repeat(n),
    ]
    for (const line of lines) expect(parse(line)).toHaveProperty('bad')
    const open = '1.2.3.4 - - [17/May/2015:10:05:03 +0000] "'
    for (const part of ['a', '\\', '\\"', ' ']) {
      expect(parse(open + part.repeat(n / part.length))).toEqual({ timeMs: T, key: '1.2.3.4' })
    }
    expect(parse('a'.repeat(MAX_LINE_CHARS + 1))).toEqual({ bad: `longer than ${MAX_LINE_CHARS} characters` })
  })
})
