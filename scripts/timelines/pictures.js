import { concurrency, distinct, fixedWindow, slidingCounter, slidingWindow, tokenBucket } from 'slidegate'
import { calendarWindow } from 'slidegate/calendar'
import { drawBurst } from './burst.js'
import { drawCalendar } from './calendar.js'
import { drawComparison, saysWait } from './comparison.js'
import { drawCount } from './count.js'
import { drawHolders } from './holders.js'
import { ideas } from './ideas.js'
import { drawJobs } from './jobs.js'
import { every } from './play.js'
import { drawShaping } from './shaping.js'
import { drawTimeline } from './timeline.js'

/** Bursts before and after the boundary of a window, then two requests per second. */
const AT_BOUNDARIES = requestsAt(every(200, 8000, 10), every(200, 10_000, 10), every(500, 12_000, 32))

/** A window that starts with one request and ends in the middle of a burst. */
const FIRST_HITS = requestsAt([1000], every(200, 9000, 20), every(1000, 13_000, 13))

/** Two bursts as large as the limit. The second comes while the first still counts. */
const LAST_MOMENTS = requestsAt(every(0, 9999, 11), every(0, 19_998, 11), every(1000, 21_000, 9))

/** A burst larger than the bucket, then frequent requests, then a pause. */
const EMPTYING = requestsAt(every(0, 2000, 12), every(400, 2400, 30), every(0, 21_000, 8))

/** A burst, then two requests per second. The pattern repeats after a pause. */
const BURST_AND_ON = requestsAt(
  every(100, 1000, 12),
  every(500, 3000, 18),
  every(100, 19_000, 12),
  every(500, 21_000, 14),
)

/** Pages of eight requests each, and a batch of four per second. */
const PAGES_AND_A_BATCH = requestsAt(
  ...[every(50, 3000, 8), every(50, 15_000, 8)],
  ...[every(250, 30_000, 100), every(50, 58_000, 8), every(50, 85_000, 8)],
)

/** A fast loop, then one request per second. */
const A_LOOP = requestsAt(every(50, 2000, 60), every(1000, 6000, 6))

/** Exports that take half a second. From second ten on, they take twelve seconds. */
const EXPORTS = [
  ...every(700, 1000, 9).map((atMs) => ({ atMs, lastsMs: 500 })),
  ...every(1300, 10_000, 10).map((atMs) => ({ atMs, lastsMs: 12_000 })),
]

/** Requests with values. */
const VALUES = Array.from('abcdabdaedeaed', (value, i) => ({ atMs: 1000 + 1500 * i, value }))

/** 100 requests before the start of a minute and 100 after it. They come ten at a time. */
const AROUND_THE_BOUNDARY = requestsAt(
  ...[...every(600, 8700, 10), ...every(600, 15_900, 10)].map((atMs) => every(0, atMs, 10)),
)

/** Name -> function that draws an SVG. Files are in docs/limits, unless the name has a folder. */
export const pictures = {
  ...ideas,

  'boundary-burst': () =>
    drawBurst({
      title: '100 per minute: 100 requests just before 10:01, and 100 just after it',
      limits: {
        'fixed window': fixedWindow({ limit: 100, window: '1m' }),
        'sliding window': slidingWindow({ limit: 100, window: '1m' }),
      },
      requests: AROUND_THE_BOUNDARY,
      startMs: Date.parse('2026-01-01T10:00:45Z'),
      endMs: 75_000,
      boundaries: [15_000, 75_000],
      notes: [
        'A fixed window starts a new count at its boundary, so 200 requests pass within one minute.',
        'A sliding window counts each request for exactly one minute, so at most 100 pass in any minute.',
      ],
    }),

  comparison: () =>
    drawComparison({
      title: 'The same requests with each kind, 10 per 10 s',
      limits: {
        slidingWindow: slidingWindow({ limit: 10, window: '10s' }),
        fixedWindow: fixedWindow({ limit: 10, window: '10s' }),
        "fixedWindow, align: 'first-hit'": fixedWindow({ limit: 10, window: '10s', align: 'first-hit' }),
        slidingCounter: slidingCounter({ limit: 10, window: '10s' }),
        tokenBucket: tokenBucket({ capacity: 10, refill: 10, interval: '10s' }),
      },
      requests: AT_BOUNDARIES,
      windowMs: 10_000,
      endMs: 28_000,
      boundaries: [10_000, 20_000],
    }),

  'window-or-bucket': () =>
    drawComparison({
      title: '10 per 10 s as a window and as buckets: a burst, then two requests per second',
      limits: {
        "slidingWindow({ limit: 10, window: '10s' })": slidingWindow({ limit: 10, window: '10s' }),
        "tokenBucket({ capacity: 10, refill: 10, interval: '10s' })": tokenBucket({
          ...{ capacity: 10, refill: 10, interval: '10s' },
        }),
        "tokenBucket({ capacity: 3, refill: 10, interval: '10s' })": tokenBucket({
          ...{ capacity: 3, refill: 10, interval: '10s' },
        }),
      },
      requests: BURST_AND_ON,
      windowMs: 10_000,
      endMs: 28_000,
    }),

  'short-or-long': () =>
    drawComparison({
      title: 'One per second on average: pages of eight requests, and a batch over its limit',
      limits: {
        "slidingWindow({ limit: 5, window: '5s' })": slidingWindow({ limit: 5, window: '5s' }),
        "slidingWindow({ limit: 60, window: '60s' })": slidingWindow({ limit: 60, window: '60s' }),
      },
      requests: PAGES_AND_A_BATCH,
      endMs: 100_000,
      stepMs: 10_000,
      says: saysWait,
    }),

  'one-or-two': () =>
    drawComparison({
      title: 'A client that sends 20 requests per second for three seconds, then one per second',
      limits: {
        '30 per 30 s': slidingWindow({ limit: 30, window: '30s' }),
        '30 per 30 s, and 5 per 1 s': [
          slidingWindow({ limit: 30, window: '30s' }),
          slidingWindow({ limit: 5, window: '1s' }),
        ],
      },
      requests: A_LOOP,
      windowMs: 1000,
      endMs: 12_000,
      stepMs: 1000,
    }),

  'rate-or-at-once': () =>
    drawJobs({
      title: 'Exports: short ones at first, then long ones',
      limits: {
        "slidingWindow({ limit: 3, window: '5s' })": slidingWindow({ limit: 3, window: '5s' }),
        "concurrency({ limit: 3, ttl: '30s' })": concurrency({ limit: 3, ttl: '30s' }),
      },
      jobs: EXPORTS,
      most: 8,
      endMs: 28_000,
    }),

  'sliding-window': () =>
    drawTimeline({
      title: "slidingWindow({ limit: 10, window: '10s' })",
      limit: slidingWindow({ limit: 10, window: '10s' }),
      requests: AT_BOUNDARIES,
      windowMs: 10_000,
      endMs: 28_000,
      guarantee: 'Guarantee: never more than 10 within any 10 s, and every request that fits is admitted.',
    }),

  'fixed-window': () =>
    drawTimeline({
      title: "fixedWindow({ limit: 10, window: '10s' })",
      limit: fixedWindow({ limit: 10, window: '10s' }),
      requests: AT_BOUNDARIES,
      windowMs: 10_000,
      endMs: 28_000,
      boundaries: [10_000, 20_000],
      guarantee:
        'Guarantee: never more than 10 between two boundaries, and never more than 2 x 10 within any 10 s.',
    }),

  'first-hit': () =>
    drawTimeline({
      title: "fixedWindow({ limit: 10, window: '10s', align: 'first-hit' })",
      limit: fixedWindow({ limit: 10, window: '10s', align: 'first-hit' }),
      requests: FIRST_HITS,
      windowMs: 10_000,
      endMs: 28_000,
      boundaries: [1000, 11_000, 21_000],
      guarantee:
        'Guarantee: never more than 10 between two boundaries, and never more than 2 x 10 - 1 within any 10 s.',
    }),

  'sliding-counter': () =>
    drawTimeline({
      title: "slidingCounter({ limit: 10, window: '10s' })",
      limit: slidingCounter({ limit: 10, window: '10s' }),
      requests: LAST_MOMENTS,
      windowMs: 10_000,
      endMs: 30_000,
      boundaries: [10_000, 20_000],
      notes: { 9999: '10 at 9.999 s', 19998: '9 at 19.998 s' },
      guarantee: 'Guarantee: never more than 2 x 10 - 1 within any 10 s, and about 10 at an even rate.',
    }),

  'token-bucket': () =>
    drawTimeline({
      title: "tokenBucket({ capacity: 10, refill: 10, interval: '10s' })",
      limit: tokenBucket({ capacity: 10, refill: 10, interval: '10s' }),
      requests: EMPTYING,
      windowMs: 10_000,
      endMs: 28_000,
      used: 'tokens used',
      limitIs: 'capacity',
      guarantee:
        'Guarantee: never more than 10 + floor(T x 10 / 10 s) within any T. Here 10 + 9 within 10 s.',
    }),

  distinct: () =>
    drawTimeline({
      title: "distinct({ limit: 3, window: '10s' })",
      limit: distinct({ limit: 3, window: '10s' }),
      requests: VALUES,
      endMs: 22_000,
      used: 'counted values',
      guarantee:
        'Guarantee: never more than 3 different values within any 10 s. A value that is already counted is free.',
    }),

  calendar: () =>
    drawCalendar({
      title: "calendarWindow({ limit: 6, unit: 'day', timeZone: 'Europe/Berlin' })",
      limit: calendarWindow({ limit: 6, unit: 'day', timeZone: 'Europe/Berlin' }),
      timeZone: 'Europe/Berlin',
      from: '2026-03-28T00:00+01:00',
      days: 3,
      guarantee: 'Guarantee: never more than 6 from midnight to midnight, local time in Berlin.',
    }),

  concurrency: () =>
    drawHolders({
      title: "concurrency({ limit: 3, ttl: '6s' })",
      limit: concurrency({ limit: 3, ttl: '6s' }),
      ttlMs: 6000,
      endMs: 18_000,
      guarantee: 'Guarantee: never more than 3 slots held. A slot that is not renewed expires after 6 s.',
    }),

  count: () =>
    drawCount({
      title: "slidingCount({ period: '10s' })",
      period: '10s',
      additions: [
        ...every(1000, 1000, 5).map((atMs) => ({ atMs, n: 1 })),
        ...[
          { atMs: 6500, n: 4 },
          { atMs: 9000, n: 2 },
        ],
        ...every(1000, 14_000, 4).map((atMs) => ({ atMs, n: 1 })),
      ],
      endMs: 28_000,
      guarantee: 'Guarantee: exactly the additions of the last 10 s.',
    }),

  shaping: () =>
    drawShaping({
      title: "Waiting for tokenBucket({ capacity, refill: 1, interval: '1s' })",
      limits: [1, 4].map((capacity) => tokenBucket({ capacity, refill: 1, interval: '1s' })),
      arrivals: [...every(150, 1000, 8), 12_000, 12_300, ...every(100, 15_000, 4)],
      endMs: 20_000,
      guarantee: 'Requests are admitted in order: as many at once as the bucket holds, then one per second.',
    }),
}

/**
 * @param {readonly number[][]} times
 */
function requestsAt(...times) {
  return times.flat().map((atMs) => ({ atMs }))
}
