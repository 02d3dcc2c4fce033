// tier: integration
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how variables are written
import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/cli.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { API, problemsIn, problemsOf } from './support.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const LIMIT = '{ kind: slidingWindow, limit: 10, window: 1s }'
const VALUES = '{ kind: distinct, limit: 9, window: 1s }'
const SECRET = 'a-secret-of-more-than-16'

/** A configuration with `»` before each mistake, and the messages. Without `»`, the problem is at the start. */
type Wrong = readonly [what: string, text: string, ...messages: (string | RegExp)[]]

const SHAPE: readonly Wrong[] = [
  ['nothing', '', 'the configuration is empty; it must be an object'],
  ['a list', '»[]', 'the configuration is an empty list; it must be an object'],
  ['a text', '»limiters', 'the configuration is "limiters"; it must be an object'],
  [
    'a misspelt name',
    '»limitres: {}',
    'unknown field "limitres" in the configuration; did you mean limiters?',
  ],
  [
    'a name unlike any known one',
    '»zzz: {}',
    /^unknown field "zzz" in the configuration; expected \$schema, listen, .* or tracing$/,
  ],
  ['empty limiters', 'limiters: »', 'limiters is empty; it must be an object'],
  [
    'an invalid name',
    `limiters:\n  »a b: { limits: [${LIMIT}] }`,
    /^"a b" is an invalid name in limiters; it must be a name of 1 to 64 characters from /,
  ],
  [
    'an unknown kind',
    'limiters: { a: { limits: [{ kind: »slidingWindw, limit: 1, window: 1s }] } }',
    'limiters.a.limits[0].kind is "slidingWindw"; did you mean slidingWindow?',
  ],
  [
    'a missing kind',
    'limiters: { a: { limits: [»{ limit: 1 }] } }',
    'kind is missing in limiters.a.limits[0]; it must be one of slidingWindow, fixedWindow, calendarWindow, slidingCounter, tokenBucket, concurrency or distinct',
  ],
  [
    'a kind that is a number',
    'limiters: { a: { limits: [{ kind: »7 }] } }',
    /^limiters\.a\.limits\[0\]\.kind is 7; /,
  ],
  [
    'a limit that is a number',
    'limiters: { a: { limits: [»7] } }',
    'limiters.a.limits[0] is 7; it must be an object',
  ],
  [
    'no limits',
    'limiters: { a: { limits: »[] } }',
    'limiters.a.limits is an empty list; it must have at least 1 entry',
  ],
  [
    'an option of another kind',
    'limiters: { a: { limits: [{ kind: tokenBucket, capacity: 1, refill: 1, interval: 1s, »winnow: 1s }] } }',
    /^unknown field "winnow" in limiters\.a\.limits\[0\]; expected kind, capacity, refill, interval, name or shadow$/,
  ],
  [
    'a missing option',
    'limiters: { a: { limits: [»{ kind: slidingWindow, limit: 1 }] } }',
    /^window is missing in limiters\.a\.limits\[0\]; it must be whole milliseconds or a duration such as '250ms'/,
  ],
  ...['0', '-1', '1.5', '.inf', '.nan', '1e99', '99999999999999999999'].map(
    (number): Wrong => [
      `a limit of ${number}`,
      `limiters: { a: { limits: [{ kind: slidingWindow, limit: »${number}, window: 1s }] } }`,
      /^limiters\.a\.limits\[0\]\.limit is .*; it must be an integer from 1 to 2\^40$/,
    ],
  ),
  [
    'an invalid duration',
    'limiters: { a: { limits: [{ kind: slidingWindow, limit: 1, window: »1 minute }] } }',
    /^limiters\.a\.limits\[0\]\.window is "1 minute"; it must be whole milliseconds or a duration such as /,
  ],
  [
    'limits that are neither a list nor text',
    'limiters: { a: { limits: »100 } }',
    "limiters.a.limits is 100; it must be a list of limits, or text such as '100/1m' or '10/1s, hourly=600/1h'",
  ],
  [
    'text in a list of limits',
    'limiters: { a: { limits: [»100/1m] } }',
    'limiters.a.limits[0] is "100/1m"; it must be an object',
  ],
  [
    'a number instead of text',
    'limiters: { a: { limits: [{ kind: slidingWindow, limit: 1, window: 1s, name: »007 }] } }',
    /^limiters\.a\.limits\[0\]\.name is 7; it must be a name of .*, in quotes$/,
  ],
  [
    'an unknown word',
    `limiters: { a: { limits: [${LIMIT}], onStoreError: »trow } }`,
    'limiters.a.onStoreError is "trow"; it must be one of throw, deny, allow or local; did you mean throw?',
  ],
  [
    'a value that matches no alternative',
    `limiters: { a: { limits: [${LIMIT}], overrides: »true } }`,
    'limiters.a.overrides is true; it must be a list of overrides or false',
  ],
  [
    'a ban without options',
    `limiters: { a: { limits: [${LIMIT}], ban: »true } }`,
    'limiters.a.ban is true; it must be an object',
  ],
  [
    'an error within one of two alternatives',
    `limiters: { a: { limits: [${LIMIT}], ban: { after: 1, within: 1s, for: [1s, »x] } } }`,
    /^limiters\.a\.ban\.for\[1\] is "x"; it must be whole milliseconds or a duration/,
  ],
  [
    'a port without an address',
    'listen: { http: »8080 }',
    /^listen\.http is 8080; it must be an address and a port such as '127\.0\.0\.1:8080'/,
  ],
]

const CHECKS: readonly Wrong[] = [
  [
    'the name of an inherited property',
    `limiters:\n  »constructor: { limits: [${LIMIT}] }`,
    'constructor is reserved: every JavaScript object has a property with this name',
  ],
  [
    'the name __proto__',
    `limiters:\n  »__proto__: { limits: [${LIMIT}] }`,
    '__proto__ is reserved: every JavaScript object has a property with this name',
  ],
  ['neither limits nor dimensions', 'limiters: { »a: {} }', 'limits are missing; set limits or dimensions'],
  [
    'both limits and dimensions',
    `limiters: { a: { limits: [${LIMIT}], »dimensions: { user: [${LIMIT}] } } }`,
    'both limits and dimensions are set; set only one of them',
  ],
  [
    'a window that is too short',
    'limiters: { a: { limits: [{ kind: slidingWindow, limit: 1, window: »5ms }] } }',
    'the window is "5ms"; it must be from 10ms to 366d',
  ],
  [
    'an unknown time zone',
    'limiters: { a: { limits: [{ kind: calendarWindow, limit: 1, unit: day, timeZone: »Mars/Phobos }] } }',
    /^the time zone is "Mars\/Phobos"; it must be an IANA name/,
  ],
  [
    'two limits with the same name',
    `limiters: { a: { limits: [${LIMIT}, »{ kind: slidingWindow, limit: 10, window: 1000 }] } }`,
    'two limits here have the name 10-per-1s; give one of them another name',
  ],
  [
    'the same in a plan',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { limits: [${LIMIT}, »${LIMIT}] } } } }`,
    /^two limits here have the name 10-per-1s/,
  ],
  [
    'distinct values beside another limit, in a plan',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { limits: [${LIMIT}, »${VALUES}] } } } }`,
    /^a distinct limit needs a separate limiter/,
  ],
  [
    'distinct values in a dimension',
    `limiters: { a: { dimensions: { ip: [»${VALUES}] } } }`,
    /^a distinct limit needs a separate limiter/,
  ],
  [
    'a ban that is too short',
    `limiters: { a: { limits: [${LIMIT}], ban: { after: 1, within: »1ms, for: 1s } } }`,
    'ban.within is "1ms"; it must be from 10ms to 366d',
  ],
  [
    'a plan with limits for a limiter with dimensions',
    `limiters: { a: { dimensions: { user: [${LIMIT}] }, plans: { p: { »limits: [${LIMIT}] } } } }`,
    'the limiter has dimensions, so its plans must have dimensions, too',
  ],
  [
    'a plan with dimensions for a limiter with limits',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { »dimensions: { user: [${LIMIT}] } } } } }`,
    'the limiter has limits, so its plans must have limits, too',
    /^unknown dimension user; it has no dimensions$/,
  ],
  [
    'a plan with an unknown dimension',
    `limiters: { a: { dimensions: { user: [${LIMIT}] }, plans: { p: { dimensions: { uesr: »[${LIMIT}] } } } } }`,
    'unknown dimension uesr; did you mean user?',
  ],
  [
    'a plan with a number as its name',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { limits: [${LIMIT}] }, »7: { limits: [${LIMIT}] } } } }`,
    /^a plan name must not be a number/,
  ],
  [
    'an override without a dimension',
    `limiters: { a: { dimensions: { user: [${LIMIT}] }, overrides: [»{ key: k, limits: [${LIMIT}] }] } }`,
    'dimension is missing; it must be one of user',
  ],
  [
    'an override with an unknown dimension',
    `limiters: { a: { limits: [${LIMIT}], overrides: [{ key: k, dimension: »user, limits: [${LIMIT}] }] } }`,
    'unknown dimension user; it has no dimensions',
  ],
  [
    'two overrides of the same key',
    `limiters: { a: { limits: [${LIMIT}], overrides: [{ key: k, limits: [${LIMIT}] }, { key: »k, limits: [${LIMIT}] }] } }`,
    'this key already has an override',
  ],
  [
    'a rule with an unknown limiter',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: »apy }] }`,
    'unknown limiter apy; did you mean api?',
  ],
  [
    'a rule with an unknown plan',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: api, plan: »gold }] }`,
    'unknown plan gold for limiter api; none are defined',
  ],
  [
    'an unreachable rule',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: api }, »{ when: { path: /x }, allow: true }] }`,
    /^no request reaches this rule/,
  ],
  [
    'a key with an unknown placeholder',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: api, key: »"{ip}" }] }`,
    /^unknown placeholder \{ip\}; expected one of \{address\}/,
  ],
  ['two stores', 'store: »{ memory: {}, redis: { url: redis://localhost } }', 'set either memory or redis'],
  ['an empty store', 'store: »{}', 'set either memory or redis'],
  [
    'a URL with an unsupported database',
    'store: { redis: { url: »redis://localhost/1, cluster: true } }',
    'a url selects a database; a Cluster supports only database 0',
  ],
  [
    'a missing certificate file',
    'store: { redis: { url: rediss://localhost, tls: { ca: »missing.pem } } }',
    /^can't read the file: ENOENT/,
  ],
  [
    'a port that is too high',
    'listen: { http: »127.0.0.1:65536 }',
    'the port is 65536; it must be at most 65535',
  ],
  [
    'two listeners with the same address',
    'listen: { http: 127.0.0.1:1, grpc: »127.0.0.1:1 }',
    'listen.http already uses this address',
  ],
  [
    'TLS without its files',
    'listen: { tls: { cert: »missing.pem, key: missing.pem } }',
    /^can't read the file: ENOENT/,
    /^can't read the file: ENOENT/,
  ],
  [
    'an invalid certificate',
    'listen: { tls: »{ cert: certificate.pem, key: certificate.pem } }',
    /^can't use the certificate: /,
  ],
  [
    'a public listener without access rules',
    'listen: { http: »0.0.0.0:8080 }',
    /^other machines can connect here, but authentication is not configured; set auth\.tokens, or set auth\.anonymous/,
  ],
  [
    'a public gRPC listener without access rules',
    'listen: { grpc: »"[::]:8081" }',
    /^other machines can connect here/,
  ],
  ['a token without a secret', 'auth: { tokens: [»{ name: a, role: read }] }', 'set either token or sha256'],
  [
    'a token with two secrets',
    `auth: { tokens: [»{ name: a, role: read, token: ${SECRET}, sha256: ${'a'.repeat(64)} }] }`,
    'set either token or sha256',
  ],
  [
    'a secret that no header can carry',
    "auth: { tokens: [{ name: a, role: read, token: »'four words of a secret' }] }",
    "this secret can't be sent in a header; use printable ASCII characters without spaces",
  ],
  [
    'two tokens with the same name',
    `auth: { tokens: [{ name: a, role: read, token: ${SECRET} }, { name: »a, role: read, token: ${SECRET}x }] }`,
    'this name is already used; choose another, so that the audit log is unambiguous',
  ],
  [
    'a token called anonymous',
    `auth: { tokens: [{ name: »anonymous, role: read, token: ${SECRET} }] }`,
    'this name is already used; choose another, so that the audit log is unambiguous',
  ],
  [
    'two tokens with the same secret',
    `auth: { tokens: [{ name: a, role: read, token: ${SECRET} }, »{ name: b, role: admin, token: ${SECRET} }] }`,
    'another token already has this secret',
  ],
]

describe.each([
  ['shape', SHAPE],
  ['further checks', CHECKS],
])('an invalid configuration: %s', (_, wrongs) => {
  folder.write('certificate.pem', 'none')
  it.each(wrongs.map((wrong) => [wrong[0], wrong] as const))('%s', (_, [, marked, ...messages]) => {
    const before = marked.split('»')[0]!.split('\n')
    const place = marked.includes('»') ? `${before.length}:${before.at(-1)!.length + 1}` : '1:1'
    const problems = problemsOf(folder.write('wrong.yaml', marked.replace('»', '')))
    expect(problems.map((problem) => problem.slice(problem.indexOf(' ') + 1))).toEqual(
      messages.map((message) => (typeof message === 'string' ? message : expect.stringMatching(message))),
    )
    expect(problems[0]).toMatch(new RegExp(`^${place} `))
  })
})

describe('a configuration', () => {
  const load = (text: string, environment: NodeJS.ProcessEnv = {}) =>
    loadConfig(folder.write('config.yaml', text), { environment })

  it('always includes limiters, even if it declares none', () => {
    expect(load('{}').config).toEqual({ limiters: {} })
  })

  it('accepts limits as text wherever it accepts a list', () => {
    const text = `
      limiters:
        a: { limits: '10/1s, hourly=600/1h', plans: { p: { limits: '\${LIMIT}' } }, overrides: [{ key: k, limits: 1/1m }] }
        b: { dimensions: { user: 5/1m } }`
    const { a, b } = load(text, { LIMIT: '20/1s' }).config.limiters
    const window = (limit: number, ms: number) => ({ kind: 'slidingWindow', limit, window: ms })
    expect(a!.limits).toEqual([window(10, 1000), { ...window(600, 3_600_000), name: 'hourly' }])
    expect(a!.plans!.p!.limits).toEqual([window(20, 1000)])
    expect(a!.overrides).toEqual([{ key: 'k', limits: [window(1, 60_000)] }])
    expect(b!.dimensions!.user).toEqual([window(5, 60_000)])
  })

  it('lists its folder and the files to watch', () => {
    const { folder: at, files } = load('{}')
    expect(at).toBe(folder.path)
    expect(files).toEqual([join(folder.path, 'config.yaml')])
  })

  it('includes the domains of Envoy, and reports their problems with file names', () => {
    mkdirSync(join(folder.path, 'domains'), { recursive: true })
    folder.write(
      'domains/a.yaml',
      'domain: a\ndescriptors: [{ key: k, rate_limit: { unit: second, requests_per_unit: 1 } }]',
    )
    const { domains, files } = load('envoy: { files: [domains] }')
    expect(domains?.all().map(({ name }) => name)).toEqual(['a'])
    expect(files).toContain(join(folder.path, 'domains'))
    expect(files).toContain(join(folder.path, 'domains/a.yaml'))
    folder.write('domains/a.yaml', 'domain: a\ndescriptors: 7')
    const problems = problemsIn(() => load('envoy: { files: [domains] }\nlimitres: {}'))
    expect(problems.map(({ file, line }) => `${basename(file)}:${line}`)).toEqual([
      'config.yaml:2',
      'a.yaml:2',
    ])
  })

  it('reports all problems at once, in file order', () => {
    const text = `limiters:\n  a: { limits: [{ kind: slidingWindow, limit: 0, window: 1s }] }\n  b: {}\n  c: { limits: [{ kind: slidingWindow, limit: 1, window: 1ms }], shadwo: true }\n  d: { limits: [{ kind: slidingWindow, limit: 1, window: 1ms }] }\nstore: {}\n`
    const places = problemsOf(folder.write('config.yaml', text)).map((problem) => problem.split(' ')[0])
    expect(places).toEqual(['2:47', '3:3', '4:66', '5:58', '6:8'])
  })

  it('reports a limited number of problems', () => {
    const text = Array.from({ length: 1000 }, (_, i) => `name-${i}: 1\n`).join('')
    const problems = problemsOf(folder.write('config.yaml', text))
    expect(problems).toHaveLength(101)
    expect(problems.at(-1)).toMatch(/and 900 more, which are not shown$/)
    expect(problemsOf(folder.write('config.yaml', 'a: 1\n'.repeat(1000)))).toHaveLength(101)
  })

  it('accepts numbers and booleans from variables that are the whole value', () => {
    const text =
      'limiters:\n  a:\n    shadow: ${SHADOW}\n    timeoutMs: ${MS:-70}\n    limits: [{ kind: slidingWindow, limit: "${LIMIT}", window: "${WINDOW}", name: "${LIMIT}" }]\n'
    const { config } = load(text, { SHADOW: 'true', LIMIT: '5', WINDOW: '60000' })
    expect(config.limiters.a).toEqual({
      shadow: true,
      timeoutMs: 70,
      limits: [{ kind: 'slidingWindow', limit: 5, window: 60_000, name: '5' }],
    })
    const part = problemsIn(() =>
      load(text.replace('"${LIMIT}"', '"${LIMIT}0"'), { SHADOW: 'true', LIMIT: '5', WINDOW: '1s' }),
    )
    expect(part).toMatchObject(
      [
        {
          line: 5,
          message: /^limiters\.a\.limits\[0\]\.limit is invalid \(from a variable\); it must be an integer/,
        },
      ].map(({ line, message }) => ({ line, message: expect.stringMatching(message) })),
    )
  })

  it.each(['5x', '', ' 5', '0x10', 'Infinity', 'TRUE', '1e3'])(
    'rejects ambiguous values of variables: %j',
    (said) => {
      const text = 'limiters: { a: { limits: [{ kind: slidingWindow, limit: "${LIMIT}", window: 1s }] } }'
      expect(problemsIn(() => load(text, { LIMIT: said }))).toHaveLength(1)
    },
  )

  it.each([
    ['a token', 'auth: { tokens: [{ name: a, role: read, token: "${S}" }] }', 'tooShort15chars'],
    ['a token in the wrong place', 'auth: { tokens: ["${S}"] }', SECRET],
    [
      'a literal secret',
      'auth: { tokens: [a-secret-that-was-written-down] }',
      'a-secret-that-was-written-down',
    ],
    ['for a role', 'auth: { tokens: [{ name: a, role: "${S}", token: "${S}" }] }', SECRET],
    ['a name', 'limiters: { a: { limits: [{ kind: "${S}" }] } }', SECRET],
    [
      'a window',
      'limiters: { a: { limits: [{ kind: slidingWindow, limit: 1, window: 1s, name: "${S} x" }] } }',
      SECRET,
    ],
    [
      'a time zone',
      'limiters: { a: { limits: [{ kind: calendarWindow, limit: 1, unit: day, timeZone: "${S}" }] } }',
      SECRET.repeat(5),
    ],
    ['a URL', 'store: { redis: { url: "${S}" } }', `http://user:${SECRET}@host`],
    ['a literal URL', `store: { redis: { url: "redis://user:${SECRET}@host?x" } }`, SECRET],
    ['a file', 'listen: { tls: { cert: "${S}", key: "${S}" } }', SECRET],
    ['a rule', 'forwardAuth: { rules: [{ limiter: "${S}" }] }', SECRET],
    ['a secret of keys', 'limiters: { a: { hashKeys: short-secret } }', 'short-secret'],
  ])('keeps secrets out of messages: %s', (_, text, secret) => {
    const problems = problemsIn(() => load(text, { S: secret }))
    expect(problems.length).toBeGreaterThan(0)
    expect(JSON.stringify(problems)).not.toContain(secret.slice(0, 12))
  })

  it('reports an invalid REDIS_URL without repeating it', () => {
    const problems = problemsIn(() => load('{}', { REDIS_URL: `http://user:${SECRET}@host` }))
    expect(problems).toMatchObject([
      { line: 1, message: expect.stringMatching(/^REDIS_URL: .*it must be redis:\/\//) },
    ])
    expect(JSON.stringify(problems)).not.toContain(SECRET)
  })

  it('checks the listen address that replaces its own', () => {
    const file = folder.write('config.yaml', 'listen: { http: 127.0.0.1:1 }')
    const listen = { http: '0.0.0.0:1' }
    expect(problemsOf(file, { listen })).toEqual([expect.stringMatching(/^1:17 other machines can connect/)])
    expect(problemsOf(file, { listen: { http: '8080' } })).toEqual([
      `1:17 http is "8080"; it must be an address such as '127.0.0.1:8080'`,
    ])
    folder.write('config.yaml', 'auth: { anonymous: check }')
    expect(loadConfig(file, { environment: {}, listen }).config.listen).toEqual(listen)
  })

  it.each([
    ['that is missing', () => join(folder.path, 'missing.yaml'), /^1:1 can't read the file: ENOENT/],
    ['that is a folder', () => folder.path, /^1:1 can't read the file: EISDIR/],
    [
      'that is binary',
      () => folder.write('latin.yaml', Buffer.from([0x61, 0x3a, 0x20, 0xe9])),
      /^1:1 the file isn't UTF-8 text$/,
    ],
    [
      'that is too large',
      () => folder.write('large.yaml', '#'.repeat(5 * 2 ** 20)),
      /^1:1 the file is larger than 4 MiB$/,
    ],
  ])('reports one problem for a file %s', (_, file, message) => {
    expect(problemsOf(file())).toEqual([expect.stringMatching(message)])
  })

  it('with 5,000 limiters loads in linear time', async () => {
    const limiters = Array.from({ length: 5000 }, (_, i) => `  l${i}: { limits: [${LIMIT}] }\n`).join('')
    const cpuMs = await cpuMsOf(() => {
      expect(Object.keys(load(`limiters:\n${limiters}`).config.limiters)).toHaveLength(5000)
      expect(problemsIn(() => load(`limiters:\n${limiters.replaceAll('1s', '1y')}`))).toHaveLength(101)
    })
    // This is far more CPU time than it needs.
    expect(cpuMs).toBeLessThan(20_000)
  })
})
