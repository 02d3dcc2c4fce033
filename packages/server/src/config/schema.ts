// Schema and type of every configuration field.

import {
  type Static,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnsafe,
  Type,
} from '../json-schema.ts'
import { REDIS_URL_PATTERN } from './redis-url.ts'

/*
 * In a message, a `title` completes "it must be ...". Editors show a `description` to explain the field. `writeOnly`
 * marks a secret, which messages never repeat.
 */

/** An object with only these fields. Other names are errors. */
function closed<Properties extends TProperties>(
  description: string,
  properties: Properties,
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false, description })
}

/** An object whose property names are chosen by the user and must match a pattern. */
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

const Name = {
  pattern: '^[A-Za-z0-9._-]{1,64}$',
  title: 'a name of 1 to 64 characters from A-Z a-z 0-9 . _ -',
}
const Names = Type.String({
  pattern: '^[A-Za-z0-9._*-]{1,64}$',
  title: 'a name, where * matches any characters',
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
  return Type.String({ minLength: 1, title: 'a file name', description })
}

/** Options that every kind of limit has. */
const naming = {
  name: Type.Optional(
    Type.String({
      ...Name,
      description:
        'Name in decisions, headers and metrics. Default: derived from the limit, such as 100-per-1m.',
    }),
  ),
  shadow: flag('Whether the limit is counted and reported but not enforced. Default: false.'),
}

const KINDS = [
  closed('At most `limit` units in any period of length `window`. Exact.', {
    kind: Type.Literal('slidingWindow'),
    limit: count('Units allowed in any period of length `window`.'),
    window: duration('Window length, from 10ms to 366d.'),
    precision: Type.Optional(
      duration(
        'Step by which the window slides. A request counts for up to one step longer than the window. Default: the finest possible.',
      ),
    ),
    log: oneOf(
      'How requests are stored: packed (compact), or zset or stream (one entry per request, for audits). Default: packed.',
      'packed',
      'zset',
      'stream',
    ),
    ...naming,
  }),
  closed(
    'At most `limit` units per fixed window. Around a boundary, up to twice as many can pass in a short time.',
    {
      kind: Type.Literal('fixedWindow'),
      limit: count('Units allowed per window.'),
      window: duration('Window length, from 10ms to 366d.'),
      align: oneOf(
        "When windows start: epoch (at multiples of `window` since the Unix epoch), or first-hit (at the key's first request). Default: epoch.",
        'epoch',
        'first-hit',
      ),
      ...naming,
    },
  ),
  closed(
    'At most `limit` units per calendar period. Around a boundary, up to twice as many can pass in a short time.',
    {
      kind: Type.Literal('calendarWindow'),
      limit: count('Units allowed per period.'),
      unit: word('The period: hour, day, ISO week (from Monday) or month.', 'hour', 'day', 'week', 'month'),
      timeZone: Type.Optional(
        text('An IANA name such as Europe/Berlin, or an offset such as +05:30. Default: UTC.'),
      ),
      ...naming,
    },
  ),
  closed('A sliding window, estimated from two counters.', {
    kind: Type.Literal('slidingCounter'),
    limit: count('Units allowed in any period of length `window`, according to the estimate.'),
    window: duration('Window length, from 10ms to 366d.'),
    ...naming,
  }),
  closed('A token bucket that refills at a constant rate.', {
    kind: Type.Literal('tokenBucket'),
    capacity: count('Bucket size: the largest burst.'),
    refill: count('Units added per interval.'),
    interval: duration('Refill interval, from 10ms to 366d.'),
    ...naming,
  }),
  closed('A concurrency limit. Each slot is held until it is released or its ttl expires.', {
    kind: Type.Literal('concurrency'),
    limit: count('Number of slots.', 10_000),
    ttl: duration('Time after which an unreleased slot expires, from 10ms to 366d.'),
    ...naming,
  }),
  closed(
    'At most `limit` distinct values in any period of length `window`. Needs its own limiter, without dimensions or other limits.',
    {
      kind: Type.Literal('distinct'),
      limit: count('Distinct values allowed: up to 10,000, or 1,000,000 with `approximate`.', 1_000_000),
      window: duration('Window length, from 10ms to 366d.'),
      approximate: flag('Whether to estimate the count, for large limits. Default: false.'),
      ...naming,
    },
  ),
] as const

/** Discriminated by `kind`, so that only errors for that kind are reported. */
export const LimitSchema = Type.Unsafe<Static<(typeof KINDS)[number]>>({
  type: 'object',
  description: "A limit: its kind, and that kind's options.",
  discriminator: { propertyName: 'kind' },
  oneOf: KINDS,
})
export type LimitConfig = Static<typeof LimitSchema>

/** A reference, because limits appear in many places. */
const Limit = Type.Unsafe<LimitConfig>({ $ref: '#/$defs/limit' })

/** A list, or text that `checkLimiters` replaces with a list. */
function limits(description: string) {
  return Type.Unsafe<LimitConfig[]>({
    ...{ type: ['array', 'string'], items: Limit, minItems: 1, maxItems: 64 },
    title: "a list of limits, or text such as '100/1m' or '10/1s, hourly=600/1h'",
    description,
  })
}

const Dimension = {
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  title: 'a name of 1 to 64 characters from A-Z a-z 0-9 _ -',
}

const Rules = {
  limits: Type.Optional(limits('Limits for each key. All of them apply.')),
  dimensions: Type.Optional(
    named(Dimension, limits('Limits for each key in this dimension. All of them apply.'), {
      minProperties: 1,
      maxProperties: 16,
      description:
        'Limits for each dimension, instead of `limits`. Each request then counts for several keys, such as a user and an address.',
    }),
  ),
}

const PlanSchema = closed("Limits that replace the limiter's own.", {
  ...Rules,
  keys: Type.Optional(
    Type.Array(Type.String({ minLength: 1, title: 'a key, where * matches any characters' }), {
      description: 'Keys on this plan; * matches any characters. The first matching plan applies.',
    }),
  ),
})

const BanSchema = closed('Bans a key that is denied too often.', {
  after: Type.Integer({
    minimum: 1,
    maximum: 1000,
    description: 'Number of denials after which the key is banned.',
  }),
  within: duration('Time window in which denials are counted.'),
  for: Type.Union(
    [
      duration('Length of the ban.'),
      Type.Array(duration('Length of this ban.'), {
        minItems: 1,
        maxItems: 32,
        title: 'a list of durations',
      }),
    ],
    {
      description: 'Length of the ban. A list gives the lengths of consecutive bans; its last entry repeats.',
    },
  ),
  forgetAfter: Type.Optional(
    duration('Time without a ban after which the list starts over. Default: the longest entry.'),
  ),
})

const onStoreError = oneOf(
  'Result of a request if the store fails: throw (an error, HTTP 503), deny (a denial, HTTP 503), allow, or local (this process enforces the limits on its own). Default: throw.',
  'throw',
  'deny',
  'allow',
  'local',
)
const timeoutMs = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: 2 ** 31 - 1,
    description: 'Timeout for a store call, in milliseconds. Default: 50.',
  }),
)

const LimiterSchema = closed(
  'A limiter: limits for one key per request, or dimensions, each with its own key and limits.',
  {
    ...Rules,
    plans: Type.Optional(
      named(Name, PlanSchema, {
        description:
          'Plans by name: alternative limits for the keys on a plan, or for requests that choose it.',
      }),
    ),
    choosePlan: flag('Whether a request may choose its plan. Default: false.'),
    overrides: Type.Optional(
      Type.Union(
        [
          Type.Array(
            closed('Limits for a single key.', {
              key: text('The exact key.'),
              dimension: Type.Optional(
                Type.String({
                  ...Dimension,
                  description: "The key's dimension, if the limiter has dimensions.",
                }),
              ),
              limits: limits('Limits for the key. All of them apply.'),
            }),
            { title: 'a list of overrides' },
          ),
          Type.Literal(false, { title: 'false' }),
        ],
        {
          description:
            'Limits for individual keys. They take precedence over plans. The API can also override the limits of any key, and block keys. false: no overrides or blocks, which saves one read per decision.',
        },
      ),
    ),
    shadow: flag('Whether all limits are shadow limits: counted but not enforced. Default: false.'),
    ban: Type.Optional(BanSchema),
    onStoreError,
    instances: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2 ** 20,
        description: 'Number of processes that share the limits, for onStoreError: local. Default: 1.',
      }),
    ),
    timeoutMs,
    breaker: Type.Optional(
      closed('The circuit breaker: pauses calls to a failing store.', {
        failureRate: Type.Optional(
          Type.Number({
            exclusiveMinimum: 0,
            maximum: 1,
            description: 'The breaker opens if this share of calls fails: above 0, up to 1. Default: 0.5.',
          }),
        ),
        minRequests: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 2 ** 20,
            description: 'Minimum number of calls before the breaker can open. Default: 5.',
          }),
        ),
        maxBackoffMs: Type.Optional(
          Type.Integer({
            minimum: 10,
            maximum: 60_000,
            description:
              'Longest pause between attempts, in milliseconds. Pauses start at 100 ms and double each time. Default: 500.',
          }),
        ),
      }),
    ),
    maxWaiting: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2 ** 20,
        description: 'Maximum number of waiting requests, across all keys. Default: 10,000.',
      }),
    ),
    reservationTtl: Type.Optional(
      duration('Time within which a reservation can be settled, from 10ms to 366d. Default: 1h.'),
    ),
    hashKeys: Type.Optional(
      Type.String({
        minLength: 16,
        writeOnly: true,
        title: 'a secret of at least 16 characters',
        description: 'A secret. Each key is stored as an HMAC that is computed with it.',
      }),
    ),
  },
)
export type LimiterConfig = Static<typeof LimiterSchema>

const MemorySchema = closed('Keeps state in this process.', {
  maxKeys: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 53 - 1,
      description:
        'Maximum number of keys. A full store evicts keys that are below their limits. Default: 1,000,000.',
    }),
  ),
  onFull: oneOf(
    'The result for a new key if every stored key is at its limit. Default: throw.',
    'throw',
    'deny',
    'allow',
  ),
})

const RedisUrl = Type.String({
  pattern: REDIS_URL_PATTERN,
  writeOnly: true,
  title: 'a URL such as redis://user:password@host:6379/0 or, with TLS, rediss://host',
})

const RedisSchema = closed('Keeps state in Redis (7.0 or later) or Valkey (7.2 or later).', {
  url: Type.Union([RedisUrl, Type.Array(RedisUrl, { minItems: 1, title: 'a list of such URLs' })], {
    writeOnly: true,
    description:
      'The server URL. For a Cluster, the URLs of one or more nodes; the other nodes are discovered.',
  }),
  cluster: flag('Whether Redis is a Cluster. Default: true if several URLs are given.'),
  prefix: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9._:-]{1,128}$',
      title: '1 to 128 characters from A-Z a-z 0-9 . _ : -',
      description: 'Prefix for all stored keys. A colon is added to it. Default: slidegate.',
    }),
  ),
  buckets: Type.Optional(
    Type.Enum([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], {
      description:
        'For a Cluster: the number of slots across which keys are spread. Use the same value in all processes. Default: 64.',
    }),
  ),
  tls: Type.Optional(
    closed('TLS, for rediss:// URLs.', {
      ca: Type.Optional(file("CA certificates that are trusted to sign the server's certificate.")),
      cert: Type.Optional(file('The client certificate.')),
      key: Type.Optional(file('The private key for the client certificate.')),
      servername: Type.Optional(text("The name expected in the server's certificate.")),
    }),
  ),
})

const StoreSchema = closed(
  'Where the state is stored: memory or redis. Default: redis if REDIS_URL is set, otherwise memory. Changes take effect at the next start.',
  {
    memory: Type.Optional(MemorySchema),
    redis: Type.Optional(RedisSchema),
    timeoutMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2 ** 31 - 1,
        description:
          "Timeout for /v1/store, in milliseconds. Set it below the clients' timeouts. Default: 40.",
      }),
    ),
  },
)
export type StoreConfig = Static<typeof StoreSchema>

/** A listener's address, in the configuration and on the command line. */
export const ADDRESS = '^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$'
function address(description: string) {
  return Type.String({
    pattern: ADDRESS,
    title: "an address and a port such as '127.0.0.1:8080', '0.0.0.0:8080' or '[::1]:8080'",
    description,
  })
}

const ListenSchema = closed(
  'Listen addresses. Default: loopback only. Changes take effect at the next start.',
  {
    http: Type.Optional(address('HTTP. Port 0 picks a free port. Default: 127.0.0.1:8080.')),
    grpc: Type.Optional(
      Type.Union([address('gRPC.'), Type.Literal(false)], {
        description: 'gRPC, for Envoy. false: disabled. Default: 127.0.0.1:8081 if envoy is configured.',
      }),
    ),
    tls: Type.Optional(
      closed('TLS for both listeners. With clientCa, clients need a certificate signed by one of its CAs.', {
        cert: file('The certificate with its intermediates, as PEM.'),
        key: file('The private key, as PEM.'),
        clientCa: Type.Optional(
          file('CA certificates that are trusted to sign client certificates, as PEM.'),
        ),
      }),
    ),
  },
)

const Template = 'with {address}, {host}, {path}, {method}, {header:x-api-key}, {cookie:session}'

const RuleSchema = closed(
  'A rule: which gateway requests it matches, and how they are limited. The first matching rule applies.',
  {
    when: Type.Optional(
      closed('Conditions that a request must meet. Default: none, so the rule matches every request.', {
        host: Type.Optional(text('Host pattern; * matches any characters.')),
        path: Type.Optional(text('Path pattern; * matches any characters, including slashes.')),
        method: Type.Optional(
          Type.Union([text('A method.'), Type.Array(text('A method.'), { minItems: 1 })], {
            description: 'One method, or a list.',
          }),
        ),
      }),
    ),
    limiter: Type.Optional(Type.String({ ...Name, description: 'The limiter to apply.' })),
    allow: flag('true: every matching request is allowed, without a limiter.'),
    key: Type.Optional(
      Type.Union(
        [
          text(`The key, or a template ${Template}.`),
          named(Dimension, text('The key in this dimension.'), {
            minProperties: 1,
            description: 'The key in each dimension.',
          }),
        ],
        {
          description: `The key, or a key for each dimension. May be a template ${Template}. Default: '{address}'.`,
        },
      ),
    ),
    cost: Type.Optional(
      Type.Union(
        [
          Type.Integer({ minimum: 1, maximum: 2 ** 40 }),
          Type.String({
            pattern: '^\\{(header|cookie):[^{}]+\\}$',
            title: "a header or cookie such as '{header:x-cost}'",
          }),
        ],
        {
          description:
            'Cost of the request in units, or the header or cookie that contains the cost. Default: 1.',
        },
      ),
    ),
    plan: Type.Optional(text('The plan to use, or a template such as {header:x-plan}.')),
    deniedStatus: Type.Optional(
      Type.Enum([429, 403, 401], {
        description: 'HTTP status for denials. Use 403 for nginx. Default: 429.',
      }),
    ),
  },
)
export type RuleConfig = Static<typeof RuleSchema>

const ForwardAuthSchema = closed(
  'Forward auth: a gateway calls this service to check each request before passing it on.',
  {
    rules: Type.Optional(
      Type.Array(RuleSchema, { description: 'Rules in order. The first matching rule applies.' }),
    ),
    fromHeaders: flag(
      'Whether the gateway may choose the limiter and key, with X-Slidegate-Limiter and X-Slidegate-Key, if no rule matches. Enable this only if the gateway overwrites these headers when clients send them. Default: false.',
    ),
    trust: Type.Optional(
      Type.Union(
        [
          Type.Integer({ minimum: 0, maximum: 32 }),
          Type.Array(Type.String({ title: 'a network such as 10.0.0.0/8' }), { title: 'a list of networks' }),
        ],
        {
          description:
            'Trusted proxies between the client and the service, including the gateway: their number, or their networks. Default: 1.',
        },
      ),
    ),
  },
)
export type ForwardAuthConfig = Static<typeof ForwardAuthSchema>

const EnvoySchema = closed("Envoy's rate limit service.", {
  files: Type.Array(file('A file, or a folder.'), {
    description:
      'Files in the format of envoyproxy/ratelimit, or folders of such files. Each file defines one domain.',
  }),
  limitOverrides: flag('Whether requests may carry limit overrides. Default: false.'),
  headers: Type.Optional(
    Type.Union([Type.Boolean(), Type.Enum(['draft-11', 'draft-7', 'draft-6', 'legacy'])], {
      description: 'Rate limit headers added to responses. Default: draft-11.',
    }),
  ),
  onStoreError,
  timeoutMs,
  instances: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 20,
      description: 'Number of instances that share the limits, for onStoreError: local. Default: 1.',
    }),
  ),
  chargeOnStreamDone: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      description:
        "Domains whose requests report usage afterward, with apply_on_stream_done. For these, a descriptor's own hits_addend is charged even above the limit. * matches any characters. Default: none.",
    }),
  ),
})
export type EnvoyConfig = Static<typeof EnvoySchema>

export const Role = Type.Enum(['check', 'read', 'admin'], {
  description: 'check: may request decisions. read: may also view everything. admin: may also make changes.',
})
export type Role = Static<typeof Role>

const TokenSchema = closed('A token and its permissions. Set either token or sha256.', {
  name: Type.String({ ...Name, description: 'Name of the caller in the audit log.' }),
  role: Role,
  token: Type.Optional(
    Type.String({
      minLength: 16,
      writeOnly: true,
      title: 'a secret of at least 16 characters',
      description: 'The secret. Prefer an environment variable.',
    }),
  ),
  sha256: Type.Optional(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      writeOnly: true,
      title: '64 characters from 0-9 a-f',
      description: 'The SHA-256 of the secret, in hex.',
    }),
  ),
  limiters: Type.Optional(
    Type.Array(Names, {
      minItems: 1,
      description: 'Limiters that this caller may use. * matches any characters. Default: all.',
    }),
  ),
  ownLimiters: Type.Optional(
    Type.Array(Names, {
      minItems: 1,
      description:
        'Names of limiters that this caller may declare when it uses the service as its store. Default: none.',
    }),
  ),
})
export type TokenConfig = Static<typeof TokenSchema>

const AuthSchema = closed('Authentication.', {
  tokens: Type.Optional(Type.Array(TokenSchema, { description: 'Accepted tokens.' })),
  anonymous: Type.Optional(
    Type.Union([Role, Type.Literal(false)], {
      description:
        "Role of callers without a token. Default: none, but if no tokens are configured, callers on loopback that don't use a proxy may request decisions, explain keys and read metrics.",
    }),
  ),
  hosts: Type.Optional(
    Type.Array(text('A host.'), {
      description:
        'Accepted Host headers, in addition to IP addresses and localhost; * matches any characters.',
    }),
  ),
  origins: Type.Optional(
    Type.Array(text('An origin.'), {
      description: 'Origins of web pages that may call the service. Default: none.',
    }),
  ),
})
export type AuthConfig = Static<typeof AuthSchema>

const CapsSchema = closed('Maximum sizes and counts.', {
  bodyBytes: Type.Optional(
    Type.Integer({
      minimum: 1024,
      maximum: 64 * 2 ** 20,
      description: 'Bytes per request body. Default: 512 KiB.',
    }),
  ),
  requestsPerCall: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'Requests per API call. Default: 1000.' }),
  ),
  descriptors: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1024, description: 'Descriptors per gRPC call. Default: 64.' }),
  ),
  inFlight: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2 ** 20,
      description: 'Requests in flight. Default: 10,000.',
    }),
  ),
  wait: Type.Optional(duration('Maximum waiting time for /v1/wait. Default: 30s.')),
})
export type CapsConfig = Static<typeof CapsSchema>

const LoggingSchema = closed('The log, as JSON lines.', {
  level: oneOf('Lowest level to log. Default: info.', 'debug', 'info', 'warn', 'error', 'silent'),
  keys: oneOf('How keys appear in the log. Default: hashed.', 'hashed', 'plain'),
  decisions: oneOf('Decisions to log, regardless of the level. Default: none.', 'none', 'denied', 'all'),
  decisionFile: Type.Optional(file('Separate file for decisions. Default: they go to the log.')),
})

const CaptureSchema = closed('Captures a sample of requests for replay. Default: nothing is captured.', {
  sampleRatio: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      maximum: 1,
      description: 'Share of keys whose requests are captured. Default: 1, which means all keys.',
    }),
  ),
  file: Type.Optional(file('File to append captured requests to, as JSON lines.')),
  stream: flag("Whether to write to a stream in the store's Redis instead of a file. Default: false."),
  maxBytes: Type.Optional(
    Type.Integer({
      minimum: 4096,
      maximum: 2 ** 40,
      description: 'Maximum file size. A full file is rotated, and one old file is kept. Default: 64 MiB.',
    }),
  ),
  maxLength: Type.Optional(
    Type.Integer({
      minimum: 100,
      maximum: 100_000_000,
      description: 'Approximate number of requests that the stream keeps. Default: 100,000.',
    }),
  ),
  limiters: Type.Optional(
    Type.Array(Names, {
      minItems: 1,
      description: 'Limiters to capture; * matches any characters. Default: all.',
    }),
  ),
  secret: Type.Optional(
    Type.String({
      minLength: 16,
      writeOnly: true,
      title: 'a secret of at least 16 characters',
      description:
        'Secret for hashing keys. Default: a random secret, which differs between instances and changes at each start.',
    }),
  ),
})
export type CaptureConfig = Static<typeof CaptureSchema>

const TracingSchema = Type.Union(
  [
    Type.Boolean(),
    closed('Destination and sampling of spans.', {
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
            'Share of requests to trace. If the caller sends a trace context, its sampling flag applies instead. Default: OTEL_TRACES_SAMPLER.',
        }),
      ),
    }),
  ],
  {
    description:
      'OpenTelemetry: a span for each decision. true: enabled, with settings from environment variables. Default: false. Changes take effect at the next start.',
  },
)
export type TracingConfig = Exclude<Static<typeof TracingSchema>, false>

export const ConfigSchema = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: 'Location of the JSON Schema, for editors.' })),
    listen: Type.Optional(ListenSchema),
    store: Type.Optional(StoreSchema),
    limiters: Type.Optional(named(Name, LimiterSchema, { description: 'Limiters by name. Default: none.' })),
    forwardAuth: Type.Optional(ForwardAuthSchema),
    envoy: Type.Optional(EnvoySchema),
    auth: Type.Optional(AuthSchema),
    caps: Type.Optional(CapsSchema),
    readiness: oneOf(
      'Readiness while the store is down. always: stays ready. store: /readyz returns 503 if a limiter would throw or deny. Default: always.',
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
/** After loading, `limiters` is always set. */
export type Config = Read & Required<Pick<Read, 'limiters'>>
