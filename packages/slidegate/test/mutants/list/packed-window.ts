import type { Mutants } from '../mutant.ts'

export const packedWindow: Mutants = {
  part: 'limits/packed-window.lua',
  mutants: {
    'limits/logs > Redis > packed > reports for each cost when the request that blocks it leaves': [
      ['MOST_TRIES = 60', 'MOST_TRIES = 1'],
      ['if not is_in_back then', 'if is_in_back then'],
      ['if first_of_back <= bound', 'if first_of_back < bound'],
      ['total, stamp = struct_unpack(RECORD_FORMAT, records, place + (rest - 1) * WIDTH + 1)', ''],
      ['value = column == TOTAL and total or stamp', ''],
      ['value > bound then\n      -- The record', 'value >= bound then\n      -- The record'],
      [
        'before = total\n        total, stamp = struct_unpack(RECORD_FORMAT, records, place + 1)',
        'total, stamp = struct_unpack(RECORD_FORMAT, records, place + 1)',
      ],
      ['if (column == TOTAL and total or stamp) > bound', 'if (column == TOTAL and total or stamp) >= bound'],
      ['until false', 'until true'],
      ['if is_in_back then return total, nil, records, place + rest * WIDTH, 0, taken, true end', ''],
      ['before = total\n  local low', 'local low'],
      ['if low > high then', 'if true then'],
      ['if next_page then', 'if false then'],
      ['stamp = back > 0 and struct_unpack(NUMBER_FORMAT, raw, BACK + STAMP + 1) or nil', 'stamp = nil'],
      ['value1 > bound then', 'value1 >= bound then'],
      ['high_value, next_page = page - 1,', 'high_value, next_page = page,'],
      ['value4 <= bound then', 'value4 < bound then'],
      ['elseif value2 > bound then', 'elseif false then'],
      ['elseif value3 > bound then', 'elseif false then'],
      ['retry = NEVER', ''],
      ['elseif taken > 0 then', 'elseif taken >= 0 then'],
      [
        'if pages == 0 and front < PAGE then\n          from',
        'if pages == 0 or front < PAGE then\n          from',
      ],
      ['from = BACK + (PAGE - front) * WIDTH\n', '\n'],
      ['.. string.sub(raw, BACK + 1, from)\n', '\n'],
      ['front, back = PAGE, front', ''],
      ['new_front = new_front or string.sub(raw, FRONT + 1)\n', '\n'],
      ['          pages, back = pages + 1, 0\n        end', '          pages, back = pages, 0\n        end'],
    ],
    'conformance > charges saturate, so no key is denied for longer than the window': [
      ['MAX_TOTAL = 2 ^ 47', 'MAX_TOTAL = 2 ^ 49'],
      ['shift = math.max(log.base, log.total + units - MAX_UNITS)', 'shift = log.base'],
      ['first, log.base = first_above(log, TOTAL, shift), shift', 'log.base = shift'],
      ['if units > MAX_UNITS then units = MAX_UNITS end', ''],
      ['tables.save(rare)\n', '\n'],
      [') .. older\n', ')\n'],
      ['if back > 0 then log.pieces[#', 'if false then log.pieces[#'],
      [') .. text_of(log, split, log.count)', ')'],
      ['local low, high = 0, log.count', 'local low, high = 1, log.count'],
      ['low = middle + 1 else', 'low = middle + 2 else'],
      [
        'return index == 0 and log.base or (at(log, index - 1))',
        'return index == 0 and log.base or (at(log, index))',
      ],
      [
        'replace(log, 0, lowered(log, first, shift) .. pushed)',
        'replace(log, 0, lowered(log, 0, shift) .. pushed)',
      ],
      ['if log.total + units > MAX_TOTAL then', 'if false then'],
      [
        'struct_pack(RECORD_FORMAT, log.total - shift, log.stamp)',
        'struct_pack(RECORD_FORMAT, log.total - shift, stamp)',
      ],
      [
        'log.base - shift, log.total + units - shift, stamp',
        'log.base - shift, log.total + units - shift, log.stamp',
      ],
    ],
    'conformance > the window slides: each charge leaves at its own time': [
      ['BACK + column + 1)', 'BACK + 1)'],
      ['value, pages - 1,', 'value, pages + 1,'],
      ['gone = now - keep\n', 'gone = now + keep\n'],
      ['start, rest, is_in_back = BACK, back, true end', 'start, rest = BACK, back end'],
      [
        'oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, raw, start + 1)\n    -- Usually',
        '-- Usually',
      ],
      ['if oldest_stamp <= gone and rest > 1 then', 'if oldest_stamp <= gone then'],
      ['before, start, rest = oldest_total,', 'before, start, rest = before,'],
      ['if oldest_stamp <= gone then', 'if false then'],
      ['answer = answer + 1\n  local free', 'local free'],
      ['free = words[i + 1] - used', 'free = words[i + 1] + used'],
      ['if kept < longest then kept = longest end', ''],
      ['answer = place\n', '\n'],
      ['local older, newest_total', 'older, newest_total'],
      ['front = 0\n      if start', 'if start'],
      ['newest_total = total\n', '\n'],
      ['if newest_total then back = back + 1 end', ''],
      ['total = total + units', ''],
      ['if newest_total then value = value .. struct_pack(RECORD_FORMAT, newest_total, stamp) end', ''],
      ["call_redis('SETRANGE', key, '0', value)\n", '\n'],
      [
        "string.rep('\\0', PAGE_WIDTH - rest * WIDTH) .. string.sub(raw, start + 1, BACK + back * WIDTH)",
        "string.sub(raw, start + 1, BACK + back * WIDTH) .. string.rep('\\0', PAGE_WIDTH - rest * WIDTH)",
      ],
    ],
    'histories 3 > bursts': [
      ['place, rest = place + WIDTH, rest - 1', 'place, rest = place + WIDTH, rest'],
      ['return total3, stamp4, found', 'return total2, stamp4, found'],
      ['if is_empty then\n  before = total', 'if is_empty then\n'],
      [
        'if rest > 0 then oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, records, start + 1) end',
        '',
      ],
      ['if window > longest then longest = window end', 'longest = window'],
      ['if window < keep and not is_empty then', 'if false then'],
      ['cut = now - window', 'cut = now - window - 1'],
      ['if stamp <= cut then', 'if stamp < cut then'],
      ['before_window = total\n', '\n'],
      ['elseif oldest_stamp <= cut then', 'elseif oldest_stamp < cut then'],
      ['span = window < kept and window or kept', 'span = window'],
      ['if reset < 0 then reset = 0 end', ''],
      ['used + units + cost - limit or 0', 'used + cost - limit or 0'],
      [
        'head, pages, front, back = now, 0, 0, 0, 0, 0, 0',
        'head, pages, front, back = now, 0, 0, 0, 0, 0, back',
      ],
      ['base, pages, front = before, pages - taken, rest', 'base, pages, front = base, pages - taken, rest'],
      ['first_above(log, STAMP, stamp - 1)', 'first_above(log, STAMP, stamp)'],
      ['log.total = log.total - returned', ''],
    ],
    'conformance > no window exceeds its limit, and every request that fits is admitted': [
      ['PAGE, low + 1, false', 'PAGE, low - 1, false'],
      ['low, low_value, before = page + 1, value4, total4', 'low, low_value = page + 1, value4'],
      [
        'new_front = string.sub(new_front or string.sub(raw, FRONT + 1), (PAGE',
        'new_front = string.sub(string.sub(raw, FRONT + 1), (PAGE',
      ],
    ],
    'histories 1 > bursts': [
      [
        'EDGES + (head + page) % slots * PAGE_WIDTH\n    local found',
        'EDGES + page % slots * PAGE_WIDTH\n    local found',
      ],
      ['elseif pages < slots then\n          page,', 'elseif false then\n          page,'],
      ['* PAGE_WIDTH, pages + 1, 0', '* PAGE_WIDTH, pages, 0'],
    ],
    "redis/damaged-state > a sliding window among others > doesn't disturb other requests if its log is truncated anywhere: 41 requests":
      [
        ['if #found < PAGE_WIDTH then return nil end', ''],
        [
          'STAMP, gone, stamp)\n      if not before then return nil, DAMAGED_WINDOW end',
          'STAMP, gone, stamp)',
        ],
      ],
    'conformance > after the clock is set back slightly, keys in one batch are still counted separately': [
      ['if column == STAMP then value1, value2, value3, value4 = stamp1, stamp2, stamp3, stamp4 end', ''],
    ],
    'redis/stored-format > a window log with all its parts can be read': [
      ['2, page + 1, false', '2, page + 1, true'],
      ['reply[answer] = used', ''],
      ['above = total - used + over - 1', 'above = total - used + over'],
      ['if cost > limit then', 'if cost >= limit then'],
      ['holder = oldest_stamp', 'holder = stamp'],
      ['if oldest_total <= above then', 'if false then'],
      ['holder = found and after or stamp', 'holder = after'],
      [
        'reply[answer], reply[filled + 1], reply[filled + 2] = -1 - used,',
        'reply[answer], reply[filled + 1], reply[filled + 2] = used,',
      ],
      ['answer, filled = answer + 1, filled + 2', 'answer = answer + 1'],
      ['new_front, head = records, (head + taken) % slots', 'head = (head + taken) % slots'],
      ["LAST_OF_EDGES = '146'", "LAST_OF_EDGES = '145'"],
      ['(size < EDGES or front > PAGE)', '(size <= EDGES or front > PAGE)'],
      ['if leased > 0 or new_front then\n', 'if leased > 0 then\n'],
      ['if new_front then value = value .. new_front end', ''],
    ],
    'conformance > leased units count for the length of the window plus the lease': [
      ['(leased - stamp < lease and leased - stamp or lease)', 'lease'],
      [
        'now < leased + window then window = window + lease',
        'now <= leased + window then window = window + lease',
      ],
      ['kept = kept + lease\n', '\n'],
      ['if mine < wanted or leased > 0 then', 'if mine < wanted then'],
      [
        '(leased > newest and expiry_of(newest, window, kept, lease, leased) or newest + span) - now',
        'newest + span - now',
      ],
      [
        '(leased > holder and expiry_of(holder, window, kept, lease, leased) or holder + span) - now',
        'holder + span - now',
      ],
    ],
    'conformance > every limiter on the key honors a lease': [
      ['(window < keep and window or keep)', 'window'],
    ],
    'redis/state-errors > a sliding window rejects values of another type or format': [
      ['return nil, raw.err or NO_WINDOW', 'return nil, NO_WINDOW'],
    ],
    'limits/every-kind > a sliding window in Redis > rejects "\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000" in its place, and leaves it unchanged':
      [['if format ~= FORMAT then return nil, NO_WINDOW end', '']],
    'history/stored-form > an empty log drops a large ring and keeps a small one, with normal commits': [
      ['KEPT_SLOTS = 64', 'KEPT_SLOTS = 0'],
      ['if not (is_new or ring) then', 'if not ring then'],
      ["call_redis('SET', key, value, 'PX', ttl)", "call_redis('SET', key, value)"],
      ['if is_new then slots = 0 end', ''],
    ],
    "conformance > after the clock is set back slightly, time doesn't advance until the clock catches up": [
      ['if stamp <= clock + MAX_AHEAD', 'if stamp < clock + MAX_AHEAD'],
      ['is_empty = stamp <= gone', 'is_empty = stamp < gone'],
    ],
    'histories 3 > sliding, clock set back': [
      ['0, 0, 0, 0, true\n', '0, 0, 0, 0, false\n'],
      ['elseif above >= total then', 'elseif above > total then'],
      ['retry = reset', ''],
    ],
    'redis/damaged-state > a window log whose oldest total is above its newest is rejected': [
      ['if used < 0 then return nil, DAMAGED_WINDOW end', ''],
    ],
    'conformance > an operation with a count is decided like the same number of single requests': [
      ['or (free - free % cost) / cost', 'or free / cost'],
      ['if over > 0 then', 'if over >= 0 then'],
    ],
    'histories 1 > one short log': [
      ['if is_empty then keep, lease, leased = 0, 0, 0 end', 'if is_empty then lease, leased = 0, 0 end'],
    ],
    'limits/ban > no denial is counted > for a denial by another part, even if a shadow limit of this part has no room':
      [['if op and op.bans and not is_shadow then', 'if op and op.bans then']],
    'conformance > peek writes nothing': [
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 or is_restamped then'],
    ],
    "conformance > a refund doesn't touch charges made after a reset": [
      ['stamp = at_ms - at_ms % words[p + 1]', 'stamp = at_ms'],
    ],
    'conformance > operations are decided in the order in which they are listed': [
      ['if stamp ~= new_stamp then\n', 'if true then\n'],
    ],
    'conformance > charges that a longer window needs are kept, however busy the shorter window is': [
      ['if pages >= most then most = MAX_PAGES end', ''],
      [
        "if page then call_redis('SETRANGE', key, string.format('%d', page), string.sub(raw, BACK + 1, LEASES)) end",
        '',
      ],
    ],
    'limits/every-kind > a sliding window in Redis > uses one key, which expires some time after it is empty':
      [['elseif ttl then\n      call', 'elseif false then\n      call']],
    'limits/logs > Redis > packed > refunds a whole request once, which makes room immediately': [
      ['if log.total == log.base then\n    call_redis', 'if false then\n    call_redis'],
    ],
    'conformance > explain with charges lists the charges that count, if the kind of limit stores them': [
      ['cut = now - math.min(window, log.keep)', 'cut = now - log.keep'],
      ['if log.stamp <= cut then return {} end', ''],
      ['local before, text = total_before(log, from),', 'local before, text = log.base,'],
      ['  charges[#charges + 1], charges[#charges + 2] = log.stamp, log.total - before\n', ''],
      ['stamp, total - before, total\n', 'stamp, total - before, before\n'],
    ],
    'conformance > a refund returns at most the units that were charged at that time': [
      ['returned = math.min(units, held)', 'returned = units'],
    ],
    'redis/stored-format > a window log with a lease can be read': [
      ['HAS_LEASES = 16', 'HAS_LEASES = 32'],
      ['LEASES = 87', 'LEASES = 75'],
      [
        'front, lease, leased = front - HAS_LEASES, struct_unpack',
        'front, leased, lease = front - HAS_LEASES, struct_unpack',
      ],
    ],
    "redis/ttl > the TTL isn't renewed by denials, peeks, refunds or most admissions": [
      ["HOT_OFFSET = '15'", "HOT_OFFSET = '21'"],
    ],
    'limits/big-logs > Redis > a log beyond its bound merges the oldest records, and never admits too much': [
      ['MAX_RECORDS = 65536', 'MAX_RECORDS = 131072'],
      ['if back >= PAGE or is_rare or pages > MANY_PAGES then', 'if is_rare or pages > MANY_PAGES then'],
    ],
    'limits/big-logs > Redis > a refund in a large log is exact up to 4,096 records back, and returns nothing beyond':
      [['MAX_REFUND_RECORDS = 4096', 'MAX_REFUND_RECORDS = 4095']],
    "redis/damaged-state > a sliding window > doesn't disturb other requests if a number in its header is extreme":
      [['if front >= HAS_LEASES and size >= FRONT then', 'if front >= HAS_LEASES then']],
    'limits/logs > Redis > packed > restamps units that counted when the clock is set back by an hour': [
      ['units, new_stamp = cost * mine, now - now % words[p + 1]', 'units, new_stamp = cost * mine, now'],
      [
        'if newest_total and not (new_front or is_due) and lease_ms == 0 then',
        'if not (new_front or is_due) and lease_ms == 0 then',
      ],
    ],
    "conformance > a reservation with a key that was reset isn't settled, even if the clock was set back": [
      ['new_stamp = new_stamp or stamp\n', '\n'],
      ['  if slots > 0 then\n    local is_large', '  if true then\n    local is_large'],
    ],
    'limits/logs > Redis > packed > refunds later requests of a large log after the clock was set back by an hour':
      [
        ['ring = string.sub(raw, BACK + 1, LEASES)', "ring = ''"],
        [
          'PUSH_FORMAT, base, total, new_stamp, front, back, head, pages, older, newest_total, stamp',
          'PUSH_FORMAT, base, total, new_stamp, front, back, head, pages, older, newest_total, new_stamp',
        ],
        ['if front > 0 then log.pieces[1] =', 'if false then log.pieces[1] ='],
        [
          'front, pages = PAGE, math.floor(log.count / PAGE) - 1',
          'front, pages = PAGE, math.floor(log.count / PAGE)',
        ],
        [
          'slots = front + pages * PAGE, math.max(log.slots, pages)',
          'slots = front + pages * PAGE, log.slots',
        ],
        [
          'HEADER_FORMAT, FORMAT, log.since, slots, log.keep,',
          'HEADER_FORMAT, FORMAT, log.since, log.slots, log.keep,',
        ],
        ['log.count - split, 0, pages', 'log.count - front, 0, pages'],
        ['if log.leased > 0 or front > 0 or slots > 0 then', 'if log.leased > 0 or slots > 0 then'],
        [
          ".. string.rep('\\0', PAGE_WIDTH - front * WIDTH) .. text_of(log, 0, front)",
          '.. text_of(log, 0, front)',
        ],
        ['if index == log.count then return log.total, log.stamp end', ''],
        ['if is_gone and index == newest and index > 0 then', 'if index == newest and index > 0 then'],
      ],
    'limits/logs > Redis > packed > counts the newest 2^46 units, even after the clock was set back': [
      ['if since > now then since = now end', ''],
      [
        'if (fitting > 0 or op and op.is_forced) and not is_empty then',
        'if fitting > 0 and not is_empty then',
      ],
      [
        'rare.slots, rare.since, rare.stamp = {}, 0, 0, since, stamp end',
        'rare.slots, rare.stamp = {}, 0, 0, stamp end',
      ],
      ['  log.base = total_before(log, first)\n', ''],
      ["replace(log, index - 1, '')", "replace(log, index, '')"],
      ['    log.total, log.stamp = at(log, index - 1)\n', ''],
    ],
    "conformance > setting the clock back doesn't extend a lease": [
      [
        'if leased > now + lease then leased = now + lease end',
        'if leased > now + lease then leased = now end',
      ],
      ['newest = new_stamp\n', '\n'],
      ['lease_ms = op.lease_ms\n', '\n'],
      [
        'HEADER_FORMAT, FORMAT, since, slots, kept, base, total, new_stamp, front, back, head, pages',
        'HEADER_FORMAT, FORMAT, since, slots, keep, base, total, new_stamp, front, back, head, pages',
      ],
      [
        'struct_pack(RECORD_FORMAT, lease, leased)\n    end\n    if new',
        'struct_pack(RECORD_FORMAT, leased, lease)\n    end\n    if new',
      ],
    ],
    'conformance > a longer window starts with the charges that shorter windows kept': [
      [
        'local before, _, oldest_total, oldest_stamp = base, nil, nil, nil',
        'local before, _, oldest_total, oldest_stamp = 0, nil, nil, nil',
      ],
    ],
    "redis/damaged-state > a window log that is truncated where a shorter window starts doesn't disturb other requests":
      [['if not before_window then return nil, DAMAGED_WINDOW end', '']],
    'redis/ttl > the TTL of a window log, by the clock of Redis, > changes with a charge to more than 2^46 units, but not with a refund':
      [
        ['is_rare = total > MAX_UNITS', 'is_rare = total > 2 * MAX_UNITS'],
        ["  call_redis('PEXPIRE', key, (ttl_of(kept, clock ~= reply[1])))\n", ''],
      ],
    "redis/damaged-state > a window log with a back longer than a page > rejects each operation and isn't changed":
      [
        [
          'if back > PAGE or pages > slots or front == 0 and pages > 0 then',
          'if pages > slots or front == 0 and pages > 0 then',
        ],
        ['if back > PAGE or pages > slots or pages > 0 and', 'if pages > slots or pages > 0 and'],
      ],
    "redis/damaged-state > a truncated window log of more than 2^46 units isn't changed": [
      ['      if damage then return nil, damage end\n', ''],
    ],
    "redis/damaged-state > a window log with an extra byte > rejects each operation and isn't changed": [
      ['if #old + #wrapped ~= slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end', ''],
      ['#rest ~= (is_large', '#rest < (is_large'],
    ],
    'limits/logs > leases of limiters with different windows count equally in all stores': [
      ['kept = keep - lease\n', 'kept = keep\n'],
      ['now >= leased + keep then', 'now >= leased then'],
      ['tables.commit(rare, now, gone, new_stamp, units)', 'tables.commit(rare, now, 0, new_stamp, units)'],
      ['rare.keep, rare.lease, rare.leased = kept, lease, leased', 'rare.keep, rare.leased = kept, leased'],
      [
        'struct_pack(RECORD_FORMAT, log.lease, log.leased)',
        'struct_pack(RECORD_FORMAT, log.leased, log.lease)',
      ],
      [
        "local first, shift, pushed = first_above(log, STAMP, gone), 0, ''",
        "local first, shift, pushed = 0, 0, ''",
      ],
      ['local is_gone = returned == held', 'local is_gone = units == held'],
      [
        'return { now - now % words[p + 1], log.total - log.base }',
        'return { now - now % words[p + 1], log.total }',
      ],
      ['if now < log.leased + window then window = window + log.lease end', ''],
    ],
    'limits/logs > Redis > packed > reports the wait after charges beyond the limit, and beyond what a log keeps':
      [['if lease_ms > 0 then\n', 'if true then\n']],
    'redis/ttl > the TTL of a window log, by the clock of Redis, > includes leases': [
      [
        'ttl = (is_due or is_new) and ttl_of(kept, clock ~= reply[1])',
        'ttl = (is_due or is_new) and ttl_of(kept - lease, clock ~= reply[1])',
      ],
    ],
    'conformance > of two overlapping leases, the one that ends later counts': [
      [
        'if leased < now + lease_ms then leased = now + lease_ms end',
        'if leased == 0 then leased = now + lease_ms end',
      ],
      [
        'if leased > 0 then front = front + HAS_LEASES end',
        'if lease_ms > 0 then front = front + HAS_LEASES end',
      ],
    ],
    'limits/logs > Redis, using only the rare operations > packed > refunds a part of a request': [
      ['if mine > 0 and is_rare then', 'if is_rare then'],
    ],
    'redis/ttl > the TTL of a window log, by the clock of Redis, > changes with a request after the clock was set back':
      [
        [
          'is_new = size == 0 or is_restamped or is_empty and slots > KEPT_SLOTS',
          'is_new = size == 0 or is_empty and slots > KEPT_SLOTS',
        ],
      ],
    'history/stored-form > stored logs keep their invariants with normal commits': [
      ['front, back = rest, 0\n', 'front, back = rest, back\n'],
      ["(old or '') .. (wrapped or '') .. ring", "(old or '') .. ring"],
      [
        'head, slots = 0, math.min(math.max(2 * pages, 1), most)',
        'slots = math.min(math.max(2 * pages, 1), most)',
      ],
      [
        'if back > 0 and (newest_total or new_front or leased > 0) then older',
        'if back > 0 and (newest_total or leased > 0) then older',
      ],
      ['local split = EDGES + head * PAGE_WIDTH', 'local split = EDGES'],
    ],
    'limits/logs > Redis > packed > refunds a request if at most 256 were charged since, even with a small limit':
      [
        ['MIN_REFUND_RECORDS = 256', 'MIN_REFUND_RECORDS = 3'],
        ['start = EDGES + head * PAGE_WIDTH }', 'start = EDGES }'],
        ['text_of(log, front, split) .. zeros', 'text_of(log, front, split)'],
        ['math.max(MIN_REFUND_RECORDS, records_of(words, p, log.last))', 'records_of(words, p, log.last)'],
        [
          'if found ~= stamp or newest - index > most then return 0 end',
          'if found ~= stamp or newest - index >= most then return 0 end',
        ],
        ['local held = total - total_before(log, index)', 'local held = total - log.base'],
      ],
    'redis/ttl > the TTL of a window log, by the clock of Redis, > changes with the first request in a part of its slack: a window of 3600000 ms':
      [
        ['local is_due = now - now % part > stamp or', 'local is_due = now - now % part < stamp or'],
        ["if ttl then call_redis('PEXPIRE', key, ttl) end", ''],
      ],
    'redis/ttl > the TTL of a window log, by the clock of Redis, > changes with the first request in a part of its slack: a window of 10000 ms':
      [['kept < 20000 and 4000 or', 'kept < 20000 and 400 or']],
    'redis/ttl > a log that outgrows its ring keeps its TTL, set rarely': [
      ["call_redis('SET', key, value, 'KEEPTTL')", "call_redis('SET', key, value)"],
    ],
    'conformance > charges after a refunded one still leave the window on time': [
      ['read_piece(log, piece, index, index + 1)', 'read_piece(log, piece, 0, 1)'],
      [
        'local records, text = {}, text_of(log, first, log.count)',
        'local records, text = {}, text_of(log, first, log.count - 1)',
      ],
      ['struct_pack(RECORD_FORMAT, total - units, stamp)', 'struct_pack(RECORD_FORMAT, total, stamp)'],
      ['replace(log, index, lowered(', 'replace(log, 0, lowered('],
    ],
    "limits/logs > Redis, using only the rare operations > packed > doesn't advance until a clock set back by half a second catches up":
      [['elseif log.stamp ~= stamp then', 'else']],
    'conformance > a refund of an expired or reset charge adds no quota': [
      ['or stamp <= now - log.keep then return 0 end', 'or stamp < now - log.keep then return 0 end'],
    ],
    'conformance > explain lists fewer charges per limit if there are many limits': [
      ['log.count + 1 - most)', 'log.count - most)'],
    ],
  },
}
