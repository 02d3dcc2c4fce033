// Every field of the configuration, as schema and as type.

import {
  type Static,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnsafe,
  Type,
} from '../json-schema.ts'

/*
 * Titles say what a value has to be, in words that follow "it must be"; descriptions say what it is for, and are what
 * editors show. What `writeOnly` marks is a secret: no message repeats it.
 */

/** An object that has nothing but these: a misspelt name is an error, not a default. */
function closed<Properties extends TProperties>(
  description: string,
  properties: Properties,
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false, description })
}

/** An object whose names are free to choose, within a pattern. */
function named<Value extends TSchema>(
  name: { readonly pattern: string; readonly title: string },
  value: Value,
  options: { readonly description: string; readonly minProperties?: number; readonly maxProperties?: number },
): TUnsafe<Record<string, Static<Value>>> {
  const { pattern, title } = name
  return Type.Unsafe<Record<string, Static<Value>>>({
    type: 'object',
    propertyNames: { type: 'string', pattern, title },
    additionalProperties: value,
    ...options,
  })
}

function word<Word extends string>(description: string, ...words: Word[]): TUnsafe<Word> {
  return Type.Unsafe<Word>({ type: 'string', enum: words, description })
}

function oneOf<Word extends string>(description: string, ...words: Word[]): TOptional<TUnsafe<Word>> {
  return Type.Optional(word(description, ...words))
}

function flag(description: string): TOptional<ReturnType<typeof Type.Boolean>> {
  return Type.Optional(Type.Boolean({ description }))
}

const Name = { pattern: '^[A-Za-z0-9._-]{1,64}$', title: 'a name of 1 to 64 of A-Z a-z 0-9 . _ -' }
const Names = Type.String({
  pattern: '^[A-Za-z0-9._*-]{1,64}$',
  title: 'a name, in which * stands for any characters',
})

function duration(description: string) {
  return Type.Union(
    [
      Type.Integer({ minimum: 0, maximum: 2 ** 53 - 1, title: 'whole milliseconds' }),
      Type.String({
        pattern: '^[0-9]{1,15}(ms|s|m|h|d)$',
        title: "a duration such as '250ms', '10s', '1m', '1h' or '7d'",
      }),
    ],
    { description },
  )
}

function count(description: string, maximum = 2 ** 40) {
  return Type.Integer({ minimum: 1, maximum, description })
}

function text(description: string) {
  return Type.String({ minLength: 1, description })
}

function file(description: string) {
  return Type.String({ minLength: 1, title: 'the name of a file', description })
}

/** What limits of all kinds have. */
const naming = {
  name: Type.Optional(
    Type.String({
      ...Name,
      description: 'What decisions, headers and metrics call it. Default: such as 100-per-1m.',
    }),
  ),
  shadow: flag('Whether it is counted and reported, but decides nothing. Default: false.'),
}

const KINDS = [
  closed('At most so many units in any window of this length: exact.', {
    kind: Type.Literal('slidingWindow'),
    limit: count('Units that any window holds.'),
    window: duration('Its length, from 10ms to 366d.'),
    precision: Type.Optional(
      duration(
        'The step in which the window slides; requests count longer by less than so much. Default: the finest that fits.',
      ),
    ),
    log: oneOf(
      'How it is kept: packed into runs, or request by request, for audits. Default: packed.',
      'packed',
      'zset',
      'stream',
    ),
    ...naming,
  }),
  closed('Up to `limit` units per window of the clock, and twice as many across its edge.', {
    kind: Type.Literal('fixedWindow'),
    limit: count('Units that a window holds.'),
    window: duration('Its length, from 10ms to 366d.'),
    align: oneOf('Where windows begin. Default: epoch.', 'epoch', 'first-hit'),
    ...naming,
  }),
  closed('Up to `limit` units per window of a calendar, and twice as many across its edge.', {
    kind: Type.Literal('calendarWindow'),
    limit: count('Units that a window holds.'),
    unit: word('Hours, days, ISO weeks (from Monday) or months.', 'hour', 'day', 'week', 'month'),
    timeZone: Type.Optional(text('An IANA name such as Europe/Berlin. Default: UTC.')),
    ...naming,
  }),
  closed('A sliding window estimated from two numbers.', {
    kind: Type.Literal('slidingCounter'),
    limit: count('Units that any window holds, by estimate.'),
    window: duration('Its length, from 10ms to 366d.'),
    ...naming,
  }),
  closed('A bucket that is refilled evenly.', {
    kind: Type.Literal('tokenBucket'),
    capacity: count('Units that the bucket holds: what may come at once.'),
    refill: count('Units that come back in each interval.'),
    interval: duration('From 10ms to 366d.'),
    ...naming,
  }),
  closed('At most so many at the same time; each is held for ttl, or until it is released.', {
    kind: Type.Literal('concurrency'),
    limit: count('How many at a time.', 10_000),
    ttl: duration('After which one that was not released counts no longer, from 10ms to 366d.'),
    ...naming,
  }),
  closed(
    'At most `limit` different values in any window of this length. Needs a limiter of its own: one limit, no dimensions.',
    {
      kind: Type.Literal('distinct'),
      limit: count('How many different values: up to 10,000, or 1,000,000 with `approximate`.', 1_000_000),
      window: duration('Its length, from 10ms to 366d.'),
      approximate: flag('Whether they are estimated, for large limits. Default: false.'),
      ...naming,
    },
  ),
] as const

/** By its kind, so that what is wrong is told of that kind alone. */
export const LimitSchema = Type.Unsafe<Static<(typeof KINDS)[number]>>({
  type: 'object',
  description: 'A limit: its kind, and the options of that kind.',
  discriminator: { propertyName: 'kind' },
  oneOf: KINDS,
})
export type LimitConfig = Static<typeof LimitSchema>

/** Written once, for it is in many places. */
const Limit = Type.Unsafe<LimitConfig>({ $ref: '#/$defs/limit' })

function limits(description: string) {
  return Type.Array(Limit, { minItems: 1, maxItems: 64, description })
}

const Dimension = { pattern: '^[A-Za-z0-9_-]{1,64}$', title: 'a name of 1 to 64 of A-Z a-z 0-9 _ -' }

const Rules = {
  limits: Type.Optional(limits('What a key is held to: all of it.')),
  dimensions: Type.Optional(
    named(Dimension, limits('What keys of this dimension are held to: all of it.'), {
      minProperties: 1,
      maxProperties: 16,
      description:
        'In place of limits, where a request is counted by several keys, such as user and address: the limits of each.',
    }),
  ),
}

const PlanSchema = closed('Limits in place of the usual ones.', {
  ...Rules,
  keys: Type.Optional(
    Type.Array(Type.String({ minLength: 1, title: 'a key, in which * stands for any characters' }), {
      description:
        'Whose plan it is: keys, or patterns in which * stands for any characters. The first plan that fits counts.',
    }),
  ),
})

const BanSchema = closed('Blocks a key that is denied too often.', {
  after: Type.Integer({ minimum: 1, maximum: 1000, description: 'Denials after which it is blocked.' }),
  within: duration('In any window of this length.'),
  for: Type.Union(
    [
      duration('For how long it is blocked.'),
      Type.Array(duration('For how long it is blocked this time.'), {
        minItems: 1,
        maxItems: 32,
        title: 'a list of durations',
      }),
    ],
    {
      description:
        'For how long it is blocked; of several, the first the first time, the second the second time.',
    },
  ),
  forgetAfter: Type.Optional(duration('After which earlier blocks no longer lengthen the next.')),
})

const onStoreError = oneOf(
  'What requests are told while the store gives no answer: throw (503), deny (429), allow, or local: decided by this process alone. Default: throw.',
  'throw',
  'deny',
  'allow',
  'local',
)
const timeoutMs = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 2 ** 31 - 1,
    description: 'Milliseconds after which a call to the store is given up. Default: 50.',
  }),
)

const LimiterSchema = closed('What keys are held to: limits of one key, or dimensions of several.', {
  ...Rules,
  plans: Type.Optional(
    named(Name, PlanSchema, {
      description: 'Limits in place of the usual ones, for some keys or for requests that say so.',
    }),
  ),
  choosePlan: flag('Whether a request may say its plan. Default: false.'),
  overrides: Type.Optional(
    Type.Union(
      [
        Type.Array(
          closed('Limits of a single key.', {
            key: text('Whose limits they are: exactly this key.'),
            dimension: Type.Optional(
              Type.String({
                ...Dimension,
                description: 'Of which dimension the key is, where the limiter has dimensions.',
              }),
            ),
            limits: limits('What the key is held to: all of it.'),
          }),
          { title: 'a list of overrides' },
        ),
        Type.Literal(false, { title: 'false' }),
      ],
      {
        description:
          'Limits of single keys, before those of any plan. The API changes the numbers of any key, or blocks it, on top. false: never; each decision then reads one record less.',
      },
    ),
  ),
  shadow: flag('Whether all limits are shadow limits. Default: false.'),
  ban: Type.Optional(BanSchema),
  onStoreError,
  instances: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 20,
      description: 'How many processes share the limits, for onStoreError: local. Default: 1.',
    }),
  ),
  timeoutMs,
  breaker: Type.Optional(
    closed('When a store that fails is no longer asked for a moment.', {
      failureRate: Type.Optional(
        Type.Number({
          exclusiveMinimum: 0,
          maximum: 1,
          description:
            'The share of requests without an answer from which on it is not asked, above 0 up to 1. Default: 0.5.',
        }),
      ),
      minRequests: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 2 ** 20,
          description: 'Among at least so many. Default: 5.',
        }),
      ),
      maxBackoffMs: Type.Optional(
        Type.Integer({
          minimum: 10,
          maximum: 60_000,
          description: 'Milliseconds between attempts at most: from 100 they double. Default: 500.',
        }),
      ),
    }),
  ),
  maxWaiting: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 20,
      description: 'Requests that may wait at a time, of all keys. Default: 10,000.',
    }),
  ),
  reservationTtl: Type.Optional(
    duration('For how long a reservation can be settled, from 10ms to 366d. Default: 1h.'),
  ),
  hashKeys: Type.Optional(
    Type.String({
      minLength: 16,
      writeOnly: true,
      title: 'a secret of 16 characters or more',
      description: 'A secret; keys are stored as their HMAC.',
    }),
  ),
})
export type LimiterConfig = Static<typeof LimiterSchema>

const MemorySchema = closed('State in this process.', {
  maxKeys: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 53 - 1,
      description: 'Keys held at most; then those go that are not at a limit. Default: 1,000,000.',
    }),
  ),
  onFull: oneOf(
    'What a new key is told where all that are held are at their limits. Default: throw.',
    'throw',
    'deny',
    'allow',
  ),
})

const RedisUrl = Type.String({
  pattern: '^(redis|valkey)s?://[^\\s/?#]+(/[0-9]*)?$',
  writeOnly: true,
  title: 'a URL such as redis://user:password@host:6379/0 or, with TLS, rediss://host',
})

const RedisSchema = closed('State in Redis 7.0 or Valkey 7.2, or later.', {
  url: Type.Union([RedisUrl, Type.Array(RedisUrl, { minItems: 1, title: 'a list of such' })], {
    writeOnly: true,
    description: 'The server; of a Cluster one or several, from which the others are found.',
  }),
  cluster: flag('Whether it is a Redis Cluster. Default: whether several URLs are given.'),
  prefix: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9._:-]{1,128}$',
      title: '1 to 128 of A-Z a-z 0-9 . _ : -',
      description: 'All keys begin with it and a colon. Default: slidegate.',
    }),
  ),
  buckets: Type.Optional(
    Type.Enum([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], {
      description:
        'Of a Cluster: over how many slots the keys are spread; the same in all processes. Default: 64.',
    }),
  ),
  tls: Type.Optional(
    closed('With rediss:// URLs.', {
      ca: Type.Optional(file('Certificates of those that may sign that of the server.')),
      cert: Type.Optional(file('The certificate that the server is shown.')),
      key: Type.Optional(file('Its key.')),
      servername: Type.Optional(text('The name that the certificate of the server has to bear.')),
    }),
  ),
})

const StoreSchema = closed(
  'Where the state lives: one of both. Default: redis with REDIS_URL, else memory. A change counts from the next start.',
  {
    memory: Type.Optional(MemorySchema),
    redis: Type.Optional(RedisSchema),
    timeoutMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2 ** 31 - 1,
        description:
          'Milliseconds after which /v1/store gives it up: fewer than the limiters wait that ask there. Default: 40.',
      }),
    ),
  },
)
export type StoreConfig = Static<typeof StoreSchema>

/** Of a listener, in the configuration and on the command line. */
export const ADDRESS = '^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$'
function address(description: string) {
  return Type.String({
    pattern: ADDRESS,
    title: "an address and a port such as '127.0.0.1:8080', '0.0.0.0:8080' or '[::1]:8080'",
    description,
  })
}

const ListenSchema = closed(
  'Where the service listens. Loopback, unless told otherwise. A change counts from the next start.',
  {
    http: Type.Optional(address('HTTP. Port 0 is any that is free. Default: 127.0.0.1:8080.')),
    grpc: Type.Optional(
      Type.Union([address('gRPC.'), Type.Literal(false)], {
        description: 'gRPC, for Envoy; false: not at all. Default: 127.0.0.1:8081 where there is envoy.',
      }),
    ),
    tls: Type.Optional(
      closed('TLS for both; with clientCa only clients with a certificate of it are let in.', {
        cert: file('The certificate, and those between it and its authority, as PEM.'),
        key: file('Its key, as PEM.'),
        clientCa: Type.Optional(file('Certificates of those that may sign those of clients, as PEM.')),
      }),
    ),
  },
)

const Template = 'with {address}, {host}, {path}, {method}, {header:x-api-key}, {cookie:session}'

const RuleSchema = closed(
  'A request of a gateway, and what it is counted by. The first rule that fits counts.',
  {
    when: Type.Optional(
      closed('What the request has to be. Left out: any.', {
        host: Type.Optional(text('* stands for any characters.')),
        path: Type.Optional(text('* stands for any characters, slashes too.')),
        method: Type.Optional(
          Type.Union([text('A method.'), Type.Array(text('A method.'), { minItems: 1 })], {
            description: 'One, or several.',
          }),
        ),
      }),
    ),
    limiter: Type.Optional(Type.String({ ...Name, description: 'The limiter that decides.' })),
    allow: flag('In place of a limiter: whether it is always let pass.'),
    key: Type.Optional(
      Type.Union(
        [
          text(`The key, ${Template}.`),
          named(Dimension, text('The key of this dimension.'), {
            minProperties: 1,
            description: 'The key of each dimension.',
          }),
        ],
        { description: `The key, or one for each dimension, ${Template}. Default: '{address}'.` },
      ),
    ),
    cost: Type.Optional(
      Type.Union(
        [
          Type.Integer({ minimum: 1, maximum: 2 ** 40 }),
          Type.String({
            pattern: '^\\{(header|cookie):[^{}]+\\}$',
            title: "what a header says, such as '{header:x-cost}'",
          }),
        ],
        { description: 'Units that the request takes, or the header that says it. Default: 1.' },
      ),
    ),
    plan: Type.Optional(text('A plan, or what says it: {header:x-plan}.')),
    deniedStatus: Type.Optional(
      Type.Enum([429, 403, 401], {
        description: 'What the denied are answered: nginx understands 403. Default: 429.',
      }),
    ),
  },
)
export type RuleConfig = Static<typeof RuleSchema>

const ForwardAuthSchema = closed('What gateways ask before they let a request pass.', {
  rules: Type.Optional(
    Type.Array(RuleSchema, { description: 'What requests are counted by. The first rule that fits counts.' }),
  ),
  fromHeaders: flag(
    'Whether X-Slidegate-Limiter and X-Slidegate-Key of the gateway count where no rule fits. Only where it overwrites those of its clients. Default: false.',
  ),
  trust: Type.Optional(
    Type.Union(
      [
        Type.Integer({ minimum: 0, maximum: 32 }),
        Type.Array(Type.String({ title: 'a network such as 10.0.0.0/8' }), { title: 'a list of networks' }),
      ],
      {
        description:
          'Proxies between the client and the service that are believed: how many, or their networks. The gateway is the first. Default: 1.',
      },
    ),
  ),
})
export type ForwardAuthConfig = Static<typeof ForwardAuthSchema>

const EnvoySchema = closed('The rate limit service of Envoy.', {
  files: Type.Array(file('A file, or a folder.'), {
    description: 'Files in the format of envoyproxy/ratelimit, or folders of them: a domain each.',
  }),
  limitOverrides: flag('Whether requests may bring limits of their own. Default: false.'),
  headers: Type.Optional(
    Type.Union([Type.Boolean(), Type.Enum(['draft-11', 'draft-7', 'draft-6', 'legacy'])], {
      description: 'Rate limit headers that are added to responses. Default: draft-11.',
    }),
  ),
  onStoreError,
  timeoutMs,
  instances: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 20,
      description: "How many instances share the limits where onStoreError is 'local'. Default: 1.",
    }),
  ),
  chargeOnStreamDone: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      description:
        'Domains, * for any characters, in which hits that a descriptor brings itself have happened already (apply_on_stream_done): they are charged even above the limit. Default: none.',
    }),
  ),
})
export type EnvoyConfig = Static<typeof EnvoySchema>

export const Role = Type.Enum(['check', 'read', 'admin'], {
  description: 'check: ask for decisions. read: look at everything, too. admin: change it, too.',
})
export type Role = Static<typeof Role>

const TokenSchema = closed('Who may ask, and for what. One of token and sha256.', {
  name: Type.String({ ...Name, description: 'What the audit calls him.' }),
  role: Role,
  token: Type.Optional(
    Type.String({
      minLength: 16,
      writeOnly: true,
      title: 'a secret of 16 characters or more',
      description: 'The secret; best from the environment.',
    }),
  ),
  sha256: Type.Optional(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      writeOnly: true,
      title: '64 of 0-9 a-f',
      description: 'The SHA-256 of the secret, in hex.',
    }),
  ),
  limiters: Type.Optional(
    Type.Array(Names, {
      minItems: 1,
      description: 'What he may ask; * stands for any characters. Default: all.',
    }),
  ),
  ownLimiters: Type.Optional(
    Type.Array(Names, {
      minItems: 1,
      description:
        'Names of limiters whose limits this caller declares himself, as a store of the library. Default: none.',
    }),
  ),
})
export type TokenConfig = Static<typeof TokenSchema>

const AuthSchema = closed('Who is let in.', {
  tokens: Type.Optional(Type.Array(TokenSchema, { description: 'Those who are known.' })),
  anonymous: Type.Optional(
    Type.Union([Role, Type.Literal(false)], {
      description:
        'What callers without a token may do. Default: on loopback, while there are no tokens, ask for decisions, explain a key and read metrics, but not through a proxy; else nothing.',
    }),
  ),
  hosts: Type.Optional(
    Type.Array(text('A host.'), {
      description:
        'Host headers that are answered besides addresses and localhost; * stands for any characters.',
    }),
  ),
  origins: Type.Optional(
    Type.Array(text('An origin.'), { description: 'Origins of web pages that may call. Default: none.' }),
  ),
})
export type AuthConfig = Static<typeof AuthSchema>

const CapsSchema = closed('How much is taken at most.', {
  bodyBytes: Type.Optional(
    Type.Integer({ minimum: 1024, maximum: 64 * 2 ** 20, description: 'Of one request. Default: 512 KiB.' }),
  ),
  requestsPerCall: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'Of one call. Default: 1000.' }),
  ),
  descriptors: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1024, description: 'Of one call by gRPC. Default: 64.' }),
  ),
  inFlight: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 20,
      description: 'Requests under way at a time. Default: 10,000.',
    }),
  ),
  wait: Type.Optional(duration('For how long /v1/wait waits at most. Default: 30s.')),
})
export type CapsConfig = Static<typeof CapsSchema>

const LoggingSchema = closed('What is logged, as lines of JSON.', {
  level: oneOf('What is worth a line. Default: info.', 'debug', 'info', 'warn', 'error', 'silent'),
  keys: oneOf('How keys are written. Default: hashed.', 'hashed', 'plain'),
  decisions: oneOf(
    'Which decisions have a line each, whatever the level is. Default: none.',
    'none',
    'denied',
    'all',
  ),
  decisionFile: Type.Optional(file('Where lines of decisions are appended. Default: to the log.')),
})

const CaptureSchema = closed('A sample of what is decided, to be replayed. Default: none.', {
  sampleRatio: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      maximum: 1,
      description: 'The share of keys whose requests are captured, all of each. Default: 1, every key.',
    }),
  ),
  file: Type.Optional(file('The file that lines are appended to.')),
  stream: flag('In place of a file: whether lines go to a stream in the Redis of the store. Default: false.'),
  maxBytes: Type.Optional(
    Type.Integer({
      minimum: 4096,
      maximum: 2 ** 40,
      description: 'Of the file; then it becomes the former one, and another is begun. Default: 64 MiB.',
    }),
  ),
  maxLength: Type.Optional(
    Type.Integer({
      minimum: 100,
      maximum: 100_000_000,
      description: 'Requests that the stream keeps, about. Default: 100,000.',
    }),
  ),
  limiters: Type.Optional(
    Type.Array(Names, {
      minItems: 1,
      description: 'Whose requests are captured; * stands for any characters. Default: all.',
    }),
  ),
  secret: Type.Optional(
    Type.String({
      minLength: 16,
      writeOnly: true,
      title: 'a secret of 16 characters or more',
      description: 'By which keys are hashed. Default: drawn by each instance when it starts.',
    }),
  ),
})
export type CaptureConfig = Static<typeof CaptureSchema>

const TracingSchema = Type.Union(
  [
    Type.Boolean(),
    closed('Where spans go, and of how many requests.', {
      endpoint: Type.Optional(
        Type.String({
          pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
          title: 'a URL such as http://collector:4318',
          description: 'The collector, for OTLP over HTTP. Default: OTEL_EXPORTER_OTLP_ENDPOINT.',
        }),
      ),
      sampleRatio: Type.Optional(
        Type.Number({
          minimum: 0,
          maximum: 1,
          description:
            'The share of requests that are traced, of those whose caller does not say. Default: OTEL_TRACES_SAMPLER.',
        }),
      ),
    }),
  ],
  {
    description:
      'A span for each decision, for OpenTelemetry. true: as the environment says. Default: false. A change counts from the next start.',
  },
)
export type TracingConfig = Exclude<Static<typeof TracingSchema>, false>

export const ConfigSchema = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: 'Where editors find what is allowed here.' })),
    listen: Type.Optional(ListenSchema),
    store: Type.Optional(StoreSchema),
    limiters: Type.Optional(
      named(Name, LimiterSchema, { description: 'What can be asked, by name. Default: none.' }),
    ),
    forwardAuth: Type.Optional(ForwardAuthSchema),
    envoy: Type.Optional(EnvoySchema),
    auth: Type.Optional(AuthSchema),
    caps: Type.Optional(CapsSchema),
    readiness: oneOf(
      'When /readyz answers 503, besides while the service drains. always: never. store: while the store is down, if a limiter throws or denies without it. Default: always.',
      'always',
      'store',
    ),
    logging: Type.Optional(LoggingSchema),
    capture: Type.Optional(CaptureSchema),
    tracing: Type.Optional(TracingSchema),
  },
  {
    additionalProperties: false,
    description: 'The configuration of the slidegate service.',
    $defs: { limit: LimitSchema },
  },
)
type Read = Static<typeof ConfigSchema>
/** As it was checked: there are limiters, if none. */
export type Config = Read & Required<Pick<Read, 'limiters'>>
