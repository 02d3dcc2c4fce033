import type { Mutants } from '../mutant.ts'

export const driver: Mutants = {
  part: 'ops/driver.lua',
  mutants: {
    'conformance > repeated denials cause a ban, which the last denial reports': [
      ['SHADOW = 16', 'SHADOW = 8'],
      ['MORE = 32', 'MORE = 64'],
      ['PER_WORD = 64', 'PER_WORD = 128'],
      ['PER_OVERRIDE = 65536', 'PER_OVERRIDE = 131072'],
      ['EXPLAIN = 128\n', 'EXPLAIN = 256\n'],
      ['CHARGES = 256\n', 'CHARGES = 128\n'],
      ['EXTRAS = -10\n', 'EXTRAS = -9\n'],
      ['options = -code', 'options = 0'],
      [
        '(code - code % PER_OVERRIDE) / PER_OVERRIDE, code % PER_OVERRIDE',
        '(code - code % PER_OVERRIDE) / PER_OVERRIDE, code',
      ],
    ],
    'conformance > the full quota is available after resetAfterMs and not 1 ms earlier': [
      ['LOOK = 1\n', 'LOOK = 2\n'],
    ],
    'conformance > peek reports what consume would decide': [
      ['FORCED = 2\n', 'FORCED = 1\n'],
      ['code % MORE >= SHADOW', 'code >= SHADOW'],
      ['kinds[LATER + log - 1] = kinds[kind] else', 'kinds[LATER + log] = kinds[kind] else'],
      ['    logs = logs + 1\n', ''],
    ],
    'conformance > a repeated request gets the first decision and is charged once': [
      ['MAY_REPEAT = 8\n', 'MAY_REPEAT = 128\n'],
      ['IDS = 16\n', 'IDS = 8\n'],
    ],
    'conformance > leased units count for the length of the window plus the lease': [
      ['LEASE = 32\n', 'LEASE = 64\n'],
      ['RESERVATION_NAME = 64\n', 'RESERVATION_NAME = 32\n'],
      [
        'if options % (2 * LEASE) >= LEASE then op.lease_ms, at = ARGV[at] + 0, at + 1 end',
        'if options % (2 * LEASE) >= LEASE then at = at + 1 end',
      ],
    ],
    'conformance > a refund returns exactly the units that were charged': [
      ['RARE = 1024\n', 'RARE = 4096\n'],
    ],
    "faults/receipts > a call that is executed twice in a row > returns equal replies if an op can't be decided":
      [
        ['UNREADABLE = -1\n', 'UNREADABLE = -2\n'],
        ['= UNREADABLE, done\n', '= UNREADABLE\n'],
        ['          filled = filled + 2\n', '          filled = filled + 1\n'],
      ],
    'conformance > after the clock is set back to an earlier month, later usage still counts': [
      ['AHEAD = -2\n', 'AHEAD = -1\n'],
      ['        done = nil\n', ''],
      ['first + 1, room, now, clock', 'first + 1, room, clock, clock'],
      ["if not all and type(done) == 'number' then", 'if false then'],
    ],
    'conformance > a blocked key also waits for its limits if they are still full after the block': [
      ['reply[first], first = stored, first + 1\n', 'reply[first], first = stored, first\n'],
      ['if not (op or stored) then', 'if not op then'],
    ],
    "faults/receipts > a call that arrives after a later one from the same place isn't executed": [
      ['STALE = -1\n', 'STALE = -2\n'],
      ['%d%d$', '%d$'],
      ['NUMBER_SIZE = 17', 'NUMBER_SIZE = 18'],
      ["NUMBER_TEXT = '17'", "NUMBER_TEXT = '18'"],
      ["LAST_OF_NUMBER = '16'", "LAST_OF_NUMBER = '15'"],
      ['reply, filled, k = { NO_TIME, 0, 0 }, 1, 1', 'reply, filled, k = { NO_TIME, 0, 0 }, 1, 0'],
      ['at, keys = 2, keys - 1', 'keys = keys - 1'],
    ],
    'faults/receipts > a call that is executed twice in a row > leaves a receipt that expires': [
      ["RECEIPT_TTL = '600000'", "RECEIPT_TTL = '600'"],
    ],
    'faults/receipts > a call that is executed twice in a row > leaves no receipt if nothing was charged': [
      ['local is_repeatable = true', 'local is_repeatable = false'],
      ['if all > 0 then is_repeatable = false end', 'is_repeatable = false'],
    ],
    'faults/receipts > ioredis 5 with a connection that breaks after the request > charges a batch of many keys and costs once':
      [
        ['if size_of_number >= NUMBER_SIZE then', 'if false then'],
        ['if last_number == number then', 'if false then'],
        ['elseif last_number > number then', 'elseif last_number < number then'],
      ],
    'conformance > a clock can start at 0': [
      ['if not clock then', 'if not clock or clock == 0 then'],
      ['options - CLOCK, ARGV[at] + 0, at + 1', 'options - CLOCK, ARGV[at] + 0, at'],
    ],
    'conformance > only the keys whose limits denied the request are banned': [
      ['log + (code - code % PER_WORD) / PER_WORD', 'log + (code - code % PER_WORD) / PER_WORD + 1'],
      ['is_more = code % PER_WORD >= MORE', 'is_more = code >= MORE'],
      ['codes[logs] = { kind = kind, p = log }', ''],
      ['codes = codes or {}', 'codes = {}'],
      ['log, code = last + 1, 0', 'log, code = last, 0'],
      ['if is_more then code, at = ARGV[at] + 0, at + 1 end', 'if is_more then code = ARGV[at] + 0 end'],
      ['if overridable > 0 then names, at = ARGV[at], at + 1 end', 'if overridable > 0 then at = at + 1 end'],
      ['if options > 0 or kinds[8] then', 'if options > 0 then'],
      ['KEYS[k + logs + i - 1]', 'KEYS[k + logs]'],
    ],
    'histories 1 > concurrency': [
      ['filled, op.is_blocked = op.is_held, first, false', 'filled, op.is_blocked = 1, first, false'],
      ['HOLD = 512', 'HOLD = 4096'],
      ['RENEWED = 1', 'RENEWED = 2'],
    ],
    'conformance > a renewal after the clock is set back by more than 1 s also updates stored times, so the slot lasts for its ttl':
      [['is_usual, is_repeatable = not op.is_ban_restamped, false', 'is_repeatable = false']],
    'histories 1 > several keys': [
      ['if kinds[LATER + log - 1] then kinds[LATER + log - 1] = nil end', ''],
      ['op = { lease_ms = 0 }', 'op = { lease_ms = 1 }'],
      [
        'if options % (2 * CHARGES) >= CHARGES then op.charges, at = ARGV[at] + 0, at + 1 end',
        'if options % (2 * CHARGES) >= CHARGES then at = at + 1 end',
      ],
      [
        'groups, ops, cost, wanted = 1, keys / (logs + overridable), 1, 1',
        'groups, ops, cost, wanted = 1, 1, 1, 1',
      ],
      ['is_all = at > arguments', 'is_all = false'],
      ['if not is_all then groups, at = ARGV[at] + 0, at + 1 end', 'if not is_all then at = at + 1 end'],
      [
        'ops, cost, wanted = ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0',
        'ops, wanted = ARGV[at] + 0, ARGV[at + 2] + 0',
      ],
      ['      at = at + 3\n', '      at = at + 2\n'],
      ['decide(words, 1, k, filled + 2, wanted, clock', 'decide(words, 1, 1, filled + 2, wanted, clock'],
      [
        'reply[filled + 1], filled, k = all, done, k + logs',
        'reply[filled + 1], filled, k = all, done, k + 1',
      ],
      [
        'if op and op.has_ids then op.id, at = ARGV[at], at + 1 end',
        'if op and op.has_ids then at = at + 1 end',
      ],
      ['run.isUnread) and 0 or overridable\n', 'run.isUnread) and 0 or 1\n'],
    ],
    "conformance > units that a bucket refilled at another rate aren't refunded again": [
      ['RESERVATION_NAME then op.reservation, at', 'RESERVATION_NAME then op.id, at'],
    ],
    'redis/damaged-state > an override > with the record "" is rejected and unchanged': [
      ['          done = damage\n', ''],
    ],
    "conformance > a block denies requests in its dimension, keeps the override's numbers, and expires": [
      ['(stored or string.rep(NOTHING, i - 1)) ..', 'string.rep(NOTHING, i - 1) ..'],
      ['if stored or run then', 'if stored then'],
    ],
    'conformance > an override applies to its key, in every process, until it is deleted': [
      ['if numbers and not run then', 'if false then'],
    ],
    'conformance > a request repeated at a higher cost is rejected and charges nothing': [
      [
        'op.again_at, op.is_ban_restamped, op.is_blocked, op.is_held = nil, false, room == 0, 1',
        'op.is_ban_restamped, op.is_blocked, op.is_held = false, room == 0, 1',
      ],
      ['not (op.is_explained or op.again_at or', 'not (op.is_explained or'],
    ],
    'conformance > requests that are denied in one batch count separately': [
      [
        'if kinds[8] then op.bans, op.denied = {}, {} end',
        'op.bans, op.denied = op.bans or {}, op.denied or {}',
      ],
    ],
    'histories 1 > bursts, clock set back': [
      ['if now == clock then first = first + 2 end', 'first = first + 2'],
      ['= AHEAD, done - clock, done, nil', '= AHEAD, done - now, done, nil'],
      ['is_usual = false\n        elseif', 'is_usual = true\n        elseif'],
      ['reply[first], filled = all, done', 'reply[first], filled = room, done'],
    ],
    'faults/receipts > a call that is executed twice in a row > charges once and returns equal replies: sliding windows':
      [
        ['if all > 0 and not (op and op.is_look) then is_repeatable = false end', ''],
        ['is_written = not run.isLook', 'is_written = false'],
      ],
    'conformance > operations are decided in the order in which they are listed': [
      [
        'then reply[first], filled, op.is_blocked = 0, first, false end',
        'then reply[first], op.is_blocked = 0, false end',
      ],
    ],
    'limits/ban > no denial is counted > for a caller that waits': [['WAITING = 4\n', 'WAITING = 128\n']],
    'redis/damaged-state > a damaged receipt "zzzzzzzzzzzzzzzz" > gets overwritten': [
      ['if string.find(last_number, RECEIPT_NUMBER) then return', 'do return'],
    ],
    'limits/fixed-window > if the clocks of this process and of Redis differ > by 0 windows, the clock of Redis decides the hour':
      [['time[1] * 1000 + (', 'time[1] * 1000000 - (']],
    "limits/every-kind > 'a sliding counter', 'Redis', with other operations > decides each key of a batch on its own":
      [
        [
          "call_redis('MGET', unpack(KEYS, k, k + ops - 1))",
          "call_redis('MGET', unpack(KEYS, 1, k + ops - 1))",
        ],
        [
          'for i = 1, ops do kinds[KEYS[k + i - 1]] = found[i] end',
          'for i = 1, ops do kinds[KEYS[k + i - 1]] = found[1] end',
        ],
      ],
  },
}
