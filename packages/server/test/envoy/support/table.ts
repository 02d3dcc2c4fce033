import type { Entries, LongDescriptor } from './client.ts'
import type { Files } from './envoy-service.ts'

/** A request with its expected statuses, such as `OK 4/5 DAY`, `OVER 0/5 DAY`, `none` or `unlimited`. */
export interface Step {
  readonly send: readonly (Entries | LongDescriptor)[]
  /** Hits for all descriptors. Default: 0. */
  readonly hits?: number
  readonly times?: number
  readonly statuses: readonly string[]
  /** The overall code. Default: OVER_LIMIT if any status is OVER. */
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

/** Documented examples of envoyproxy/ratelimit, and its own configurations. */
export const TABLE: readonly Case[] = [
  {
    name: 'two values of a key with separate limits',
    domain: 'mongo_cps',
    files: files(`
domain: mongo_cps
descriptors:
  - { key: database, value: users, rate_limit: { unit: second, requests_per_unit: 500 } }
  - { key: database, value: default, rate_limit: { unit: second, requests_per_unit: 400 } }
`),
    steps: [
      { send: [{ database: 'users' }], statuses: ['OK 499/500 SECOND'] },
      { send: [{ database: 'default' }], statuses: ['OK 399/400 SECOND'] },
      { send: [{ database: 'other' }], statuses: ['none'] },
      { send: [{ table: 'users' }], statuses: ['none'] },
    ],
  },
  {
    name: 'nested descriptors, a limit per value, and all descriptors of a request together',
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
        send: [{ message_type: 'marketing', to_number: '1' }, { to_number: '1' }],
        times: 2,
        statuses: ['OK 0/2 DAY', 'OK 3/5 DAY'],
      },
      // The first has no room, so the second isn't charged.
      {
        send: [{ message_type: 'marketing', to_number: '1' }, { to_number: '1' }],
        times: 4,
        statuses: ['OVER 0/2 DAY', 'OK 3/5 DAY'],
      },
      { send: [{ to_number: '1' }], statuses: ['OK 2/5 DAY'] },
      { send: [{ message_type: 'marketing', to_number: '2' }], statuses: ['OK 1/2 DAY'] },
      { send: [{ message_type: 'other', to_number: '1' }], statuses: ['none'] },
      { send: [{ message_type: 'marketing' }], statuses: ['none'] },
    ],
  },
  {
    name: 'the most specific descriptor applies, and 0 allows nothing',
    domain: 'edge_proxy_per_ip',
    files: files(`
domain: edge_proxy_per_ip
descriptors:
  - { key: remote_address, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: remote_address, value: 50.0.0.5, rate_limit: { unit: second, requests_per_unit: 0 } }
`),
    steps: [
      { send: [{ remote_address: '50.0.0.1' }], statuses: ['OK 9/10 MINUTE'] },
      { send: [{ remote_address: '50.0.0.2' }], statuses: ['OK 9/10 MINUTE'] },
      { send: [{ remote_address: '50.0.0.5' }], statuses: ['OVER 0/0 SECOND'] },
      {
        send: [{ remote_address: '50.0.0.1' }, { remote_address: '50.0.0.5' }],
        statuses: ['OK 9/10 MINUTE', 'OVER 0/0 SECOND'],
      },
      { send: [{ remote_address: '50.0.0.1' }], statuses: ['OK 8/10 MINUTE'] },
    ],
  },
  {
    name: 'a descriptor needs an entry per level',
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
      { send: [{ key: 'value', subkey: 'subvalue' }], statuses: ['none'] },
      { send: [{ nested: 'value', subkey: 'subvalue' }], statuses: ['OK 299/300 SECOND'] },
      { send: [{ nested: 'value', subkey: 'subvalue', more: 'x' }], statuses: ['none'] },
    ],
  },
  {
    name: 'unlimited descriptors',
    domain: 'internal',
    files: files(`
domain: internal
descriptors:
  - { key: ldap, rate_limit: { unlimited: true } }
  - { key: azure, rate_limit: { unit: minute, requests_per_unit: 1 } }
`),
    steps: [
      { send: [{ ldap: 'x' }], times: 3, statuses: ['unlimited'] },
      { send: [{ azure: 'x' }, { ldap: 'x' }], statuses: ['OK 0/1 MINUTE', 'unlimited'] },
      { send: [{ ldap: 'x' }, { azure: 'x' }], statuses: ['unlimited', 'OVER 0/1 MINUTE'] },
    ],
  },
  {
    name: 'shadow mode denies nothing and reports what it would deny',
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
      { send: [{ service: 'auth', user: 'user-a' }], statuses: ['OK 0/1 MINUTE'] },
      {
        send: [{ service: 'auth', user: 'user-a' }],
        times: 2,
        statuses: ['OK 0/1 MINUTE'],
        metadata: { shadow: [{ descriptor: 0, limit: 'service.user_user-a', code: 'OVER_LIMIT' }] },
      },
      { send: [{ service: 'auth', user: 'user-b' }], statuses: ['OK 0/1 MINUTE'] },
      { send: [{ service: 'auth', user: 'user-b' }], statuses: ['OVER 0/1 MINUTE'] },
      { send: [{ service: 'other', user: 'user-b' }], statuses: ['OK 0/1 MINUTE'] },
    ],
  },
  {
    name: 'a limit that replaces another',
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
      { send: [{ key_1: 'value_1', user: 'ann' }], statuses: ['OK 4/5 MINUTE specific_limit'] },
      { send: [{ key_2: 'value_2', user: 'ann' }], statuses: ['OK 9/10 MINUTE'] },
      {
        send: [
          { key_1: 'value_1', user: 'ann' },
          { key_2: 'value_2', user: 'ann' },
        ],
        statuses: ['none', 'OK 8/10 MINUTE'],
      },
      { send: [{ key_1: 'value_1', user: 'ann' }], statuses: ['OK 3/5 MINUTE specific_limit'] },
    ],
  },
  {
    name: 'detailed metrics change no limit',
    domain: 'example8',
    files: files(`
domain: example8
descriptors:
  - { key: key1, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: key1, value: value1, rate_limit: { unit: minute, requests_per_unit: 20 } }
`),
    steps: [
      { send: [{ key1: 'unspecified' }], statuses: ['OK 9/10 MINUTE'] },
      { send: [{ key1: 'unspecified2' }], statuses: ['OK 9/10 MINUTE'] },
      { send: [{ key1: 'value1' }], statuses: ['OK 19/20 MINUTE'] },
    ],
  },
  {
    name: 'wildcards at the end, in the middle, and several',
    domain: 'example9',
    files: files(`
domain: example9
descriptors:
  - { key: key1, value: 'value*', rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: path, value: '/api/*/action', rate_limit: { unit: minute, requests_per_unit: 21 } }
  - { key: route, value: '/api/*/resource/*/action', rate_limit: { unit: minute, requests_per_unit: 22 } }
`),
    steps: [
      { send: [{ key1: 'value1' }], statuses: ['OK 19/20 MINUTE'] },
      { send: [{ key1: 'value' }], statuses: ['OK 19/20 MINUTE'] },
      { send: [{ key1: 'value1' }], statuses: ['OK 18/20 MINUTE'] },
      { send: [{ key1: 'valu' }], statuses: ['none'] },
      { send: [{ path: '/api/123/action' }], statuses: ['OK 20/21 MINUTE'] },
      { send: [{ path: '/api/a/b/action' }], statuses: ['OK 20/21 MINUTE'] },
      { send: [{ path: '/api/123/other' }], statuses: ['none'] },
      { send: [{ path: '/api/action' }], statuses: ['none'] },
      { send: [{ route: '/api/v1/resource/123/action' }], statuses: ['OK 21/22 MINUTE'] },
      { send: [{ route: '/api/v1/123/action' }], statuses: ['none'] },
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
      { send: [{ route: 'api', http_method: 'GET', subject_id: '1' }], statuses: ['OK 59/60 MINUTE'] },
      { send: [{ route: 'web', http_method: 'GET', subject_id: '1' }], statuses: ['OK 59/60 MINUTE'] },
      { send: [{ route: 'api', http_method: 'GET', subject_id: '1' }], statuses: ['OK 58/60 MINUTE'] },
    ],
  },
  {
    name: 'a shared threshold for all values of a wildcard',
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
      { send: [{ files: 'files/a.pdf' }], hits: 5, statuses: ['OK 5/10 HOUR'] },
      { send: [{ files: 'files/b.csv' }], hits: 5, statuses: ['OK 0/10 HOUR'] },
      { send: [{ files: 'files/c.txt' }], statuses: ['OVER 0/10 HOUR'] },
      { send: [{ apart: 'apart/a.pdf' }], hits: 10, statuses: ['OK 0/10 HOUR'] },
      { send: [{ apart: 'apart/a.pdf' }], statuses: ['OVER 0/10 HOUR'] },
      { send: [{ apart: 'apart/b.csv' }], statuses: ['OK 9/10 HOUR'] },
      {
        send: [
          {
            entries: [
              { key: 'files', value: 'top/1' },
              { key: 'files', value: 'nested/1' },
            ],
          },
        ],
        statuses: ['OK 299/300 MINUTE'],
      },
      {
        send: [
          {
            entries: [
              { key: 'files', value: 'top/2' },
              { key: 'files', value: 'nested/2' },
            ],
          },
        ],
        statuses: ['OK 298/300 MINUTE'],
      },
      { send: [{ file: 'test1' }], statuses: ['OK 49/50 MINUTE'] },
      { send: [{ file: 'test2' }], statuses: ['OK 99/100 MINUTE'] },
      { send: [{ file: 'test3' }], statuses: ['OK 98/100 MINUTE'] },
    ],
  },
  {
    name: 'all units, nested limits, and values without a limit',
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
      { send: [{ key1: 'value1', subkey1: 'x' }], statuses: ['OK 4/5 SECOND'] },
      { send: [{ key1: 'value1', subkey1: 'subvalue1' }], statuses: ['OK 9/10 SECOND'] },
      { send: [{ key1: 'value2', subkey1: 'subvalue1' }], statuses: ['none'] },
      { send: [{ key2: 'x' }], statuses: ['OK 19/20 MINUTE'] },
      { send: [{ key2: 'value2' }], statuses: ['OK 29/30 MINUTE'] },
      { send: [{ key2: 'value3' }], statuses: ['none'] },
      { send: [{ key3: 'x' }], statuses: ['OK 0/1 HOUR'] },
      { send: [{ key3: 'x' }], statuses: ['OVER 0/1 HOUR'] },
      { send: [{ key3: 'y' }], statuses: ['OK 0/1 HOUR'] },
      { send: [{ key4: 'x' }], statuses: ['OK 0/1 DAY key4_rate_limit'] },
      {
        send: [{ key5: 'value5' }, { key5: 'value5', subkey5: 'subvalue5' }],
        statuses: ['OK 14/15 DAY', 'OK 24/25 DAY'],
      },
      { send: [{ key6: 'x' }], statuses: ['unlimited'] },
      { send: [{ week: 'x' }, { month: 'x' }], statuses: ['OK 6/7 WEEK', 'OK 29/30 MONTH'] },
      { send: [{ year: 'x' }], statuses: ['OK 4294967294/4294967295 YEAR'] },
      { send: [{ code: '404' }], statuses: ['OK 0/1 DAY'] },
      { send: [{ key2: 'x', '': 'x' }], statuses: ['INVALID_ARGUMENT'] },
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
      { send: [{ a: '1' }, { b: '1' }], hits: 3, statuses: ['OK 7/10 HOUR', 'OK 7/10 HOUR'] },
      // Hits of a descriptor replace those of the request. 0 only checks.
      {
        send: [
          { entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 2 } },
          { entries: [{ key: 'b', value: '1' }] },
        ],
        hits: 4,
        statuses: ['OK 5/10 HOUR', 'OK 3/10 HOUR'],
      },
      {
        send: [{ entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 0 } }],
        statuses: ['OK 5/10 HOUR'],
      },
      // The first charge is refunded.
      {
        send: [
          { entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 5 } },
          { entries: [{ key: 'b', value: '1' }], hitsAddend: { value: 4 } },
        ],
        statuses: ['OK 5/10 HOUR', 'OVER 0/10 HOUR'],
      },
      { send: [{ a: '1' }], hits: 5, statuses: ['OK 0/10 HOUR'] },
      {
        send: [{ entries: [{ key: 'a', value: '1' }], hitsAddend: { value: 0 } }],
        statuses: ['OVER 0/10 HOUR'],
      },
      {
        send: [{ entries: [{ key: 'closed', value: '1' }], hitsAddend: { value: 0 } }],
        statuses: ['OVER 0/0 HOUR'],
      },
      // More hits than any limit.
      { send: [{ a: '2' }], hits: 4_294_967_295, statuses: ['OVER 0/10 HOUR'] },
      {
        send: [{ entries: [{ key: 'a', value: '2' }], hitsAddend: { value: 2 ** 63 } }],
        statuses: ['OVER 0/10 HOUR'],
      },
      { send: [{ a: '2' }], statuses: ['OK 9/10 HOUR'] },
      // Negative hits refund nothing.
      {
        send: [{ entries: [{ key: 'a', value: '2' }], hitsAddend: { value: 5 }, isNegativeHits: true }],
        statuses: ['OK 9/10 HOUR'],
      },
    ],
  },
  {
    name: 'a repeated descriptor, and two values of one rule',
    domain: 'twice',
    files: files(`
domain: twice
descriptors:
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 5 } }
`),
    steps: [
      { send: [{ a: '1' }, { a: '1' }], statuses: ['OK 4/5 HOUR', 'OK 3/5 HOUR'] },
      { send: [{ a: '2' }, { a: '1' }], statuses: ['OK 4/5 HOUR', 'OK 2/5 HOUR'] },
      {
        send: [{ a: '1' }, { a: '1' }, { a: '1' }],
        statuses: ['OK 2/5 HOUR', 'OVER 0/5 HOUR', 'OVER 0/5 HOUR'],
        hits: 2,
      },
      { send: [{ a: '1' }], statuses: ['OK 1/5 HOUR'] },
    ],
  },
  {
    name: 'quotas, where one with room is enough, and metadata of rules that passed',
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
        send: [{ service: 'service_1' }, { service: 'service_2' }],
        statuses: ['OK 0/1 HOUR', 'OK 1/2 HOUR'],
        metadata: { metadata: { service_with_quota: { name: 'service_1', more: [1, true, null] } } },
      },
      {
        send: [{ service: 'service_1' }, { service: 'service_2' }],
        statuses: ['OVER 0/1 HOUR', 'OK 0/2 HOUR'],
        overall: 'OK',
        metadata: { metadata: { service_with_quota: { name: 'service_2', more: [1, true, null] } } },
      },
      {
        send: [{ free: 'x' }, { service: 'service_1' }, { service: 'service_2' }],
        statuses: ['OK 5/5 HOUR', 'OVER 0/1 HOUR', 'OVER 0/2 HOUR'],
      },
      { send: [{ service: 'service_1' }], statuses: ['OVER 0/1 HOUR'] },
      { send: [{ free: 'x' }], statuses: ['OK 4/5 HOUR'] },
    ],
  },
]
