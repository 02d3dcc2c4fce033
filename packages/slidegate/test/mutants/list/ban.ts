import type { Mutants } from '../mutant.ts'

export const ban: Mutants = {
  part: 'limits/ban.lua',
  mutants: {
    'conformance > denials bring on a ban, the last of them says so': [
      ['BAN_SIZE = 25', 'BAN_SIZE = 24'],
      ['BAN_SIZE = 25', 'BAN_SIZE = 26'],
      ['DENIAL_SIZE = 6', 'DENIAL_SIZE = 5'],
      ['DENIAL_SIZE = 6', 'DENIAL_SIZE = 7'],
      ['size < BAN_SIZE or', 'size <= BAN_SIZE or'],
    ],
    'limits/ban > the key in Redis > too many denials in its place is unavailable, and left alone': [
      ["LAST_OF_BAN = '6025'", "LAST_OF_BAN = '6024'"],
      ["if raw ~= '' then", "if raw == '' then"],
    ],
    'limits/ban > the key in Redis > a header cut off in its place is unavailable, and left alone': [
      ['if size < BAN_SIZE or size', 'if size'],
    ],
    'limits/ban > the key in Redis > one byte less in its place is unavailable, and left alone': [
      ['or (size - BAN_SIZE) % DENIAL_SIZE > 0 then', 'then'],
    ],
    'redis/state-errors > a ban': [['return nil, raw.err or NO_BAN', 'return nil, NO_BAN']],
    'limits/ban > the key in Redis > a denial that is to come in its place is unavailable, and left alone': [
      ['size > BAN_SIZE and struct_unpack', 'false and struct_unpack'],
      ['if format ~= 1 or newest > stamp then', 'if format ~= 1 then'],
      ['newest > stamp then', 'newest >= stamp then'],
      ['if stamp > now then', 'if stamp >= now then'],
    ],
    'limits/ban > the key in Redis > a text in its place is unavailable, and left alone': [
      ['if format ~= 1 or newest > stamp then', 'if newest > stamp then'],
    ],
    'conformance > a clock that was set back makes no ban longer': [['if stamp > now then', 'if false then']],
    'histories 1 > bans, clock set back': [
      ['if stamp <= clock + MAX_AHEAD then return nil, stamp end', ''],
      ['  if blocked_until > 0 then blocked_until = blocked_until + now - stamp end\n', ''],
      ['blocked_until + now - stamp', 'blocked_until - now + stamp'],
      ['  op.is_ban_restamped = true\n', ''],
      ['if blocked_until > now then blocked_ms = blocked_until - now end', ''],
      ['blocked_ms = blocked_until - now end', 'blocked_ms = blocked_until end'],
      ['{ k = k,', '{ k = k + 1,'],
      ['blocked_ms = blocked_ms }', 'blocked_ms = 0 }'],
      ['if blocked_ms > 0 then fitting, op.is_blocked = 0, true end', ''],
      ['then fitting, op.is_blocked = 0, true end', 'then fitting = 0 end'],
      ['then fitting, op.is_blocked = 0, true end', 'then op.is_blocked = true end'],
      ['i * DENIAL_SIZE + 1))', 'i * DENIAL_SIZE - 1))'],
      ['while low < high do', 'while low <= high do'],
      ['math.floor((low', 'math.ceil((low'],
      ['now - denial_at(log, middle) <', 'now + denial_at(log, middle) <'],
      ['by = now - log.stamp', 'by = log.stamp - now'],
      ['shifted(log.blocked_until), shifted(log.level_until)', 'log.blocked_until, shifted(log.level_until)'],
      ['  settle(log, words, p, now)\n  return math', '  return math'],
    ],
    'limits/ban > a clock that was set back > by less: time stands still until the clock has caught up': [
      ['if stamp <= clock + MAX_AHEAD then', 'if stamp < clock + MAX_AHEAD then'],
    ],
    'conformance > only denials within the time count, and peeks and shadow limits never': [
      ['middle) < words[p + 3]', 'middle) <= words[p + 3]'],
      ['high = middle else', 'high = middle - 1 else'],
      ['low = middle + 1 end', 'low = middle end'],
      ['low * DENIAL_SIZE + 1)', 'low * DENIAL_SIZE)'],
      ['  settle(log, words, p, now)\n  log.stamp', '  log.stamp'],
      ['+ count < words[p + 2]', '+ count <= words[p + 2]'],
      ['denials .. string.rep', 'string.rep'],
    ],
    'conformance > it tells of a ban, and what the limits would say without it': [
      ['format, stamp, blocked_until, level, level_until =', 'format, stamp, blocked_until ='],
      ['log.denials = string.sub(raw, BAN_SIZE + 1)', ''],
    ],
    'limits/ban > the key in Redis > holds nothing of what is over, once it is written again': [
      ['if log.blocked_until <= now then log.blocked_until = 0 end', ''],
      ['if log.level_until <= now then log.level, log.level_until = 0, 0 end', ''],
      ['log.level_until <= now', 'log.level_until < now'],
      ['log.level, log.level_until = 0, 0 end', 'log.level = 0 end'],
      ['  log.stamp = now\n  if #', '  if #'],
    ],
    'conformance > who is let go has no denials and no earlier bans': [
      [
        "function ban.unblock(log)\n  log.stamp, log.blocked_until, log.level, log.level_until, log.denials = 0, 0, 0, 0, ''",
        'function ban.unblock(log)\n  log.blocked_until, log.level, log.level_until = 0, 0, 0',
      ],
    ],
    'limits/ban > the key in Redis > lives as long as anything of it matters, and not much longer': [
      ['math.max(log.blocked_until, log.level_until)', 'log.blocked_until'],
      ["if log.denials ~= '' then", 'if false then'],
      ['- 1) + words[p + 3])', '- 1))'],
      ['DENIAL_SIZE - 1) + words', 'DENIAL_SIZE) + words'],
      ['if expires == 0 then', 'if false then'],
      ['if expires == 0 then', 'if true then'],
      ["call_redis('DEL', log.key)", ''],
      ['log.level_until) .. log.denials', 'log.level_until)'],
      ["call_redis('SET', log.key, raw, 'PX', (ttl_of(math.max(0, expires - clock), is_clock_given)))", ''],
      ['ttl_of(math.max(0, expires - clock), is_clock_given)', 'ttl_of(math.max(0, expires - clock), true)'],
      ['ttl_of(math.max(0, expires - clock)', 'ttl_of(math.max(0, expires)'],
    ],
    'limits/ban > the key in Redis > by a clock that is handed in, ten minutes at least': [
      ['ttl_of(math.max(0, expires - clock), is_clock_given)', 'ttl_of(math.max(0, expires - clock), false)'],
    ],
    'histories 1 > overrides and bans, clock set back': [
      ['shifted(denial_at(log, i - 1))', 'denial_at(log, i - 1)'],
      ['log.denials, log.stamp = table.concat(denials), now', 'log.denials = table.concat(denials)'],
    ],
    'limits/ban > a clock that was set back > by more than a second: as much is left of the ban as when it was written, in an explanation, too':
      [['  ban.restamp(log, now)\n', '']],
    'limits/ban > a clock that was set back > denials keep their age': [
      ['shifted(denial_at(log, i - 1))', 'now'],
      ['log.denials, log.stamp = table.concat(denials), now', 'log.stamp = now'],
      [
        'return math.max(0, log.blocked_until - now), log.level,',
        'return log.blocked_until - now, log.level,',
      ],
    ],
    'limits/ban > denials bring a ban on > each of several requests that are decided together counts, and brings on one ban at most':
      [
        ['#log.denials / DENIAL_SIZE + count <', '#log.denials / DENIAL_SIZE + 1 <'],
        ['if #log.denials / DENIAL_SIZE + count < words[p + 2] then', 'if true then'],
        ['if #log.denials / DENIAL_SIZE + count < words[p + 2] then', 'if false then'],
        [', now), count)', ', now), 1)'],
      ],
    'histories 1 > bans by bucket of several keys': [
      [
        "log.level_until, log.denials = log.blocked_until + words[p + 4], ''",
        'log.level_until = log.blocked_until + words[p + 4]',
      ],
      ['  if by >= 0 then return end\n', ''],
      [
        '  settle(log, words, p, now)\n  return math.max(0, log.blocked_until - now)',
        '  settle(log, words, p, now)\n  return 0',
      ],
      [
        "function ban.unblock(log)\n  log.stamp, log.blocked_until, log.level, log.level_until, log.denials = 0, 0, 0, 0, ''",
        'function ban.unblock(log)\n  log.blocked_until = 0',
      ],
    ],
    'conformance > each ban is longer than the one before, up to the last': [
      ['math.min(p + 4 + log.level, last)', 'math.min(p + 3 + log.level, last)'],
      ['math.min(p + 4 + log.level, last)', 'math.min(p + 5 + log.level, last)'],
      ['math.min(p + 4 + log.level, last)', 'p + 5'],
      ['math.min(p + 4 + log.level, last)', 'p + 4 + log.level'],
      ['log.level = log.level + 1', 'log.level = 1'],
      ['log.blocked_until + words[p + 4]', 'now + words[p + 4]'],
      ['log.blocked_until + words[p + 4]', 'log.blocked_until'],
    ],
  },
}
