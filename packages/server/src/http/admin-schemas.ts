// Schemas of the admin routes.

import type { Source } from 'slidegate'
import { Role } from '../config/schema.ts'
import { type Static, type TSchema, type TUnsafe, Type } from '../json-schema.ts'
import { closed, Key, LimiterName } from './schemas.ts'

const Duration = Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 32 })], {
  description: "Milliseconds, or a text such as '10s', '1h', '7d'.",
})
const Dimension = Type.Optional(
  Type.String({ maxLength: 64, description: 'Of a limiter with dimensions, where the key is a text.' }),
)
const LimitName = Type.String({ maxLength: 64, description: 'The name of a limit.' })
const Shadow = Type.Union([Type.Boolean(), Type.Null()], { description: 'null: as the configuration says.' })
const Count = (most: number, usual: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: most, description: `Default: ${usual}.` }))
const Many = Type.Integer({ minimum: 0 })
const Rate = Type.Number({ minimum: 0 })
/** What stands in a configuration, as it stands there. */
const Declared = Type.Object({}, { additionalProperties: true })
const Counts = (description: string) =>
  Type.Record(Type.String(), Type.Number({ minimum: 0 }), { description })

type Frozen<Value> = Value extends object ? { readonly [Name in keyof Value]: Frozen<Value[Name]> } : Value

/** A schema whose type is read-only, as the service has its answers. */
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
      'limit: all kinds but token buckets. window: sliding windows. capacity, refill: token buckets.',
  },
)
const True = (description: string) => Type.Optional(Type.Literal(true, { description }))
export const OverrideBody = closed(
  {
    ...OverrideKeyBody.properties,
    limits: Type.Optional(
      Type.Union([Numbers, Type.Record(LimitName, Numbers, { minProperties: 1, maxProperties: 64 })], {
        description: 'Numbers by the name of their limit, or those of the only limit.',
      }),
    ),
    exempt: True('The limits of the key only count, as shadow limits do.'),
    block: True('Denies every request of the key.'),
    ttl: Ttl,
  },
  {
    description:
      'Exactly one of limits, exempt and block; ttl: for how long, by default until it is deleted.',
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
    Type.String({ minLength: 1, description: 'Of a limiter with dimensions: any of them.' }),
  ),
  denied: Type.Optional(Type.Boolean({ description: 'true: denials only.' })),
})
export const OverridesQuery = closed({
  limiter: LimiterName,
  count: Type.Optional(Type.Integer({ minimum: 1, description: 'How many at most. Default: all.' })),
})
export const AuditQuery = closed({ count: Count(1000, 50) })

/** What is read for as long as one likes. */
export const Events = {
  description: 'Server-sent events: decision, and lost.',
  content: { 'text/event-stream': { schema: { type: 'string' } } },
} as const

export const OverrideLines = {
  description: 'A line of JSON for each override: see overrides of Explanation.',
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
        config: Type.Object({}, { additionalProperties: true, description: 'As the configuration has it.' }),
        hashesKeys: Type.Boolean({ description: 'Whether keys are stored as hashes only.' }),
        limits: Type.Array(Declared, { description: 'In force for keys without a plan or an override.' }),
        shadowSettings: Type.Record(Type.String(), Type.Boolean(), {
          description: 'What operators have said, by limit; * for all.',
        }),
        stats: closed({
          storeErrors: Counts('Asked of the store without an answer, by reason.'),
          withoutStore: Counts('Requests that were answered without the store, by source.'),
          breakerOpened: Many,
          isStoreDown: Type.Boolean({ description: 'Whether a breaker is open now.' }),
          clockSteps: Type.Integer({
            minimum: 0,
            description: "How often the store's clock was set by more than a second.",
          }),
          waits: closed(
            {
              bounds: Type.Array(Type.Number(), { description: 'Upper bounds of the buckets.' }),
              counts: Type.Array(Many, { description: 'One more than bounds; not cumulative.' }),
              sum: Rate,
            },
            { description: 'Milliseconds that those have waited who were admitted.' },
          ),
          waitErrors: Counts('Waits that ended without an admission, by reason.'),
          permits: Type.Integer({ minimum: 0, description: 'Held now by the processes of this service.' }),
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
        seconds: Type.Integer({ minimum: 0, description: 'How much of the span was counted.' }),
        allowed: Many,
        denied: Many,
        shadowDenied: Type.Integer({
          minimum: 0,
          description: 'Requests that a shadow limit would have denied.',
        }),
        allowedPerSecond: Rate,
        deniedPerSecond: Rate,
        perSecondBySource: Type.Unsafe<Readonly<Record<Source, number>>>(
          Counts('Decisions per second, by where they came from.'),
        ),
      }),
    ),
  }),
)

export const TopAnswer = answer(
  closed({
    limiter: LimiterName,
    by: Type.Enum(['requests', 'denials']),
    spanMs: Type.Integer({ minimum: 0, description: 'How far back it reaches.' }),
    distinct: Type.Integer({ minimum: 0, description: 'Different keys in that time, estimated: within 2%.' }),
    keys: Type.Array(
      closed({
        dimension: Type.Optional(Type.String()),
        key: Type.String(),
        count: Type.Integer({ minimum: 0, description: 'How often it came, at most.' }),
        error: Type.Integer({ minimum: 0, description: 'By how much less it may have been.' }),
      }),
    ),
  }),
)

export const LimitsAnswer = answer(
  closed({
    limiter: LimiterName,
    limits: Type.Array(
      closed({
        name: Type.String(),
        requests: Type.Integer({ minimum: 0, description: 'That it was asked about.' }),
        denials: Type.Integer({ minimum: 0, description: 'That it had no room for, enforced.' }),
        shadowDenials: Type.Integer({
          minimum: 0,
          description: 'That it had no room for, as a shadow limit.',
        }),
        nearLimit: Type.Integer({ minimum: 0, description: 'Admitted with 80% of it used, or more.' }),
        meanUtilization: Type.Union([Rate, Type.Null()], {
          description: 'The share of it that was used once a request was decided, on average.',
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
        instance: Type.String({ description: 'The process that was asked.' }),
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
  callers: Type.Integer({ minimum: 0, description: 'Different callers of the last minutes, estimated.' }),
  isStoreDown: Type.Boolean(),
})
const Server = closed({
  node: Name,
  up: Type.Boolean(),
  version: Type.Optional(Name),
  role: Type.Optional(Name),
  usedMemoryBytes: Type.Optional(Many),
  maxMemoryBytes: Type.Optional(Type.Integer({ minimum: 0, description: '0: no bound.' })),
  commandsPerSecond: Type.Optional(Rate),
  evictedKeys: Type.Optional(Many),
  connectedClients: Type.Optional(Many),
  replicaLagBytes: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Of the replica that is furthest behind.' }),
  ),
  scriptMicros: Type.Optional(
    Type.Number({ minimum: 0, description: 'Microseconds of a call of the script, on average.' }),
  ),
})

export const Overview = answer(
  closed({
    atMs: Type.Integer({ minimum: 0, description: 'When the second began that this is about.' }),
    instances: Type.Array(
      closed({
        id: Name,
        host: Name,
        pid: Many,
        version: Name,
        startedAtMs: Many,
        isSelf: Type.Boolean({ description: 'Whether it is the one that was asked.' }),
      }),
    ),
    missing: Type.Integer({ minimum: 0, description: 'Processes that are known and have not answered.' }),
    store: closed({
      kind: Type.Enum(['redis', 'memory']),
      up: Type.Boolean({ description: 'Whether no breaker is open.' }),
      callsPerSecond: Rate,
      callMs: Type.Union([closed({ p50: Rate, p99: Rate }), Type.Null()], {
        description: 'Milliseconds of the calls of the last seconds.',
      }),
      requestsPerCall: Type.Union([Rate, Type.Null()]),
      servers: Type.Array(Server, { description: 'What Redis says of itself.' }),
    }),
    limiters: Type.Array(Rates),
  }),
)

export const History = answer(
  closed({
    seconds: Type.Array(Many, { description: 'Epoch seconds, the oldest first.' }),
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
    file: Type.String({ description: 'Empty where it was started without one.' }),
    inForce: Type.String({ description: 'YAML, without secrets.' }),
    problems: Problems,
    diff: Diff,
    shadowSettings: Type.Record(Type.String(), Type.Record(Type.String(), Type.Boolean())),
  }),
)
export const CheckBody = closed({ text: Type.String({ description: 'A configuration: YAML or JSON.' }) })
export const Checked = answer(closed({ problems: Problems, diff: Diff }))

export const WhoAmI = closed({
  name: Type.String({ description: 'What the audit calls him.' }),
  role: Role,
  limiters: Type.Union([Type.Array(Type.String()), Type.Null()], {
    description: 'Which he may ask, * for any characters; null: all.',
  }),
  hasTokens: Type.Boolean({ description: 'Whether the configuration has auth.tokens.' }),
})
