// Schemas that several routes share.

import { type TObject, type TProperties, type TSchema, Type } from '../json-schema.ts'

/** Returns a schema for an object without other fields, so misspelled names are errors. */
export function closed<Properties extends TProperties>(
  properties: Properties,
  options: { readonly description?: string; readonly examples?: readonly unknown[] } = {},
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

export const LimiterName = Type.String({
  pattern: '^[A-Za-z0-9._-]{1,64}$',
  description: 'Name of a limiter in the configuration.',
  examples: ['api'],
})

/** Pattern for dimension and plan names. */
const Name = '^[A-Za-z0-9._-]{1,64}$'

const KeyText = Type.String({ minLength: 1 })

export const Key = Type.Union(
  [
    KeyText,
    Type.Record(Type.String({ pattern: Name }), Type.Union([KeyText, Type.Null()]), { maxProperties: 16 }),
  ],
  {
    description:
      'The key to count, such as a user ID: a string of up to 64 KiB in UTF-8. For a limiter with dimensions, an object with a string for each dimension, or null for a dimension in which the request has no key.',
    examples: ['ann', { user: 'ann', address: '192.0.2.7' }],
  },
)

export const Cost = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Units that the request costs. Default: 1.',
})

export const Value = Type.String({
  minLength: 1,
  description:
    'The value that a `distinct` limit counts. Required for limiters with such a limit, and rejected for all others.',
})

export const Plan = Type.String({
  pattern: Name,
  description:
    'The plan whose limits apply to the request. Requires `choosePlan: true` in the configuration.',
})

export const RequestId = Type.String({
  minLength: 1,
  description:
    'Identifies the request. With a limit that stores each request (`log: zset`), a repeated request is charged once, and is rejected if it costs more than before. Any request with the ID of an allowed request is allowed, too, so never accept IDs from your clients.',
})

export const OnStoreError = Type.Enum(['throw', 'deny', 'allow', 'local'])

const Ms = Type.Integer({ minimum: 0 })
/** Milliseconds, with null for infinity, which JSON doesn't have. */
const MsOrNever = Type.Union([Ms, Type.Null()], { description: 'Milliseconds; null: never.' })
const Units = Type.Integer({ minimum: 0 })

const limitDecision = {
  name: Type.String(),
  limit: Type.Integer({ minimum: 1, description: 'Units allowed per window.' }),
  windowMs: Ms,
  precisionMs: Type.Integer({
    minimum: 0,
    description: 'Step by which the window slides, in milliseconds.',
  }),
  shadow: Type.Boolean({
    description: 'Whether it is a shadow limit, which counts and reports but never denies.',
  }),
  allowed: Type.Boolean({ description: 'Whether this limit allows the request.' }),
  remaining: Units,
  retryAfterMs: MsOrNever,
  resetAfterMs: MsOrNever,
}

const DeniedBy = Type.Array(Type.String(), {
  description:
    'The bans and blocks in force (`ban` or `block`, or `ip.ban` for a dimension `ip`), then the enforced limits that denied the request, in configuration order.',
})
const AtMs = Type.Integer({
  description: "Time of the decision, in epoch milliseconds on the store's clock.",
})

const Blocked = Type.Union([Ms, Type.Null()], {
  description: 'Milliseconds until the ban or block on the key ends; null: until it is unblocked.',
})

const decision = {
  limiter: LimiterName,
  allowed: Type.Boolean(),
  cost: Type.Integer({ minimum: 1 }),
  remaining: Type.Union([Units, Type.Null()], {
    description:
      'Whole units left: the lowest number across all enforced limits. null if no limit is enforced, 0 if a ban denies the request.',
  }),
  retryAfterMs: Type.Union([Ms, Type.Null()], {
    description:
      'Milliseconds until the same request would be allowed; 0 if it is allowed, null if it never will be.',
  }),
  resetAfterMs: Type.Union([Ms, Type.Null()], {
    description: 'Milliseconds until all quota is available again; null: never.',
  }),
  deniedBy: DeniedBy,
  limits: Type.Array(closed(limitDecision)),
  source: Type.Enum(['store', 'lease', 'denyCache', 'fallback', 'failOpen', 'failClosed'], {
    description:
      'Where the decision was made. `store`: in the store. `lease`, `denyCache`: in this process, based on an earlier response from the store. `fallback`: in this process, with its share of the limits, while the store is unavailable. `failOpen`, `failClosed`: allowed or denied without checking, because the store is unavailable.',
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

/** Response schemas that several routes share, by their names in the OpenAPI description. */
export const SHARED = {
  Decision: closed(decision, { description: 'The decision on one request.', examples: [exampleDecision] }),
  RefundableDecision: closed(
    {
      ...decision,
      refundToken: Type.Optional(
        Type.String({
          description:
            'Token for `/v1/refund`, if the request was allowed and `refundable`. Contains the key.',
        }),
      ),
    },
    { description: 'The decision on one request.', examples: [exampleDecision] },
  ),
  ReservedDecision: closed(
    {
      ...decision,
      token: Type.Optional(
        Type.String({
          description:
            'Token for `/v1/settle` and `/v1/cancel`, if the estimate was allowed. Contains the key.',
        }),
      ),
    },
    {
      description: 'The decision on an estimate.',
      examples: [{ ...exampleDecision, token: 'WzEsImFwaSIs...' }],
    },
  ),
  Explanation: closed(
    {
      limiter: LimiterName,
      atMs: AtMs,
      allowed: Type.Boolean({ description: 'Whether a request with this cost would be allowed now.' }),
      cost: Type.Integer({ minimum: 1 }),
      deniedBy: DeniedBy,
      retryAfterMs: MsOrNever,
      blockedMs: Blocked,
      limits: Type.Array(
        closed({
          ...limitDecision,
          used: Type.Integer({ minimum: 0, description: 'Units in use now.' }),
          oldestAtMs: Type.Optional(
            Type.Integer({
              description: 'When the oldest charge that still counts was made, in epoch milliseconds.',
            }),
          ),
          frees: Type.Array(closed({ afterMs: Ms, units: Units }), {
            description: 'When units become available again: `units` in total after `afterMs`.',
          }),
          charges: Type.Optional(
            Type.Array(closed({ atMs: Type.Integer(), units: Units }), {
              description:
                'With `charges: true`, for limits that store the time of each charge: the latest charges that still count, oldest first, at most 512. Charges in the same step of the window are combined.',
            }),
          ),
          olderUnits: Type.Optional(
            Type.Integer({
              minimum: 0,
              description: 'With `charges: true`: units from older charges that still count.',
            }),
          ),
          declared: Type.Optional(
            Type.Object(
              { kind: Type.String() },
              {
                additionalProperties: true,
                description: 'With `charges: true`: the limit as declared in the configuration.',
              },
            ),
          ),
        }),
      ),
      bans: Type.Array(
        closed({
          dimension: Type.Optional(Type.String()),
          blockedMs: Blocked,
          sinceMs: Type.Optional(
            Type.Integer({
              description: "When the ban began, in epoch milliseconds. Absent if the key isn't banned.",
            }),
          ),
          level: Type.Integer({ minimum: 0, description: 'Number of consecutive bans so far.' }),
          denials: Type.Integer({ minimum: 0, description: 'Denials that count toward the next ban.' }),
        }),
      ),
      overrides: Type.Array(
        closed({
          key: Type.String({ description: 'The key, or its hash if the limiter has `hashKeys`.' }),
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
              { description: "Numbers by limit name; the empty name stands for the key's only limit." },
            ),
          ),
          exempt: Type.Optional(
            Type.Literal(true, { description: 'The limits for the key count but never deny.' }),
          ),
          expiresInMs: Type.Optional(
            Type.Integer({
              minimum: 0,
              description: 'Milliseconds until `limits` or `exempt` expires; absent: never.',
            }),
          ),
          blockedMs: Type.Optional(Blocked),
          unused: Type.Optional(
            Type.Array(Type.String(), {
              description:
                "Names of limits that the key currently doesn't have, or that don't accept these numbers.",
            }),
          ),
        }),
        { description: 'Overrides set for this key through the API.' },
      ),
    },
    { description: 'The state of a key.' },
  ),
  Problem: Type.Object(
    {
      title: Type.String(),
      status: Type.Integer({ minimum: 400, maximum: 599 }),
      code: Type.String({ description: 'Error code for programs.' }),
      detail: Type.String({ description: 'Explanation for people: the error, and how to fix it.' }),
    },
    {
      description: 'A problem, as defined in RFC 9457.',
      examples: [
        { title: 'Bad request', status: 400, code: 'invalid_request', detail: 'cost must be an integer' },
      ],
    },
  ),
} satisfies Record<string, TSchema>

/** Returns a reference to a shared schema. */
export function shared(name: keyof typeof SHARED): TSchema {
  return Type.Ref(`${name}#`)
}

/** Describes the response to requests that were denied without the store, or failed. */
export function deniedWithoutStore(decision: TSchema): unknown {
  return {
    description:
      'The store is unavailable, or too many requests are in flight. The body is a decision if the store is unavailable and `onStoreError` is `deny`, and a problem otherwise. Retry after `Retry-After` seconds.',
    content: {
      'application/json': { schema: decision },
      'application/problem+json': { schema: shared('Problem') },
    },
  }
}

/** Describes an error response. */
export function problemAnswer(description: string): unknown {
  return { description, content: { 'application/problem+json': { schema: shared('Problem') } } }
}
