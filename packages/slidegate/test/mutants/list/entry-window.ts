import type { Mutants } from '../mutant.ts'

export const entryWindow: Mutants = {
  part: 'limits/entry-window.lua',
  mutants: {
    'limits/logs-in-redis > zset > no more than 10,000 are kept, whatever is charged': [
      ['MAX_ENTRIES = 10000', 'MAX_ENTRIES = 10001'],
    ],
    'limits/logs > Redis > zset > of what is charged beyond what a log keeps, that is listed': [
      ['MAX_WORDS = 4000', 'MAX_WORDS = 3999'],
    ],
    'limits/every-kind > a sliding window as a sorted set in Redis > refuses "what is no log" in its place, and leaves it as it is':
      [['newest[2] and newest[2] + 0 or 0', '0']],
    'limits/every-kind > a sliding window as a sorted set in Redis > leaves no key behind where nothing is left in it':
      [
        ['if not stamp or stamp + 0 <= cut then', 'if not stamp then'],
        ['or held ~= units or', 'or'],
      ],
    'limits/logs > Redis > zset > part of a request is not returned': [
      ['if before then members[#members + 1] = before end', ''],
      ['and entry or entry', 'and entry and entry'],
      ['written = written + call_redis(command, key, unpack(words, first, last))', ''],
    ],
    'conformance > what was consumed by an id is renewed and released by it, by anybody': [
      ['units = held_at and op.hold == RENEWED and cost or 0', 'units = 0'],
      ['op.may_repeat or op.hold)', 'op.may_repeat)'],
      ["if cost == 1 then call_redis('ZREM', key, id)", "if cost == 1 then call_redis('ZREM', key, '')"],
    ],
    "conformance > a release that comes too late frees nobody else's": [['      op.is_held = 0\n', '']],
    'limiter/permits > Redis > expired holders stay expired when the newest is released': [
      ['if held_at == stamp and card > live then', 'if false then'],
    ],
    'limiter/permits > Redis > after a large step back only those still held are listed': [
      ['flat, cut = {}, math.max(log.stamp, now)', 'flat, cut = {}, now'],
    ],
    'limiter/permits > Redis > is held where a shadow limit had no room for it': [
      ['elseif entries == HOLDER and not is_shadow then', 'elseif entries == HOLDER then'],
    ],
    'redis/travel-together > extend': [['if is_known and entries == HOLDER and', 'if is_known and']],
    'histories 1 > concurrency': [['if held_at and op.hold ~= RENEWED then', 'if held_at then']],
    'conformance > after a large step back holders are held for a ttl from now': [
      ["write_all('ZADD', key, moved)", ''],
    ],
    'limits/logs-in-redis > zset > what had left the window by a clock that was set back stays away': [
      ["write_all('ZREM', key, gone)", ''],
      ['gone[#gone + 1] =', 'gone[#gone] ='],
    ],
    'conformance > sliding window of a sorted set: what was charged before can be returned after the limit changed':
      [['entry_window.remove(log.key, entry, units)', '']],
    'limits/logs-in-redis > zset > what had left the window does not come back with it': [
      ['  if stamp == log.stamp then', '  if stamp ~= log.stamp then'],
    ],
    'limits/logs-in-redis > zset > lives as long again where it counts anew, though nothing is charged': [
      ["if is_due then call_redis('PEXPIRE'", "if units > 0 and is_due then call_redis('PEXPIRE'"],
    ],
    'conformance > those who hold are shown, with the time of their last renewal': [
      ["'1', at or found[i + 1]", "'1', at or found[i - 1]"],
    ],
  },
}
