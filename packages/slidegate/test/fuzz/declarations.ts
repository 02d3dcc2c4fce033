import fc from 'fast-check'
import { calendarWindow } from '../../src/calendar.ts'
import {
  concurrency,
  type Declaration,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type Given, mutated, nearly, numbers } from './hostile.ts'

/** A function that creates limits, and its options. */
export interface Declared {
  readonly by: keyof typeof FACTORIES
  readonly options: Given
}

const FACTORIES: Readonly<Record<Declaration['kind'], (options: never) => Limit>> = {
  ...{ slidingWindow, fixedWindow, calendarWindow, slidingCounter, tokenBucket, concurrency, distinct },
}

const MAX_MS = 366 * 86_400_000

/** Units within the valid range, mostly at its ends. */
const units = fc.oneof(
  fc.constantFrom(1, 2, 10, 9999, 10_000, 65_536, 2 ** 31, 2 ** 40 - 1, 2 ** 40),
  fc.integer({ min: 1, max: 20_000 }),
  fc.integer({ min: 1, max: 2 ** 40 }),
)

const lengths = fc.oneof(
  fc.constantFrom<number | string>(
    10,
    11,
    999,
    1000,
    60_000,
    MAX_MS - 1,
    MAX_MS,
    '10ms',
    '1s',
    '1m',
    '1h',
    '7d',
    '366d',
  ),
  fc.integer({ min: 10, max: MAX_MS }),
)

const durations = fc.oneof(
  { weight: 4, arbitrary: lengths },
  { weight: 2, arbitrary: mutated(fc.constantFrom('250ms', '10s', '1m', '7d', '366d')) },
  { weight: 1, arbitrary: numbers },
)

const names = fc.oneof(
  fc.constantFrom('a', 'constructor', '__proto__', '-', 'x'.repeat(64)),
  mutated(fc.constant('burst')),
)
const more = { name: names, shadow: fc.boolean() }
const zones = fc.oneof(
  fc.constantFrom(
    'UTC',
    'Europe/Berlin',
    'Pacific/Apia',
    'America/Sao_Paulo',
    'Asia/Kathmandu',
    '+05:45',
    '-23:59',
  ),
  mutated(fc.constantFrom('Europe/Berlin', 'UTC', 'Etc/GMT+12')),
)

const OPTIONS: Readonly<Record<Declared['by'], readonly [fc.Arbitrary<object>, readonly string[]]>> = {
  slidingWindow: [
    fc.record(
      {
        limit: units,
        window: durations,
        precision: durations,
        log: fc.constantFrom('packed', 'zset', 'stream'),
        ...more,
      },
      { requiredKeys: ['limit', 'window'] },
    ),
    ['limit', 'window', 'precision', 'log', 'name', 'shadow'],
  ],
  fixedWindow: [
    fc.record(
      { limit: units, window: durations, align: fc.constantFrom('epoch', 'first-hit'), ...more },
      { requiredKeys: ['limit', 'window'] },
    ),
    ['limit', 'window', 'align', 'name', 'shadow'],
  ],
  calendarWindow: [
    fc.record(
      { limit: units, unit: fc.constantFrom('hour', 'day', 'week', 'month'), timeZone: zones, ...more },
      { requiredKeys: ['limit', 'unit'] },
    ),
    ['limit', 'unit', 'timeZone', 'name', 'shadow'],
  ],
  slidingCounter: [
    fc.record({ limit: units, window: durations, ...more }, { requiredKeys: ['limit', 'window'] }),
    ['limit', 'window', 'name', 'shadow'],
  ],
  tokenBucket: [
    fc.record(
      { capacity: units, refill: units, interval: durations, ...more },
      { requiredKeys: ['capacity', 'refill', 'interval'] },
    ),
    ['capacity', 'refill', 'interval', 'limit', 'name', 'shadow'],
  ],
  concurrency: [
    fc.record({ limit: units, ttl: durations, ...more }, { requiredKeys: ['limit', 'ttl'] }),
    ['limit', 'ttl', 'name', 'shadow'],
  ],
  distinct: [
    fc.record({ limit: units, window: durations, ...more }, { requiredKeys: ['limit', 'window'] }),
    ['limit', 'window', 'name', 'shadow'],
  ],
}

/** A declaration that may be valid or not. */
export const declarations: fc.Arbitrary<Declared> = fc
  .constantFrom(...(Object.keys(OPTIONS) as Declared['by'][]))
  .chain((by) => fc.record({ by: fc.constant(by), options: nearly(...OPTIONS[by]) }))

export function declare({ by, options }: Declared): Limit {
  return FACTORIES[by](options.make() as never)
}

/** The same as JSON, perhaps from another version or program. */
export const jsonDeclarations: fc.Arbitrary<Given> = fc
  .constantFrom(...(Object.keys(OPTIONS) as Declared['by'][]))
  .chain((by) =>
    nearly(
      OPTIONS[by][0].map((options) => ({ kind: by, ...options })),
      [...OPTIONS[by][1], 'kind', '__proto__'],
    ),
  )
