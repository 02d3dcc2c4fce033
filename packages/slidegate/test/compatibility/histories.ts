import type { Call, Declared, Json, Step } from './player.ts'

/** Operations of several processes on an empty Redis, then those of a later process. All of it is plain JSON. */
export interface History {
  readonly what: string
  readonly limiters: Readonly<Record<string, Declared>>
  readonly did: readonly Step[]
  readonly later: readonly Step[]
}

/** 2023-11-14T22:13:20Z, a Tuesday. */
export const START_MS = 1_700_000_000_000

const after = (afterMs: number): Step => ({ afterMs })
const call = (name: string, ...args: Json[]): Call => ({ call: name, args })
const by = (limiter: string, each: Call): Call => ({ by: limiter, ...each })
const times = (count: number, everyMs: number, each: Call): Call => ({ ...each, times: count, everyMs })
const as = (name: string, each: Call): Call => ({ ...each, as: name })
const consume = (key: Json, cost = 1): Call => call('consume', key, { cost })

type Declaration = Readonly<Record<string, Json>>

const one = (...limits: Declaration[]) => ({ limiter: { options: { name: 'api', limits } } })
const sliding = (limit: number, window: Json, more: Declaration = {}): Declaration => {
  return { kind: 'slidingWindow', limit, window, ...more }
}

/**
 * Requests that reveal the state of a key, several times over a window. Single requests come first, then an explanation, then as
 * many as fit.
 */
const probes = (key: string, windowMs: number, most = 1): readonly Step[] => [
  consume(key, most),
  call('peek', key),
  call('peek', key, { cost: most }),
  call('explain', key, { charges: true }),
  call('drain', key, { cost: most }),
  ...[0.25, 0.5, 0.2, 0.3].flatMap((part) => [after(Math.round(part * windowMs)), call('drain', key)]),
]

const SECRET = 'a secret that is the same everywhere'
const HOUR = 3_600_000

/** Requests with values that are known, new, or no longer counted. */
const LATER_VALUES: readonly Step[] = [
  call('list', 'u'),
  call('explain', 'u'),
  call('consume', 'u', { value: 'z'.repeat(200) }),
  call('consume', 'u', { value: 'new' }),
  call('consume', 'u', { value: 'one more' }),
  after(59_000),
  call('consume', 'u', { value: 'x' }),
  after(1000),
  call('consume', 'u', { value: 'one more' }),
]

/** Every kind, with every format of its log. */
const KINDS: Readonly<Record<string, History>> = {
  'sliding-window': {
    what: 'a sliding window with a few requests',
    limiters: one(sliding(9, '1h')),
    did: [consume('u'), after(1000), consume('u', 2), after(1000), consume('u')],
    later: probes('u', HOUR),
  },
  'sliding-window-ring': {
    what: 'a log with records in all its parts',
    limiters: one(sliding(20, '1h')),
    did: [times(16, 1000, consume('u'))],
    later: [call('peek', 'u', { cost: 10 }), call('peek', 'u', { cost: 18 }), ...probes('u', HOUR)],
  },
  'sliding-window-turned': {
    what: 'a ring that has wrapped around and grown',
    limiters: one(sliding(200, '10s')),
    did: [times(230, 70, consume('u')), after(3000), times(90, 25, consume('u', 2))],
    later: probes('u', 10_000, 3),
  },
  'sliding-window-large': {
    what: 'a large ring after a refund',
    limiters: one(sliding(2000, '1m')),
    did: [
      times(300, 3, consume('u', 2)),
      as('late', consume('u', 7)),
      times(200, 5, consume('u')),
      call('refund', 'u', '$late', 3),
    ],
    later: probes('u', 60_000, 100),
  },
  'sliding-window-empty-ring': {
    what: 'a ring that is kept although its log has run empty',
    limiters: one(sliding(200, '10s')),
    did: [times(100, 10, consume('u')), after(11_000), times(3, 1, consume('u'))],
    later: probes('u', 10_000, 20),
  },
  'sliding-window-coarse': {
    what: 'sliding windows with different precisions',
    limiters: one(sliding(9, '10s', { precision: 50 }), sliding(30, '1h', { precision: '1s', name: 'hour' })),
    did: [times(4, 333, consume('u')), after(20_000), times(5, 777, consume('u'))],
    later: probes('u', 10_000),
  },
  'sliding-windows-shared': {
    what: 'windows of several lengths on one log, and a shadow limit with its own log',
    limiters: one(
      sliding(6, '10s', { name: 'short' }),
      sliding(15, '1m', { name: 'long' }),
      sliding(3, '10s', { name: 'trial', shadow: true }),
    ),
    did: [times(7, 1900, consume('u')), after(5000), times(4, 10, consume('u', 2))],
    later: probes('u', 60_000),
  },
  'sliding-window-leased': {
    what: 'leased units, and units charged after them',
    limiters: one(sliding(9, '1h')),
    did: [call('lease', 'u', 4, 60_000), after(1500), consume('u')],
    later: probes('u', HOUR),
  },
  'sliding-window-totals': {
    what: 'the largest total, and a total that restarted at zero',
    limiters: one(sliding(2 ** 40, '1h')),
    did: [
      times(100, 10_000, call('charge', 'before', 2 ** 40)),
      times(150, 10_000, call('charge', 'after', 2 ** 40)),
      consume('after', 5),
    ],
    later: [
      ...['before', 'after'].map((key) => call('explain', key)),
      after(HOUR - 60_000),
      ...['before', 'after'].map((key) => call('explain', key)),
      after(50_000),
      consume('after', 2 ** 39),
      consume('before', 2 ** 39),
    ],
  },
  'sliding-window-clock-back': {
    what: 'a clock that was set back by less than a second, and by an hour',
    limiters: one(sliding(9, '1h')),
    did: [
      ...['little', 'much'].flatMap((key) => [consume(key, 2), after(1000), consume(key, 3), after(200)]),
      after(-1500),
      consume('little'),
      after(-HOUR),
      consume('much'),
    ],
    later: [...probes('much', HOUR), ...probes('little', HOUR)],
  },
  'sliding-window-zset': {
    what: 'a sorted set of requests, some with several units, one with a long id',
    limiters: one(sliding(9, '1m', { log: 'zset' })),
    did: [
      call('consume', 'u', { requestId: 'a', cost: 3 }),
      after(1000),
      call('consume', 'u', { requestId: 'b' }),
      call('consume', 'u', { requestId: 'an id with spaces' }),
      as('last', call('consume', 'u', { requestId: 'c', cost: 2 })),
      after(1000),
      call('consume', 'u', { requestId: 'd' }),
      call('refund', 'u', '$last'),
    ],
    later: [
      call('list', 'u'),
      call('consume', 'u', { requestId: 'a', cost: 3 }),
      call('consume', 'u', { requestId: 'an id with spaces' }),
      ...probes('u', 60_000),
    ],
  },
  'sliding-window-stream': {
    what: 'a stream of requests, one of which was refunded',
    limiters: one(sliding(9, '1m', { log: 'stream' })),
    did: [
      consume('u', 3),
      consume('u'),
      after(1000),
      as('returned', consume('u', 2)),
      after(500),
      consume('u'),
      as('newest', consume('u')),
      call('refund', 'u', '$returned'),
      call('refund', 'u', '$newest'),
    ],
    later: [call('list', 'u'), ...probes('u', 60_000)],
  },
  'fixed-window': {
    what: 'fixed windows, aligned to the epoch and to the first request',
    limiters: one(
      { kind: 'fixedWindow', limit: 9, window: '1d' },
      { kind: 'fixedWindow', limit: 7, window: '1m', align: 'first-hit' },
    ),
    did: [consume('u', 2), after(2000), consume('u', 2)],
    later: [...probes('u', 60_000), after(86_400_000), ...probes('u', 60_000)],
  },
  'fixed-window-calendar': {
    what: 'calendar windows of all units',
    limiters: one(
      { kind: 'calendarWindow', limit: 9, unit: 'hour', timeZone: 'Asia/Kathmandu' },
      { kind: 'calendarWindow', limit: 19, unit: 'day', timeZone: 'America/Sao_Paulo' },
      { kind: 'calendarWindow', limit: 29, unit: 'week', timeZone: 'america/argentina/buenos_aires' },
      { kind: 'calendarWindow', limit: 39, unit: 'month', timeZone: 'Europe/Berlin' },
    ),
    did: [consume('u', 5), after(HOUR), consume('u', 5)],
    later: [HOUR, 24 * HOUR, 7 * 24 * HOUR, 31 * 24 * HOUR].flatMap((ms) => [
      ...probes('u', HOUR),
      after(ms),
    ]),
  },
  'sliding-counter': {
    what: 'sliding counters in their first and in their second window',
    limiters: one(
      { kind: 'slidingCounter', limit: 9, window: '1h' },
      { kind: 'slidingCounter', limit: 2 ** 40, window: '1d', name: 'coarse' },
    ),
    did: [consume('u', 5), after(HOUR), consume('u', 2)],
    later: probes('u', HOUR),
  },
  'token-bucket': {
    what: 'a partly full bucket and a bucket in debt',
    limiters: one({ kind: 'tokenBucket', capacity: 9, refill: 3, interval: '10s' }),
    did: [consume('u', 4), after(700), consume('u'), call('charge', 'debt', 100), after(300)],
    later: [...probes('u', 30_000), ...probes('debt', 300_000)],
  },
  concurrency: {
    what: 'holders, one of which was released and one renewed',
    limiters: one({ kind: 'concurrency', limit: 5, ttl: '1m' }),
    did: [
      call('consume', 'u', { requestId: 'a', cost: 2 }),
      call('consume', 'u', { requestId: 'b' }),
      call('consume', 'u', { requestId: 'c' }),
      after(1000),
      call('release', 'u', 'b'),
      call('extend', 'u', 'c'),
    ],
    later: [
      call('list', 'u'),
      call('peek', 'u', { cost: 3 }),
      after(30_000),
      call('extend', 'u', 'a', { cost: 2 }),
      call('extend', 'u', 'b'),
      call('release', 'u', 'c'),
      ...probes('u', 60_000),
    ],
  },
  'distinct-sketch': {
    what: 'an estimated number of values in two sub-windows',
    limiters: one({ kind: 'distinct', limit: 4, window: '1m', approximate: true }),
    did: [
      call('consume', 'u', { value: 'x' }),
      after(7000),
      call('consume', 'u', { value: 'y' }),
      call('consume', 'u', { value: 'z'.repeat(200) }),
    ],
    later: LATER_VALUES,
  },
  distinct: {
    what: 'values, one of which is too long to be stored as it is',
    limiters: one({ kind: 'distinct', limit: 4, window: '1m' }),
    did: [
      call('consume', 'u', { value: 'x' }),
      after(1000),
      call('consume', 'u', { value: 'y' }),
      call('consume', 'u', { value: 'z'.repeat(200) }),
    ],
    later: LATER_VALUES,
  },
}

const BAN = { after: 3, within: '1m', for: ['1m', '10m'], forgetAfter: '1h' }

const NAMED: readonly Declaration[] = [
  sliding(5, '1h', { name: 'hour' }),
  sliding(50, '1m', { log: 'zset', shadow: true, name: 'trial' }),
  { kind: 'calendarWindow', limit: 70, unit: 'month', timeZone: 'Europe/Berlin', name: 'month' },
  { kind: 'fixedWindow', limit: 60, window: '1m', align: 'first-hit', name: 'fixed' },
  { kind: 'slidingCounter', limit: 80, window: '1h', name: 'counter' },
  { kind: 'tokenBucket', capacity: 90, refill: 3, interval: '10s', name: 'bucket' },
  { kind: 'concurrency', limit: 10, ttl: '1m', name: 'held' },
]

const CHANGES = {
  ...{ hour: { limit: 20, window: '2h' }, trial: { limit: 60 }, month: { limit: 80 }, fixed: { limit: 70 } },
  ...{ counter: { limit: 90 }, bucket: { capacity: 100, refill: 4 }, held: { limit: 12 } },
}

const SHADOWS = (
  [
    sliding(2, '1h'),
    sliding(3, '1h', { precision: '1s' }),
    sliding(4, '1m', { log: 'zset' }),
    sliding(5, '1m', { log: 'stream' }),
    { kind: 'fixedWindow', limit: 6, window: '1d' },
    { kind: 'fixedWindow', limit: 7, window: '1m', align: 'first-hit' },
    { kind: 'calendarWindow', limit: 8, unit: 'hour' },
    { kind: 'calendarWindow', limit: 9, unit: 'month', timeZone: 'Europe/Berlin' },
    { kind: 'slidingCounter', limit: 10, window: '1h' },
    { kind: 'tokenBucket', capacity: 11, refill: 3, interval: '10s' },
    { kind: 'concurrency', limit: 12, ttl: '20m' },
  ] satisfies Declaration[]
).map((limit) => ({ ...limit, shadow: true }))

/** Histories for state other than limits, and for the format of keys. */
const BESIDE: Readonly<Record<string, History>> = {
  bans: {
    what: 'keys that are blocked by their denials, for the second time, and by hand; and one that will be soon',
    limiters: {
      limiter: { options: { name: 'api', limits: [sliding(2, '1h')], ban: BAN, overrides: true } },
    },
    did: [
      call('block', 'hand', '5m'),
      times(5, 10, consume('twice')),
      after(61_000),
      times(5, 10, consume('twice')),
      times(5, 10, consume('once')),
      times(4, 10, consume('soon')),
    ],
    later: [
      ...['hand', 'twice', 'once', 'soon'].flatMap((key) => [call('isBlocked', key), call('explain', key)]),
      consume('soon'),
      after(61_000),
      ...['hand', 'twice', 'once', 'soon'].flatMap((key) => [call('isBlocked', key), consume(key)]),
      call('unblock', 'hand'),
      consume('hand'),
      times(3, 10, consume('once')),
      call('isBlocked', 'once'),
      call('explain', 'once'),
    ],
  },
  reservations: {
    what: 'reservations that are open, and one that was settled',
    limiters: {
      limiter: {
        options: {
          name: 'api',
          limits: [sliding(100, '1h'), { kind: 'tokenBucket', capacity: 90, refill: 3, interval: '10s' }],
          reservationTtl: '30m',
        },
      },
    },
    did: [
      as('less', call('reserve', 'u', 30)),
      after(1000),
      as('more', call('reserve', 'u', 20)),
      as('none', call('reserve', 'u', 10)),
      as('over', call('reserve', 'u', 5)),
      as('late', call('reserve', 'u', 4)),
      call('settle', '$over', 1),
    ],
    later: [
      call('settle', '$less', 12),
      call('settle', '$less', 12),
      call('settle', '$more', 27),
      call('cancel', '$none'),
      call('settle', '$over', 2),
      call('explain', 'u', { charges: true }),
      after(1_800_000),
      call('settle', '$late', 1),
      call('drain', 'u'),
    ],
  },
  overrides: {
    what: 'overrides of every kind, temporary and permanent, an exemption, blocks, and a deleted override',
    limiters: { limiter: { options: { name: 'api', limits: NAMED, overrides: true } } },
    did: [
      call('overrides.set', 'all kinds', CHANGES, { ttl: '1d' }),
      call('overrides.set', 'vip', { hour: { limit: 50 } }),
      consume('changed', 3),
      call('overrides.set', 'changed', { hour: { limit: 9 } }, { ttl: '10m' }),
      consume('changed', 4),
      call('overrides.set', 'exempt', 'exempt'),
      call('block', 'vip', '5s'),
      call('overrides.set', 'two words', 'block'),
      call('overrides.set', 'gone', { hour: { limit: 9 } }),
      consume('gone', 4),
      after(2000),
      call('overrides.delete', 'gone'),
    ],
    later: [
      call('overrides'),
      call('overrides.get', 'all kinds'),
      consume('all kinds', 8),
      call('explain', 'all kinds'),
      ...['vip', 'changed', 'exempt', 'two words', 'gone'].flatMap((key) => [
        call('overrides.get', key),
        consume(key),
        call('isBlocked', key),
      ]),
      after(3000),
      ...['vip', 'changed', 'gone'].map((key) => call('drain', key)),
      call('unblock', 'two words'),
      consume('two words'),
      call('overrides.set', 'vip', { hour: { limit: 60 } }, { ttl: '1m' }),
      consume('vip', 10),
      after(600_000),
      { restart: true },
      ...['vip', 'changed', 'gone'].map((key) => consume(key)),
      call('overrides'),
    ],
  },
  'overrides-dimensions': {
    what: 'a temporary override of a limit without a name in one dimension, so its index expires',
    limiters: {
      limiter: {
        options: {
          name: 'api',
          dimensions: { user: [sliding(5, '1h')], ip: [sliding(100, '1h')] },
          overrides: true,
        },
      },
    },
    did: [
      call('overrides.set', { user: 'ada' }, { limit: 7 }, { ttl: '1h' }),
      consume({ user: 'ada', ip: '192.0.2.7' }, 3),
    ],
    later: [
      call('overrides'),
      consume({ user: 'ada', ip: '192.0.2.7' }, 4),
      consume({ user: 'ada', ip: '192.0.2.7' }),
      consume({ user: null, ip: '192.0.2.7' }),
      consume({ user: 'bob', ip: null }, 6),
      call('explain', { ip: '192.0.2.7' }),
    ],
  },
  'sliding-count': {
    what: 'a sliding count',
    limiters: { limiter: { is: 'slidingCount', options: { period: '1h' } } },
    did: [call('add', 'u', 3), after(1000), call('add', 'u')],
    later: [call('get', 'u'), after(HOUR - 1000), call('add', 'u'), after(1000), call('get', 'u')],
  },
  receipts: {
    what: 'receipts for a client that resends; no other process reads them',
    limiters: { limiter: { resends: true, options: { name: 'api', limits: [sliding(9, '1h')] } } },
    did: [consume('u', 2), consume('u')],
    later: probes('u', HOUR),
  },
  keys: {
    what: 'keys stored as they are, and keys stored as a hash',
    limiters: one(sliding(3, '1h')),
    did: ['user:42', '{a}:*', '~tilde', 'with space', 'ключ', 'k'.repeat(128), 'k'.repeat(129)].map((key) =>
      consume(key, 2),
    ),
    later: ['user:42', '{a}:*', '~tilde', 'with space', 'ключ', 'k'.repeat(128), 'k'.repeat(129)].map((key) =>
      call('drain', key),
    ),
  },
  'keys-hashed': {
    what: 'keys and ids hashed with a secret',
    limiters: {
      limiter: {
        options: {
          name: 'api',
          limits: [sliding(9, '1h', { log: 'zset' }), { kind: 'concurrency', limit: 8, ttl: '1h' }],
          ban: BAN,
          overrides: true,
          hashKeys: SECRET,
        },
      },
    },
    did: [
      call('consume', 'user:42', { requestId: 'a' }),
      call('consume', 'user:42', { requestId: 'b' }),
      call('block', 'user:7', '1h'),
    ],
    later: [
      call('consume', 'user:42', { requestId: 'a' }),
      call('consume', 'user:42', { requestId: 'c' }),
      call('consume', 'user:42', { requestId: 'd' }),
      call('extend', 'user:42', 'b'),
      call('list', 'user:42'),
      call('isBlocked', 'user:7'),
      call('overrides'),
    ],
  },
  dimensions: {
    what: 'several keys per request, each with its own limits, bans and namespace',
    limiters: {
      limiter: {
        options: {
          name: 'api',
          dimensions: {
            user: [sliding(4, '1h')],
            ip: [sliding(6, '1h'), { kind: 'fixedWindow', limit: 9, window: '1d' }],
          },
          ban: { user: BAN },
        },
      },
    },
    did: [
      as('reserved', call('reserve', { user: 'eve', ip: null }, 3)),
      consume({ user: 'ada', ip: '192.0.2.7' }, 3),
      times(3, 10, consume({ user: 'ada', ip: '192.0.2.7' }, 2)),
    ],
    later: [
      call('settle', '$reserved', 1),
      consume({ user: 'eve', ip: '203.0.113.9' }, 3),
      call('isBlocked', { user: 'ada' }),
      consume({ user: 'bob', ip: '192.0.2.7' }, 3),
      consume({ user: 'bob', ip: '192.0.2.7' }),
      after(61_000),
      consume({ user: 'ada', ip: '198.51.100.1' }),
      consume({ user: 'ada', ip: '198.51.100.1' }),
    ],
  },
  shadows: {
    what: "shadow limits of all kinds, each with its own log, which has the limit's default name",
    limiters: one(...SHADOWS),
    did: ['a', 'b', 'c'].map((name) => call('consume', 'u', { requestId: name })),
    later: [
      call('explain', 'u'),
      call('list', 'u'),
      call('consume', 'u', { requestId: 'd' }),
      after(61_000),
      call('consume', 'u', { requestId: 'e' }),
      after(HOUR),
      call('consume', 'u', { requestId: 'f' }),
    ],
  },
  names: {
    what: 'another prefix, another number of buckets, and the default name of a limiter',
    limiters: {
      limiter: { prefix: 'slidegate:shop.eu-1', buckets: 1, options: { limits: [sliding(3, '1h')] } },
      many: { buckets: 1024, options: { name: 'Many_1.x', limits: [sliding(3, '1h')] } },
    },
    did: [consume('user:42', 2), by('many', consume('user:42', 2))],
    later: [call('drain', 'user:42'), by('many', call('drain', 'user:42'))],
  },
}

export const HISTORIES: ReadonlyMap<string, History> = new Map(Object.entries({ ...KINDS, ...BESIDE }))
