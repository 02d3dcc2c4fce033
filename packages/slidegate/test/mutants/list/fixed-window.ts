import type { Mutants } from '../mutant.ts'

export const fixedWindow: Mutants = {
  part: 'limits/fixed-window.lua',
  mutants: {
    "conformance > a refunded first hit doesn't start a window": [
      ["'>BI6I6'", "'<BI6I6'"],
      ['COUNTER_SIZE = 13', 'COUNTER_SIZE = 12'],
      ['since, used, is_new = now, 0, true', 'since, is_new = now, true'],
      ['for i = p + 3, end_of_limits do\n  local', 'for i = p + 4, end_of_limits do\n  local'],
      ['reply[answer], answer = since,', 'reply[answer], answer = now,'],
    ],
    'redis/state-errors > a fixed window with an extra byte is rejected': [
      ["LAST_OF_COUNTER = '13'", "LAST_OF_COUNTER = '12'"],
    ],
    'limits/fixed-window > if the clocks of this process and of Redis differ > by -4 windows, requests fail and charge nothing':
      [
        ['of Redis and this', 'of Redis or of this'],
        ['or now >= words[last] then', 'then'],
        ['words[edge], words[edge + 1]', 'words[edge], words[edge]'],
        ["if raw ~= '' then", "if raw == '' then"],
        ['ends = ends or (', 'ends = ('],
      ],
    'conformance > fixed windows start at multiples of their length since the epoch': [
      ['now - now % length', 'now + now % length'],
    ],
    'conformance > simultaneous requests are admitted to a calendar window in order': [
      ['end_of_limits = last - first_hit', 'end_of_limits = last - first_hit - 1'],
    ],
    'limits/fixed-window > if the clocks of this process and of Redis differ > by 4 windows, requests fail and charge nothing':
      [['words[last - words[p + 2] + 1]', 'words[last - words[p + 2]]']],
    "limits/every-kind > 'a calendar window', 'Redis' > reports when the same request is admitted, to the millisecond":
      [
        ['while now < words[edge] do', 'while now <= words[edge] do'],
        ['if since > now then', 'if since >= now then'],
      ],
    'redis/state-errors > a fixed window rejects values of another type or format': [
      ['return nil, raw.err or NO_COUNTER', 'return nil, NO_COUNTER'],
    ],
    'conformance > after the clock is set back to an earlier month, later usage still counts': [
      ['if since <= clock + MAX_AHEAD then', 'if since < clock + MAX_AHEAD then'],
      ['since, is_new, is_restamped = now, true, true', 'since, is_new = now, true'],
      ['elseif since < start or', 'elseif since <= start or'],
    ],
    'histories 3 > bans, clock set back': [['op.bans and not is_shadow then', 'op.bans then']],
    "redis/ttl > only the first charge in a window sets the TTL: '9-per-1h'": [
      ['  if is_new then', '  if true then'],
    ],
    'histories 2 > few of fixed, charged beyond all': [
      ['words[i] - used', 'words[i] + used'],
      ['if free < cost * fitting then', 'if free < cost then'],
    ],
    'histories 2 > fixed, great': [
      ['reply[place], answer = used, place + 1', 'reply[place], answer = 0, place + 1'],
    ],
    "limits/every-kind > 'a fixed window', 'Redis', with other operations > causes a ban, on which a decision and an explanation agree":
      [['for i = p + 3, end_of_limits do\n    if', 'for i = p + 4, end_of_limits do\n    if']],
    'histories 2 > bans by fixed of several keys': [['mine + cost > words[i]', 'mine + cost >= words[i]']],
    'histories 1 > sums that change, clock set back': [
      ['or is_restamped and not is_look then', 'or is_restamped then'],
      ['units = used + cost * mine', 'units = used + mine'],
    ],
    'histories 2 > calendar, charged beyond all': [
      ['if units > MAX_UNITS then units = MAX_UNITS end', ''],
      ['COUNTER_FORMAT, 1, since, units', 'COUNTER_FORMAT, 1, start, units'],
      ["    call_redis('SETRANGE', key, '7', struct_pack(NUMBER_FORMAT, units))\n", ''],
      ['if units >= counter.units then', 'if true then'],
      ["call_redis('DEL', counter.key)", ''],
      ['at_ms < stamp', 'at_ms <= stamp'],
    ],
    "limits/every-kind > 'a first-hit window', 'Redis' > refunds a charge once, without creating extra units":
      [['and ms - length + 1 or', 'and ms - length or']],
    "limits/every-kind > 'a calendar window', 'Redis' > refunds a charge once, without creating extra units":
      [['while ms < words[edge] do', 'while ms <= words[edge] do']],
    'histories 1 > bans, clock set back': [
      [
        'if stamp < earliest_start(words, p, last, at_ms)',
        'if stamp <= earliest_start(words, p, last, at_ms)',
      ],
    ],
    'conformance > a refund returns at most the units that were charged at that time': [
      ['    return counter.units\n', '    return units\n'],
      ['counter.units - units))', 'counter.units))'],
    ],
    "limits/every-kind > 'a first-hit window', 'Redis', with other operations > decides each key of a batch on its own":
      [
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER) end",
          "if not raw then raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER) end",
        ],
      ],
  },
}
