import { describe, expect, it, test } from 'vitest'
import { TopCallers } from '../src/counts/callers.ts'
import { parseRedisUrl } from '../src/decider.ts'
import { parseLimit } from '../src/limit-option.ts'
import {
  alignColumns,
  formatDuration,
  formatPercent,
  parseDuration,
  printable,
  printableJson,
} from '../src/text.ts'

describe('--limit', () => {
  it('accepts a count and a window, with or without a name', () => {
    expect(parseLimit('100/1m')).toMatchObject({ name: '100-per-1m', limit: 100, windowMs: 60_000 })
    expect(parseLimit('login=5/90s')).toMatchObject({ name: 'login', limit: 5, windowMs: 90_000 })
  })

  it.each([
    '',
    '100',
    '/1m',
    '100/',
    '=100/1m',
    '-1/1m',
    '1.5/1m',
    '1e3/1m',
    'NaN/1m',
    '0/1m',
    '100/0s',
    '100/1x',
    '100/1ms',
    '100/999d',
    'a b=1/1m',
    '9999999999999999/1m',
  ])('rejects %j and shows the correct form', (text) => {
    expect(() => parseLimit(text)).toThrow(
      expect.objectContaining({ name: 'UsageError', message: expect.stringContaining(text) }),
    )
  })
})

test('--store accepts Redis URLs only', () => {
  expect(parseRedisUrl('rediss://user:word@example.com:6380/1').port).toBe('6380')
  for (const text of ['', 'localhost', 'localhost:6379', 'http://localhost', 'redis://', 'redis:///tmp/x']) {
    expect(() => parseRedisUrl(text), text).toThrow('use a value such as redis://127.0.0.1:6379')
  }
  expect(() => parseRedisUrl('http://user:secret@localhost')).not.toThrow('secret')
})

test('durations are parsed and formatted', () => {
  expect(['0', '250ms', '10s', '5m', '1h', '7d'].map(parseDuration)).toEqual([
    0, 250, 10_000, 300_000, 3_600_000, 604_800_000,
  ])
  for (const text of ['', '5', '-5m', '1.5m', 'm', '5 m', '5M'])
    expect(parseDuration(text), text).toBeUndefined()
  expect([0, 1, 60_000, 90_000, 302_459_000].map(formatDuration)).toEqual([
    '0s',
    '1ms',
    '1m',
    '1m 30s',
    '3d 12h',
  ])
})

describe('the most denied callers', () => {
  it('come first, and ties are sorted by key', () => {
    const callers = new TopCallers()
    for (const key of ['b', 'c', 'a', 'c']) callers.add(key)
    expect(callers.top(2)).toEqual([
      { key: 'c', denied: 2 },
      { key: 'a', denied: 1 },
    ])
  })

  it('stay in the list among very many others', () => {
    const callers = new TopCallers(100)
    for (let i = 0; i < 10_000; i++) {
      callers.add(`once ${i}`)
      if (i % 10 === 0) callers.add('often')
    }
    expect(callers.top(1)).toEqual([{ key: 'often', denied: 1000 }])
  })
})

describe('text from a log', () => {
  it('loses its control characters before it is printed', () => {
    expect(printable('a\u001b[31m\u0007\r\n\u009b\u202e\u2028z')).toBe(
      'a\\u001b[31m\\u0007\\u000d\\u000a\\u009b\\u202e\\u2028z',
    )
    expect(printable('x'.repeat(500), 10)).toBe('xxxxxxxxxx...')
  })

  it('shows invisible characters as escapes', () => {
    expect(printable('a\u3164\u{e0002}b\u180f')).toBe('a\\u3164\\udb40\\udc02b\\u180f')
  })

  it('keeps its value in JSON', () => {
    const value = { key: 'a\u009b\u202e\u{e0001}"\\\n', list: [1] }
    const json = printableJson(value)
    expect(json).toMatch(/^[\n\x20-\x7e]*$/)
    expect(JSON.parse(json)).toEqual(value)
  })
})

test('numbers are right-aligned in columns', () => {
  expect(
    alignColumns([
      ['a', '1'],
      ['bbb', '22', 'x'],
    ]),
  ).toEqual(['  a     1', '  bbb  22  x'])
  expect([formatPercent(1, 3), formatPercent(200, 100), formatPercent(0, 0)]).toEqual(['33.3%', '200%', '-'])
})
