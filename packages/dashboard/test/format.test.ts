import { describe, expect, it } from 'vitest'
import { bytes, compact, decimal, duration, limitInWords, rate, share } from '../src/format.ts'
import { decodeParameter, keyHref } from '../src/routes.ts'

describe('formatted text', () => {
  it.each([
    [duration(0), '0 ms'],
    [duration(0.0421), '42.1 µs'],
    [duration(1.234), '1.23 ms'],
    [duration(250), '250 ms'],
    [duration(1500), '1.5 s'],
    [duration(90_000), '1 min 30 s'],
    [duration(3_600_000), '1 h'],
    [duration(90_061_000), '1 d 1 h'],
    [duration(null), '–'],
    [rate(0.25), '0.25/s'],
    [rate(12_345), '12.3K/s'],
    [compact(9999), '9,999'],
    [decimal(12.345), '12.3'],
    [share(0), '0%'],
    [share(0.0001), '<0.1%'],
    [share(0.123), '12%'],
    [share(0.9999), '>99.9%'],
    [share(1), '100%'],
    [bytes(1536), '1.5 KiB'],
    [limitInWords({ kind: 'slidingWindow', limit: 10, window: 60_000 }), '10 in any 1 min'],
    [limitInWords({ kind: 'slidingWindow', limit: 10, window: '5m' }), '10 in any 5 min'],
    [limitInWords({ kind: 'calendarWindow', limit: 10, unit: 'day' }), '10 per day, calendar window'],
    [
      limitInWords({ kind: 'tokenBucket', capacity: 5, refill: 1, interval: 1000 }),
      'bucket of 5, refilled by 1 per 1 s',
    ],
  ])('%s is %s', (written, right) => expect(written).toBe(right))

  it.each(['a/b', '100%', '%2F', '?x=1#y', '<b>', 'ü\u{1F600}', 'a b'])(
    'an address preserves the key %s',
    (key) => {
      expect(decodeParameter(keyHref('api', key).split('/').at(-1)!)).toBe(key)
    },
  )

  it('an address without encoding stays as it is', () => {
    expect(decodeParameter('100%')).toBe('100%')
  })
})
