import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config/problem.ts'
import { type Entry, limiterNameOf } from '../../src/envoy/domain.ts'
import { readDomains } from '../../src/envoy/domains.ts'
import { domainsIn, type Files } from './support/envoy-service.ts'

function problemsIn(files: Files): readonly string[] {
  try {
    domainsIn(files)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ file, line, column, message }) => {
      return `${file.replace(/^.*\//, '')}:${line}:${column}: ${message}`
    })
  }
  return []
}

const entriesOf = (descriptor: Record<string, string>): Entry[] =>
  Object.entries(descriptor).map(([key, value]) => ({ key, value }))

it('different values never share a count', () => {
  const domain = domainsIn({
    'rules.yaml': 'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]',
  }).get('d')!
  const keyOf = (value: string) => domain.match([{ key: 'k', value }])!.key
  const long = keyOf('x'.repeat(1000))
  expect(long.length).toBeLessThan(100)
  // A caller that knows a hash can't use up the limit of the value behind it.
  expect(keyOf(long.slice('k='.length))).not.toBe(long)
})

describe('an invalid file', () => {
  it.each([
    ['descriptors: []', '1:1: the file has no domain'],
    ['domain: ""', '1:1: the file has no domain'],
    ['domain: a\ndescriptors:\n  - value: x', '3:5: the descriptor has no key'],
    [
      'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { unit: foo, requests_per_unit: 5 }',
      '4:25: the unit is "foo"',
    ],
    ['domain: a\ndescriptors:\n  - key: k\n    rate_limit: { requests_per_unit: 5 }', 'the unit is ""'],
    [
      'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { unlimited: true, unit: day }',
      'both unit and unlimited',
    ],
    [
      'domain: a\ndescriptors:\n  - key: k\n    value: v\n  - key: k\n    value: v',
      '5:5: duplicate descriptor "k_v"',
    ],
    ['domain: a\ndescriptors:\n  - key: k_v\n  - key: k\n    value: v', '4:5: duplicate descriptor "k_v"'],
    ['domain: a\ndescriptors:\n  - key: k\n    ratelimit: { unit: day }', '4:5: unknown field "ratelimit"'],
    ['0.25: a\ndescriptors: []', '1:1: unknown field "0.25"'],
    ['domain: a\ndescriptors:\n  - a', '3:5: a descriptor must be an object'],
    ['domain: a\ndescriptors: { key: k }', '2:14: descriptors must be a list'],
    ['domain: a\ndescriptors:\n  - key: k\n    share_threshold: true', '4:22: share_threshold requires'],
    [
      'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { name: n, replaces: [{ name: n }], unit: day }',
      "can't replace itself",
    ],
    [
      'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { replaces: [{ name: "" }], unit: day }',
      'has no name',
    ],
    [
      'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: -1 }',
      'an integer from 0 to 4294967295',
    ],
    [
      'domain: a\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 4294967296 }',
      'an integer from 0',
    ],
    [
      'domain: a\ndescriptors:\n  - key: k\n    shadow_mode: perhaps',
      '4:18: shadow_mode must be true or false',
    ],
    ['domain: [a', 'invalid YAML'],
    ['domain: a\ndescriptors:\n  - key: k\n    key: l', 'is defined twice'],
    ['a', 'the file must be an object'],
  ])('%j is rejected, as by envoyproxy/ratelimit', (text, problem) => {
    const problems = problemsIn({ 'rules.yaml': text })
    expect(problems.length, problems.join('\n')).toBeGreaterThan(0)
    expect(problems[0]).toContain('rules.yaml:')
    expect(problems.join('\n')).toContain(problem)
  })

  it('reports all problems in all files', () => {
    const problems = problemsIn({
      'a.yaml': 'domain: a\ndescriptors:\n  - { keys: k }\n  - { key: k, rate_limit: { unit: x } }',
      'b.yaml': 'domain: b\ndescriptors: 1',
    })
    expect(problems.map((problem) => problem.split(':')[0])).toEqual(['a.yaml', 'a.yaml', 'a.yaml', 'b.yaml'])
  })

  it('reports a domain that is in two files', () => {
    expect(problemsIn({ 'a.yaml': 'domain: a', 'b.yaml': '# the same\ndomain: a' })).toEqual([
      expect.stringMatching(/^b\.yaml:2:9: .*a\.yaml already declares the domain "a"$/),
    ])
  })

  it('reports a missing file', () => {
    expect(() => readDomains(['missing.yaml'], '/')).toThrow(
      /^\/missing\.yaml:1:1: can't read the file or folder/,
    )
  })
})

it('a folder is read with all its files, which are listed', () => {
  const domains = domainsIn({
    'b.yml': 'domain: b',
    'a.yaml': 'domain: a',
    'c.json': '{"domain":"c"}',
    'd.txt': '?',
    '.e.yaml': '?',
  })
  expect(domains.all().map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  expect(domains.files.map((file) => file.replace(/^.*\//, '')).slice(1)).toEqual([
    'a.yaml',
    'b.yml',
    'c.json',
  ])
})

it('a number or boolean keeps its source text', () => {
  const domain = domainsIn({
    'a.yaml': `domain: 007
descriptors:
  - { key: code, value: 0404, rate_limit: { unit: day, requests_per_unit: 1 }, shadow_mode: yes }
  - { key: on, value: true, rate_limit: { unit: day, requests_per_unit: 1 }, shadow_mode: "no" }
  - { key: nothing, value: , rate_limit: { unit: day } }
  - { key: null_limit, rate_limit: }
`,
  }).get('007')!
  expect(domain.match([{ key: 'code', value: '0404' }])?.rule.isShadow).toBe(true)
  expect(domain.match([{ key: 'code', value: '404' }])).toBeUndefined()
  expect(domain.match([{ key: 'on', value: 'true' }])?.rule.isShadow).toBe(false)
  expect(domain.match([{ key: 'nothing', value: 'x' }])?.rule.requestsPerUnit).toBe(0)
  expect(domain.match([{ key: 'null_limit', value: 'x' }])).toBeUndefined()
})

describe('the key of a descriptor', () => {
  const domain = domainsIn({
    'a.yaml': `domain: a
descriptors:
  - key: a
    rate_limit: { unit: day, requests_per_unit: 1 }
    descriptors:
      - { key: b, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: w, value: 'x*', share_threshold: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: w, value: 'y*', rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: 'any*', rate_limit: { unit: day, requests_per_unit: 1 } }
`,
  }).get('a')!
  const stateOf = (descriptor: Record<string, string>) => {
    const { rule, key } = domain.match(entriesOf(descriptor))!
    return `${rule.id}/${key}`
  }

  it('differs between callers', () => {
    const strange = [
      '',
      ' ',
      '|',
      '%',
      '%7C',
      '=',
      'a|b',
      '1=2',
      '\u{1F600}',
      '1',
      '1|b=1',
      'x'.repeat(513),
      'x'.repeat(514),
    ]
    const states = [
      ...strange.map((value) => stateOf({ a: value })),
      ...strange.flatMap((one) => strange.map((two) => stateOf({ a: one, b: two }))),
      ...strange.map((value) => stateOf({ w: `y${value}` })),
      ...['anyone', 'any=1', 'any|'].map((key) => stateOf({ [key]: '1' })),
    ]
    expect(new Set(states).size).toBe(states.length)
  })

  it('stays the same for all values that share a threshold', () => {
    expect(stateOf({ w: 'x1' })).toBe(stateOf({ w: 'x2' }))
  })

  it('stays short for a long value', () => {
    expect(stateOf({ a: '%'.repeat(100_000), b: '|'.repeat(100_000) }).length).toBeLessThan(300)
  })
})

it('rules keep their ids when their limits or places change', () => {
  const idsIn = (text: string) => Array.from(domainsIn({ 'a.yaml': text }).get('a')!.rules(), ({ id }) => id)
  const before = idsIn(`domain: a
descriptors:
  - { key: k, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: k, value: v, rate_limit: { unit: day, requests_per_unit: 1 } }`)
  const after = idsIn(`domain: a
descriptors:
  - { key: k, value: v, rate_limit: { unit: hour, requests_per_unit: 5 }, shadow_mode: true }
  - { key: l, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: k, rate_limit: { unit: day, requests_per_unit: 1 } }`)
  expect(before).toEqual([after[2], after[0]])
  for (const id of [...before, ...after]) expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
})

it('different domains have different limiters', () => {
  const names = [
    'a',
    'a.b',
    'a b',
    'a/b',
    'A',
    'ä',
    '\u{1F600}',
    'x'.repeat(58),
    'x'.repeat(59),
    'x'.repeat(60),
  ]
  const limiters = names.map(limiterNameOf)
  // Names that look like another domain's limiter.
  const imitations = limiters.map((limiter) => limiterNameOf(limiter.slice('envoy.'.length)))
  const plain = limiters.filter((limiter, i) => limiter === `envoy.${names[i]}`)
  expect(new Set([...limiters, ...imitations]).size).toBe(2 * names.length - plain.length)
  expect(limiters[0]).toBe('envoy.a')
  for (const limiter of [...limiters, ...imitations]) expect(limiter).toMatch(/^[A-Za-z0-9._-]{1,64}$/)
})

it('metrics have the names of envoyproxy/ratelimit', () => {
  const domain = domainsIn({
    'a.yaml': `domain: a
descriptors:
  - { key: plain, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: plain, value: v, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: detailed, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: route
    value_to_metric: true
    descriptors:
      - key: method
        value_to_metric: true
        descriptors:
          - { key: subject, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: user
    value_to_metric: true
    descriptors:
      - key: action
        value: read*
        value_to_metric: true
        descriptors:
          - { key: resource, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: api
    value: api/*
    share_threshold: true
    value_to_metric: true
    descriptors:
      - { key: method, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: service
    value: svc/*
    share_threshold: true
    descriptors:
      - { key: endpoint, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1 } }
`,
  }).get('a')!
  const metricOf = (descriptor: Record<string, string>) => domain.match(entriesOf(descriptor))?.metric
  expect(metricOf({ plain: 'x' })).toBe('plain')
  expect(metricOf({ plain: 'v' })).toBe('plain_v')
  expect(metricOf({ detailed: 'x' })).toBe('detailed_x')
  expect(metricOf({ route: 'api', method: 'GET', subject: '1' })).toBe('route_api.method_GET.subject')
  expect(metricOf({ user: 'alice', action: 'readfile', resource: 'd' })).toBe(
    'user_alice.action_readfile.resource',
  )
  expect(metricOf({ api: 'api/v1', method: 'GET' })).toBe('api_api/*.method')
  expect(metricOf({ service: 'svc/1', endpoint: 'e' })).toBe('service_svc/*.endpoint_e')
})

it('rules are described as plain data', () => {
  const text = `domain: a
descriptors:
  - { key: k, rate_limit: { unlimited: true }, descriptors: [{ key: l, rate_limit: { unit: week }, shadow_mode: true }] }`
  expect(domainsIn({ 'a.yaml': text }).describe()).toEqual([
    {
      domain: 'a',
      limiter: 'envoy.a',
      rules: [
        { id: expect.stringMatching(/^k-/), path: 'k', requestsPerUnit: null, unit: null },
        { id: expect.stringMatching(/^k_l-/), path: 'k.l', requestsPerUnit: 0, unit: 'WEEK', shadow: true },
      ],
    },
  ])
})
