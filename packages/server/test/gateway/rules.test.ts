import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Config, ForwardAuthConfig, RuleConfig } from '../../src/config/schema.ts'
import { OriginalRequest } from '../../src/gateway/original-request.ts'
import { type Charge, checkRules, Rules, type Ruling } from '../../src/gateway/rules.ts'

const limits = [{ kind: 'slidingWindow' as const, limit: 5, window: '1m' }]
const limiters: Config['limiters'] = {
  one: { limits },
  two: { limits },
  both: { dimensions: { user: limits, address: limits } },
  values: { limits: [{ kind: 'distinct', limit: 5, window: '1m' }] },
}

/** Returns a message with these headers, as parsed by Node. Several values become several header lines. */
function messageOf(headers: Record<string, string | string[]>, remoteAddress = '10.0.0.1'): IncomingMessage {
  const entries = Object.entries(headers).map(
    ([name, value]) => [name.toLowerCase(), [value].flat()] as const,
  )
  return {
    headers: Object.fromEntries(
      entries.map(([name, values]) => [name, values.join(name === 'cookie' ? '; ' : ', ')]),
    ),
    headersDistinct: Object.fromEntries(entries),
    rawHeaders: entries.flatMap(([name, values]) => values.flatMap((value) => [name, value])),
    socket: { remoteAddress },
  } as unknown as IncomingMessage
}

const GATEWAY_HEADERS = {
  'x-forwarded-method': 'GET',
  'x-forwarded-host': 'shop.example',
  'x-forwarded-uri': '/orders/7?x=1',
  'x-forwarded-for': '192.0.2.7',
}

function ask(forwardAuth: ForwardAuthConfig, headers: Record<string, string | string[]> = {}): Ruling {
  const rules = new Rules({ limiters, forwardAuth }, (path, message) => {
    throw new Error(`${path.join('.')}: ${message}`)
  })
  return rules.rulingOf(new OriginalRequest(messageOf({ ...GATEWAY_HEADERS, ...headers })))
}

const askRules = (rules: RuleConfig[], headers = {}) => ask({ rules }, headers)
const limiterOf = (ruling: Ruling) => (ruling as Charge).limiter
const keyOf = (key: RuleConfig['key'], headers = {}) =>
  (askRules([{ limiter: typeof key === 'object' ? 'both' : 'one', ...(key && { key }) }], headers) as Charge)
    .key

describe('choosing a rule', () => {
  const OTHER: RuleConfig = { limiter: 'two' }

  test('uses the first match', () => {
    expect(limiterOf(askRules([{ when: { path: '/orders/*' }, limiter: 'one' }, OTHER]))).toBe('one')
    expect(limiterOf(askRules([OTHER, { when: { path: '/orders/*' }, limiter: 'one' }]))).toBe('two')
    expect(askRules([{ when: { path: '/orders/*' }, allow: true }, OTHER])).toBe('allow')
  })

  test('requires every condition to match', () => {
    const when = { path: '/orders/*', host: '*.example', method: 'GET' }
    const asks = (headers: Record<string, string>) =>
      limiterOf(askRules([{ when, limiter: 'one' }, OTHER], headers))
    expect(asks({})).toBe('one')
    expect(asks({ 'x-forwarded-method': 'POST' })).toBe('two')
    expect(asks({ 'x-forwarded-host': 'shop.test' })).toBe('two')
    expect(asks({ 'x-forwarded-uri': '/order/7' })).toBe('two')
  })

  test.each([
    ['shop.example', true],
    ['SHOP.Example', true],
    ['shop.example:8443', true],
    ['shop.example.', true],
    ['shop.example.:443', true],
    ['shop.example.test', false],
    ['xshop.example', false],
  ])('depends on the host: %s', (host, isIt) => {
    const rules = [{ when: { host: 'Shop.example' }, limiter: 'one' }, OTHER]
    expect(limiterOf(askRules(rules, { 'x-forwarded-host': host }))).toBe(isIt ? 'one' : 'two')
  })

  test('includes HEAD for GET, and ignores the case of methods', () => {
    const of = (method: string | string[], asked: string) =>
      limiterOf(askRules([{ when: { method }, limiter: 'one' }, OTHER], { 'x-forwarded-method': asked }))
    expect(of('GET', 'HEAD')).toBe('one')
    expect(of('POST', 'HEAD')).toBe('two')
    expect(of(['put', 'Patch'], 'PATCH')).toBe('one')
    expect(of('PURGE', 'purge')).toBe('one')
  })

  test.each([
    ['/login', '/login/', true],
    ['/login/', '/login', true],
    ['/login', '/LOGIN', true],
    ['/Login', '/login', true],
    ['/login', '/%6c%6Fgin?next=/', true],
    ['/login', '/login/x', false],
    ['/api/*', '/api', true],
    ['/api/*', '/apis', false],
    ['*', '/', true],
    ['*/export', '/a/b/export', true],
    ['/café', '/caf%C3%A9', true],
    ['/café', '/caf\xc3\xa9', true],
    ['/a b', '/a%20b', true],
  ])('depends on the path: %s for %s: %s', (path, uri, isIt) => {
    const rules = [{ when: { path }, limiter: 'one' }, OTHER]
    expect(limiterOf(askRules(rules, { 'x-forwarded-uri': uri }))).toBe(isIt ? 'one' : 'two')
  })

  test.each([
    '//login',
    '/login;x',
    '/x/../login',
    '/x/%2e%2e/login',
    '/x%2f..%2flogin',
    '/./login',
    '/x/..;/login',
    '/login%3fx',
    '/login%23x',
    '/log%2569n',
    '/login%2500',
  ])('rejects %s, which some servers read as /login, unless one rule matches all readings', (uri) => {
    const headers = { 'x-forwarded-uri': uri }
    const login: RuleConfig = { when: { path: '/login' }, limiter: 'one' }
    const free: RuleConfig = { when: { path: '/login' }, allow: true }
    for (const rules of [[login, OTHER], [free, OTHER], [login]]) {
      expect(() => askRules(rules, headers)).toThrow(
        expect.objectContaining({ status: 403, code: 'ambiguous_path' }),
      )
    }
    expect(limiterOf(askRules([OTHER], headers))).toBe('two')
  })

  test.each(['/files/100%25', '/files/what%3f', '/files/a%2525b', '/files/a%20b%23c'])(
    'accepts %s if one rule matches all its readings',
    (uri) => {
      const rules = [{ when: { path: '/files/*' }, limiter: 'one' }, OTHER]
      expect(limiterOf(askRules(rules, { 'x-forwarded-uri': uri }))).toBe('one')
    },
  )

  test('rejects requests without a matching rule, unless the last rule allows all', () => {
    expect(() => askRules([])).toThrow(expect.objectContaining({ status: 403, code: 'no_rule' }))
    expect(() => ask({})).toThrow(expect.objectContaining({ code: 'no_rule' }))
    expect(askRules([{ allow: true }])).toBe('allow')
  })

  test('falls back to headers of the gateway if enabled and no rule matches', () => {
    const headers = { 'x-slidegate-limiter': 'two', 'x-slidegate-key': 'ann', 'x-slidegate-cost': '3' }
    expect(ask({ fromHeaders: true }, headers)).toMatchObject({ limiter: 'two', key: 'ann', cost: 3 })
    expect(ask({ fromHeaders: true }, { 'x-slidegate-limiter': 'two' })).toMatchObject({
      key: '192.0.2.7',
      cost: undefined,
    })
    expect(limiterOf(ask({ fromHeaders: true, rules: [{ limiter: 'one' }] }, headers))).toBe('one')
    expect(() => ask({}, headers)).toThrow(expect.objectContaining({ code: 'no_rule' }))
    expect(() => ask({ fromHeaders: true })).toThrow(expect.objectContaining({ code: 'no_rule' }))
    // Both the gateway and its client set these headers.
    for (const [name, value] of Object.entries(headers)) {
      const twice = { ...headers, [name]: [value, '1'] }
      expect(() => ask({ fromHeaders: true }, twice)).toThrow(
        expect.objectContaining({ status: 400, code: 'bad_gateway_request' }),
      )
    }
  })
})

describe('headers of the gateway', () => {
  test.each(['x-forwarded-method', 'x-forwarded-uri'])('require %s exactly once', (name) => {
    const { [name as 'x-forwarded-uri']: _, ...others } = GATEWAY_HEADERS
    expect(() => new OriginalRequest(messageOf(others))).toThrow(expect.objectContaining({ status: 400 }))
    const twice = { ...GATEWAY_HEADERS, [name]: ['/a', '/b'] }
    expect(() => new OriginalRequest(messageOf(twice))).toThrow(expect.objectContaining({ status: 400 }))
  })

  test.each([
    { 'x-forwarded-uri': 'http://other.example/' },
    { 'x-forwarded-uri': '/a\\b' },
    { 'x-forwarded-uri': '/login%00' },
    { 'x-forwarded-host': 'a.example, b.example' },
    { 'x-forwarded-host': 'ann@shop.example' },
    { 'x-forwarded-host': 'shop.example/x' },
    { 'x-forwarded-method': 'GET /' },
  ])('exclude %j', (headers) => {
    expect(() => new OriginalRequest(messageOf({ ...GATEWAY_HEADERS, ...headers }))).toThrow(
      expect.objectContaining({ status: 403, code: 'unreadable_request' }),
    )
  })

  test('come in a limited number, since Node drops further ones', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`x-${i}`, '1']))
    expect(() => new OriginalRequest(messageOf({ ...GATEWAY_HEADERS, ...many }))).toThrow(
      expect.objectContaining({ status: 403 }),
    )
  })
})

describe('the key', () => {
  test('stays the same for paths that a server may treat as equal', () => {
    const key = (uri: string) => keyOf('{path}', { 'x-forwarded-uri': uri })
    for (const uri of ['/login', '/login/', '/login%3fx', '/log%2569n', '/login%2500x', '//login;x'])
      expect([uri, key(uri)]).toEqual([uri, '/login'])
  })

  test('defaults to the address', () => {
    expect(keyOf(undefined)).toBe('192.0.2.7')
    expect(keyOf('{address}', { 'x-forwarded-for': '6.6.6.6, 2001:db8:1:2:3::4' })).toBe('2001:db8:1:2::/64')
    expect(keyOf('{address}', { 'x-forwarded-for': 'whoever' })).toBe('unknown')
  })

  test('respects trusted proxies', () => {
    const rules: RuleConfig[] = [{ limiter: 'one' }]
    const chain = { 'x-forwarded-for': '198.51.100.9, 192.0.2.7, 10.0.0.2' }
    const key = (trust: number | string[]) => (ask({ rules, trust }, chain) as Charge).key
    expect(key(0)).toBe('10.0.0.1')
    expect(key(1)).toBe('10.0.0.2')
    expect(key(2)).toBe('192.0.2.7')
    expect(key(['10.0.0.0/8'])).toBe('192.0.2.7')
    expect(key(['172.16.0.0/12'])).toBe('10.0.0.1')
  })

  test.each([
    ['{host}', 'shop.example'],
    ['{path}', '/orders/7'],
    ['{method}', 'GET'],
    ['{header:X-Api-Key}', 'k1'],
    ['{cookie:session}', 's1'],
    ['fixed', 'fixed'],
    ['key of {header:x-api-key}', 'key of k1'],
    ['{address} {path}', '192.0.2.7 /orders/7'],
  ])('follows the template %s', (template, key) => {
    const headers = { 'x-api-key': 'k1', cookie: 'a=b; session=s1' }
    expect(keyOf(template, headers)).toBe(key)
  })

  test('includes one value per dimension', () => {
    expect(keyOf({ user: '{header:x-user}', address: '{address}' }, { 'x-user': 'ann' })).toEqual({
      user: 'ann',
      address: '192.0.2.7',
    })
  })

  test('stays the same for all requests without the value', () => {
    expect(keyOf('{header:x-api-key}')).toBe('{header:x-api-key}')
    expect(keyOf('{header:x-api-key}', { 'x-api-key': '' })).toBe('{header:x-api-key}')
    expect(keyOf('{cookie:session}', { cookie: 'session=' })).toBe('{cookie:session}')
    expect(keyOf('{address}|{header:x-api-key}')).toBe('192.0.2.7|{header:x-api-key}')
    expect(keyOf('{host}', { 'x-forwarded-host': '' })).toBe('{host}')
  })

  test('ignores repeated values, since the right one is unknown', () => {
    expect(keyOf('{header:x-api-key}', { 'x-api-key': ['k1', 'k2'] })).toBe('{header:x-api-key}')
    expect(keyOf('{cookie:session}', { cookie: 'session=s1; session=s2' })).toBe('{cookie:session}')
    expect(keyOf('{cookie:session}', { cookie: ['session=s1', 'session=s2'] })).toBe('{cookie:session}')
  })

  test('stays the same for all spellings of a cookie', () => {
    for (const cookie of [
      'session=s 1',
      'session="s 1"',
      'session=s%201',
      ' session = s%20%31 ',
      'x;session=s 1;y',
    ])
      expect(keyOf('{cookie:session}', { cookie })).toBe('s 1')
    expect(keyOf('{cookie:session}', { cookie: 'session=%zz' })).toBe('%zz')
    expect(keyOf('{cookie:session}', { cookie: 'xsession=s1' })).toBe('{cookie:session}')
  })

  test('stays the same for all spellings of a path', () => {
    const spellings = [
      '/a/b',
      '/A/b',
      '//a//b',
      '/a/b/',
      '/a/b?x',
      '/a/./b',
      '/a/x/../b',
      '/%61/b',
      '/a%2Fb',
      '/a;x/b;y',
    ]
    expect(new Set(spellings.map((uri) => keyOf('{path}', { 'x-forwarded-uri': uri })))).toEqual(
      new Set(['/a/b']),
    )
    expect(keyOf('{path}', { 'x-forwarded-uri': '/caf%C3%A9' })).toBe('/café')
    expect(keyOf('{path}', { 'x-forwarded-uri': '/' })).toBe('/')
  })

  test('differs for different values', () => {
    const key = (a: string, b: string) => keyOf('{header:x-a}:{header:x-b}', { 'x-a': a, 'x-b': b })
    expect(key('a', 'b')).toBe('a:b')
    const pairs: [string, string][] = [
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a%3ab', 'c'],
      ['a', 'b%3ac'],
      ['a:', 'b'],
      ['a', ':b'],
    ]
    expect(new Set(pairs.map(([a, b]) => key(a, b))).size).toBe(pairs.length)
  })
})

describe('cost and plan', () => {
  const rule = (more: Partial<RuleConfig>, headers = {}) =>
    askRules([{ limiter: 'one', ...more }], headers) as Charge

  test('come from the rule or a header', () => {
    expect(rule({})).toMatchObject({ cost: undefined, plan: undefined, deniedStatus: 429 })
    expect(rule({ cost: 7, plan: 'gold', deniedStatus: 403 })).toMatchObject({
      cost: 7,
      plan: 'gold',
      deniedStatus: 403,
    })
    expect(
      rule({ cost: '{header:x-cost}', plan: '{header:x-plan}' }, { 'x-cost': '12', 'x-plan': 'gold' }),
    ).toMatchObject({ cost: 12, plan: 'gold' })
    expect(rule({ cost: '{header:x-cost}', plan: '{header:x-plan}' })).toMatchObject({
      cost: undefined,
      plan: undefined,
    })
  })

  test("reject a header that the client added to the gateway's", () => {
    for (const twice of [{ 'x-cost': ['12', '1'] }, { 'x-plan': ['free', 'gold'] }]) {
      expect(() => rule({ cost: '{header:x-cost}', plan: '{header:X-Plan}' }, twice)).toThrow(
        expect.objectContaining({ status: 400, code: 'bad_gateway_request' }),
      )
    }
  })

  test.each(['0', '-1', '1.5', '1e3', ' ', 'x', '99999999999999999'])('reject a cost of %j', (cost) => {
    expect(() => rule({ cost: '{header:x-cost}' }, { 'x-cost': cost })).toThrow(
      expect.objectContaining({ status: 400, code: 'invalid_cost' }),
    )
  })
})

describe('problems are reported with their places', () => {
  test.each([
    [
      { rules: [{ limiter: 'one', key: '{adress}' }] },
      'forwardAuth.rules.0.key',
      'unknown placeholder {adress}',
    ],
    [
      { rules: [{ limiter: 'one', key: '{header:}' }] },
      'forwardAuth.rules.0.key',
      'unknown placeholder {header:}',
    ],
    [{ rules: [{ limiter: 'one', key: 'x{' }] }, 'forwardAuth.rules.0.key', 'unmatched brace'],
    [{ rules: [{ limiter: 'one', key: '{path}{host}' }] }, 'forwardAuth.rules.0.key', 'need a separator'],
    [{ rules: [{ limiter: 'both', key: '{address}' }] }, 'forwardAuth.rules.0.key', 'user, address'],
    [
      { rules: [{ limiter: 'both', key: { user: 'x' } }] },
      'forwardAuth.rules.0.key',
      'without a key: address',
    ],
    [
      { rules: [{ limiter: 'both', key: { user: 'x', address: 'y', z: 'z' } }] },
      'forwardAuth.rules.0.key.z',
      'unknown dimension',
    ],
    [{ rules: [{ limiter: 'one', key: { user: 'x' } }] }, 'forwardAuth.rules.0.key', 'has no dimensions'],
    [{ rules: [{ allow: true }, { key: 'x' }] }, 'forwardAuth.rules.1', 'limiter is missing'],
    [{ rules: [{ limiter: 'one', allow: true }] }, 'forwardAuth.rules.0.allow', 'both limiter and allow'],
    [
      { rules: [{ limiter: 'one', when: { path: 'x' } }] },
      'forwardAuth.rules.0.when.path',
      'must start with a slash',
    ],
    [
      { rules: [{ limiter: 'one', when: { path: '/x?y' } }] },
      'forwardAuth.rules.0.when.path',
      'must not contain ?',
    ],
    [{ rules: [{ limiter: 'one', plan: '{x}' }] }, 'forwardAuth.rules.0.plan', 'unknown placeholder {x}'],
    [{ rules: [{ limiter: 'values' }] }, 'forwardAuth.rules.0.limiter', 'distinct'],
    [{ trust: ['0.0.0.0/0'] }, 'forwardAuth.trust', 'a public range'],
    [{ trust: 17 }, 'forwardAuth.trust', '16'],
  ] as [ForwardAuthConfig, string, string][])('%j', (forwardAuth, where, what) => {
    const problems: string[] = []
    checkRules({ limiters, forwardAuth }, (path, message) => problems.push(`${path.join('.')}: ${message}`))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(new RegExp(`^${where.replaceAll('.', '\\.')}: `))
    expect(problems[0]).toContain(what)
  })

  test('nothing is reported for valid rules', () => {
    const problems: string[] = []
    const rules: RuleConfig[] = [
      { limiter: 'both', key: { user: '{cookie:sid}:x', address: '{address}' } },
      { limiter: 'one', when: { path: '*', host: '*', method: ['GET'] }, cost: '{header:x-cost}' },
    ]
    checkRules({ limiters, forwardAuth: { rules, trust: ['uniquelocal'] } }, (_, message) =>
      problems.push(message),
    )
    expect(problems).toEqual([])
  })
})
