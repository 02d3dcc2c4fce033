import {
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from 'slidegate'
import { calendarWindow } from 'slidegate/calendar'
import {
  type CommonScript,
  DISTINCT_VALUES,
  FIXED_WINDOW,
  GCRA,
  SEMAPHORE,
  STREAMS_LOG,
  TWO_WINDOWS,
  ZSET_LOG,
} from '../redis/scripts.ts'
import type { Use } from '../steady/ours.ts'
import { denied, steady, type Traffic } from '../steady/traffic.ts'

const LIMIT = 100
const DAY_MS = 86_400_000

/** A kind of limit, its traffic, and the best common script for it. */
export interface KindUse extends Omit<Use, 'limits'> {
  readonly name: string
  limit(traffic: Pick<Traffic, 'limit' | 'windowMs'>): Limit
  readonly script: CommonScript
  readonly traffics: readonly Traffic[]
  /** Whether steady traffic keeps the limit full. */
  readonly staysFull: boolean
}

const evenly = steady(LIMIT)
/** Windows that don't end during the measurement. */
const allDay: Traffic = { ...evenly, windowMs: DAY_MS }
const deniedAllDay: Traffic = { ...denied(LIMIT), windowMs: DAY_MS }

export const KINDS: readonly KindUse[] = [
  {
    name: 'tokenBucket',
    limit: ({ limit, windowMs }) => tokenBucket({ capacity: limit, refill: limit, interval: windowMs }),
    script: GCRA,
    // The first request takes nearly all tokens. After that, about one token is refilled between two requests.
    traffics: [{ ...evenly, apartMs: 0, charges: LIMIT - 6 }, deniedAllDay],
    staysFull: true,
  },
  {
    name: 'slidingCounter',
    limit: ({ limit, windowMs }) => slidingCounter({ limit, window: windowMs }),
    script: TWO_WINDOWS,
    traffics: [{ ...evenly, charges: (2 * evenly.windowMs) / evenly.apartMs }, deniedAllDay],
    staysFull: true,
  },
  {
    name: 'slidingWindow, zset',
    limit: ({ limit, windowMs }) => slidingWindow({ limit, window: windowMs, log: 'zset' }),
    script: ZSET_LOG,
    traffics: [evenly, deniedAllDay],
    staysFull: true,
  },
  {
    name: 'slidingWindow, stream',
    limit: ({ limit, windowMs }) => slidingWindow({ limit, window: windowMs, log: 'stream' }),
    script: STREAMS_LOG,
    traffics: [evenly, deniedAllDay],
    staysFull: true,
  },
  {
    name: 'fixedWindow',
    limit: ({ limit, windowMs }) => fixedWindow({ limit, window: windowMs }),
    script: FIXED_WINDOW,
    traffics: [evenly, deniedAllDay],
    staysFull: false,
  },
  {
    name: 'fixedWindow, one day',
    limit: ({ limit }) => calendarWindow({ limit, unit: 'day' }),
    script: FIXED_WINDOW,
    traffics: [{ ...allDay, limit: 1000 }, deniedAllDay],
    staysFull: false,
  },
  {
    name: 'concurrency, held and released',
    limit: ({ limit, windowMs }) => concurrency({ limit, ttl: windowMs }),
    isHeld: true,
    script: SEMAPHORE,
    traffics: [allDay, deniedAllDay],
    staysFull: true,
  },
  {
    name: 'distinct, new values',
    limit: ({ limit, windowMs }) => distinct({ limit, window: windowMs }),
    values: 'new',
    script: DISTINCT_VALUES,
    traffics: [evenly, deniedAllDay],
    staysFull: true,
  },
  {
    name: 'distinct, known values',
    limit: ({ limit, windowMs }) => distinct({ limit, window: windowMs }),
    values: 'known',
    script: DISTINCT_VALUES,
    traffics: [allDay],
    staysFull: true,
  },
]
