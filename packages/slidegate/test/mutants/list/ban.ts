import type { Mutants } from '../mutant.ts'

export const ban: Mutants = {
  part: 'limits/ban.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > requests that are denied together count one by one': [
      ['local BAN_SIZE = 25', 'local BAN_SIZE = 24'],
      ['local BAN_SIZE = 25', 'local BAN_SIZE = 26'],
      ['local DENIAL_SIZE = 6', 'local DENIAL_SIZE = 5'],
      ['local DENIAL_SIZE = 6', 'local DENIAL_SIZE = 7'],
      ['DENIAL_SIZE + 1))', 'DENIAL_SIZE - 1))'],
      ['while low < high do', 'while low <= high do'],
      ['= math.floor((low', '= math.ceil((low'],
      ['now - denial_at(log,', 'now + denial_at(log,'],
      ["log.stamp = (log.blocked_until == 0 and log.level == 0 and log.denials == '') and 0 or now", ''],
      ["'') and 0 or now", "'') and 0 and now"],

      ["if raw == '' then return nil end", ''],
      ["if raw == '' then", "if raw ~= '' then"],
      ['#raw >= BAN_SIZE', '#raw > BAN_SIZE'],
      ['% DENIAL_SIZE ==', '% DENIAL_SIZE ~='],
      ['_, log.stamp, log.blocked_until, log.level, log.level_until = struct_unpack(BAN_FORMAT, raw)', ''],
      ['log.denials = string_sub(raw, BAN_SIZE + 1)', ''],
      [
        "if log.denials == '' or denial_at(log, #log.denials / DENIAL_SIZE - 1) <= log.stamp then return nil end",
        '',
      ],
      ['if log.denials ~=', 'if log.denials =='],
      ["if log.denials ~= '' then", 'if false then'],
      ['expires = math.max(expires, denial_at(log, #log.denials / DENIAL_SIZE - 1) + log.params.within)', ''],
      ['/ DENIAL_SIZE - 1) +', '/ DENIAL_SIZE) +'],
      ['if expires == 0 then', 'if expires ~= 0 then'],
      ["call_redis('SET', log.key, raw, 'PX', ttl_of(math.max(0, expires - clock), is_clock_given))", ''],
      ['return math.max(0, log.blocked_until - now),', 'return math.min(0, log.blocked_until - now),'],

      ['if #denials / DENIAL_SIZE + count < params.after then', 'if true then'],
      ['log.denials = denials .. string.rep(struct_pack(DENIAL_FORMAT, now), count)', ''],
      ['log.blocked_until = now + times[math.min(level + 1, #times)]', ''],
      ['times[math.min(level', 'times[math.max(level'],
      ['log.level, log.level_until = level + 1, log.blocked_until + params.forgetAfter', ''],
      ['= level + 1, log.blocked_until', '= level, log.blocked_until'],
      ["log.denials = ''", ''],
      ['end\n  settle(log, params, now)', 'end\n  '],
    ],
    'conformance > only denials within the time count, and peeks and shadow limits never': [
      ['now) * DENIAL_SIZE + 1)', 'now) * DENIAL_SIZE)'],
    ],
    'conformance > it tells of a ban, and what the limits would say without it': [
      ['< log.level_until', '<= log.level_until'],
    ],
    'limits/ban-kind > the key in Redis > holds nothing of what is over, once it is written again': [
      ['log.denials = counting(log, params, now)', ''],
      ['if log.level_until <= now then log.level, log.level_until = 0, 0 end', ''],
      ['log.level_until <= now', 'log.level_until < now'],
    ],
    'conformance > who is let go has no denials and no earlier bans': [
      ['if log.blocked_until <= now then log.blocked_until = 0 end', ''],
      ['if expires == 0 then', 'if false then'],
      ["call_redis('DEL', log.key)", ''],
      [
        'settle(log, params, now)\n  return math.max(0, log.blocked_until - now)',
        'settle(log, params, now)\n  return math.min(0, log.blocked_until - now)',
      ],
    ],
    'traps/what-is-wrong > a ban': [["if type(raw) ~= 'string' then return raw.err end", '']],
    'limits/ban-kind > the key in Redis > a denial that is to come in its place is unavailable, and left alone':
      [
        [
          "if log.denials == '' or denial_at(log, #log.denials / DENIAL_SIZE - 1) <= log.stamp then return",
          'do return',
        ],
      ],
    'limits/ban-kind > the key in Redis > lives as long as anything of it matters, and not much longer': [
      ['math.max(log.blocked_until,', 'math.min(log.blocked_until,'],
      [' + log.params.within)', ')'],
      ['ttl_of(math.max(0,', 'ttl_of(math.min(0,'],
      ['log.blocked_until +', 'now +'],
    ],
    'conformance > a clock that was set back makes no ban longer': [
      ['= now - log.stamp', '= now + log.stamp'],
      ['or math.max(0, at_ms', 'or math.min(0, at_ms'],
      ['return at_ms == 0', 'return at_ms ~= 0'],
      ['log.blocked_until, log.level_until = shifted(log.blocked_until), shifted(log.level_until)', ''],
    ],
    'limits/ban-kind > a clock that was set back > at the beginning of time, too': [
      [
        'for i = 1, #log.denials / DENIAL_SIZE do denials[i] = struct_pack(DENIAL_FORMAT, shifted(denial_at(log, i - 1))) end',
        '',
      ],
    ],
    'limits/ban-kind > a clock that was set back > by more than a second: as much is left of the ban as when it was written':
      [['log.denials, log.stamp = table.concat(denials), now', '']],
    'limits/ban-kind > a clock that was set back > denials keep their age': [
      ['DENIAL_SIZE - over_at(log,', 'DENIAL_SIZE + over_at(log,'],
    ],
    'limits/ban-kind > denials bring a ban on > a denial counts while it is younger than `within`, not at that age':
      [['local denials = counting(log, params, now)\n ', 'local denials = log.denials\n ']],
    'limits/ban-kind > denials bring a ban on > and where one is enough, the first after a ban that is forgotten brings on the shortest':
      [['= level_at(log, now),', '= log.level,']],
    'histories 1 > bans': [['count < params.after', 'count <= params.after']],
  },
}
