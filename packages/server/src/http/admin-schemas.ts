import Type, { type TSchema } from 'typebox'
import { LimitSchema } from '../config/schema.ts'
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
const Counts = (description: string): TSchema =>
  Type.Record(Type.String(), Type.Number({ minimum: 0 }), { description })

export const KeyBody = closed({ limiter: LimiterName, key: Key })
export const BanBody = closed({ limiter: LimiterName, key: Key, duration: Duration })
export const OverrideKeyBody = closed({ limiter: LimiterName, key: Key, dimension: Dimension })
export const OverrideBody = closed({
  limiter: LimiterName,
  key: Key,
  dimension: Dimension,
  limits: Type.Array(LimitSchema, { minItems: 1, maxItems: 64 }),
  ttl: Type.Optional(Duration),
})
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
export const OverridesQuery = closed({ limiter: LimiterName })
export const AuditQuery = closed({ count: Count(1000, 50) })

/** What is read for as long as one likes. */
export const Events = {
  description: 'Server-sent events: decision, and lost.',
  content: { 'text/event-stream': { schema: { type: 'string' } } },
} as const

export const Done = closed({ done: Type.Literal(true) })
export const Deleted = closed({ done: Type.Literal(true), wasThere: Type.Boolean() })
export const Drained = closed({ done: Type.Literal(true), draining: Type.Boolean() })
export const Shadowed = closed({ done: Type.Literal(true), limits: Type.Array(Declared) })

export const Limiters = closed({
  limiters: Type.Array(
    closed({
      name: LimiterName,
      config: Type.Object({}, { additionalProperties: true, description: 'As the configuration has it.' }),
      hashesKeys: Type.Boolean({ description: 'Whether keys are stored as hashes only.' }),
      limits: Type.Array(Declared, { description: 'In force for keys without a plan or an override.' }),
      shadowByWord: Type.Record(Type.String(), Type.Boolean(), {
        description: 'What operators have said, by limit; * for all.',
      }),
      stats: closed({
        storeErrors: Counts('Asked of the store without an answer, by reason.'),
        withoutStore: Counts('Requests that were answered without the store, by source.'),
        breakerOpened: Many,
      }),
      waiting: closed({
        length: Many,
        expectedWaitMs: Type.Union([Type.Number({ minimum: 0 }), Type.Null()]),
      }),
    }),
  ),
})

export const UsageAnswer = closed({
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
      perSecondBySource: Counts('Decisions per second, by where they came from.'),
    }),
  ),
})

export const TopAnswer = closed({
  limiter: LimiterName,
  by: Type.Enum(['requests', 'denials']),
  overMs: Type.Integer({ minimum: 0, description: 'How far back it reaches.' }),
  keys: Type.Array(
    closed({
      dimension: Type.Optional(Type.String()),
      key: Type.String(),
      count: Type.Integer({ minimum: 0, description: 'How often it came, at most.' }),
      error: Type.Integer({ minimum: 0, description: 'By how much less it may have been.' }),
    }),
  ),
})

export const OverridesAnswer = closed({
  limiter: LimiterName,
  overrides: Type.Array(
    closed({
      key: Type.String(),
      dimension: Type.Optional(Type.String()),
      limits: Type.Array(Declared),
      expiresInMs: Type.Integer({ minimum: 0, description: '0: never.' }),
    }),
  ),
})

export const AuditAnswer = closed({
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
})
