// Schemas of the admin routes.

import type { Source } from 'slidegate'
import { Role } from '../config/schema.ts'
import { type Static, type TSchema, type TUnsafe, Type } from '../json-schema.ts'
import { closed, Key, LimiterName } from './schemas.ts'

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
/** A part of the configuration, unchanged. */
const Declared = Type.Object({}, { additionalProperties: true })
const Counts = (description: string) =>
  Type.Record(Type.String(), Type.Number({ minimum: 0 }), { description })

type Frozen<Value> = Value extends object ? { readonly [Name in keyof Value]: Frozen<Value[Name]> } : Value

/** Makes the type of a schema read-only, like the service's responses. */
function answer<Schema extends TSchema>(schema: Schema): TUnsafe<Frozen<Static<Schema>>> {
  return Type.Unsafe(schema)
}

export const KeyBody = closed({ limiter: LimiterName, key: Key })
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
      '`limit`: for all kinds except token buckets. `window`: for sliding windows. `capacity`, `refill`: for token buckets.',
  },
)
const True = (description: string) => Type.Optional(Type.Literal(true, { description }))
export const OverrideBody = closed(
  {
    ...OverrideKeyBody.properties,
    limits: Type.Optional(
      Type.Union([Numbers, Type.Record(LimitName, Numbers, { minProperties: 1, maxProperties: 64 })], {
        description: 'Numbers by limit name, or the numbers of the only limit.',
      }),
    ),
    exempt: True('Exempts the key: its limits count but never deny.'),
    block: True('Denies every request of the key.'),
    ttl: Ttl,
  },
  {
    description:
      'Set exactly one of `limits`, `exempt` and `block`. The override expires after `ttl`, or lasts until it is deleted.',
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
})
export const DrainBody = closed({ drain: Type.Boolean() })

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
      description: 'Only decisions on this key; with dimensions, on this key in any of them.',
    }),
  ),
  denied: Type.Optional(Type.Boolean({ description: 'true: only denials.' })),
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
        limits: Type.Array(Declared, { description: 'The limits of keys without a plan or an override.' }),
        shadowSettings: Type.Record(Type.String(), Type.Boolean(), {
          description: 'Shadow mode set by operators, by limit; * means all limits.',
        }),
        stats: closed({
          storeErrors: Counts('Failed requests to the store, by reason.'),
          withoutStore: Counts('Requests decided without the store, by source.'),
          breakerOpened: Many,
          isStoreDown: Type.Boolean({ description: 'Whether a circuit breaker is open now.' }),
          clockSteps: Type.Integer({
            minimum: 0,
            description: "How often the store's clock jumped by more than a second.",
          }),
          waits: closed(
            {
              bounds: Type.Array(Type.Number(), { description: 'Upper bounds of the buckets.' }),
              counts: Type.Array(Many, {
                description: 'Count per bucket, not cumulative; the last bucket has no upper bound.',
              }),
              sum: Rate,
            },
            { description: 'Histogram of the waits that ended in an admission, in milliseconds.' },
          ),
          waitErrors: Counts('Failed waits, by reason.'),
          permits: Type.Integer({
            minimum: 0,
            description: 'Permits that processes of this service hold now.',
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
        seconds: Type.Integer({ minimum: 0, description: 'How many seconds of the span have been counted.' }),
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
      description: 'Number of distinct keys in that time, estimated within 2%.',
    }),
    keys: Type.Array(
      closed({
        dimension: Type.Optional(Type.String()),
        key: Type.String(),
        count: Type.Integer({ minimum: 0, description: 'Upper bound of the number of requests or denials.' }),
        error: Type.Integer({
          minimum: 0,
          description: 'Maximum overcount: the real number is at least count - error.',
        }),
      }),
    ),
    unlisted: Type.Integer({ minimum: 0, description: 'The most that any key not listed can have.' }),
  }),
)

export const LimitsAnswer = answer(
  closed({
    limiter: LimiterName,
    limits: Type.Array(
      closed({
        name: Type.String(),
        requests: Type.Integer({ minimum: 0, description: 'Requests checked against the limit.' }),
        denials: Type.Integer({ minimum: 0, description: 'Requests that it denied while enforced.' }),
        shadowDenials: Type.Integer({
          minimum: 0,
          description: 'Requests that it would have denied, as a shadow limit.',
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
        instance: Type.String({ description: 'The process that handled the request.' }),
        result: Type.Enum(['done', 'failed', 'unknown']),
        error: Type.Optional(Type.String()),
      }),
    ),
  }),
)

export const HistoryQuery = closed({ limiter: Type.Optional(LimiterName) })

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
  waiting: Many,
  callers: Type.Integer({
    minimum: 0,
    description: 'Estimated number of distinct keys in the last minutes.',
  }),
  isStoreDown: Type.Boolean(),
})
const Server = closed({
  node: Name,
  up: Type.Boolean(),
  version: Type.Optional(Name),
  role: Type.Optional(Name),
  usedMemoryBytes: Type.Optional(Many),
  maxMemoryBytes: Type.Optional(Type.Integer({ minimum: 0, description: '0: unlimited.' })),
  commandsPerSecond: Type.Optional(Rate),
  evictedKeys: Type.Optional(Many),
  connectedClients: Type.Optional(Many),
  replicaLagBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Lag of the slowest replica.' })),
  scriptMicros: Type.Optional(
    Type.Number({ minimum: 0, description: 'Average duration of a script call, in microseconds.' }),
  ),
})

export const Overview = answer(
  closed({
    atMs: Type.Integer({ minimum: 0, description: 'Start of the second covered, in epoch milliseconds.' }),
    instances: Type.Array(
      closed({
        id: Name,
        host: Name,
        pid: Many,
        version: Name,
        startedAtMs: Many,
        isSelf: Type.Boolean({ description: 'Whether this instance handled the request.' }),
      }),
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
      servers: Type.Array(Server, { description: 'Statistics of each Redis server.' }),
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
    description: 'Limiters that the caller may use, with * for any characters; null: all.',
  }),
  hasTokens: Type.Boolean({ description: 'Whether the configuration has auth.tokens.' }),
})
