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

/** A sample of one kind of limit, for tests of what all kinds guarantee. */
export interface Sample {
  /** The name of the function that creates it. */
  readonly by: string
  make(options: { readonly limit: number; readonly name?: string; readonly shadow?: boolean }): Limit
  /** Options the nth request needs, if any. */
  options?(n: number): ConsumeOptions
  /** Whether a request is charged its cost. */
  readonly isByCost: boolean
  readonly isRefundable: boolean
  /** Stored keys per log, if more than one. The log's own key sorts first. */
  readonly keys?: number
}

const usual = { isByCost: true, isRefundable: true }

/**
 * All kinds and their variants. Add every function that creates a limit here: the suites that iterate over kinds rely
 * on it.
 */
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
  'a calendar window': {
    by: 'calendarWindow',
    make: (options) => calendarWindow({ unit: 'day', timeZone: 'America/Sao_Paulo', ...options }),
    ...usual,
  },
  'a first-hit window': {
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
  'a concurrency limit': {
    by: 'concurrency',
    make: (options) => concurrency({ ttl: '10s', ...options }),
    options: (n) => ({ requestId: `request${n}` }),
    ...usual,
  },
  'a distinct-value limit': {
    by: 'distinct',
    make: (options) => distinct({ window: '10s', ...options }),
    options: (n) => ({ value: `value${n}` }),
    isByCost: false,
    isRefundable: false,
  },
  'an approximate distinct-value limit': {
    by: 'distinct',
    make: (options) => distinct({ window: '10s', approximate: true, ...options }),
    options: (n) => ({ value: `value${n}` }),
    isByCost: false,
    isRefundable: false,
    keys: 12,
  },
}

/** Returns a change of the limit, in the form that overrides use. */
export function changeTo({ by }: Sample, limit: number): LimitChange {
  return by === 'tokenBucket' ? { capacity: limit } : { limit }
}
