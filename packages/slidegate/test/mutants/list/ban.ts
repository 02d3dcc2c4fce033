import type { Mutants } from '../mutant.ts'

export const ban: Mutants = {
  part: 'limits/ban.lua',
  mutants: {
    'conformance > denials bring on a ban, the last of them says so': [
      ['BAN_SIZE = 25', 'BAN_SIZE = 24'],
      ['DENIAL_SIZE = 6', 'DENIAL_SIZE = 5'],
      ['size < BAN_SIZE or', 'size <= BAN_SIZE or'],
    ],
    'limits/ban > the key in Redis > too many denials in its place is unavailable, and left alone': [
      ["LAST_OF_BAN = '6025'", "LAST_OF_BAN = '6024'"],
      ["if raw ~= '' then", "if raw == '' then"],
    ],
    'limits/ban > the key in Redis > a denial that is to come in its place is unavailable, and left alone': [
      ['size > BAN_SIZE and struct_unpack', 'false and struct_unpack'],
      ['newest > stamp then', 'newest >= stamp then'],
      ['if stamp > now then', 'if stamp >= now then'],
    ],
    'histories 1 > bans, clock set back': [
      ['blocked_until + now - stamp', 'blocked_until - now + stamp'],
      ['  op.is_ban_restamped = true\n', ''],
      ['blocked_ms = blocked_until - now end', 'blocked_ms = blocked_until end'],
      ['{ k = k,', '{ k = k + 1,'],
      ['then fitting, op.is_blocked = 0, true end', 'then fitting = 0 end'],
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
      ['low * DENIAL_SIZE + 1)', 'low * DENIAL_SIZE)'],
      ['  settle(log, words, p, now)\n  log.stamp', '  log.stamp'],
      ['+ count < words[p + 2]', '+ count <= words[p + 2]'],
    ],
    'conformance > it tells of a ban, and what the limits would say without it': [
      ['format, stamp, blocked_until, level, level_until =', 'format, stamp, blocked_until ='],
      ['log.denials = string.sub(raw, BAN_SIZE + 1)', ''],
    ],
    'limits/ban > the key in Redis > holds nothing of what is over, once it is written again': [
      ['if log.blocked_until <= now then log.blocked_until = 0 end', ''],
      ['log.level_until <= now', 'log.level_until < now'],
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
      ['DENIAL_SIZE - 1) + words', 'DENIAL_SIZE) + words'],
      ['if expires == 0 then', 'if false then'],
      ["call_redis('DEL', log.key)", ''],
      ['log.level_until) .. log.denials', 'log.level_until)'],
      ['ttl_of(math.max(0, expires - clock)', 'ttl_of(math.max(0, expires)'],
    ],
    'histories 1 > overrides and bans, clock set back': [
      ['shifted(denial_at(log, i - 1))', 'denial_at(log, i - 1)'],
      ['log.denials, log.stamp = table.concat(denials), now', 'log.denials = table.concat(denials)'],
    ],
    'limits/ban > a clock that was set back > by more than a second: as much is left of the ban as when it was written, in an explanation, too':
      [['  ban.restamp(log, now)\n', '']],
    'limits/ban > a clock that was set back > denials keep their age': [
      [
        'return math.max(0, log.blocked_until - now), log.level,',
        'return log.blocked_until - now, log.level,',
      ],
    ],
    'limits/ban > denials bring a ban on > each of several requests that are decided together counts, and brings on one ban at most':
      [[', now), count)', ', now), 1)']],
    'histories 1 > bans by bucket of several keys': [['  if by >= 0 then return end\n', '']],
    'conformance > each ban is longer than the one before, up to the last': [
      ['math.min(p + 4 + log.level, last)', 'math.min(p + 3 + log.level, last)'],
      ['log.level = log.level + 1', 'log.level = 1'],
      ['log.blocked_until + words[p + 4]', 'log.blocked_until'],
    ],
  },
}
