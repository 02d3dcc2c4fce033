import type { Mutants } from '../mutant.ts'

export const prelude: Mutants = {
  part: 'ops/prelude.lua',
  mutants: {
    'limits/numbers > Redis > keeps totals exact in a log that is never empty': [
      ['MAX_UNITS = 2 ^ 46', 'MAX_UNITS = 2 ^ 48'],
    ],
    'histories 1 > sliding, clock set back': [['NEVER = -1', 'NEVER = 0']],
    'conformance > after the clock is set back by more than 1 s, all charges count as if made now, so no window exceeds its limit':
      [['MAX_AHEAD = 1000', 'MAX_AHEAD = 1001']],
    'redis/ttl > every key has a TTL that is no longer than needed > with a clock option, at least ten minutes':
      [['MIN_GIVEN_TTL = 600000', 'MIN_GIVEN_TTL = 0']],
    'histories 1 > bans, clock set back': [['LATER = 1000', 'LATER = 0']],
    'histories 2 > overrides and bans, clock set back': [["NUMBER_FORMAT = '>I6'", "NUMBER_FORMAT = '<I6'"]],
    'redis/ttl > held slots and counted values live for their window plus a quarter': [
      ['slack = keep / 4', 'slack = keep / 8'],
      ['slack < 5000 and', 'slack > 5000 and'],
    ],
    'redis/ttl > the TTL is renewed by a request that counts for longer': [
      ['or lifetime), lifetime', 'or lifetime), 2 * lifetime'],
    ],
  },
}
