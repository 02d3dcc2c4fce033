import type { Mutants } from '../mutant.ts'

export const entryWindow: Mutants = {
  part: 'limits/entry-window.lua',
  mutants: {
    'limits/logs-in-redis > log: zset > keeps at most 10,000 entries, whatever is charged': [
      ['MAX_ENTRIES = 10000', 'MAX_ENTRIES = 10001'],
    ],
    'limits/logs > Redis > zset > lists only what a log keeps of larger charges': [
      ['MAX_WORDS = 4000', 'MAX_WORDS = 3999'],
    ],
    'limits/every-kind > a sliding window as a sorted set in Redis > rejects "not a log" in its place, and leaves it unchanged':
      [['newest[2] and newest[2] + 0 or 0', '0']],
    'limits/every-kind > a sliding window as a sorted set in Redis > leaves no key behind when it is empty': [
      ['if not stamp or stamp + 0 <= cut then', 'if not stamp then'],
      ['or held ~= units or', 'or'],
    ],
    'limits/logs > Redis > zset > rejects a part of a request': [
      ['if before then members[#members + 1] = before end', ''],
      ['and entry or entry', 'and entry and entry'],
      ['written = written + call_redis(command, key, unpack(words, first, last))', ''],
    ],
    'conformance > any limiter can renew and release a slot by its request id': [
      ['units = held_at and op.hold == RENEWED and cost or 0', 'units = 0'],
      ['op.may_repeat or op.hold)', 'op.may_repeat)'],
      ["if cost == 1 then call_redis('ZREM', key, id)", "if cost == 1 then call_redis('ZREM', key, '')"],
    ],
    "conformance > a late release doesn't free another holder's slot": [['      op.is_held = 0\n', '']],
    'limiter/permits > permits on Redis > stay expired when the newest is released': [
      ['if held_at == stamp and card > live then', 'if false then'],
    ],
    'limiter/permits > permits on Redis > appear in lists only if still held after the clock is set back by more than 1 s':
      [['flat, cut = {}, math.max(log.stamp, now)', 'flat, cut = {}, now']],
    'limiter/permits > permits on Redis > count even if a shadow limit had no room': [
      ['elseif entries == HOLDER and not is_shadow then', 'elseif entries == HOLDER then'],
    ],
    'redis/travel-together > extend in a batch gets the same answer as alone': [
      ['if is_known and entries == HOLDER and', 'if is_known and'],
    ],
    'histories 1 > concurrency': [['if held_at and op.hold ~= RENEWED then', 'if held_at then']],
    'conformance > after the clock is set back by more than 1 s, slots are held for one more ttl': [
      ["write_all('ZADD', key, moved)", ''],
    ],
    "limits/logs-in-redis > log: zset > doesn't count entries again that had left the window before the clock was set back":
      [
        ["write_all('ZREM', key, gone)", ''],
        ['gone[#gone + 1] =', 'gone[#gone] ='],
      ],
    'conformance > sliding window in a sorted set: a charge can be refunded after the limit changes': [
      ['entry_window.remove(log.key, entry, units)', ''],
    ],
    "limits/logs-in-redis > log: zset > doesn't count entries again that had left the window when the newest is refunded":
      [['  if stamp == log.stamp then', '  if stamp ~= log.stamp then']],
    'limits/logs-in-redis > log: zset > gets its full TTL again when it is restamped without a charge': [
      ["if is_due then call_redis('PEXPIRE'", "if units > 0 and is_due then call_redis('PEXPIRE'"],
    ],
    'conformance > the list shows holders with the time of their last renewal': [
      ["'1', at or found[i + 1]", "'1', at or found[i - 1]"],
    ],
  },
}
