import { calendarWindow } from '../../src/calendar.ts'
import {
  type ConsumeOptions,
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  type LimitChange,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'

/** One of a kind, to hold to what all kinds promise. */
export interface Sample {
  /** The function that makes it. */
  readonly by: string
  make(options: { readonly limit: number; readonly name?: string; readonly shadow?: boolean }): Limit
  /** What the nth request has to bring, where that is anything. */
  options?(n: number): ConsumeOptions
  /** Whether a request takes what it costs. */
  readonly isByCost: boolean
  readonly isRefundable: boolean
  /** Stored keys per log, if more than one. The log's own comes first in order. */
  readonly keys?: number
}

const usual = { isByCost: true, isRefundable: true }

/** All kinds, and their variants. Whatever makes a limit is here: the suites that go through them depend on it. */
export const SAMPLES: Readonly<Record<string, Sample>> = {
  'a sliding window': {
    by: 'slidingWindow',
    make: (options) => slidingWindow({ window: '10s', ...options }),
    ...usual,
  },
  'a coarse sliding window': {
    by: 'slidingWindow',
    make: (options) => slidingWindow({ window: '10s', precision: 50, ...options }),
    ...usual,
  },
  'a sliding window as a sorted set': {
    by: 'slidingWindow',
    make: (options) => slidingWindow({ window: '10s', log: 'zset', ...options }),
    ...usual,
  },
  'a sliding window as a stream': {
    by: 'slidingWindow',
    make: (options) => slidingWindow({ window: '10s', log: 'stream', ...options }),
    ...usual,
  },
  'a fixed window': {
    by: 'fixedWindow',
    make: (options) => fixedWindow({ window: '10s', ...options }),
    ...usual,
  },
  'a window of the calendar': {
    by: 'calendarWindow',
    make: (options) => calendarWindow({ unit: 'day', timeZone: 'America/Sao_Paulo', ...options }),
    ...usual,
  },
  'a window from the first hit': {
    by: 'fixedWindow',
    make: (options) => fixedWindow({ window: '10s', align: 'first-hit', ...options }),
    ...usual,
  },
  'a sliding counter': {
    by: 'slidingCounter',
    make: (options) => slidingCounter({ window: '10s', ...options }),
    ...usual,
  },
  'a token bucket': {
    by: 'tokenBucket',
    make: ({ limit, ...options }) => tokenBucket({ capacity: limit, refill: 3, interval: '10s', ...options }),
    ...usual,
  },
  'so many at the same time': {
    by: 'concurrency',
    make: (options) => concurrency({ ttl: '10s', ...options }),
    ...usual,
  },
  'so many different values': {
    by: 'distinct',
    make: (options) => distinct({ window: '10s', ...options }),
    options: (n) => ({ value: `value${n}` }),
    isByCost: false,
    isRefundable: false,
  },
  'about so many different values': {
    by: 'distinct',
    make: (options) => distinct({ window: '10s', approximate: true, ...options }),
    options: (n) => ({ value: `value${n}` }),
    isByCost: false,
    isRefundable: false,
    keys: 12,
  },
}

/** Another limit, as an override has it. */
export function changeTo({ by }: Sample, limit: number): LimitChange {
  return by === 'tokenBucket' ? { capacity: limit } : { limit }
}
