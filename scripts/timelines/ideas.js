import { fixedWindow, slidingCounter, slidingWindow, tokenBucket } from 'slidegate'
import { calendarWindow } from 'slidegate/calendar'
import { drawBatches } from './batches.js'
import { drawComparison } from './comparison.js'
import { drawLeases } from './leases.js'
import { every } from './play.js'
import { drawRace } from './race.js'
import { drawRunningTotals } from './running-totals.js'
import { drawStampede } from './stampede.js'
import { drawStoredBytes } from './stored-bytes.js'
import { drawTags } from './tags.js'
import { drawTwoPasses } from './two-passes.js'

const at = (/** @type {number[]} */ ...times) => times.map((atMs) => ({ atMs }))

/** On either side of a window's boundary, as many requests as the limit admits. */
const AROUND_AN_EDGE = at(...every(0, 9600, 10), ...every(0, 10_000, 10))

/** A request that opens a window. Then as many as the limit admits at its end, and again at the start of the next. */
const FROM_THE_FIRST = at(1000, ...every(0, 10_600, 9), ...every(0, 11_000, 10))

/** Two bursts as large as the limit. The second comes while the first still counts. */
const AT_LAST_MOMENTS = at(...every(0, 9999, 10), ...every(0, 19_998, 10))

/** Takes all tokens of a bucket, and then each refilled one. */
const EMPTYING = at(...every(0, 5000, 10), ...every(1000, 6000, 9))

/** The pictures of docs/ideas. */
export const ideas = {
  'ideas/worst-cases': () =>
    drawComparison({
      title: '10 per 10 s, each kind with its worst-case requests',
      limits: {
        fixedWindow: fixedWindow({ limit: 10, window: '10s' }),
        "fixedWindow, align: 'first-hit'": fixedWindow({ limit: 10, window: '10s', align: 'first-hit' }),
        slidingCounter: slidingCounter({ limit: 10, window: '10s' }),
        tokenBucket: tokenBucket({ capacity: 10, refill: 10, interval: '10s' }),
        'slidingWindow, all requests': slidingWindow({ limit: 10, window: '10s' }),
      },
      requests: [...AROUND_AN_EDGE, ...FROM_THE_FIRST, ...AT_LAST_MOMENTS, ...EMPTYING].sort(
        (a, b) => a.atMs - b.atMs,
      ),
      requestsOf: {
        fixedWindow: AROUND_AN_EDGE,
        "fixedWindow, align: 'first-hit'": FROM_THE_FIRST,
        slidingCounter: AT_LAST_MOMENTS,
        tokenBucket: EMPTYING,
      },
      windowMs: 10_000,
      endMs: 28_000,
    }),

  'ideas/race': () =>
    drawRace({
      title: 'A limit of 10 with one place left, and two callers at the same time',
      notes: [
        'Left: both callers read 9, so both are admitted, which makes 11.',
        'Right: the script counts and adds in one step. The second caller is denied and gets the exact wait.',
      ],
    }),

  'ideas/running-totals': () =>
    drawRunningTotals({
      title: 'A log of a sliding window: running totals',
      limit: slidingWindow({ limit: 10, window: '10s' }),
      requests: [
        { atMs: 500, cost: 2 },
        { atMs: 1500 },
        { atMs: 3000, cost: 3 },
        { atMs: 5000, cost: 2 },
        { atMs: 8000, cost: 2 },
        { atMs: 11_000, cost: 2 },
        { atMs: 12_000, cost: 4 },
      ],
      endMs: 18_000,
    }),

  'ideas/stampede': () =>
    drawStampede({
      title: '500 callers of 60 requests per hour, each limited to 20 per hour',
      rows: {
        "fixedWindow({ limit: 20, window: '1h' })": { limit: fixedWindow({ limit: 20, window: '1h' }) },
        "calendarWindow({ limit: 20, unit: 'hour' })": { limit: calendarWindow({ limit: 20, unit: 'hour' }) },
        "calendarWindow, retryJitter: '20m'": {
          limit: calendarWindow({ limit: 20, unit: 'hour' }),
          jitterMs: 1_200_000,
        },
        "slidingWindow({ limit: 20, window: '1h' })": { limit: slidingWindow({ limit: 20, window: '1h' }) },
      },
      callers: 500,
      gapMs: 60_000,
      hours: 5,
      notes: [
        'Denied callers return exactly after retryAfterMs. With fixed and calendar windows, that is the same moment for all.',
        'In a sliding window, each caller has a different moment.',
      ],
    }),

  'ideas/stored-bytes': () =>
    drawStoredBytes({
      title: 'A log in Redis',
      limit: slidingWindow({ limit: 30, window: '20s' }),
      requests: at(...every(700, 700, 28), ...every(1500, 21_000, 9)),
    }),

  'ideas/two-passes': () =>
    drawTwoPasses({
      title: '3 per 2 s and 8 per 12 s in one limiter',
      limits: [slidingWindow({ limit: 3, window: '2s' }), slidingWindow({ limit: 8, window: '12s' })],
      requests: [...every(200, 1000, 8), ...every(200, 5000, 8), ...every(400, 9000, 12)],
      endMs: 20_000,
      guarantee: 'If one limit denies, no curve rises: a denial charges no limit.',
    }),

  'ideas/batches': () =>
    drawBatches({
      title: 'Requests and the calls that carry them, at 8 ms per call',
      limit: slidingWindow({ limit: 1000, window: '1m' }),
      requests: [
        { atMs: 2, key: 'first' },
        { atMs: 14, key: 'second' },
        { atMs: 17, key: 'third' },
        ...every(1, 30, 30).flatMap((atMs) =>
          ['a', 'b', 'c', 'hot', 'hot', 'hot'].map((key) => ({
            atMs,
            key: key === 'hot' ? key : key + atMs,
          })),
        ),
      ],
      tripMs: 8,
      endMs: 80,
      notes: [
        'Each call shows its number of requests. "n in m": n requests were joined into m ops.',
        'Without load, a request is sent immediately. While two calls are in flight, requests collect for the next call.',
      ],
    }),

  'ideas/leases': () =>
    drawLeases({
      title: "withLeases(store, { leaseMs: 500 }), slidingWindow({ limit: 60, window: '5s' })",
      limit: slidingWindow({ limit: 60, window: '5s' }),
      leaseMs: 500,
      leasing: every(50, 500, 190),
      beside: every(100, 4000, 60),
      endMs: 10_000,
      notes: [
        'Green: admitted, red: denied. A line leads from a charge to the request that spent it, at most 500 ms later.',
        'From 3.4 s to 6 s all requests are denied. Leases count for 500 ms longer, so the first charges expire after 5.5 s.',
      ],
    }),

  'ideas/tags': () =>
    drawTags({
      title: '10,000 callers on a Cluster',
      callers: Array.from({ length: 10_000 }, (_, i) => `user:${i}`),
      notes: [
        'Each bar is a tag, with its number of callers. All keys of a tag are in one slot, so one call reaches them.',
      ],
    }),
}
