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

/**
 * A configuration in which `»` stands before what is wrong, and what is said of each. Where nothing is marked, the beginning is
 * meant.
 */
type Wrong = readonly [what: string, text: string, ...messages: (string | RegExp)[]]

const SHAPE: readonly Wrong[] = [
  ['nothing', '', 'the configuration is empty; it must be an object'],
  ['a list', '»[]', 'the configuration is an empty list; it must be an object'],
  ['a text', '»limiters', 'the configuration is "limiters"; it must be an object'],
  ['an unknown name', '»limitres: {}', 'the configuration knows no "limitres"; did you mean limiters?'],
  [
    'an unknown name like none',
    '»zzz: {}',
    /^the configuration knows no "zzz"; there is \$schema, listen, .* or tracing$/,
  ],
  ['empty limiters', 'limiters: »', 'limiters is empty; it must be an object'],
  [
    'a bad name',
    `limiters:\n  »a b: { limits: [${LIMIT}] }`,
    /^"a b" cannot be a name in limiters; it must be a name of 1 to 64 of /,
  ],
  [
    'an unknown kind',
    'limiters: { a: { limits: [{ kind: »slidingWindw, limit: 1, window: 1s }] } }',
    'limiters.a.limits[0].kind is "slidingWindw"; did you mean slidingWindow?',
  ],
  [
    'no kind',
    'limiters: { a: { limits: [»{ limit: 1 }] } }',
    'limiters.a.limits[0] has no kind; it must be one of slidingWindow, fixedWindow, calendarWindow, slidingCounter, tokenBucket, concurrency or distinct',
  ],
  [
    'a kind that is no text',
    'limiters: { a: { limits: [{ kind: »7 }] } }',
    /^limiters\.a\.limits\[0\]\.kind is 7; /,
  ],
  [
    'a limit that is none',
    'limiters: { a: { limits: [»7] } }',
    'limiters.a.limits[0] is 7; it must be an object',
  ],
  [
    'no limits',
    'limiters: { a: { limits: »[] } }',
    'limiters.a.limits is an empty list; it must have 1 at least',
  ],
  [
    'what the kind does not have',
    'limiters: { a: { limits: [{ kind: tokenBucket, capacity: 1, refill: 1, interval: 1s, »winnow: 1s }] } }',
    /^limiters\.a\.limits\[0\] knows no "winnow"; there is kind, capacity, refill, interval, name or shadow$/,
  ],
  [
    'what the kind needs',
    'limiters: { a: { limits: [»{ kind: slidingWindow, limit: 1 }] } }',
    /^limiters\.a\.limits\[0\] has no window; it must have one: whole milliseconds or a duration such as '250ms'/,
  ],
  ...['0', '-1', '1.5', '.inf', '.nan', '1e99', '99999999999999999999'].map(
    (number): Wrong => [
      `a limit of ${number}`,
      `limiters: { a: { limits: [{ kind: slidingWindow, limit: »${number}, window: 1s }] } }`,
      /^limiters\.a\.limits\[0\]\.limit is .*; it must be an integer from 1 up to 2\^40$/,
    ],
  ),
  [
    'a duration that is none',
    'limiters: { a: { limits: [{ kind: slidingWindow, limit: 1, window: »1 minute }] } }',
    /^limiters\.a\.limits\[0\]\.window is "1 minute"; it must be whole milliseconds or a duration such as /,
  ],
  [
    'a number that should be a text',
    'limiters: { a: { limits: [{ kind: slidingWindow, limit: 1, window: 1s, name: »007 }] } }',
    /^limiters\.a\.limits\[0\]\.name is 7; it must be a name of .*, in quotes$/,
  ],
  [
    'a word that is not known',
    `limiters: { a: { limits: [${LIMIT}], onStoreError: »trow } }`,
    'limiters.a.onStoreError is "trow"; it must be one of throw, deny, allow or local; did you mean throw?',
  ],
  [
    'what is neither of two',
    `limiters: { a: { limits: [${LIMIT}], overrides: »true } }`,
    'limiters.a.overrides is true; it must be a list of overrides or false',
  ],
  [
    'a ban by hand',
    `limiters: { a: { limits: [${LIMIT}], ban: »true } }`,
    'limiters.a.ban is true; it must be an object',
  ],
  [
    'what is wrong within one of two',
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
    'a name that all objects have',
    `limiters:\n  »constructor: { limits: [${LIMIT}] }`,
    'constructor cannot be a name: all objects of JavaScript have it',
  ],
  [
    'the name __proto__',
    `limiters:\n  »__proto__: { limits: [${LIMIT}] }`,
    '__proto__ cannot be a name: all objects of JavaScript have it',
  ],
  [
    'neither limits nor dimensions',
    'limiters: { »a: {} }',
    'there must be limits, or dimensions with limits',
  ],
  [
    'both limits and dimensions',
    `limiters: { a: { limits: [${LIMIT}], »dimensions: { user: [${LIMIT}] } } }`,
    'there are limits already; there must be one of limits and dimensions',
  ],
  [
    'a window that is too short',
    'limiters: { a: { limits: [{ kind: slidingWindow, limit: 1, window: »5ms }] } }',
    'the window is "5ms"; it must lie between 10ms and 366d',
  ],
  [
    'a time zone that does not exist',
    'limiters: { a: { limits: [{ kind: calendarWindow, limit: 1, unit: day, timeZone: »Mars/Phobos }] } }',
    /^the time zone is "Mars\/Phobos"; it must be one of the IANA/,
  ],
  [
    'two limits of one name',
    `limiters: { a: { limits: [${LIMIT}, »{ kind: slidingWindow, limit: 10, window: 1000 }] } }`,
    'two limits here are called 10-per-1s; one of them must have a name of its own',
  ],
  [
    'the same in a plan',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { limits: [${LIMIT}, »${LIMIT}] } } } }`,
    /^two limits here are called 10-per-1s/,
  ],
  [
    'distinct values beside another limit, in a plan',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { limits: [${LIMIT}, »${VALUES}] } } } }`,
    /^a distinct limit needs a limiter of its own/,
  ],
  [
    'distinct values in a dimension',
    `limiters: { a: { dimensions: { ip: [»${VALUES}] } } }`,
    /^a distinct limit needs a limiter of its own/,
  ],
  [
    'a ban that is too short',
    `limiters: { a: { limits: [${LIMIT}], ban: { after: 1, within: »1ms, for: 1s } } }`,
    'ban.within is "1ms"; it must lie between 10ms and 366d',
  ],
  [
    'a plan with limits where there are dimensions',
    `limiters: { a: { dimensions: { user: [${LIMIT}] }, plans: { p: { »limits: [${LIMIT}] } } } }`,
    'the limiter has dimensions, so its plans must have dimensions, too',
  ],
  [
    'a plan with dimensions where there are limits',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { »dimensions: { user: [${LIMIT}] } } } } }`,
    'the limiter has limits, so its plans must have limits, too',
    /^the limiter has no dimension user; it has none$/,
  ],
  [
    'a plan with a dimension that there is not',
    `limiters: { a: { dimensions: { user: [${LIMIT}] }, plans: { p: { dimensions: { uesr: »[${LIMIT}] } } } } }`,
    'the limiter has no dimension uesr; did you mean user?',
  ],
  [
    'a plan that is called by a number',
    `limiters: { a: { limits: [${LIMIT}], plans: { p: { limits: [${LIMIT}] }, »7: { limits: [${LIMIT}] } } } }`,
    /^a plan cannot be called by a number/,
  ],
  [
    'an override without its dimension',
    `limiters: { a: { dimensions: { user: [${LIMIT}] }, overrides: [»{ key: k, limits: [${LIMIT}] }] } }`,
    'there must be a dimension: user',
  ],
  [
    'an override of a dimension that there is not',
    `limiters: { a: { limits: [${LIMIT}], overrides: [{ key: k, dimension: »user, limits: [${LIMIT}] }] } }`,
    'the limiter has no dimension user; it has none',
  ],
  [
    'two overrides of one key',
    `limiters: { a: { limits: [${LIMIT}], overrides: [{ key: k, limits: [${LIMIT}] }, { key: »k, limits: [${LIMIT}] }] } }`,
    'this key has an override already',
  ],
  [
    'a rule with a limiter that there is not',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: »apy }] }`,
    'there is no limiter apy; did you mean api?',
  ],
  [
    'a rule with a plan that there is not',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: api, plan: »gold }] }`,
    'api has no such plan; there is none',
  ],
  [
    'a rule that no request reaches',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: api }, »{ when: { path: /x }, allow: true }] }`,
    /^no request gets as far as this rule/,
  ],
  [
    'a key with a placeholder that is not known',
    `limiters: { ${API} }\nforwardAuth: { rules: [{ limiter: api, key: »"{ip}" }] }`,
    /^\{ip\} is not known; known are \{address\}/,
  ],
  [
    'a store that is two',
    'store: »{ memory: {}, redis: { url: redis://localhost } }',
    'there must be one of memory and redis',
  ],
  ['a store that is none', 'store: »{}', 'there must be one of memory and redis'],
  [
    'a URL that the store cannot use',
    'store: { redis: { url: »redis://localhost/1, cluster: true } }',
    'a url names a database; a Cluster has none but 0',
  ],
  [
    'a certificate that cannot be read',
    'store: { redis: { url: rediss://localhost, tls: { ca: »missing.pem } } }',
    /^the file cannot be read: ENOENT/,
  ],
  [
    'a port that there is not',
    'listen: { http: »127.0.0.1:65536 }',
    'the port is 65536; it must be 65535 at most',
  ],
  [
    'two listeners in one place',
    'listen: { http: 127.0.0.1:1, grpc: »127.0.0.1:1 }',
    'HTTP listens there already',
  ],
  [
    'TLS without its files',
    'listen: { tls: { cert: »missing.pem, key: missing.pem } }',
    /^the file cannot be read: ENOENT/,
    /^the file cannot be read: ENOENT/,
  ],
  [
    'a certificate that is none',
    'listen: { tls: »{ cert: certificate.pem, key: certificate.pem } }',
    /^the certificate cannot be used: /,
  ],
  [
    'listening to the world, with nobody let in',
    'listen: { http: »0.0.0.0:8080 }',
    /^others than this machine can get here, and nobody has said who may: set auth\.tokens, or auth\.anonymous/,
  ],
  ['the same by gRPC', 'listen: { grpc: »"[::]:8081" }', /^others than this machine can get here/],
  [
    'a token without a secret',
    'auth: { tokens: [»{ name: a, role: read }] }',
    'there must be one of token and sha256',
  ],
  [
    'a token with two',
    `auth: { tokens: [»{ name: a, role: read, token: ${SECRET}, sha256: ${'a'.repeat(64)} }] }`,
    'there must be one of token and sha256',
  ],
  [
    'a secret that no header can bring',
    "auth: { tokens: [{ name: a, role: read, token: »'four words of a secret' }] }",
    'no header could bring this secret: it must be of letters, digits and signs of ASCII',
  ],
  [
    'two tokens of one name',
    `auth: { tokens: [{ name: a, role: read, token: ${SECRET} }, { name: »a, role: read, token: ${SECRET}x }] }`,
    'this name is taken; the audit could not tell them apart',
  ],
  [
    'a token called anonymous',
    `auth: { tokens: [{ name: »anonymous, role: read, token: ${SECRET} }] }`,
    'this name is taken; the audit could not tell them apart',
  ],
  [
    'two tokens of one secret',
    `auth: { tokens: [{ name: a, role: read, token: ${SECRET} }, »{ name: b, role: admin, token: ${SECRET} }] }`,
    'this secret is that of another token already',
  ],
]

describe.each([
  ['the form', SHAPE],
  ['more', CHECKS],
])('what is wrong in %s', (_, wrongs) => {
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

  it('has limiters, if none', () => {
    expect(load('{}').config).toEqual({ limiters: {} })
  })

  it('knows where it was, and what is to be watched', () => {
    const { folder: at, files } = load('{}')
    expect(at).toBe(folder.path)
    expect(files).toEqual([join(folder.path, 'config.yaml')])
  })

  it('reads the domains of Envoy, and tells what is wrong in them by their own names', () => {
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

  it('has all problems told at once, in the order of the file', () => {
    const text = `limiters:\n  a: { limits: [{ kind: slidingWindow, limit: 0, window: 1s }] }\n  b: {}\n  c: { limits: [{ kind: slidingWindow, limit: 1, window: 1ms }], shadwo: true }\n  d: { limits: [{ kind: slidingWindow, limit: 1, window: 1ms }] }\nstore: {}\n`
    const places = problemsOf(folder.write('config.yaml', text)).map((problem) => problem.split(' ')[0])
    expect(places).toEqual(['2:47', '3:3', '4:66', '5:58', '6:8'])
  })

  it('has so many told that somebody reads them', () => {
    const text = Array.from({ length: 1000 }, (_, i) => `name-${i}: 1\n`).join('')
    const problems = problemsOf(folder.write('config.yaml', text))
    expect(problems).toHaveLength(101)
    expect(problems.at(-1)).toMatch(/and 900 more, which are not shown$/)
    expect(problemsOf(folder.write('config.yaml', 'a: 1\n'.repeat(1000)))).toHaveLength(101)
  })

  it('may have numbers and booleans in variables, where they are the whole value', () => {
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
          message: /^limiters\.a\.limits\[0\]\.limit is what a variable says; it must be an integer/,
        },
      ].map(({ line, message }) => ({ line, message: expect.stringMatching(message) })),
    )
  })

  it.each(['5x', '', ' 5', '0x10', 'Infinity', 'TRUE', '1e3'])(
    'does not guess what a variable means: %j',
    (said) => {
      const text = 'limiters: { a: { limits: [{ kind: slidingWindow, limit: "${LIMIT}", window: 1s }] } }'
      expect(problemsIn(() => load(text, { LIMIT: said }))).toHaveLength(1)
    },
  )

  it.each([
    ['a token', 'auth: { tokens: [{ name: a, role: read, token: "${S}" }] }', 'tooShort15chars'],
    ['a token in the wrong place', 'auth: { tokens: ["${S}"] }', SECRET],
    [
      'one that was written down',
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
    ['a URL that was written down', `store: { redis: { url: "redis://user:${SECRET}@host?x" } }`, SECRET],
    ['a file', 'listen: { tls: { cert: "${S}", key: "${S}" } }', SECRET],
    ['a rule', 'forwardAuth: { rules: [{ limiter: "${S}" }] }', SECRET],
    ['a secret of keys', 'limiters: { a: { hashKeys: short-secret } }', 'short-secret'],
  ])('has no secret in any message: %s', (_, text, secret) => {
    const problems = problemsIn(() => load(text, { S: secret }))
    expect(problems.length).toBeGreaterThan(0)
    expect(JSON.stringify(problems)).not.toContain(secret.slice(0, 12))
  })

  it('tells what is wrong with REDIS_URL, and does not repeat it', () => {
    const problems = problemsIn(() => load('{}', { REDIS_URL: `http://user:${SECRET}@host` }))
    expect(problems).toMatchObject([
      { line: 1, message: expect.stringMatching(/^REDIS_URL: .*it must be redis:\/\//) },
    ])
    expect(JSON.stringify(problems)).not.toContain(SECRET)
  })

  it('that is listened for elsewhere than it says is checked for that place', () => {
    const file = folder.write('config.yaml', 'listen: { http: 127.0.0.1:1 }')
    const listen = { http: '0.0.0.0:1' }
    expect(problemsOf(file, { listen })).toEqual([expect.stringMatching(/^1:17 others than this machine/)])
    expect(problemsOf(file, { listen: { http: '8080' } })).toEqual([
      `1:17 http is "8080"; it must be like '127.0.0.1:8080'`,
    ])
    folder.write('config.yaml', 'auth: { anonymous: check }')
    expect(loadConfig(file, { environment: {}, listen }).config.listen).toEqual(listen)
  })

  it.each([
    ['is not there', () => join(folder.path, 'missing.yaml'), /^1:1 the file cannot be read: ENOENT/],
    ['is a folder', () => folder.path, /^1:1 the file cannot be read: EISDIR/],
    [
      'is no text',
      () => folder.write('latin.yaml', Buffer.from([0x61, 0x3a, 0x20, 0xe9])),
      /^1:1 the file is not text in UTF-8$/,
    ],
    [
      'is far too large',
      () => folder.write('large.yaml', '#'.repeat(5 * 2 ** 20)),
      /^1:1 the file is larger than 4 MiB$/,
    ],
  ])('whose file %s is one problem', (_, file, message) => {
    expect(problemsOf(file())).toEqual([expect.stringMatching(message)])
  })

  it('of 10,000 limiters takes its time for each once', async () => {
    const limiters = Array.from({ length: 10_000 }, (_, i) => `  l${i}: { limits: [${LIMIT}] }\n`).join('')
    const cpuMs = await cpuMsOf(() => {
      expect(Object.keys(load(`limiters:\n${limiters}`).config.limiters)).toHaveLength(10_000)
      expect(problemsIn(() => load(`limiters:\n${limiters.replaceAll('1s', '1y')}`))).toHaveLength(101)
    })
    // Far more than it takes.
    expect(cpuMs).toBeLessThan(40_000)
  })
})
