import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { calendarWindow } from '../../src/calendar.ts'
import {
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { declarationOf, limitOf, limitsOf } from '../../src/limits/declaration.ts'

const units = fc.integer({ min: 1, max: 10_000 })
const large = fc.integer({ min: 1, max: 1_000_000 })
const window = fc.oneof(
  fc.integer({ min: 10, max: 86_400_000 }),
  fc.constantFrom('250ms', '10s', '1m', '1h', '7d'),
)
const named = {
  name: fc.option(fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/), { nil: undefined }),
  shadow: fc.option(fc.boolean(), { nil: undefined }),
}
const options = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record({ ...model, ...named }).map((made) => JSON.parse(JSON.stringify(made)))

const anyLimit: fc.Arbitrary<Limit> = fc.oneof(
  options({ limit: large, window }).map(slidingWindow),
  options({ limit: large, window: fc.constant('1h'), precision: fc.constantFrom(1000, '1m', 2500) }).map(
    slidingWindow,
  ),
  options({ limit: units, window, log: fc.constantFrom('zset', 'stream', 'packed') }).map(slidingWindow),
  options({ limit: large, window, align: fc.constantFrom('epoch', 'first-hit', undefined) }).map(fixedWindow),
  options({
    limit: large,
    unit: fc.constantFrom('hour', 'day', 'week', 'month'),
    timeZone: fc.constantFrom('Europe/Berlin', 'asia/kolkata', undefined),
  }).map(calendarWindow),
  options({ limit: large, window }).map(slidingCounter),
  options({ capacity: units, refill: units, interval: fc.integer({ min: 10, max: 60_000 }) }).map(
    tokenBucket,
  ),
  options({ limit: units, ttl: window }).map(concurrency),
  options({ limit: units, window }).map(distinct),
  options({ limit: units, window, approximate: fc.boolean() }).map(distinct),
)

/** Returns everything that affects the decisions of a limit. */
const factsOf = ({ kind, ...limit }: Limit) => ({
  ...limit,
  kind,
  logName: kind.logName({ kind, ...limit }),
  params: kind.params([{ kind, ...limit }]),
})

it('a limit survives a round trip through JSON', () => {
  fc.assert(
    fc.property(anyLimit, (limit) => {
      const declaration = declarationOf(limit)
      const again = limitOf(JSON.parse(JSON.stringify(declaration)))
      expect(factsOf(again)).toEqual(factsOf(limit))
      expect(declarationOf(again)).toEqual(declaration)
    }),
  )
})

it('a declaration contains every option', () => {
  const declared = [
    slidingWindow({ limit: 100, window: '1m' }),
    slidingWindow({ limit: 100, window: '1m', log: 'zset', name: 'x', shadow: true }),
    slidingWindow({ limit: 1_000_000, window: '1d' }),
    fixedWindow({ limit: 5, window: '1s' }),
    calendarWindow({ limit: 5, unit: 'month' }),
    slidingCounter({ limit: 5, window: '1s' }),
    tokenBucket({ capacity: 10, refill: 4, interval: '2s' }),
    concurrency({ limit: 2, ttl: '30s' }),
    distinct({ limit: 2, window: '1h' }),
    distinct({ limit: 20_000, window: '1h', approximate: true }),
  ].map(declarationOf)
  expect(declared).toEqual([
    {
      kind: 'slidingWindow',
      limit: 100,
      window: 60_000,
      log: 'packed',
      precision: 1,
      name: '100-per-1m',
      shadow: false,
    },
    { kind: 'slidingWindow', limit: 100, window: 60_000, log: 'zset', name: 'x', shadow: true },
    {
      kind: 'slidingWindow',
      limit: 1_000_000,
      window: 86_400_000,
      log: 'packed',
      precision: 2000,
      name: '1000000-per-1d',
      shadow: false,
    },
    { kind: 'fixedWindow', limit: 5, window: 1000, align: 'epoch', name: '5-per-1s', shadow: false },
    { kind: 'calendarWindow', limit: 5, unit: 'month', timeZone: 'UTC', name: '5-per-month', shadow: false },
    { kind: 'slidingCounter', limit: 5, window: 1000, name: '5-per-1s', shadow: false },
    { kind: 'tokenBucket', capacity: 10, refill: 4, interval: 2000, name: '4-per-2s', shadow: false },
    { kind: 'concurrency', limit: 2, ttl: 30_000, name: '2-per-30s', shadow: false },
    { kind: 'distinct', limit: 2, window: 3_600_000, name: '2-per-1h', shadow: false },
    {
      kind: 'distinct',
      limit: 20_000,
      window: 3_600_000,
      approximate: true,
      name: '20000-per-1h',
      shadow: false,
    },
  ])
})

it('text declares sliding windows', () => {
  expect(limitOf('100/1m')).toEqual(slidingWindow({ limit: 100, window: '1m' }))
  expect(limitsOf('10/1s, hourly=600/1h')).toEqual([
    slidingWindow({ limit: 10, window: '1s' }),
    slidingWindow({ limit: 600, window: '1h', name: 'hourly' }),
  ])
})

it.each([
  ['', 'invalid_limit', "the limit is \"\"; it must be text such as '100/1m' or 'login=100/1m'"],
  ['100', 'invalid_limit', 'the limit is "100"'],
  ['10/1s,', 'invalid_limit', 'the limit is ""'],
  ['10/1s 600/1h', 'invalid_limit', 'the limit is "10/1s 600/1h"'],
  ['0/1s', 'invalid_limit', 'the limit is 0'],
  ['10/1y', 'invalid_duration', 'the window is "1y"'],
  ['a b=10/1s', 'invalid_name', 'the name is "a b"'],
  ['=10/1s', 'invalid_name', 'the name is ""'],
  [undefined, 'invalid_limit', "the text is undefined; it must be text such as '10/1s, 600/1h'"],
])('limitsOf rejects %j', (text, code, message) => {
  expect(() => limitsOf(text as string)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  )
})

describe('limitOf rejects invalid declarations like the function that creates the limit', () => {
  it.each([
    [undefined, 'invalid_limit'],
    [null, 'invalid_limit'],
    ['slidingWindow', 'invalid_limit'],
    [[], 'invalid_limit'],
    [{}, 'invalid_limit'],
    [{ kind: 'leakyBucket', limit: 1, window: 1000 }, 'invalid_limit'],
    [{ kind: 'constructor', limit: 1, window: 1000 }, 'invalid_limit'],
    [{ kind: 'slidingWindow', window: 1000 }, 'invalid_limit'],
    [{ kind: 'slidingWindow', limit: '5', window: 1000 }, 'invalid_limit'],
    [{ kind: 'slidingWindow', limit: 5, window: 1 }, 'invalid_duration'],
    [{ kind: 'slidingWindow', limit: 5, window: 1000, precision: 0 }, 'invalid_precision'],
    [{ kind: 'calendarWindow', limit: 5, unit: 'month', timeZone: 'Mars/Olympus' }, 'invalid_duration'],
    [{ kind: 'tokenBucket', capacity: 5, refill: 0, interval: 1000 }, 'invalid_limit'],
    [{ kind: 'concurrency', limit: 5, ttl: 1000, name: 'no spaces' }, 'invalid_name'],
    [{ kind: 'distinct', limit: 5, window: 1000, shadow: 1 }, 'invalid_limit'],
    [{ kind: 'distinct', limit: 5, window: 1000, approximate: 1 }, 'invalid_limit'],
  ])('%j', (declaration, code) => {
    expect(() => limitOf(declaration)).toThrow(expect.objectContaining({ code }))
  })
})

it('declarationOf rejects a limit that was created in another way', () => {
  const limit = slidingWindow({ limit: 1, window: 1000 })
  for (const other of [undefined, 5, {}, { ...limit, limit: 2 }]) {
    expect(() => declarationOf(other as Limit)).toThrow(expect.objectContaining({ code: 'invalid_limit' }))
  }
})
