import type { Entries, LongDescriptor } from './client.ts'
import type { Files } from './envoy-service.ts'

/** A request, and a word for each of its statuses, such as `OK 4/5 DAY`, `OVER 0/5 DAY`, `none` or `unlimited`. */
export interface Step {
  readonly ask: readonly (Entries | LongDescriptor)[]
  /** For all descriptors; 0 where it is left out. */
  readonly hits?: number
  readonly times?: number
  readonly told: readonly string[]
  /** Only where it is not OVER_LIMIT with any status that is so. */
  readonly overall?: 'OK' | 'OVER_LIMIT'
  readonly metadata?: unknown
}

export interface Case {
  readonly name: string
  readonly files: Files
  readonly domain: string
  readonly steps: readonly Step[]
}

const files = (text: string): Files => ({ 'rules.yaml': text })

/** What envoyproxy/ratelimit documents, example by example, and what its own configurations show. */
export const TABLE: readonly Case[] = [
  {
    name: 'two values of a key, each with a limit of its own',
    domain: 'mongo_cps',
    files: files(`
domain: mongo_cps
descriptors:
  - { key: database, value: users, rate_limit: { unit: second, requests_per_unit: 500 } }
  - { key: database, value: default, rate_limit: { unit: second, requests_per_unit: 400 } }
`),
    steps: [
      { ask: [{ database: 'users' }], told: ['OK 499/500 SECOND'] },
      { ask: [{ database: 'default' }], told: ['OK 399/400 SECOND'] },
      { ask: [{ database: 'other' }], told: ['none'] },
      { ask: [{ table: 'users' }], told: ['none'] },
    ],
  },
  {
    name: 'nested descriptors, a limit for each value, and all descriptors of a request at once',
    domain: 'messaging',
    files: files(`
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - { key: to_number, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: to_number, rate_limit: { unit: day, requests_per_unit: 5 } }
`),
    steps: [
      {
        ask: [{ message_type: 'marketing', to_number: '1' }, { to_number: '1' }],
        times: 2,
        told: ['OK 0/2 DAY', 'OK 3/5 DAY'],
      },
      // The one has no room, so that nothing is charged to the other.
      {
        ask: [{ message_type: 'marketing', to_number: '1' }, { to_number: '1' }],
        times: 4,
        told: ['OVER 0/2 DAY', 'OK 3/5 DAY'],
      },
      { ask: [{ to_number: '1' }], told: ['OK 2/5 DAY'] },
      { ask: [{ message_type: 'marketing', to_number: '2' }], told: ['OK 1/2 DAY'] },
      { ask: [{ message_type: 'other', to_number: '1' }], told: ['none'] },
      { ask: [{ message_type: 'marketing' }], told: ['none'] },
    ],
  },
  {
    name: 'the most specific descriptor counts, and 0 lets nothing through',
    domain: 'edge_proxy_per_ip',
    files: files(`
domain: edge_proxy_per_ip
descriptors:
  - { key: remote_address, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: remote_address, value: 50.0.0.5, rate_limit: { unit: second, requests_per_unit: 0 } }
`),
    steps: [
      { ask: [{ remote_address: '50.0.0.1' }], told: ['OK 9/10 MINUTE'] },
      { ask: [{ remote_address: '50.0.0.2' }], told: ['OK 9/10 MINUTE'] },
      { ask: [{ remote_address: '50.0.0.5' }], told: ['OVER 0/0 SECOND'] },
      {
        ask: [{ remote_address: '50.0.0.1' }, { remote_address: '50.0.0.5' }],
        told: ['OK 9/10 MINUTE', 'OVER 0/0 SECOND'],
      },
      { ask: [{ remote_address: '50.0.0.1' }], told: ['OK 8/10 MINUTE'] },
    ],
  },
  {
    name: 'a descriptor has as many entries as there are levels',
    domain: 'example4',
    files: files(`
domain: example4
descriptors:
  - { key: key, value: value, rate_limit: { requests_per_unit: 300, unit: second } }
  - key: nested
    value: value
    descriptors:
      - { key: subkey, rate_limit: { requests_per_unit: 300, unit: second } }
`),
    steps: [
      { ask: [{ key: 'value', subkey: 'subvalue' }], told: ['none'] },
      { ask: [{ nested: 'value', subkey: 'subvalue' }], told: ['OK 299/300 SECOND'] },
      { ask: [{ nested: 'value', subkey: 'subvalue', more: 'x' }], told: ['none'] },
    ],
  },
  {
    name: 'what is unlimited',
    domain: 'internal',
    files: files(`
domain: internal
descriptors:
  - { key: ldap, rate_limit: { unlimited: true } }
  - { key: azure, rate_limit: { unit: minute, requests_per_unit: 1 } }
`),
    steps: [
      { ask: [{ ldap: 'x' }], times: 3, told: ['unlimited'] },
      { ask: [{ azure: 'x' }, { ldap: 'x' }], told: ['OK 0/1 MINUTE', 'unlimited'] },
      { ask: [{ ldap: 'x' }, { azure: 'x' }], told: ['unlimited', 'OVER 0/1 MINUTE'] },
    ],
  },
  {
    name: 'shadow mode denies nobody, and says what it would have done',
    domain: 'example6',
    files: files(`
domain: example6
descriptors:
  - key: service
    descriptors:
      - { key: user, value: user-a, rate_limit: { requests_per_unit: 1, unit: minute }, shadow_mode: true }
      - { key: user, value: user-b, rate_limit: { requests_per_unit: 1, unit: minute } }
`),
    steps: [
      { ask: [{ service: 'auth', user: 'user-a' }], told: ['OK 0/1 MINUTE'] },
      {
        ask: [{ service: 'auth', user: 'user-a' }],
        times: 2,
        told: ['OK 0/1 MINUTE'],
        metadata: { shadow: [{ descriptor: 0, limit: 'service.user_user-a', code: 'OVER_LIMIT' }] },
      },
      { ask: [{ service: 'auth', user: 'user-b' }], told: ['OK 0/1 MINUTE'] },
      { ask: [{ service: 'auth', user: 'user-b' }], told: ['OVER 0/1 MINUTE'] },
      { ask: [{ service: 'other', user: 'user-b' }], told: ['OK 0/1 MINUTE'] },
    ],
  },
  {
    name: 'a limit that takes the place of another',
    domain: 'example7',
    files: files(`
domain: example7
descriptors:
  - key: key_1
    value: value_1
    descriptors:
      - key: user
        value: ann
        rate_limit: { name: specific_limit, requests_per_unit: 5, unit: minute }
  - key: key_2
    value: value_2
    descriptors:
      - key: user
        value: ann
        rate_limit: { replaces: [{ name: specific_limit }], requests_per_unit: 10, unit: minute }
`),
    steps: [
      { ask: [{ key_1: 'value_1', user: 'ann' }], told: ['OK 4/5 MINUTE specific_limit'] },
      { ask: [{ key_2: 'value_2', user: 'ann' }], told: ['OK 9/10 MINUTE'] },
      {
        ask: [
          { key_1: 'value_1', user: 'ann' },
          { key_2: 'value_2', user: 'ann' },
        ],
        told: ['none', 'OK 8/10 MINUTE'],
      },
      { ask: [{ key_1: 'value_1', user: 'ann' }], told: ['OK 3/5 MINUTE specific_limit'] },
    ],
  },
  {
    name: 'metrics in detail change no limit',
    domain: 'example8',
    files: files(`
domain: example8
descriptors:
  - { key: key1, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: key1, value: value1, rate_limit: { unit: minute, requests_per_unit: 20 } }
`),
    steps: [
      { ask: [{ key1: 'unspecified' }], told: ['OK 9/10 MINUTE'] },
      { ask: [{ key1: 'unspecified2' }], told: ['OK 9/10 MINUTE'] },
      { ask: [{ key1: 'value1' }], told: ['OK 19/20 MINUTE'] },
    ],
  },
  {
    name: 'wildcards, at the end, in the middle, and several',
    domain: 'example9',
    files: files(`
domain: example9
descriptors:
  - { key: key1, value: 'value*', rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: path, value: '/api/*/action', rate_limit: { unit: minute, requests_per_unit: 21 } }
  - { key: route, value: '/api/*/resource/*/action', rate_limit: { unit: minute, requests_per_unit: 22 } }
`),
    steps: [
      { ask: [{ key1: 'value1' }], told: ['OK 19/20 MINUTE'] },
      { ask: [{ key1: 'value' }], told: ['OK 19/20 MINUTE'] },
      { ask: [{ key1: 'value1' }], told: ['OK 18/20 MINUTE'] },
      { ask: [{ key1: 'valu' }], told: ['none'] },
      { ask: [{ path: '/api/123/action' }], told: ['OK 20/21 MINUTE'] },
      { ask: [{ path: '/api/a/b/action' }], told: ['OK 20/21 MINUTE'] },
      { ask: [{ path: '/api/123/other' }], told: ['none'] },
      { ask: [{ path: '/api/action' }], told: ['none'] },
      { ask: [{ route: '/api/v1/resource/123/action' }], told: ['OK 21/22 MINUTE'] },
      { ask: [{ route: '/api/v1/123/action' }], told: ['none'] },
    ],
  },
  {
    name: 'values in metrics change no limit',
    domain: 'example10',
    files: files(`
domain: example10
descriptors:
  - key: route
    value_to_metric: true
    descriptors:
      - key: http_method
        value_to_metric: true
        descriptors:
          - { key: subject_id, rate_limit: { unit: minute, requests_per_unit: 60 } }
`),
    steps: [
      { ask: [{ route: 'api', http_method: 'GET', subject_id: '1' }], told: ['OK 59/60 MINUTE'] },
      { ask: [{ route: 'web', http_method: 'GET', subject_id: '1' }], told: ['OK 59/60 MINUTE'] },
      { ask: [{ route: 'api', http_method: 'GET', subject_id: '1' }], told: ['OK 58/60 MINUTE'] },
    ],
  },
  {
    name: 'a threshold that all values of a wildcard share',
    domain: 'example11',
    files: files(`
domain: example11
descriptors:
  - { key: files, value: 'files/*', share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: apart, value: 'apart/*', share_threshold: false, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - key: files
    value: top/*
    share_threshold: true
    descriptors:
      - { key: files, value: 'nested/*', share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 300 } }
  - { key: file, value: test1, rate_limit: { unit: minute, requests_per_unit: 50 } }
  - { key: file, value: 'test*', share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 100 } }
`),
    steps: [
      { ask: [{ files: 'files/a.pdf' }], hits: 5, told: ['OK 5/10 HOUR'] },
      { ask: [{ files: 'files/b.csv' }], hits: 5, told: ['OK 0/10 HOUR'] },
      { ask: [{ files: 'files/c.txt' }], told: ['OVER 0/10 HOUR'] },
      { ask: [{ apart: 'apart/a.pdf' }], hits: 10, told: ['OK 0/10 HOUR'] },
      { ask: [{ apart: 'apart/a.pdf' }], told: ['OVER 0/10 HOUR'] },
      { ask: [{ apart: 'apart/b.csv' }], told: ['OK 9/10 HOUR'] },
      {
        ask: [
          {
            entries: [
              { key: 'files', value: 'top/1' },
              { key: 'files', value: 'nested/1' },
            ],
          },
        ],
        told: ['OK 299/300 MINUTE'],
      },
      {
        ask: [
          {
            entries: [
              { key: 'files', value: 'top/2' },
              { key: 'files', value: 'nested/2' },
            ],
          },
        ],
        told: ['OK 298/300 MINUTE'],
      },
      { ask: [{ file: 'test1' }], told: ['OK 49/50 MINUTE'] },
      { ask: [{ file: 'test2' }], told: ['OK 99/100 MINUTE'] },
      { ask: [{ file: 'test3' }], told: ['OK 98/100 MINUTE'] },
    ],
  },
  {
    name: 'all units, limits with descriptors beneath them, values without a limit',
    domain: 'test-domain',
    files: files(`
---
domain: test-domain
descriptors:
  - key: key1
    value: value1
    descriptors:
      - { key: subkey1, rate_limit: { unit: second, requests_per_unit: 5 } }
      - { key: subkey1, value: subvalue1, rate_limit: { unit: second, requests_per_unit: 10 } }
  - { key: key2, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: key2, value: value2, rate_limit: { unit: MINUTE, requests_per_unit: 30 } }
  - { key: key2, value: value3 }
  - { key: key3, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: key4, rate_limit: { name: key4_rate_limit, unit: day, requests_per_unit: 1 } }
  - key: key5
    value: value5
    rate_limit: { unit: day, requests_per_unit: 15 }
    descriptors:
      - { key: subkey5, value: subvalue5, rate_limit: { unit: day, requests_per_unit: 25 } }
  - { key: key6, rate_limit: { unlimited: true } }
  - { key: week, rate_limit: { unit: week, requests_per_unit: 7 } }
  - { key: month, rate_limit: { unit: month, requests_per_unit: 30 } }
  - { key: year, rate_limit: { unit: year, requests_per_unit: 4294967295 } }
  - { key: code, value: 404, rate_limit: { unit: day, requests_per_unit: 1 } }
`),
    steps: [
      { ask: [{ key1: 'value1', subkey1: 'x' }], told: ['OK 4/5 SECOND'] },
      { ask: [{ key1: 'value1', subkey1: 'subvalue1' }], told: ['OK 9/10 SECOND'] },
      { ask: [{ key1: 'value2', subkey1: 'subvalue1' }], told: ['none'] },
      { ask: [{ key2: 'x' }], told: ['OK 19/20 MINUTE'] },
      { ask: [{ key2: 'value2' }], told: ['OK 29/30 MINUTE'] },
      { ask: [{ key2: 'value3' }], told: ['none'] },
      { ask: [{ key3: 'x' }], told: ['OK 0/1 HOUR'] },
      { ask: [{ key3: 'x' }], told: ['OVER 0/1 HOUR'] },
      { ask: [{ key3: 'y' }], told: ['OK 0/1 HOUR'] },
      { ask: [{ key4: 'x' }], told: ['OK 0/1 DAY key4_rate_limit'] },
      {
        ask: [{ key5: 'value5' }, { key5: 'value5', subkey5: 'subvalue5' }],
        told: ['OK 14/15 DAY', 'OK 24/25 DAY'],
      },
      { ask: [{ key6: 'x' }], told: ['unlimited'] },
      { ask: [{ week: 'x' }, { month: 'x' }], told: ['OK 6/7 WEEK', 'OK 29/30 MONTH'] },
      { ask: [{ year: 'x' }], told: ['OK 4294967294/4294967295 YEAR'] },
      { ask: [{ code: '404' }], told: ['OK 0/1 DAY'] },
      { ask: [{ key2: 'x', '': 'x' }], told: ['INVALID_ARGUMENT'] },
    ],
  },
  {
    name: 'hits of a request and of its descriptors',
    domain: 'hits',
    files: files(`
domain: hits
descriptors:
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: b, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: closed, rate_limit: { unit: hour, requests_per_unit: 0 } }
`),
    steps: [
      { ask: [{ a: '1' }, { b: '1' }], hits: 3, told: ['OK 7/10 HOUR', 'OK 7/10 HOUR'] },
      // Those of a descriptor count in place of those of the request; 0 only asks.
      {
        ask: [
          { entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 2 } },
          { entries: [{ key: 'b', value: '1' }] },
        ],
        hits: 4,
        told: ['OK 5/10 HOUR', 'OK 3/10 HOUR'],
      },
      { ask: [{ entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 0 } }], told: ['OK 5/10 HOUR'] },
      // What was charged for the first is returned.
      {
        ask: [
          { entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 5 } },
          { entries: [{ key: 'b', value: '1' }], hitsAddend: { value: 4 } },
        ],
        told: ['OK 5/10 HOUR', 'OVER 0/10 HOUR'],
      },
      { ask: [{ a: '1' }], hits: 5, told: ['OK 0/10 HOUR'] },
      { ask: [{ entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 0 } }], told: ['OVER 0/10 HOUR'] },
      {
        ask: [{ entries: [{ key: 'closed', value: '1' }], hitsAddend: { value: 0 } }],
        told: ['OVER 0/0 HOUR'],
      },
      // More than there ever is.
      { ask: [{ a: '2' }], hits: 4_294_967_295, told: ['OVER 0/10 HOUR'] },
      {
        ask: [{ entries: [{ key: 'a', value: '2' }], hitsAddend: { value: 2 ** 63 } }],
        told: ['OVER 0/10 HOUR'],
      },
      { ask: [{ a: '2' }], told: ['OK 9/10 HOUR'] },
      // Nothing is given to whoever asks for it.
      {
        ask: [{ entries: [{ key: 'a', value: '2' }], hitsAddend: { value: 5 }, isNegativeHits: true }],
        told: ['OK 9/10 HOUR'],
      },
    ],
  },
  {
    name: 'the same descriptor twice, and two values of one rule',
    domain: 'twice',
    files: files(`
domain: twice
descriptors:
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 5 } }
`),
    steps: [
      { ask: [{ a: '1' }, { a: '1' }], told: ['OK 4/5 HOUR', 'OK 3/5 HOUR'] },
      { ask: [{ a: '2' }, { a: '1' }], told: ['OK 4/5 HOUR', 'OK 2/5 HOUR'] },
      {
        ask: [{ a: '1' }, { a: '1' }, { a: '1' }],
        told: ['OK 2/5 HOUR', 'OVER 0/5 HOUR', 'OVER 0/5 HOUR'],
        hits: 2,
      },
      { ask: [{ a: '1' }], told: ['OK 1/5 HOUR'] },
    ],
  },
  {
    name: 'quotas, of which one is enough, and what passed says of itself',
    domain: 'rl',
    files: files(`
domain: rl
descriptors:
  - { key: free, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - key: service
    value: service_1
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
    metadata: { service_with_quota: { name: service_1 } }
  - key: service
    value: service_2
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
    metadata: { service_with_quota: { name: service_2, more: [1, true, null] } }
`),
    steps: [
      {
        ask: [{ service: 'service_1' }, { service: 'service_2' }],
        told: ['OK 0/1 HOUR', 'OK 1/2 HOUR'],
        metadata: { metadata: { service_with_quota: { name: 'service_1', more: [1, true, null] } } },
      },
      {
        ask: [{ service: 'service_1' }, { service: 'service_2' }],
        told: ['OVER 0/1 HOUR', 'OK 0/2 HOUR'],
        overall: 'OK',
        metadata: { metadata: { service_with_quota: { name: 'service_2', more: [1, true, null] } } },
      },
      {
        ask: [{ free: 'x' }, { service: 'service_1' }, { service: 'service_2' }],
        told: ['OK 5/5 HOUR', 'OVER 0/1 HOUR', 'OVER 0/2 HOUR'],
      },
      { ask: [{ service: 'service_1' }], told: ['OVER 0/1 HOUR'] },
      { ask: [{ free: 'x' }], told: ['OK 4/5 HOUR'] },
    ],
  },
]
