import type { Mutants } from '../mutant.ts'

export const fixedWindow: Mutants = {
  part: 'limits/fixed-window.lua',
  mutants: {
    'conformance > a first hit that is returned has not begun a window': [
      ["'>BI6I6'", "'<BI6I6'"],
      ['COUNTER_SIZE = 13', 'COUNTER_SIZE = 12'],
      ['COUNTER_SIZE = 13', 'COUNTER_SIZE = 14'],
      ['  start = first_hit == 1 and now - length + 1 or', '  start = first_hit == 1 and now - length or'],
      ['  start = first_hit == 1 and now - length + 1 or', '  start ='],
      ['since, used, is_new = now, 0, true', 'used, is_new = 0, true'],
      ['since, used, is_new = now, 0, true', 'since, is_new = now, true'],
      ['for i = p + 3, end_of_limits do\n  local', 'for i = p + 4, end_of_limits do\n  local'],
      ['if length > 0 and first_hit == 1 then reply[answer], answer = since, answer + 1 end', ''],
      ['reply[answer], answer = since,', 'reply[answer], answer = now,'],
    ],
    'redis/state-errors > a fixed window with a byte too many': [
      ["LAST_OF_COUNTER = '13'", "LAST_OF_COUNTER = '12'"],
    ],
    'limits/fixed-window > the clock of this process may differ from that of Redis, > but not by -4: nobody is told anything then, and nothing is charged':
      [
        ['of Redis and of this', 'of Redis or of this'],
        ['or now >= words[last] then', 'then'],
        ['words[edge], words[edge + 1]', 'words[edge], words[edge]'],
        ['words[edge], words[edge + 1]', 'words[edge + 1], words[edge + 1]'],
        ["if raw ~= '' then", "if raw == '' then"],
        ['ends = ends or (', 'ends = ('],
        ['or now >= words[last]) then', ') then'],
      ],
    'conformance > a fixed window opens at its edge, aligned to the epoch': [
      ['now - now % length', 'now + now % length'],
    ],
    'conformance > many who ask at once are admitted to the window of a calendar in order': [
      ['end_of_limits = last - first_hit', 'end_of_limits = last - first_hit - 1'],
      ['end_of_limits = last - first_hit', 'end_of_limits = last'],
    ],
    'limits/fixed-window > the clock of this process may differ from that of Redis, > but not by 4: nobody is told anything then, and nothing is charged':
      [
        ['now < words[end_of_limits + 1] or now', 'now'],
        ['words[last - words[p + 2] + 1]', 'words[last - words[p + 2]]'],
        ['(now < words[last - words[p + 2] + 1] or now >= words[last])', 'now >= words[last]'],
      ],
    "limits/every-kind > 'a window of the calendar', 'Redis' > says when the same request is admitted, to the millisecond":
      [
        ['while now < words[edge] do', 'while now <= words[edge] do'],
        ['do edge = edge - 1 end\n  start', 'do edge = edge end\n  start'],
        ['if since > now then', 'if since >= now then'],
      ],
    'redis/state-errors > a fixed window': [
      ['return nil, raw.err or NO_COUNTER', 'return nil, NO_COUNTER'],
      ['  if #raw ~= COUNTER_SIZE then return nil, raw.err or NO_COUNTER end\n', ''],
    ],
    'conformance > after the clock was set back, a window from the first hit on begins now': [
      ['if since > now then', 'if false then'],
    ],
    'histories 1 > fixed, clock set back': [['if since <= clock + MAX_AHEAD then return nil, since end', '']],
    'conformance > after the clock was set back, what a month holds counts in the one of now': [
      ['if since <= clock + MAX_AHEAD then', 'if since < clock + MAX_AHEAD then'],
      ['since, is_new, is_restamped = now, true, true', 'is_new, is_restamped = true, true'],
      ['since, is_new, is_restamped = now, true, true', 'since, is_new = now, true'],
      ['elseif since < start or used == 0 then', 'elseif used == 0 then'],
      ['elseif since < start or', 'elseif since <= start or'],
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 then'],
    ],
    'histories 3 > bans, clock set back': [
      ['if since <= clock + MAX_AHEAD then', 'if since <= now + MAX_AHEAD then'],
      ['op.bans and not is_shadow then', 'op.bans then'],
    ],
    "redis/ttl > the first charge in a window gives a key its time, and no other does: '9-per-1h'": [
      ['since, used, is_new = now, 0, true', 'since, used = now, 0'],
      ['  if is_new then', '  if true then'],
    ],
    'histories 2 > few of fixed, charged beyond all': [
      ['for i = p + 3, end_of_limits do\n  local', 'for i = p + 3, p + 3 do\n  local'],
      ['words[i] - used', 'words[i] + used'],
      ['if free < cost * fitting then', 'if free < cost then'],
      ['if free < cost * fitting then', 'do'],
      ['free < cost and 0 or (free', '(free'],
    ],
    'histories 2 > fixed, great': [
      ['(free - free % cost) / cost', 'free / cost'],
      ['reply[place], answer = used, place + 1', 'reply[place], answer = 0, place + 1'],
      ['reply[place], answer = used, place + 1', 'reply[place], answer = used, place'],
      ['if length > 0 and first_hit == 1 then reply', 'if length > 0 then reply'],
    ],
    "limits/every-kind > 'a fixed window', 'Redis', among the rest > brings on a ban, during which a decision and an explanation agree":
      [
        ['for i = p + 3, end_of_limits do\n    if', 'for i = p + 4, end_of_limits do\n    if'],
        ['used + cost * mine + cost > words[i]', 'used + cost * mine > words[i]'],
        ['op.denied[k] = true', ''],
      ],
    'histories 2 > bans by fixed of several keys': [['mine + cost > words[i]', 'mine + cost >= words[i]']],
    'histories 1 > sums that change, clock set back': [
      ['or is_restamped and not is_look then', 'or is_restamped then'],
      ['if mine > 0 or is_restamped and not is_look then', 'if true then'],
      ['units = used + cost * mine', 'units = used + mine'],
      ['units = used + cost * mine', 'units = cost * mine'],
      ['units = used + cost * mine', 'units = used + cost'],
    ],
    'histories 2 > calendar, charged beyond all': [
      ['if units > MAX_UNITS then units = MAX_UNITS end', ''],
      ['  if is_new then', '  if false then'],
      ['COUNTER_FORMAT, 1, since, units', 'COUNTER_FORMAT, 1, start, units'],
      ["    call_redis('SETRANGE', key, '7', struct_pack(NUMBER_FORMAT, units))\n", ''],
      ['if counter.units == 0 then\n    call', 'if true then\n    call'],
      ["call_redis('DEL', counter.key)", ''],
      ["call_redis('SETRANGE', counter.key, '7', struct_pack(NUMBER_FORMAT, counter.units))", ''],
      ['or at_ms < stamp then return 0 end', 'then return 0 end'],
      ['at_ms < stamp', 'at_ms <= stamp'],
    ],
    'limits/every-kind > a window from the first hit in Redis > has one key, which expires a while after it is empty':
      [
        ['(first_hit == 1 and since or start) + length', 'start + length'],
        ['ttl_of(ends - since, clock ~= reply[1])', 'ttl_of(ends, clock ~= reply[1])'],
        ['ttl_of(ends - since, clock ~= reply[1])', 'ttl_of(ends - since, true)'],
      ],
    'limits/fixed-window > a key lives for the rest of its window and a quarter more, at least 4 s > a month':
      [['ttl_of(ends - since, clock ~= reply[1])', 'ttl_of(ends - start, clock ~= reply[1])']],
    'redis/ttl > every key has a time to live, and not a longer one than it needs > by a clock that is handed in: ten minutes at least':
      [
        ['ttl_of(ends - since, clock ~= reply[1])', 'ttl_of(ends - since, false)'],
        ['ttl_of(ends - since, clock ~= reply[1])', 'ttl_of(ends - since, false)'],
      ],
    "limits/every-kind > 'a fixed window', 'Redis' > holds no time where all of it was returned": [
      ['if counter.units == 0 then\n    call', 'if false then\n    call'],
    ],
    "limits/every-kind > 'a window from the first hit', 'Redis' > takes back what was charged, once, and mints nothing":
      [
        ['and ms - length + 1 or', 'and ms - length or'],
        ['  if stamp < earliest_start(words, p, last, at_ms) then return 0 end\n', ''],
      ],
    'histories 1 > fixed, great': [['or ms - ms % length end', 'or ms end']],
    "limits/every-kind > 'a window of the calendar', 'Redis' > takes back what was charged, once, and mints nothing":
      [
        ['while ms < words[edge] do', 'while ms <= words[edge] do'],
        ['  while ms < words[edge] do edge = edge - 1 end\n  return', '  return'],
        ['or stamp < earliest_start(words, p, last, now) or', 'or'],
      ],
    "limits/every-kind > 'a window of the calendar', 'Redis', among the rest > is reserved and settled": [
      ['or stamp < earliest_start', 'or stamp <= earliest_start'],
    ],
    'histories 1 > bans, clock set back': [
      [
        'if stamp < earliest_start(words, p, last, at_ms)',
        'if stamp <= earliest_start(words, p, last, at_ms)',
      ],
    ],
    'conformance > a refund returns no more than was charged at its instant': [
      ['math.min(units, counter.units)', 'units'],
      ['counter.units = counter.units - returned', ''],
    ],
    "limits/every-kind > 'a window from the first hit', 'Redis', among the rest > keys in one batch each get their own result":
      [
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER) end",
          "if not raw then raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER) end",
        ],
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER) end",
          "kinds[key] = nil if not raw then raw = '' end",
        ],
      ],
  },
}
