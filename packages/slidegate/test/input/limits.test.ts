import { describe, expect, it } from 'vitest'
import { type CalendarWindowOptions, calendarWindow } from '../../src/calendar.ts'
import {
  type ConcurrencyOptions,
  concurrency,
  createLimiter,
  type Duration,
  distinct,
  fixedWindow,
  type LimitOptions,
  slidingCounter,
  slidingWindow,
  type TokenBucketOptions,
  tokenBucket,
} from '../../src/index.ts'
import { expectRefusal } from './refusal.ts'

type Options = Record<string, unknown>

const good: Options = { limit: 10, window: '1m' }
const kinds = { slidingWindow, fixedWindow, slidingCounter, calendarWindow } as const
const make = (kind: keyof typeof kinds, options: unknown) =>
  kinds[kind](options as LimitOptions & CalendarWindowOptions)

describe.each(['slidingWindow', 'fixedWindow', 'slidingCounter'] as const)('%s rejects', (kind) => {
  it.each([
    0,
    -1,
    -0,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 40 + 1,
    '10',
    10n,
    null,
    undefined,
    [10],
  ])('the limit %s', async (limit) => {
    const right = /must be an integer from 1 to 2\^40/
    await expectRefusal(() => make(kind, { ...good, limit }), { code: 'invalid_limit', value: limit, right })
  })

  it.each([
    '',
    'soon',
    '1',
    '1.5s',
    '-1s',
    '1w',
    '1 m',
    ' 1m',
    '1m\n',
    '1M',
    '1e3ms',
    '0x10ms',
    '9999999999999999d',
  ])("the window %j, which isn't a duration", async (window) => {
    const right = /must be whole milliseconds or a string such as '250ms'/
    await expectRefusal(() => make(kind, { ...good, window }), {
      code: 'invalid_duration',
      value: window,
      right,
    })
  })

  it.each([
    10.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    undefined,
    1000n,
    true,
    ['1m'],
    new String('1m'),
  ])("the window %s, which isn't a duration", async (window) => {
    const right = /must be whole milliseconds or a string such as '250ms'/
    await expectRefusal(() => make(kind, { ...good, window }), {
      code: 'invalid_duration',
      value: window,
      right,
    })
  })

  it.each([0, -60_000, 9, '9ms', '0s', '367d', 366 * 86_400_000 + 1])(
    'the window %s, shorter than 10 ms or longer than 366 days',
    async (window) => {
      const right = /must be from 10ms to 366d/
      await expectRefusal(() => make(kind, { ...good, window }), {
        code: 'invalid_duration',
        value: window,
        right,
      })
    },
  )

  it.each(['', 'two words', 'a:b', '{a}', 'é', 'x'.repeat(65), 'x\n', 5, {}, false])(
    'the name %j',
    async (name) => {
      const right = /must be 1 to 64 of A-Z a-z 0-9 \. _ -/
      await expectRefusal(() => make(kind, { ...good, name }), { code: 'invalid_name', value: name, right })
    },
  )

  it.each([1, 0, 'yes', null])('shadow %j', async (shadow) => {
    const right = /must be true or false/
    await expectRefusal(() => make(kind, { ...good, shadow }), {
      code: 'invalid_limit',
      value: shadow,
      right,
    })
  })

  it.each([undefined, null, 10, '10/1m', true])('%j in place of options', async (options) => {
    const right = /must be \{ limit, window \}/
    await expectRefusal(() => make(kind, options), { code: 'invalid_limit', value: options, right })
  })
})

describe('fixedWindow rejects', () => {
  const refuse = (options: Options, expected: Parameters<typeof expectRefusal>[1]) =>
    expectRefusal(() => make('fixedWindow', { limit: 10, ...options }), expected)

  it.each(['day', 'month', '', 'firstHit', null, 1, ['day']])('align %j', async (align) => {
    const right =
      /must be 'epoch' or 'first-hit'. For hours, .* use calendarWindow\(\) in slidegate\/calendar/
    await refuse({ align, window: '1m' }, { code: 'invalid_limit', value: align, right })
  })

  it('none of the valid windows with align: first-hit', async () => {
    const right = /it must be whole milliseconds or a string such as/
    await refuse({ align: 'first-hit' }, { code: 'invalid_duration', value: undefined, right })
  })
})

describe('calendarWindow rejects', () => {
  const refuse = (options: Options, expected: Parameters<typeof expectRefusal>[1]) =>
    expectRefusal(() => make('calendarWindow', { limit: 10, ...options }), expected)

  it.each(['year', 'Month', '', 'toString', null, 1, ['day'], undefined])('the unit %j', async (unit) => {
    const right = /must be 'hour', 'day', 'week' or 'month'/
    await refuse({ unit }, { code: 'invalid_duration', value: unit, right })
  })

  it.each([
    'Mars/Base',
    'Berlin',
    '',
    '+0530',
    '+24:00',
    '+05:30:15',
    'UTC+1',
    'Z',
    'Europe/Berlin\n',
    ' UTC',
    '2026-01-01T00:00Z',
    '2026-01-01T00:00[Europe/Berlin]',
    `Europe/${'x'.repeat(1000)}`,
    null,
    0,
    false,
    ['UTC'],
  ])('the time zone %j', async (timeZone) => {
    const right = /must be an IANA name such as 'Europe\/Berlin', or an offset such as '\+05:30'/
    await refuse({ unit: 'day', timeZone }, { code: 'invalid_duration', value: timeZone, right })
  })
})

describe.each([
  ['slidingWindow with log: zset', (options: Options) => make('slidingWindow', { ...options, log: 'zset' })],
  [
    'slidingWindow with log: stream',
    (options: Options) => make('slidingWindow', { ...options, log: 'stream' }),
  ],
  ['distinct', (options: Options) => distinct(options as unknown as LimitOptions)],
  [
    'concurrency',
    ({ window, ...rest }: Options) => concurrency({ ttl: window, ...rest } as unknown as ConcurrencyOptions),
  ],
] as const)('%s, which keeps entries, rejects', (_, declare) => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 10_001, 2 ** 40, '10', null, undefined])(
    'the limit %s',
    async (limit) => {
      const right = /must be (an integer from 1 to (10000|2\^40)|at most 10000; use log)/
      await expectRefusal(() => declare({ ...good, limit }), { code: 'invalid_limit', value: limit, right })
    },
  )

  it.each(['', 'soon', 9, '9ms', '367d', 10.5, null, undefined])('the window, or ttl, %s', async (window) => {
    const right = /must be (whole milliseconds or a string such as '250ms'|from 10ms to 366d)/
    await expectRefusal(() => declare({ ...good, window }), {
      code: 'invalid_duration',
      value: window,
      right,
    })
  })

  it.each(['', 'two words', 5])('the name %j', async (name) => {
    const right = /must be 1 to 64 of A-Z a-z 0-9 \. _ -/
    await expectRefusal(() => declare({ ...good, name }), { code: 'invalid_name', value: name, right })
  })

  it('none of the valid extremes', () => {
    expect(declare({ limit: 1, window: 10 })).toMatchObject({ name: '1-per-10ms', limit: 1, windowMs: 10 })
    const largest = declare({ limit: 10_000, window: '366d', name: 'x' })
    expect(largest).toMatchObject({ name: 'x', limit: 10_000, precisionMs: 1 })
  })
})

describe('the approximate option', () => {
  it.each(['', 'true', 0, 1, null])('rejects %j', async (approximate) => {
    const right = /must be true or false/
    const options = { ...good, approximate } as unknown as LimitOptions
    await expectRefusal(() => distinct(options), { code: 'invalid_limit', value: approximate, right })
  })

  it.each([0, 1_000_001, 1.5])('rejects a limit of %s', async (limit) => {
    const right = /must be an integer from 1 to 1000000/
    const refused = () => distinct({ ...good, limit, approximate: true } as unknown as LimitOptions)
    await expectRefusal(refused, { code: 'invalid_limit', value: limit, right })
  })

  it('allows limits a hundred times as large, in windows of any length, in steps of a tenth', () => {
    const largest = distinct({ limit: 1_000_000, window: '366d', approximate: true })
    expect([largest.limit, largest.precisionMs]).toEqual([1_000_000, 3_162_240_000])
    expect(distinct({ limit: 1, window: 11, approximate: true }).precisionMs).toBe(2)
  })
})

describe('the log option', () => {
  it.each(['', 'list', 'Zset', null, 1, true, ['zset']])('rejects %j', async (log) => {
    const right = /must be 'packed', 'zset' or 'stream'/
    await expectRefusal(() => make('slidingWindow', { ...good, log }), {
      code: 'invalid_limit',
      value: log,
      right,
    })
  })

  it.each(['zset', 'stream'])('allows only a precision of 1 ms with %s', async (log) => {
    for (const precision of [2, 0, 60_000, '10ms', 'fine', null]) {
      const right = /it must be 1 ms/
      const options = { ...good, log, precision }
      await expectRefusal(() => make('slidingWindow', options), {
        code: 'invalid_precision',
        value: precision,
        right,
      })
    }
    for (const precision of [1, '1ms', undefined]) {
      expect(make('slidingWindow', { ...good, log, precision }).precisionMs).toBe(1)
    }
  })

  it('accepts packed, the default', () => {
    expect(make('slidingWindow', { limit: 20_000, window: '1m', log: 'packed' }).limit).toBe(20_000)
  })
})

describe('the precision option', () => {
  it.each([
    0,
    -1,
    0.5,
    1.5,
    60_001,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '1.5ms',
    '',
    'fine',
    '-1ms',
    null,
    5n,
    {},
  ])("rejects %s, which isn't whole milliseconds up to the window", async (precision) => {
    await expectRefusal(() => make('slidingWindow', { ...good, precision }), {
      code: 'invalid_precision',
      value: precision,
      right: /must be whole milliseconds from 1 to 60000 \(the window\)/,
    })
  })

  it('rejects a value that needs too many records, and the message names one that fits', async () => {
    const options = { limit: 100_000, window: '1h' } as const
    await expectRefusal(() => slidingWindow({ ...options, precision: 50 }), {
      code: 'invalid_precision',
      value: 50,
      right: /65536 records; use 100 ms or more/,
    })
    expect(slidingWindow({ ...options, precision: 100 }).precisionMs).toBe(100)
    expect(slidingWindow(options).precisionMs).toBe(100)
  })

  it('defaults to the finest that keeps the log within its bound', () => {
    const finest = (limit: number, window: Duration) => slidingWindow({ limit, window }).precisionMs
    // Leaves room for a limit sixteen times as large.
    expect(finest(4096, '366d')).toBe(1)
    expect(finest(4097, '65535ms')).toBe(1)
    expect(finest(4097, '65536ms')).toBe(2)
    expect(finest(2 ** 40, '10ms')).toBe(1)
    expect(finest(2 ** 40, '1h')).toBe(100)
    expect(finest(2 ** 40, '366d')).toBe(500_000)
  })

  it('accepts the length of the window', () => {
    expect(slidingWindow({ limit: 1, window: '1m', precision: 60_000 }).precisionMs).toBe(60_000)
    expect(slidingWindow({ limit: 1, window: '1m', precision: '250ms' }).precisionMs).toBe(250)
  })
})

describe('tokenBucket rejects', () => {
  const good = { capacity: 10, refill: 5, interval: '1m' }
  const make = (options: unknown) => tokenBucket(options as TokenBucketOptions)

  describe.each(['capacity', 'refill'])('the %s', (option) => {
    it.each([
      0,
      -1,
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 40 + 1,
      '10',
      10n,
      null,
      undefined,
      [10],
    ])('%s', async (value) => {
      const right = new RegExp(`^the ${option} is .*; it must be an integer from 1 to 2\\^40`)
      await expectRefusal(() => make({ ...good, [option]: value }), { code: 'invalid_limit', value, right })
    })
  })

  it.each(['', '1', '1w', 1.5, Number.NaN, null, undefined, 1000n])('the interval %s', async (interval) => {
    const right = /^the interval is .*; it must be whole milliseconds or a string such as '250ms'/
    await expectRefusal(() => make({ ...good, interval }), {
      code: 'invalid_duration',
      value: interval,
      right,
    })
  })

  it.each([0, 9, '367d'])('the interval %s, shorter than 10 ms or longer than 366 days', async (interval) => {
    const right = /^the interval is .*; it must be from 10ms to 366d/
    await expectRefusal(() => make({ ...good, interval }), {
      code: 'invalid_duration',
      value: interval,
      right,
    })
  })

  it('a bucket that takes longer than 366 days to fill', async () => {
    const slow = { capacity: 3, refill: 1, interval: '183d' }
    const right = /so a bucket of 3 takes 549d to fill; it must fill within 366d/
    await expectRefusal(() => make(slow), { code: 'invalid_duration', value: '183d', right })
    expect(make({ ...slow, capacity: 2 }).windowMs).toBe(366 * 86_400_000)
    expect(make({ ...slow, refill: 2 }).windowMs).toBe(274.5 * 86_400_000)
  })

  it("a bucket that can't be counted exactly, and the message names the maximum", async () => {
    const large = { capacity: 200_000, refill: 200_003, interval: '366d' }
    const right = /an interval of 366d it must be an integer from 1 to 142418. Use a shorter interval/
    await expectRefusal(() => make(large), { code: 'invalid_limit', value: 200_000, right })
    expect(make({ ...large, capacity: 142_418 }).limit).toBe(142_418)
    expect(make({ ...large, interval: '183d' }).limit).toBe(200_000)
    // 2^52 parts, the maximum.
    expect(make({ capacity: 2 ** 40, refill: 2 ** 20 + 1, interval: 4096 }).limit).toBe(2 ** 40)
  })

  it.each(['two words', 5])('the name %j', async (name) => {
    const right = /must be 1 to 64 of A-Z a-z 0-9/
    await expectRefusal(() => make({ ...good, name }), { code: 'invalid_name', value: name, right })
  })

  it('shadow 1', async () => {
    const right = /must be true or false/
    await expectRefusal(() => make({ ...good, shadow: 1 }), { code: 'invalid_limit', value: 1, right })
  })

  it.each([undefined, null, 10, '10/1m'])('%j in place of options', async (options) => {
    const right = /must be \{ capacity, refill, interval \}/
    await expectRefusal(() => make(options), { code: 'invalid_limit', value: options, right })
  })
})

it('the type of a duration rejects other units, and accepts a variable with a cast', () => {
  const text: string = '1m'
  // @ts-expect-error: a unit is one of ms, s, m, h and d
  expect(() => slidingWindow({ limit: 1, window: '1 min' })).toThrow()
  // @ts-expect-error: there is no unit
  expect(() => slidingWindow({ limit: 1, window: '60' })).toThrow()
  // @ts-expect-error: a variable may contain any text
  expect(() => slidingWindow({ limit: 1, window: text })).not.toThrow()
  expect(() => slidingWindow({ limit: 1, window: text as Duration })).not.toThrow()
})

describe('the extremes are valid limits', () => {
  it.each<[LimitOptions, string]>([
    [{ limit: 1, window: 10 }, '1-per-10ms'],
    [{ limit: 2 ** 40, window: '366d' }, '1099511627776-per-366d'],
    [{ limit: 3, window: 90_000 }, '3-per-90s'],
    [{ limit: 3, window: '120m' }, '3-per-2h'],
    [{ limit: 3, window: '24h' }, '3-per-1d'],
    [{ limit: 3, window: 1001, name: 'x'.repeat(64) }, 'x'.repeat(64)],
  ])('%j', (options, name) => {
    for (const make of [slidingWindow, fixedWindow, slidingCounter]) expect(make(options).name).toBe(name)
  })
})

describe('two limits with the same name are rejected', () => {
  it.each([
    [
      'a default name',
      [slidingWindow({ limit: 5, window: '60s' }), slidingWindow({ limit: 5, window: '1m' })],
      '5-per-1m',
    ],
    [
      'of two kinds',
      [slidingWindow({ limit: 5, window: '1m' }), fixedWindow({ limit: 5, window: '1m' })],
      '5-per-1m',
    ],
    [
      'one of them a shadow',
      [
        slidingWindow({ limit: 5, window: '1m', name: 'x' }),
        slidingWindow({ limit: 6, window: '1h', name: 'x', shadow: true }),
      ],
      'x',
    ],
  ])('%s', async (_, limits, value) => {
    const right = /two limits are named .*; give one of them another name/
    await expectRefusal(() => createLimiter({ limits }), { code: 'duplicate_limit', value, right })
  })
})

it("a copy of a limit with other numbers, which weren't checked, is rejected", async () => {
  const copy = { ...slidingWindow({ limit: 10, window: '1m' }), limit: Number.NaN }
  await expectRefusal(() => createLimiter({ limits: [copy] }), {
    code: 'invalid_limit',
    value: copy,
    right: /slidingWindow\(\), fixedWindow\(\) and so on/,
  })
})
