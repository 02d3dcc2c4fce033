import Type, { type Static, type TObject, type TProperties } from 'typebox'

/** An object that has nothing but these: a misspelt name is an error, not a default. */
function closed<Properties extends TProperties>(
  description: string,
  properties: Properties,
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false, description })
}

const NAME = '^[A-Za-z0-9._-]{1,64}$'
const Name = Type.String({ pattern: NAME, description: '1 to 64 of A-Z a-z 0-9 . _ -' })
const Names = Type.String({
  pattern: '^[A-Za-z0-9._*-]{1,64}$',
  description: 'A name; * stands for any characters.',
})
const Duration = Type.Union(
  [Type.Integer({ minimum: 0 }), Type.String({ pattern: '^[0-9]+(ms|s|m|h|d)$' })],
  {
    description: "Milliseconds, or a text such as '250ms', '10s', '1m', '1h', '7d'.",
  },
)
const Count = Type.Integer({ minimum: 1, maximum: 2 ** 40, description: 'Units: an integer from 1 to 2^40.' })
const FewCount = Type.Integer({ minimum: 1, maximum: 10_000, description: 'An integer from 1 to 10,000.' })
const File = Type.String({ minLength: 1, description: 'A file, relative to this one.' })

/** What limits of all kinds have. */
const naming = {
  name: Type.Optional(Name),
  shadow: Type.Optional(Type.Boolean({ description: 'Counted and reported, but decides nothing.' })),
}

export const LimitSchema = Type.Union(
  [
    closed('At most so many units in any window of this length: exact.', {
      kind: Type.Literal('slidingWindow'),
      limit: Count,
      window: Duration,
      precision: Type.Optional(Duration),
      log: Type.Optional(Type.Enum(['packed', 'zset', 'stream'])),
      ...naming,
    }),
    closed('At most so many units per window of the clock or the calendar; twice as many across its edge.', {
      kind: Type.Literal('fixedWindow'),
      limit: Count,
      window: Type.Optional(Duration),
      align: Type.Optional(Type.Enum(['epoch', 'first-hit', 'hour', 'day', 'week', 'month'])),
      timeZone: Type.Optional(Type.String({ description: 'An IANA name such as Europe/Berlin.' })),
      ...naming,
    }),
    closed('A sliding window estimated from two numbers.', {
      kind: Type.Literal('slidingCounter'),
      limit: Count,
      window: Duration,
      ...naming,
    }),
    closed('A bucket that is refilled evenly.', {
      kind: Type.Literal('tokenBucket'),
      capacity: Count,
      refill: Count,
      interval: Duration,
      ...naming,
    }),
    closed('At most so many at the same time; each is held for ttl, or until it is released.', {
      kind: Type.Literal('concurrency'),
      limit: FewCount,
      ttl: Duration,
      ...naming,
    }),
    closed('At most so many different values in any window of this length.', {
      kind: Type.Literal('distinct'),
      limit: FewCount,
      window: Duration,
      ...naming,
    }),
  ],
  { description: 'A limit: its kind, and the options of that kind.' },
)
export type LimitConfig = Static<typeof LimitSchema>

const Limits = Type.Array(LimitSchema, { minItems: 1, maxItems: 64 })
const Dimension = Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' })
const Dimensions = Type.Record(Dimension, Limits, { minProperties: 1, maxProperties: 16 })

const Rules = {
  limits: Type.Optional(Limits),
  dimensions: Type.Optional(Dimensions),
}

const PlanSchema = closed('Limits in place of the usual ones.', {
  ...Rules,
  keys: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Whose plan it is: keys, or patterns in which * stands for any characters. The first plan that fits counts.',
    }),
  ),
})

const BanSchema = closed('Blocks a key that is denied too often.', {
  after: Type.Integer({ minimum: 1, maximum: 1000 }),
  within: Duration,
  for: Type.Union([Duration, Type.Array(Duration, { minItems: 1, maxItems: 32 })]),
  forgetAfter: Type.Optional(Duration),
})

export const LimiterSchema = closed('What keys are held to: limits of one key, or dimensions of several.', {
  ...Rules,
  plans: Type.Optional(Type.Record(Name, PlanSchema)),
  choosePlan: Type.Optional(
    Type.Boolean({ description: 'Whether a request may say its plan. Default: false.' }),
  ),
  overrides: Type.Optional(
    Type.Array(
      closed('Limits of a single key.', {
        key: Type.String({ minLength: 1 }),
        dimension: Type.Optional(Dimension),
        limits: Limits,
      }),
    ),
  ),
  formerly: Type.Optional(
    Type.Array(Limits, {
      maxItems: 16,
      description: 'Limits that were in force before: what was used under them counts on. Only with limits.',
    }),
  ),
  shadow: Type.Optional(Type.Boolean({ description: 'Whether all limits are shadow limits.' })),
  ban: Type.Optional(
    Type.Union([Type.Boolean(), BanSchema], {
      description: 'true, the default: keys are blocked by hand only. false: never.',
    }),
  ),
  onStoreError: Type.Optional(Type.Enum(['throw', 'deny', 'allow', 'local'])),
  instances: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 20 })),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
  breaker: Type.Optional(
    closed('When a store that fails is no longer asked for a moment.', {
      failureRate: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
      minRequests: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 20 })),
      maxPauseMs: Type.Optional(Type.Integer({ minimum: 10, maximum: 60_000 })),
    }),
  ),
  maxWaiting: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 20 })),
  reservationTtl: Type.Optional(Duration),
  hashKeys: Type.Optional(
    Type.String({ minLength: 16, description: 'A secret; keys are stored as their HMAC.' }),
  ),
})
export type LimiterConfig = Static<typeof LimiterSchema>

const MemorySchema = closed('State in this process.', {
  maxKeys: Type.Optional(Type.Integer({ minimum: 1 })),
  onFull: Type.Optional(Type.Enum(['throw', 'deny', 'allow'])),
})

const RedisSchema = closed('State in Redis 7.0 or Valkey 7.2, or later.', {
  url: Type.Union([
    Type.String({ minLength: 1 }),
    Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  ]),
  cluster: Type.Optional(Type.Boolean()),
  prefix: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9._:-]{1,128}$' })),
  buckets: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
  tls: Type.Optional(
    closed('With rediss:// URLs.', {
      ca: Type.Optional(File),
      cert: Type.Optional(File),
      key: Type.Optional(File),
      servername: Type.Optional(Type.String()),
    }),
  ),
})

const StoreSchema = closed(
  'Where the state lives: one of both. Default: redis with REDIS_URL, else memory.',
  {
    memory: Type.Optional(MemorySchema),
    redis: Type.Optional(RedisSchema),
  },
)
export type StoreConfig = Static<typeof StoreSchema>

const Address = Type.String({
  pattern: '^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$',
  description:
    "An address and a port: '127.0.0.1:8080', '0.0.0.0:8080', '[::1]:8080'. Port 0: any that is free.",
})

const ListenSchema = closed('Where the service listens. Loopback, unless told otherwise.', {
  http: Type.Optional(Address),
  grpc: Type.Optional(Type.Union([Address, Type.Literal(false)])),
  tls: Type.Optional(
    closed('TLS for both; with clientCa only clients with a certificate of it are let in.', {
      cert: File,
      key: File,
      clientCa: Type.Optional(File),
    }),
  ),
})

const RuleSchema = closed(
  'A request of a gateway, and what it is counted by. The first rule that fits counts.',
  {
    when: Type.Optional(
      closed('What the request has to be. Left out: any.', {
        host: Type.Optional(Type.String({ description: '* stands for any characters.' })),
        path: Type.Optional(Type.String({ description: '* stands for any characters, slashes too.' })),
        method: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })])),
      }),
    ),
    limiter: Type.Optional(Name),
    allow: Type.Optional(Type.Boolean({ description: 'In place of a limiter: always let pass.' })),
    key: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), Type.Record(Dimension, Type.String({ minLength: 1 }))], {
        description:
          "The key, or one for each dimension, with {address}, {host}, {path}, {method}, {header:x-api-key}, {cookie:session}. Default: '{address}'.",
      }),
    ),
    cost: Type.Optional(Type.Union([Count, Type.String({ description: 'Of a header: {header:x-cost}.' })])),
    plan: Type.Optional(Type.String({ description: 'A plan, or whose it is: {header:x-plan}.' })),
    deniedStatus: Type.Optional(
      Type.Enum([429, 403, 401], {
        description: 'What the denied are answered: nginx understands 403. Default: 429.',
      }),
    ),
  },
)
export type RuleConfig = Static<typeof RuleSchema>

const ForwardAuthSchema = closed('What gateways ask before they let a request pass.', {
  rules: Type.Optional(Type.Array(RuleSchema)),
  fromHeaders: Type.Optional(
    Type.Boolean({
      description:
        'Whether X-Slidegate-Limiter and X-Slidegate-Key of the gateway count where no rule fits. Only where it overwrites those of its clients. Default: false.',
    }),
  ),
  trust: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum: 32 }), Type.Array(Type.String())], {
      description:
        'Proxies between the client and the service that are believed: how many, or their networks. The gateway is the first. Default: 1.',
    }),
  ),
})
export type ForwardAuthConfig = Static<typeof ForwardAuthSchema>

const Generation = Type.Enum(['draft-11', 'draft-7', 'draft-6', 'legacy'])

const EnvoySchema = closed('The rate limit service of Envoy.', {
  files: Type.Array(File, {
    description: 'Files in the format of envoyproxy/ratelimit, or folders of them: a domain each.',
  }),
  limitOverrides: Type.Optional(
    Type.Boolean({ description: 'Whether requests may bring limits of their own. Default: false.' }),
  ),
  headers: Type.Optional(
    Type.Union([Type.Boolean(), Generation], {
      description: 'Rate limit headers that are added to responses. Default: draft-11.',
    }),
  ),
  onStoreError: Type.Optional(Type.Enum(['throw', 'deny', 'allow', 'local'])),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
})
export type EnvoyConfig = Static<typeof EnvoySchema>

const Role = Type.Enum(['check', 'read', 'admin'], {
  description: 'check: ask for decisions. read: look at everything, too. admin: change it, too.',
})
export type Role = Static<typeof Role>

const TokenSchema = closed('Who may ask, and for what. One of token and sha256.', {
  name: Type.String({ pattern: NAME, description: 'What the audit calls him.' }),
  role: Role,
  token: Type.Optional(
    Type.String({ minLength: 16, description: 'The secret; best from the environment: ${TOKEN}.' }),
  ),
  sha256: Type.Optional(
    Type.String({ pattern: '^[0-9a-f]{64}$', description: 'The SHA-256 of the secret, in hex.' }),
  ),
  limiters: Type.Optional(Type.Array(Names, { minItems: 1, description: 'Default: all.' })),
  ownLimits: Type.Optional(
    Type.Array(Names, {
      minItems: 1,
      description:
        'Names of limiters whose limits this caller declares himself, as a store of the library. Default: none.',
    }),
  ),
})
export type TokenConfig = Static<typeof TokenSchema>

const AuthSchema = closed('Who is let in.', {
  tokens: Type.Optional(Type.Array(TokenSchema)),
  anonymous: Type.Optional(
    Type.Union([Role, Type.Literal(false)], {
      description:
        'What callers without a token may do. Default: all on loopback while there are no tokens, else nothing.',
    }),
  ),
  hosts: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Host headers that are answered besides addresses and localhost.',
    }),
  ),
  origins: Type.Optional(
    Type.Array(Type.String(), { description: 'Origins of web pages that may call. Default: none.' }),
  ),
})
export type AuthConfig = Static<typeof AuthSchema>

const CapsSchema = closed('How much is taken at most.', {
  bodyBytes: Type.Optional(
    Type.Integer({ minimum: 1024, maximum: 64 * 2 ** 20, description: 'Default: 1 MiB.' }),
  ),
  requestsPerCall: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'Default: 1000.' }),
  ),
  descriptors: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1024, description: 'Of one call by gRPC. Default: 64.' }),
  ),
  inFlight: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Requests under way at a time. Default: 10,000.' }),
  ),
  waiting: Type.Optional(Duration),
})
export type CapsConfig = Static<typeof CapsSchema>

const LoggingSchema = closed('What is logged, as lines of JSON.', {
  level: Type.Optional(Type.Enum(['debug', 'info', 'warn', 'error', 'silent'])),
  keys: Type.Optional(
    Type.Enum(['hashed', 'plain'], { description: 'How keys are written. Default: hashed.' }),
  ),
})

export const ConfigSchema = closed('The configuration of the slidegate service.', {
  $schema: Type.Optional(Type.String()),
  listen: Type.Optional(ListenSchema),
  store: Type.Optional(StoreSchema),
  limiters: Type.Record(Name, LimiterSchema),
  forwardAuth: Type.Optional(ForwardAuthSchema),
  envoy: Type.Optional(EnvoySchema),
  auth: Type.Optional(AuthSchema),
  caps: Type.Optional(CapsSchema),
  logging: Type.Optional(LoggingSchema),
})
export type Config = Static<typeof ConfigSchema>
