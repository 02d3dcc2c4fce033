// Schemas that several routes share.

import { type TObject, type TProperties, type TSchema, Type } from '../json-schema.ts'

/** An object that has nothing but these: a misspelt name is an error, never passed over. */
export function closed<Properties extends TProperties>(
  properties: Properties,
  options: { readonly description?: string; readonly examples?: readonly unknown[] } = {},
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

export const LimiterName = Type.String({
  pattern: '^[A-Za-z0-9._-]{1,64}$',
  description: 'The name of a limiter of the configuration.',
  examples: ['api'],
})

/** A dimension, or a plan. */
const Name = '^[A-Za-z0-9._-]{1,64}$'

const KeyText = Type.String({ minLength: 1 })

export const Key = Type.Union(
  [
    KeyText,
    Type.Record(Type.String({ pattern: Name }), Type.Union([KeyText, Type.Null()]), { maxProperties: 16 }),
  ],
  {
    description:
      'Whom to count: a text of up to 64 KiB in UTF-8. Of a limiter with dimensions an object with a text for each, or null where the request has none of it.',
    examples: ['ann', { user: 'ann', address: '192.0.2.7' }],
  },
)

export const Cost = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Units that the request takes. Default: 1.',
})

export const Value = Type.String({
  minLength: 1,
  description: 'What a distinct limit counts: needed with one, refused without.',
})

export const Plan = Type.String({
  pattern: Name,
  description:
    'A plan of the limiter, where it says choosePlan: the request is held to the limits of that one.',
})

export const RequestId = Type.String({
  minLength: 1,
  description:
    'Identifies the request. With a limit that keeps requests one by one (log: zset), a repeated request is charged once, and refused if it costs more than that. A caller who chooses the id of an admitted request is admitted, so choose it yourself.',
})

const Ms = Type.Integer({ minimum: 0 })
/** Infinity, which JSON does not have, is null. */
const MsOrNever = Type.Union([Ms, Type.Null()], { description: 'Milliseconds; null: never.' })
const Units = Type.Integer({ minimum: 0 })

const limitDecision = {
  name: Type.String(),
  limit: Type.Integer({ minimum: 1, description: 'Units that the window admits.' }),
  windowMs: Ms,
  precisionMs: Type.Integer({ minimum: 0, description: 'The step in which the window slides.' }),
  shadow: Type.Boolean({ description: 'Counted and reported, but decides nothing.' }),
  allowed: Type.Boolean({ description: 'Whether this limit had room.' }),
  remaining: Units,
  retryAfterMs: MsOrNever,
  resetAfterMs: MsOrNever,
}

const DeniedBy = Type.Array(Type.String(), {
  description:
    'The bans in force (ban, or ip.ban of a dimension), then the enforced limits without room, in the order of the configuration.',
})
const AtMs = Type.Integer({
  description: "The instant of the decision, in epoch milliseconds by the store's clock.",
})

const Blocked = Type.Union([Ms, Type.Null()], {
  description: 'Of a blocked key: until its ban or block ends; null: until it is unblocked.',
})

const decision = {
  limiter: LimiterName,
  allowed: Type.Boolean(),
  cost: Type.Integer({ minimum: 1 }),
  remaining: Type.Union([Units, Type.Null()], {
    description:
      'Whole units left, the least over the enforced limits; null where none is enforced, 0 if a ban denies.',
  }),
  retryAfterMs: Type.Union([Ms, Type.Null()], {
    description:
      'Until the same request would be admitted: the ban is over, and the limits have room. 0 when allowed, null where it never will be.',
  }),
  resetAfterMs: Type.Union([Ms, Type.Null()], { description: 'Until all quota is back.' }),
  deniedBy: DeniedBy,
  limits: Type.Array(closed(limitDecision)),
  source: Type.Enum(['store', 'lease', 'denyCache', 'fallback', 'failOpen', 'failClosed'], {
    description:
      'Who has decided. store: the store. fallback: this process, by its share of the limits, while the store gave no answer. failOpen, failClosed: nothing could be known.',
  }),
  blockedMs: Type.Optional(Blocked),
  atMs: AtMs,
}

const exampleDecision = {
  limiter: 'api',
  allowed: true,
  cost: 1,
  remaining: 9,
  retryAfterMs: 0,
  resetAfterMs: 1000,
  deniedBy: [],
  limits: [
    {
      name: '10-per-1s',
      limit: 10,
      windowMs: 1000,
      precisionMs: 10,
      shadow: false,
      allowed: true,
      remaining: 9,
      retryAfterMs: 0,
      resetAfterMs: 1000,
    },
  ],
  source: 'store',
  atMs: 1_700_000_000_000,
}

/** Schemas that answers of several routes have in common, by the name that they have in the description of the API. */
export const SHARED = {
  Decision: closed(decision, { description: 'The answer to one request.', examples: [exampleDecision] }),
  RefundableDecision: closed(
    {
      ...decision,
      refundToken: Type.Optional(
        Type.String({
          description:
            'For /v1/refund. Only of requests that were allowed and asked for it. It holds the key.',
        }),
      ),
    },
    { description: 'The answer to one request.', examples: [exampleDecision] },
  ),
  ReservedDecision: closed(
    {
      ...decision,
      token: Type.Optional(
        Type.String({
          description: 'For /v1/settle and /v1/cancel. Only where it was allowed. It holds the key.',
        }),
      ),
    },
    {
      description: 'The answer to an estimate.',
      examples: [{ ...exampleDecision, token: 'WzEsImFwaSIs...' }],
    },
  ),
  Explanation: closed(
    {
      limiter: LimiterName,
      atMs: AtMs,
      allowed: Type.Boolean({ description: 'Whether a request of this cost would be admitted now.' }),
      cost: Type.Integer({ minimum: 1 }),
      deniedBy: DeniedBy,
      retryAfterMs: MsOrNever,
      blockedMs: Blocked,
      limits: Type.Array(
        closed({
          ...limitDecision,
          used: Type.Integer({ minimum: 0, description: 'Units that count now.' }),
          oldestAtMs: Type.Optional(
            Type.Integer({ description: 'When the oldest charge that counts was made.' }),
          ),
          frees: Type.Array(closed({ afterMs: Ms, units: Units }), {
            description: 'When how many units in all are free again.',
          }),
          charges: Type.Optional(
            Type.Array(closed({ atMs: Type.Integer(), units: Units }), {
              description:
                'Asked for with charges, of limits that keep the times of charges: the latest that count, oldest first, those of one step of the window as one. 512 at most.',
            }),
          ),
          olderUnits: Type.Optional(
            Type.Integer({
              minimum: 0,
              description: 'Beside charges: units that count and are older than those listed.',
            }),
          ),
          declared: Type.Optional(
            Type.Object(
              { kind: Type.String() },
              {
                additionalProperties: true,
                description: 'Asked for with charges: what the limit was made of, as in a configuration.',
              },
            ),
          ),
        }),
      ),
      bans: Type.Array(
        closed({
          dimension: Type.Optional(Type.String()),
          blockedMs: Blocked,
          level: Type.Integer({ minimum: 0, description: 'Bans in a row that are remembered.' }),
          denials: Type.Integer({ minimum: 0, description: 'Denials that count towards the next.' }),
        }),
      ),
      overrides: Type.Array(
        closed({
          key: Type.String({ description: 'With hashKeys as it is stored.' }),
          dimension: Type.Optional(Type.String()),
          limits: Type.Optional(
            Type.Record(
              Type.String(),
              closed({
                limit: Type.Optional(Units),
                windowMs: Type.Optional(Ms),
                capacity: Type.Optional(Units),
                refill: Type.Optional(Units),
              }),
              { description: 'Numbers by the name of their limit; of the only limit by an empty name.' },
            ),
          ),
          exempt: Type.Optional(Type.Literal(true, { description: 'Its limits only count.' })),
          expiresInMs: Type.Optional(
            Type.Integer({ minimum: 0, description: 'Until limits or exempt end; left out: never.' }),
          ),
          blockedMs: Type.Optional(Blocked),
          unused: Type.Optional(
            Type.Array(Type.String(), {
              description:
                'Names of limits that the key does not have now, or that cannot have these numbers.',
            }),
          ),
        }),
        { description: 'What was set for this key by the API.' },
      ),
    },
    { description: 'All that is known of a key.' },
  ),
  Problem: Type.Object(
    {
      title: Type.String(),
      status: Type.Integer({ minimum: 400, maximum: 599 }),
      code: Type.String({ description: 'What is wrong, for programs.' }),
      detail: Type.String({ description: 'What is wrong, and what would be right, for people.' }),
    },
    {
      description: 'A problem of RFC 9457.',
      examples: [
        { title: 'Bad request', status: 400, code: 'invalid_request', detail: 'cost must be an integer' },
      ],
    },
  ),
} satisfies Record<string, TSchema>

/** The shared schema of that name. */
export function shared(name: keyof typeof SHARED): TSchema {
  return Type.Ref(`${name}#`)
}

/** An answer that is a problem. */
export function problemAnswer(description: string): unknown {
  return { description, content: { 'application/problem+json': { schema: shared('Problem') } } }
}
