// Groups of mutated modules, with the quick tests that run against them.

const UNITS = ['input/limits.test.ts', 'input/options.test.ts', 'limits/declaration.test.ts']

const HISTORIES = ['mutants/typescript/histories.ts', 'mutants/typescript/conformance.ts']

const KEYED = [...HISTORIES, 'mutants/typescript/keyed-histories.ts']

const MEMORY = [
  'memory/tables.property.test.ts',
  'memory/changing-limits.test.ts',
  'memory/eviction.property.test.ts',
  'memory/full.test.ts',
]

const CALLERS = [
  'input/operations.test.ts',
  'input/requests.test.ts',
  'input/several-keys.test.ts',
  'limiter/given-back-once.test.ts',
  'resilience/named-requests.test.ts',
]

const REDIS = [
  ...['mutants/typescript/conformance-redis.ts', 'limits/repeats.test.ts', 'redis/keyspace.test.ts'],
  ...['redis/batcher.test.ts', 'redis/queue.test.ts'],
]

const RESILIENCE = [
  'resilience/reentrant-timeouts.test.ts',
  'resilience/breaker.test.ts',
  'resilience/deny-cache.test.ts',
  'resilience/failure-policy.test.ts',
  'resilience/leases.test.ts',
  'resilience/local-share.test.ts',
  'resilience/named-requests.test.ts',
  'input/options.test.ts',
]

// Skips tests on Redis, if memory has the same, and slow tests.
const IN_MEMORY = new RegExp(
  [
    'redis|the recipe|at worst|holds 10000|few have expired|both stores answer as|in any stretch',
    'nobody is admitted out of turn|many who add at once|it counts what was added|decided alike by all logs',
    // Has a deadline that a busy machine misses.
    'functions that tell limits are refused',
    // Their names are too long for the regular expression that selects tests.
    'x{64}',
  ].join('|'),
  'i',
)

/** @type {Record<string, { mutate: string[], tests: string[], skip?: RegExp }>} */
export const GROUPS = {
  windows: {
    mutate: [
      'limits/{sliding-window,packed-window,window-log,fixed-window,sliding-counter,token-bucket}.ts',
      'limits/{entry-window,concurrency,distinct,calendar}.ts',
    ],
    tests: [
      ...HISTORIES,
      ...UNITS,
      'limits/calendar.test.ts',
      'limits/entries.test.ts',
      'limits/expiry.test.ts',
      'limits/fixed-window.test.ts',
      'limits/logs-in-memory.test.ts',
      'limits/logs.test.ts',
      'limits/packed-window.test.ts',
      'limits/repeats.test.ts',
      'limits/returned.test.ts',
      'limits/sliding-counter.test.ts',
      'limits/token-bucket.test.ts',
      'limits/numbers.test.ts',
      'limits/big-logs.test.ts',
    ],
    skip: IN_MEMORY,
  },
  sets: {
    mutate: ['limits/{limit-set,declare,declaration,logs,reservations}.ts'],
    tests: [
      'mutants/typescript/conformance.ts',
      ...UNITS,
      'limits/logs-in-memory.test.ts',
      'limits/limit-set.test.ts',
      'memory/changing-limits.test.ts',
    ],
    skip: IN_MEMORY,
  },
  bans: {
    mutate: ['limits/{ban,override}.ts', 'limiter/overrides.ts', 'stores/memory/override-records.ts'],
    tests: [
      ...KEYED,
      'limits/ban.test.ts',
      'limits/logs-in-memory.test.ts',
      'limiter/overrides.test.ts',
      'memory/overrides.test.ts',
    ],
    skip: IN_MEMORY,
  },
  driver: {
    mutate: [
      'ops/{driver,consume,peek,explain,charge,hold,refund,settle,list,reset,override,request}.ts',
      'stores/memory/{memory,memory-ops}.ts',
      'stores/{outcome,instant}.ts',
    ],
    tests: [
      ...KEYED,
      'limits/ban.test.ts',
      'limits/every-kind.test.ts',
      'limiter/given-back-once.test.ts',
      'limits/repeats.test.ts',
      'limits/logs-in-memory.test.ts',
      'limits/packed-window.test.ts',
      'limits/untouched.test.ts',
      'memory/full.test.ts',
    ],
    skip: IN_MEMORY,
  },
  keys: {
    mutate: ['stores/memory/{key-table,key-map,use-order,expiry}.ts'],
    tests: ['mutants/typescript/conformance.ts', 'limits/expiry.test.ts', ...MEMORY],
    skip: IN_MEMORY,
  },
  decisions: {
    mutate: [
      '{decision,key}.ts',
      'runtime/duration.ts',
      'limiter/{decide,dimensions,refund,request,sliding-count}.ts',
    ],
    tests: [
      'mutants/typescript/conformance.ts',
      ...UNITS,
      ...CALLERS,
      'limits/returned.test.ts',
      'limiter/sliding-count.test.ts',
      'limits/untouched.test.ts',
      'resilience/failure-policy.test.ts',
    ],
    skip: IN_MEMORY,
  },
  redis: { mutate: ['stores/redis/{encode,decode,keyspace,weight,queue,batcher}.ts'], tests: REDIS },
  resilience: {
    mutate: ['resilience/{breaker,deny-cache,fallback,by-key,refunds}.ts', 'resilience/leases/*.ts'],
    tests: RESILIENCE,
    skip: /100,000 keys/,
  },
}
