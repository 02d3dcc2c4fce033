import { concurrency, fixedWindow, type Limit, slidingWindow, tokenBucket } from 'slidegate'
import type { Use } from '../steady/ours.ts'
import { denied, oneAtATime, steady, type Traffic } from '../steady/traffic.ts'

/** Several limits of different kinds in one limiter. */
export interface Mix extends Omit<Use, 'limits'> {
  readonly name: string
  limits(traffic: Pick<Traffic, 'limit' | 'windowMs'>): readonly Limit[]
}

const LIMIT = 100

const admitted = steady(LIMIT)
const deniedAllDay: Traffic = { ...denied(LIMIT), windowMs: 86_400_000 }

export const MIXED_TRAFFIC: readonly Traffic[] = [
  admitted,
  deniedAllDay,
  oneAtATime(admitted),
  oneAtATime(deniedAllDay),
]

/** The mixes. The usage of their first limit is checked. */
export const MIXES: readonly Mix[] = [
  {
    name: 'slidingWindow, tokenBucket, fixedWindow',
    limits: ({ limit, windowMs: window }) => [
      slidingWindow({ name: 'window', limit, window }),
      tokenBucket({ name: 'bucket', capacity: limit, refill: limit, interval: window }),
      fixedWindow({ name: 'fixed', limit, window }),
    ],
  },
  {
    name: 'slidingWindow with a zset, concurrency',
    limits: ({ limit, windowMs: window }) => [
      slidingWindow({ name: 'window', limit, window, log: 'zset' }),
      concurrency({ name: 'held', limit, ttl: window }),
    ],
  },
]
