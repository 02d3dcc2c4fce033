// Schemas for the admin routes.

import type { Source } from 'slidegate'
import { Role } from '../config/schema.ts'
import { type Static, type TSchema, type TUnsafe, Type } from '../json-schema.ts'
import { closed, Key, LimiterName, OnStoreError } from './schemas.ts'

const Duration = Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 32 })], {
  description: "Milliseconds, or a string such as '10s', '1h' or '7d'.",
})
const Dimension = Type.Optional(
  Type.String({
    maxLength: 64,
    description: 'The dimension of `key`, if the limiter has dimensions and `key` is a string.',
  }),
)
const LimitName = Type.String({ maxLength: 64, description: 'Name of a limit.' })
const Shadow = Type.Union([Type.Boolean(), Type.Null()], {
  description: 'true: shadow. false: enforced. null: as configured.',
})
const Count = (most: number, usual: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: most, description: `Default: ${usual}.` }))
const Many = Type.Integer({ minimum: 0 })
const Rate = Type.Number({ minimum: 0 })
/** A part of the configuration, as written in the file. */
const Declared = Type.Object({}, { additionalProperties: true })
const Counts = (description: string) =>
  Type.Record(Type.String(), Type.Number({ minimum: 0 }), { description })

type Frozen<Value> = Value extends object ? { readonly [Name in keyof Value]: Frozen<Value[Name]> } : Value

/** Makes a schema's type read-only, like the service's responses. */
function answer<Schema extends TSchema>(schema: Schema): TUnsafe<Frozen<Static<Schema>>> {
  return Type.Unsafe(schema)
}

const Reason = Type.Optional(
  Type.String({ minLength: 1, maxLength: 200, description: 'Reason for the change, for the audit log.' }),
)
export const KeyBody = closed({ limiter: LimiterName, key: Key, reason: Reason })
const Ttl = Type.Optional(Duration)
export const BlockBody = closed({ ...KeyBody.properties, ttl: Ttl })
export const OverrideKeyBody = closed({ ...KeyBody.properties, dimension: Dimension })
const Units = Type.Optional(Type.Integer({ minimum: 1 }))
const Numbers = Type.Object(
  { limit: Units, window: Type.Optional(Duration), capacity: Units, refill: Units },
  {
    additionalProperties: false,
    minProperties: 1,
    description:
      '`limit` is for all kinds except token buckets, `window` for sliding windows, and `capacity` and `refill` for token buckets.',
  },
)
const True = (description: string) => Type.Optional(Type.Literal(true, { description }))
export const OverrideBody = closed(
  {
    ...OverrideKeyBody.properties,
    limits: Type.Optional(
      Type.Union([Numbers, Type.Record(LimitName, Numbers, { minProperties: 1, maxProperties: 64 })], {
        description: 'Numbers by limit name, or the numbers alone if the key has only one limit.',
      }),
    ),
    exempt: True('Exempts the key: its limits count but never deny.'),
    block: True('Denies every request for the key.'),
    ttl: Ttl,
  },
  {
    description:
      'Set exactly one of `limits`, `exempt` and `block`. The override expires after `ttl`. Without `ttl`, it lasts until it is deleted.',
    examples: [
      { limiter: 'api', key: 'ann', limits: { minute: { limit: 300 } }, ttl: '1h' },
      { limiter: 'api', key: 'ann', exempt: true },
    ],
  },
)
export const ShadowBody = closed({
  limiter: LimiterName,
  limit: Type.Optional(LimitName),
  shadow: Shadow,
  reason: Reason,
})
export const DrainBody = closed({ drain: Type.Boolean(), reason: Reason })
export const UndoBody = closed({
  id: Type.String({ maxLength: 64, description: 'The `id` of an entry in the audit log.' }),
  reason: Reason,
})

export const NameParams = closed({ name: LimiterName })
export const TopQuery = closed({
  by: Type.Optional(Type.Enum(['requests', 'denials'], { description: 'Default: requests.' })),
  count: Count(1000, 10),
})
export const TailQuery = closed({
  limiter: Type.Optional(LimiterName),
  key: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'Send only decisions on this key. With dimensions: on this key in any dimension.',
    }),
  ),
  denied: Type.Optional(Type.Boolean({ description: 'true: send only denials.' })),
})
export const OverridesQuery = closed({
  limiter: LimiterName,
  count: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Maximum number of overrides. Default: all.' }),
  ),
})
export const AuditQuery = closed({ count: Count(1000, 50) })

/** A stream of events. */
export const Events = {
  description: 'Server-sent events.',
  content: { 'text/event-stream': { schema: { type: 'string' } } },
} as const

export const OverrideLines = {
  description: 'One line of JSON per override, in the format of `overrides` in `Explanation`.',
  content: { 'application/x-ndjson': { schema: { type: 'string' } } },
} as const

export const Done = closed({ done: Type.Literal(true) })
export const OverrideSet = closed({
  done: Type.Literal(true),
  hint: Type.Optional(Type.String({ description: 'Present if a ban or a block still denies the key.' })),
})
export const Undone = closed({
  done: Type.Literal(true),
  summary: Type.String({ description: 'The change in words.' }),
})
export const Deleted = closed({ done: Type.Literal(true), existed: Type.Boolean() })
export const Drained = closed({ done: Type.Literal(true), draining: Type.Boolean() })
export const Shadowed = closed({ done: Type.Literal(true), limits: Type.Array(Declared) })

export const Limiters = answer(
  closed({
    limiters: Type.Array(
      closed({
        name: LimiterName,
        config: Type.Object(
          {},
          { additionalProperties: true, description: 'The declaration in the configuration.' },
        ),
        hashesKeys: Type.Boolean({ description: 'Whether only hashes of keys are stored.' }),
        limits: Type.Array(Declared, { description: 'The limits for keys without a plan or an override.' }),
        shadowSettings: Type.Record(Type.String(), Type.Boolean(), {
          description: 'Shadow mode as set by operators, for each limit; * means all limits.',
        }),
        stats: closed({
          storeErrors: Counts('Failed requests to the store, by reason.'),
          withoutStore: Counts('Requests decided without the store, by source.'),
          breakerOpened: Many,
          isStoreDown: Type.Boolean({ description: 'Whether a circuit breaker is open now.' }),
          clockSteps: Type.Integer({
            minimum: 0,
            description: "Number of times the store's clock jumped by more than a second.",
          }),
          waits: closed(
            {
              bounds: Type.Array(Type.Number(), { description: 'Upper bounds of the buckets.' }),
              counts: Type.Array(Many, {
                description: 'Count per bucket, not cumulative; the last bucket has no upper bound.',
              }),
              sum: Rate,
            },
            { description: 'Histogram of how long admitted requests waited, in milliseconds.' },
          ),
          waitErrors: Counts('Failed waits, by reason.'),
          permits: Type.Integer({
            minimum: 0,
            description: 'Permits that the processes in this service hold now.',
          }),
        }),
        waiting: closed({
          length: Many,
          expectedWaitMs: Type.Union([Type.Number({ minimum: 0 }), Type.Null()]),
        }),
      }),
    ),
  }),
)

export const UsageAnswer = answer(
  closed({
    limiter: LimiterName,
    usage: Type.Array(
      closed({
        spanSeconds: Many,
        seconds: Type.Integer({
          minimum: 0,
          description: 'Number of seconds in the span that have been counted.',
        }),
        allowed: Many,
        denied: Many,
        shadowDenied: Type.Integer({
          minimum: 0,
          description: 'Requests that a shadow limit would have denied.',
        }),
        allowedPerSecond: Rate,
        deniedPerSecond: Rate,
        perSecondBySource: Type.Unsafe<Readonly<Record<Source, number>>>(
          Counts('Decisions per second, by source.'),
        ),
      }),
    ),
  }),
)

export const TopAnswer = answer(
  closed({
    limiter: LimiterName,
    by: Type.Enum(['requests', 'denials']),
    spanMs: Type.Integer({ minimum: 0, description: 'How far back the counts go, in milliseconds.' }),
    distinct: Type.Integer({
      minimum: 0,
      description: 'Number of distinct keys in this span, estimated to within 2%.',
    }),
    keys: Type.Array(
      closed({
        dimension: Type.Optional(Type.String()),
        key: Type.String(),
        count: Type.Integer({ minimum: 0, description: 'Upper bound on the number of requests or denials.' }),
        error: Type.Integer({
          minimum: 0,
          description: 'Maximum overcount: the real number is at least count - error.',
        }),
      }),
    ),
    unlisted: Type.Integer({
      minimum: 0,
      description: "Upper bound on the count of any key that isn't listed.",
    }),
  }),
)

export const LimitsAnswer = answer(
  closed({
    limiter: LimiterName,
    limits: Type.Array(
      closed({
        name: Type.String(),
        requests: Type.Integer({ minimum: 0, description: 'Requests checked against the limit.' }),
        denials: Type.Integer({
          minimum: 0,
          description: 'Requests that the limit denied while it was enforced.',
        }),
        shadowDenials: Type.Integer({
          minimum: 0,
          description: 'Requests that the limit would have denied while it was a shadow limit.',
        }),
        nearLimit: Type.Integer({
          minimum: 0,
          description: 'Requests admitted with at least 80% of the limit used.',
        }),
        meanUtilization: Type.Union([Rate, Type.Null()], {
          description: 'Average share of the limit in use after a decision.',
        }),
      }),
    ),
  }),
)

export const AuditAnswer = answer(
  closed({
    entries: Type.Array(
      closed({
        id: Type.String(),
        atMs: Many,
        who: Type.String(),
        what: Type.String(),
        limiter: Type.Optional(Type.String()),
        key: Type.Optional(Type.Union([Type.String(), Type.Record(Type.String(), Type.String())])),
        detail: Type.Optional(Type.Object({}, { additionalProperties: true })),
        summary: Type.Optional(
          Type.String({
            description: 'The change in words, such as `minute: 120 → 300 in any 1 min, for 1 h`.',
          }),
        ),
        reason: Type.Optional(Type.String()),
        undoes: Type.Optional(Type.String({ description: 'The entry that this one undoes.' })),
        isUndone: Type.Boolean({ description: 'Whether a later entry undoes this one.' }),
        canUndo: Type.Boolean({
          description:
            'Whether `/v1/admin/undo` accepts this change. The undo fails if the setting has changed since.',
        }),
        instance: Type.String({ description: 'The process that handled the request.' }),
        result: Type.Enum(['done', 'failed', 'unknown']),
        error: Type.Optional(Type.String()),
      }),
    ),
  }),
)

export const BansQuery = closed({ limiter: Type.Optional(LimiterName), count: Count(1000, 100) })

const OfKey = {
  limiter: LimiterName,
  dimension: Type.Optional(Type.String({ description: 'Only present for limiters with dimensions.' })),
}
const EndMs = Type.Union([Many, Type.Null()], { description: 'Epoch milliseconds; null: never.' })

export const BansAnswer = answer(
  closed({
    bans: Type.Array(
      closed({
        ...OfKey,
        key: Type.String(),
        isHashed: Type.Optional(
          Type.Literal(true, { description: "`key` is a hash or ends in a hash, so it can't be looked up." }),
        ),
        type: Type.Enum(['ban', 'block'], {
          description: '`ban`: by the `ban` rule in the configuration. `block`: by an operator.',
        }),
        who: Type.String({ description: "The caller's name in the configuration; `rule` for a ban." }),
        limits: Type.Optional(
          Type.Array(Type.String(), {
            description: 'The limits that denied the request that caused the ban.',
          }),
        ),
        denials: Type.Optional(
          Type.Integer({ minimum: 1, description: 'Number of denials that caused the ban.' }),
        ),
        withinMs: Type.Optional(
          Type.Integer({
            minimum: 1,
            description: 'The period in which these denials occurred, in milliseconds.',
          }),
        ),
        reason: Type.Optional(Type.String({ description: 'Why the operator blocked the key.' })),
        level: Type.Optional(Type.Integer({ minimum: 1, description: 'Number of consecutive bans.' })),
        sinceMs: Many,
        untilMs: EndMs,
      }),
    ),
    isComplete: Type.Boolean({ description: 'Whether the list is complete.' }),
  }),
)

export const KeysQuery = closed({
  key: Type.String({ minLength: 1, description: 'The key, in any limiter and dimension.' }),
})

export const KeysAnswer = answer(
  closed({
    found: Type.Array(
      closed({
        ...OfKey,
        fullest: Type.Optional(
          closed(
            { name: Type.String(), used: Many, limit: Type.Integer({ minimum: 1 }) },
            { description: 'The limit with the highest share in use; absent if nothing is used.' },
          ),
        ),
        allowed: Type.Optional(
          Type.Boolean({ description: 'Whether a request with a cost of 1 would be allowed now.' }),
        ),
        bans: Type.Optional(Type.Integer({ minimum: 0, description: 'Number of consecutive bans.' })),
        denials: Type.Optional(
          Type.Integer({ minimum: 0, description: 'Denials that count toward the next ban.' }),
        ),
        bannedUntilMs: Type.Optional(Many),
        blockedUntilMs: Type.Optional(EndMs),
        override: Type.Optional(
          Type.Enum(['limits', 'exempt', 'configured'], {
            description: '`limits`, `exempt`: set through the API. `configured`: set in the configuration.',
          }),
        ),
        lastDeniedAtMs: Type.Optional(
          Type.Integer({ minimum: 0, description: "Time of the key's last denial, if recent." }),
        ),
        problem: Type.Optional(
          Type.String({ description: "Why the key's state is unknown: an error code such as `store_down`." }),
        ),
      }),
    ),
    checked: Type.Integer({
      minimum: 0,
      description: 'Number of limiters and dimensions that were checked.',
    }),
    isComplete: Type.Boolean({ description: 'Whether all limiters and dimensions were checked.' }),
  }),
)

export const HistoryQuery = closed({ limiter: Type.Optional(LimiterName) })

const Range = Type.Enum(['1h', '7d'], {
  description: '`1h`: the last 60 full minutes. `7d`: the last 168 full hours.',
})
export const SeriesQuery = closed({
  range: Type.Optional(Range),
  key: Type.Optional(
    Type.String({ minLength: 1, description: 'A key. Default: all requests for the limiter.' }),
  ),
  dimension: Dimension,
})
export const WatchBody = closed({
  ...OverrideKeyBody.properties,
  watch: Type.Boolean({ description: 'true: watch the key for a week. false: stop watching it.' }),
})
const Column = (description: string) =>
  Type.Array(Type.Union([Many, Type.Null()]), { description: `${description} null: unknown.` })

export const CountSeries = answer(
  closed({
    limiter: LimiterName,
    key: Type.Optional(Type.String()),
    dimension: Type.Optional(Type.String()),
    range: Range,
    stepSeconds: Type.Integer({ minimum: 1, description: '60 or 3600.' }),
    seconds: Type.Array(Many, {
      description: 'Start of each minute or hour, in epoch seconds, oldest first.',
    }),
    allowed: Column('Requests allowed.'),
    denied: Column('Requests denied. For a key, only those that its own limits and bans denied.'),
    units: Column('Units charged to allowed requests.'),
    shadowDenied: Type.Optional(Column('Requests that a shadow limit would have denied.')),
    keys: Type.Optional(
      Type.Array(
        closed({
          dimension: Type.Optional(Type.String()),
          key: Type.String({ description: 'A hash, if the limiter has `hashKeys`.' }),
          allowed: Many,
          denied: Many,
          units: Many,
        }),
        { description: 'The keys with the most requests or denials in the range. Counts are lower bounds.' },
      ),
    ),
    isWatched: Type.Optional(Type.Boolean({ description: 'Whether the key is watched.' })),
  }),
)

const Name = Type.String()
const Rates = closed({
  name: LimiterName,
  allowedPerSecond: Rate,
  deniedPerSecond: Rate,
  shadowDeniedPerSecond: Type.Number({
    minimum: 0,
    description: 'Requests that a shadow limit would have denied.',
  }),
  withoutStorePerSecond: Type.Number({ minimum: 0, description: 'Requests decided without the store.' }),
  lastMinute: closed(
    { allowedPerSecond: Rate, deniedPerSecond: Rate, shadowDeniedPerSecond: Rate },
    { description: 'Averages over the last minute.' },
  ),
  waiting: Many,
  callers: Type.Integer({
    minimum: 0,
    description: 'Estimated number of distinct keys in the last few minutes.',
  }),
  outage: Type.Optional(
    closed(
      {
        onStoreError: OnStoreError,
        instances: Type.Integer({
          minimum: 1,
          description: 'With `local`: the number of processes among which the limits are divided.',
        }),
        processesDown: Type.Integer({
          minimum: 1,
          description: 'Number of processes whose circuit breaker is open.',
        }),
        processes: Type.Integer({ minimum: 1, description: 'Number of processes that run the limiter.' }),
        sinceMs: Type.Optional(
          Type.Integer({
            minimum: 0,
            description: 'When the first process noticed the outage, in epoch milliseconds.',
          }),
        ),
      },
      { description: 'While the store is down: how requests are decided.' },
    ),
  ),
  lastOutage: Type.Optional(
    closed(
      { sinceMs: Many, untilMs: Many },
      {
        description: 'The last outage, reported for 15 minutes after its end. Times are epoch milliseconds.',
      },
    ),
  ),
})
const Server = closed({
  node: Name,
  up: Type.Boolean(),
  version: Type.Optional(Name),
  role: Type.Optional(Name),
  usedMemoryBytes: Type.Optional(Many),
  maxMemoryBytes: Type.Optional(Type.Integer({ minimum: 0, description: '0: unlimited.' })),
  commandsPerSecond: Type.Optional(Rate),
  receivedBytesPerSecond: Type.Optional(Many),
  sentBytesPerSecond: Type.Optional(Many),
  evictedKeys: Type.Optional(Many),
  connectedClients: Type.Optional(Many),
  replicaLagBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Lag of the slowest replica.' })),
  scriptMicros: Type.Optional(
    Type.Number({ minimum: 0, description: 'Average duration of a script call, in microseconds.' }),
  ),
})

const Instance = { id: Name, host: Name, pid: Many, version: Name, startedAtMs: Many }

export const Overview = answer(
  closed({
    atMs: Type.Integer({
      minimum: 0,
      description: 'Start of the second that the overview covers, in epoch milliseconds.',
    }),
    instances: Type.Array(
      closed({
        ...Instance,
        isSelf: Type.Boolean({ description: 'Whether this instance handled the request.' }),
        perSecond: Type.Integer({ minimum: 0, description: 'Decisions in the last second.' }),
        configuration: Type.Enum(['applied', 'invalid', 'restart'], {
          description:
            'The state of its configuration file. `invalid`: the previous configuration stays in force. `restart`: some changes only take effect after a restart.',
        }),
      }),
    ),
    gone: Type.Array(
      closed({
        ...Instance,
        goneSinceMs: Type.Integer({ minimum: 0, description: 'Time of its last heartbeat.' }),
        lastPerSecond: Type.Number({
          minimum: 0,
          description: 'Number of decisions that it made in the second before that heartbeat.',
        }),
      }),
      { description: 'Instances that disappeared in the last 15 minutes without signing off.' },
    ),
    missing: Type.Integer({ minimum: 0, description: "Number of known processes that didn't respond." }),
    store: closed({
      kind: Type.Enum(['redis', 'memory']),
      up: Type.Boolean({ description: 'Whether all circuit breakers are closed.' }),
      callsPerSecond: Rate,
      callMs: Type.Union([closed({ p50: Rate, p99: Rate }), Type.Null()], {
        description: 'Latency of recent calls, in milliseconds.',
      }),
      requestsPerCall: Type.Union([Rate, Type.Null()]),
      servers: Type.Array(Server, { description: 'Statistics about each Redis server.' }),
    }),
    limiters: Type.Array(Rates),
  }),
)

export const History = answer(
  closed({
    seconds: Type.Array(Many, { description: 'Epoch seconds, oldest first.' }),
    allowed: Type.Array(Many),
    denied: Type.Array(Many),
    shadowDenied: Type.Array(Many),
  }),
)

const Diff = Type.Array(closed({ kind: Type.Enum(['same', 'added', 'removed']), text: Type.String() }))
const Problems = Type.Array(
  closed({
    message: Type.String(),
    line: Type.Integer({ minimum: 1 }),
    column: Type.Integer({ minimum: 1 }),
  }),
)

export const Configuration = answer(
  closed({
    file: Type.String({ description: 'The configuration file; empty if the service started without one.' }),
    inForce: Type.String({ description: 'The configuration in force as YAML, without secrets.' }),
    problems: Problems,
    diff: Diff,
    shadowSettings: Type.Record(Type.String(), Type.Record(Type.String(), Type.Boolean())),
  }),
)
export const CheckBody = closed({ text: Type.String({ description: 'A configuration in YAML or JSON.' }) })
export const Checked = answer(closed({ problems: Problems, diff: Diff }))

export const WhoAmI = closed({
  name: Type.String({ description: "The caller's name in the audit log." }),
  role: Role,
  limiters: Type.Union([Type.Array(Type.String()), Type.Null()], {
    description: 'Limiters that the caller may use; * matches any characters. null: all.',
  }),
  hasTokens: Type.Boolean({ description: 'Whether the configuration has auth.tokens.' }),
})
