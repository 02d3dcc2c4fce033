import type { Mutants } from '../mutant.ts'

export const ban: Mutants = {
  part: 'limits/ban.lua',
  mutants: {
    'conformance > repeated denials cause a ban, which the last denial reports': [
      ['BAN_SIZE = 25', 'BAN_SIZE = 24'],
      ['DENIAL_SIZE = 6', 'DENIAL_SIZE = 5'],
      ['size < BAN_SIZE or', 'size <= BAN_SIZE or'],
    ],
    'limits/ban > the key of a ban in Redis > makes requests fail with invalid_state if it holds too many denials, which stays unchanged':
      [
        ["LAST_OF_BAN = '6025'", "LAST_OF_BAN = '6024'"],
        ["if raw ~= '' then", "if raw == '' then"],
      ],
    'limits/ban > the key of a ban in Redis > makes requests fail with invalid_state if it holds a denial in the future, which stays unchanged':
      [
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
    "limits/ban > after the clock was set back > by less than a second, time doesn't advance until the clock catches up":
      [['if stamp <= clock + MAX_AHEAD then', 'if stamp < clock + MAX_AHEAD then']],
    'conformance > only recent denials count toward a ban; peeks and shadow limits never do': [
      ['low * DENIAL_SIZE + 1)', 'low * DENIAL_SIZE)'],
      ['  settle(log, words, p, now)\n  log.stamp', '  log.stamp'],
      ['+ count < words[p + 2]', '+ count <= words[p + 2]'],
    ],
    'conformance > explain reports a ban, and the state that the limits would have without it': [
      ['format, stamp, blocked_until, level, level_until =', 'format, stamp, blocked_until ='],
      ['log.denials = string.sub(raw, BAN_SIZE + 1)', ''],
    ],
    'limits/ban > the key of a ban in Redis > drops everything expired at the next write': [
      ['if log.blocked_until <= now then log.blocked_until = 0 end', ''],
      ['log.level_until <= now', 'log.level_until < now'],
      ['  log.stamp = now\n  if #', '  if #'],
    ],
    'conformance > unblocking a key clears its denials and earlier bans': [
      [
        "function ban.unblock(log)\n  log.stamp, log.blocked_until, log.level, log.level_until, log.denials = 0, 0, 0, 0, ''",
        'function ban.unblock(log)\n  log.blocked_until, log.level, log.level_until = 0, 0, 0',
      ],
    ],
    'limits/ban > the key of a ban in Redis > expires soon after everything in it has expired': [
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
    'limits/ban > after the clock was set back > by more than a second, a ban keeps the time that was left at its last write':
      [['  ban.restamp(log, now)\n', '']],
    'limits/ban > after the clock was set back > denials keep their age': [
      [
        'return math.max(0, log.blocked_until - now), now - log.stamp,',
        'return log.blocked_until - now, now - log.stamp,',
      ],
    ],
    'limits/ban > bans > count several requests that are decided together, and cause at most one ban': [
      [', now), count)', ', now), 1)'],
    ],
    'histories 1 > bans by bucket of several keys': [['  if by >= 0 then return end\n', '']],
    'conformance > each ban lasts longer than the one before, up to the last step': [
      ['math.min(p + 4 + log.level, last)', 'math.min(p + 3 + log.level, last)'],
      ['log.level = log.level + 1', 'log.level = 1'],
      ['log.blocked_until + words[p + 4]', 'log.blocked_until'],
    ],
  },
}
