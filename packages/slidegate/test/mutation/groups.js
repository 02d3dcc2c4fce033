// What is mutated together, and those tests that are quick to notice.

const UNITS = ['input/limits.test.ts', 'input/options.test.ts', 'limits/declaration.test.ts']

const HISTORIES = ['mutation/histories.ts', 'mutation/conformance.ts']

const KEYED = [...HISTORIES, 'mutation/keyed-histories.ts']

const MEMORY = [
  'traps/memory-tables.property.test.ts',
  'traps/memory-changing-limits.test.ts',
  'traps/memory-eviction.property.test.ts',
  'traps/memory-full.test.ts',
]

const CALLERS = [
  'input/operations.test.ts',
  'input/requests.test.ts',
  'input/several-keys.test.ts',
  'limits/given-back-once.test.ts',
  'resilience/named-requests.test.ts',
]

const REDIS = [
  ...['mutation/conformance-redis.ts', 'limits/repeats.test.ts', 'traps/keyspace.test.ts'],
  ...['clients/batcher.test.ts', 'clients/queue.test.ts'],
]

const RESILIENCE = [
  'resilience/asked-again.test.ts',
  'resilience/breaker.test.ts',
  'resilience/deny-cache.test.ts',
  'resilience/failure-policy.test.ts',
  'resilience/leases.test.ts',
  'resilience/local-share.test.ts',
  'resilience/named-requests.test.ts',
  'input/options.test.ts',
]

// Of what is tested in memory and in Redis the one is enough; and what takes long is left out.
const IN_MEMORY = new RegExp(
  [
    'redis|the recipe|at worst|holds 10000|few have expired|both stores answer as|in any stretch',
    'nobody is admitted out of turn|many who add at once|it counts what was added|decided alike by all logs',
    // By a deadline that a busy machine does not keep.
    'functions that tell limits are refused',
    // Tests are chosen by their names, in one regular expression: not by names as long as these.
    'x{64}',
  ].join('|'),
  'i',
)

/** All histories of few steps will do, and those of several keys. */
const WITHOUT_RANDOM = new RegExp(`${IN_MEMORY.source}|random histories of (?!keys)`, 'i')

/** @type {Record<string, { mutate: string[], tests: string[], skip?: RegExp }>} */
export const GROUPS = {
  windows: {
    mutate: [
      'limits/{sliding-window,packed-window,window-log,window-logs,fixed-window,sliding-counter,token-bucket}.ts',
      'limits/{entry-window,concurrency,distinct,distinct-sketch,calendar}.ts',
    ],
    tests: [
      ...HISTORIES,
      ...UNITS,
      'limits/calendar.test.ts',
      'limits/entries.test.ts',
      'limits/expiry.test.ts',
      'limits/fixed-window.test.ts',
      'limits/kept-logs.test.ts',
      'limits/logs.test.ts',
      'limits/packed-window.test.ts',
      'limits/repeats.test.ts',
      'limits/returned.test.ts',
      'limits/sliding-counter.test.ts',
      'limits/token-bucket.test.ts',
      'traps/numbers.test.ts',
      'traps/big-logs.test.ts',
    ],
    skip: IN_MEMORY,
  },
  sets: {
    mutate: ['limits/{limit-set,declare,declaration,row-logs,object-logs,reservations}.ts'],
    tests: [
      'mutation/conformance.ts',
      ...UNITS,
      'limits/kept-logs.test.ts',
      'limits/limit-set.test.ts',
      'traps/memory-changing-limits.test.ts',
    ],
    skip: IN_MEMORY,
  },
  bans: {
    mutate: ['limits/{ban,override}.ts', 'limiter/overrides.ts', 'stores/memory/override-records.ts'],
    tests: [
      ...KEYED,
      'limits/ban-kind.test.ts',
      'limits/kept-logs.test.ts',
      'overrides/overrides.test.ts',
      'traps/memory-overrides.test.ts',
    ],
    skip: WITHOUT_RANDOM,
  },
  driver: {
    mutate: [
      'stores/memory/{driver,beyond,memory,memory-ops,loaded}.ts',
      'stores/{outcome,unseen,instant}.ts',
    ],
    tests: [
      ...KEYED,
      'limits/ban-kind.test.ts',
      'limits/every-kind.test.ts',
      'limits/given-back-once.test.ts',
      'limits/repeats.test.ts',
      'limits/kept-logs.test.ts',
      'limits/packed-window.test.ts',
      'limits/untouched.test.ts',
      'traps/memory-full.test.ts',
    ],
    skip: WITHOUT_RANDOM,
  },
  keys: {
    mutate: ['stores/memory/{key-table,key-map,use-order,expiry}.ts'],
    tests: ['mutation/conformance.ts', 'limits/expiry.test.ts', ...MEMORY],
    skip: IN_MEMORY,
  },
  decisions: {
    mutate: [
      '{decision,key}.ts',
      'runtime/duration.ts',
      'limiter/{decide,dimensions,charged,refund,names,units,sliding-count}.ts',
    ],
    tests: [
      'mutation/conformance.ts',
      ...UNITS,
      ...CALLERS,
      'limits/returned.test.ts',
      'limits/sliding-count.test.ts',
      'limits/untouched.test.ts',
      'resilience/failure-policy.test.ts',
    ],
    skip: IN_MEMORY,
  },
  redis: { mutate: ['stores/redis/{encode,decode,keyspace,batch,batcher}.ts'], tests: REDIS },
  resilience: {
    mutate: [
      'resilience/{breaker,denials,deny-cache,answers,local-share,by-key}.ts',
      'resilience/leases/*.ts',
    ],
    tests: RESILIENCE,
    skip: /100,000 keys/,
  },
}
