import type { Mutants } from '../mutant.ts'

export const packedWindow: Mutants = {
  part: 'limits/packed-window.lua',
  mutants: {
    'limits/logs > Redis > packed > each cost waits for the request that is in its way': [
      ['MOST_TRIES = 60', 'MOST_TRIES = 1'],
      ['if not is_in_back then', 'if is_in_back then'],
      ['if back > 0 then first_of_back = struct_unpack(NUMBER_FORMAT, raw, BACK + column + 1) end', ''],
      [
        'if first_of_back <= bound then records, place, rest, taken, is_in_back = raw, BACK, back, pages, true end',
        '',
      ],
      ['if first_of_back <= bound', 'if first_of_back < bound'],
      ['total, stamp = struct_unpack(RECORD_FORMAT, records, place + (rest - 1) * WIDTH + 1)', ''],
      ['value = column == TOTAL and total or stamp', ''],
      ['value > bound then\n      -- Among', 'value >= bound then\n      -- Among'],
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
      ['high, high_value, next_page = page - 1, value1, found', 'high, high_value = page - 1, value1'],
      ['high_value, next_page = page - 1,', 'high_value, next_page = page,'],
      ['value4 <= bound then', 'value4 < bound then'],
      ['elseif value2 > bound then', 'elseif false then'],
      ['elseif value3 > bound then', 'elseif false then'],
      ['if cost > limit then', 'if false then'],
      ['retry = NEVER', ''],
      ['elseif taken > 0 then', 'elseif taken >= 0 then'],
      [
        'if pages == 0 and front < PAGE then\n          from',
        'if pages == 0 or front < PAGE then\n          from',
      ],
      ['if pages == 0 and front < PAGE then\n          from', 'if false then\n          from'],
      ['from = BACK + (PAGE - front) * WIDTH\n', '\n'],
      ['.. string.sub(raw, BACK + 1, from)\n', '\n'],
      ['front, back = PAGE, front', ''],
      ['math.min(math.max(2 * pages, 1), most)', 'math.min(2 * pages, most)'],
      ['new_front = new_front or string.sub(raw, FRONT + 1)\n', '\n'],
      ['pages, back = pages + 1, 0\n          ring', 'pages, back = pages, 0\n          ring'],
      ['if ring then value = value .. ring end', ''],
    ],
    'conformance > charges saturate, and nobody stays locked for longer than the window': [
      ['MAX_TOTAL = 2 ^ 47', 'MAX_TOTAL = 2 ^ 49'],
      ['shift = math.max(log.base, log.total + units - MAX_UNITS)', 'shift = log.base'],
      ['drop(log, first_above(log, TOTAL, shift))', ''],
      ['is_rare = total > MAX_UNITS', 'is_rare = false'],
      ['if units > MAX_UNITS then units = MAX_UNITS end', ''],
      ['tables.commit(log, now, gone, new_stamp, units)', ''],
      ['tables.save(log)\n', '\n'],
      [
        'if back > 0 and (newest_total or new_front or leased > 0) then older',
        'if back > 0 and (new_front or leased > 0) then older',
      ],
      [') .. older\n', ')\n'],
      [
        'string.sub(raw, EDGES - front * WIDTH + 1, EDGES) .. string.sub(ring, 1, pages * PAGE_WIDTH)\n    .. string.sub(raw, BACK + 1, BACK + back * WIDTH)',
        'string.sub(raw, EDGES - front * WIDTH + 1, EDGES) .. string.sub(ring, 1, pages * PAGE_WIDTH)',
      ],
      ['log.leased > 0 and front + HAS_LEASES or front, count', 'front + HAS_LEASES, count'],
      [') .. string.sub(records, split + 1)', ')'],
      ['local low, high = 0, #log.records / WIDTH', 'local low, high = 0, #log.records / WIDTH - 1'],
      ['local low, high = 0, #log.records / WIDTH', 'local low, high = 1, #log.records / WIDTH'],
      ['low = middle + 1 else', 'low = middle + 2 else'],
      [
        'return index == 0 and log.base or (at(log, index - 1))',
        'return index == 0 and log.base or (at(log, index))',
      ],
      [
        'total_before(log, index), string.sub(log.records, index * WIDTH + 1)',
        'total_before(log, index), log.records',
      ],
      ['if log.total + units > MAX_TOTAL then', 'if false then'],
      ['lowered(log, 0, shift), 0, log.total - shift', 'lowered(log, 0, shift), 0, log.total'],
      ['lowered(log, 0, shift), 0, log.total - shift', 'lowered(log, 0, shift), log.base, log.total - shift'],
      ['log.records = log.records .. struct_pack(RECORD_FORMAT, log.total, log.stamp)', ''],
      ['struct_pack(RECORD_FORMAT, log.total, log.stamp)', 'struct_pack(RECORD_FORMAT, log.total, stamp)'],
      ['log.total, log.stamp = log.total + units, stamp', 'log.total = log.total + units'],
      ['log.total, log.stamp = log.total + units, stamp', 'log.stamp = stamp'],
    ],
    'conformance > the window slides: each charge leaves it on its own': [
      ['BACK + column + 1)', 'BACK + 1)'],
      ['value, pages - 1,', 'value, pages + 1,'],
      ['gone = now - keep\n', 'gone = now + keep\n'],
      ['if front == 0 then start, rest, is_in_back = BACK, back, true end', ''],
      ['start, rest, is_in_back = BACK, back, true end', 'start, rest = BACK, back end'],
      [
        'oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, raw, start + 1)\n    -- Mostly',
        '-- Mostly',
      ],
      ['if oldest_stamp <= gone and rest > 1 then', 'if oldest_stamp <= gone then'],
      ['before, start, rest = oldest_total,', 'before, start, rest = before,'],
      [
        'rest - 1\n      oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, raw, start + 1)',
        'rest - 1',
      ],
      ['if oldest_stamp <= gone then', 'if false then'],
      ['answer = answer + 1\n  local free', 'local free'],
      ['free = words[i + 1] - used', 'free = words[i + 1] + used'],
      ['if kept < longest then kept = longest end', ''],
      ['answer = place\n', '\n'],
      ['local older, newest_total', 'older, newest_total'],
      ['front = 0\n      if start', 'if start'],
      [
        "new_front = string.rep('\\0', PAGE_WIDTH - rest * WIDTH) .. string.sub(raw, start + 1, BACK + back * WIDTH)",
        '',
      ],
      ['newest_total = total\n', '\n'],
      ['if newest_total then back = back + 1 end', ''],
      ['total = total + units', ''],
      ['if newest_total then value = value .. struct_pack(RECORD_FORMAT, newest_total, stamp) end', ''],
      ["call_redis('SETRANGE', key, '0', value)\n", '\n'],
      ['front, back = rest, 0\n', 'back = 0\n'],
      [
        "string.rep('\\0', PAGE_WIDTH - rest * WIDTH) .. string.sub(raw, start + 1, BACK + back * WIDTH)",
        "string.sub(raw, start + 1, BACK + back * WIDTH) .. string.rep('\\0', PAGE_WIDTH - rest * WIDTH)",
      ],
    ],
    'histories 3 > bursts': [
      ['place, rest = place + WIDTH, rest - 1', 'place, rest = place + WIDTH, rest'],
      ['return total3, stamp4, found', 'return total2, stamp4, found'],
      ['if stamp <= clock + MAX_AHEAD then return nil, stamp end', ''],
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
      ['fitting = free < cost and 0 or (free - free % cost) / cost end', 'fitting = 0 end'],
      ['free < cost and 0 or (free - free % cost) / cost end', '(free - free % cost) / cost end'],
      ['span = window < kept and window or kept', 'span = window'],
      ['if reset < 0 then reset = 0 end', ''],
      ['used + units + cost - limit or 0', 'used + cost - limit or 0'],
      [
        'since, base, total, head, pages, front, back = now, 0, 0, 0, 0, 0, 0',
        'since, base, total, head, pages, front, back = now, base, total, 0, 0, 0, 0',
      ],
      [
        'head, pages, front, back = now, 0, 0, 0, 0, 0, 0',
        'head, pages, front, back = now, 0, 0, 0, 0, 0, back',
      ],
      ['base, pages, front = before, pages - taken, rest', 'base, pages, front = base, pages - taken, rest'],
      ['first_above(log, STAMP, stamp - 1)', 'first_above(log, STAMP, stamp)'],
      ['log.total = log.total - returned', ''],
      [
        'if at_ms < log.since or stamp <= now - log.keep then return 0 end',
        'if at_ms < log.since then return 0 end',
      ],
    ],
    'conformance > no window holds more than its limit, and whatever fits is admitted': [
      ['PAGE, low + 1, false', 'PAGE, low - 1, false'],
      ['low, low_value, before = page + 1, value4, total4', 'low, low_value = page + 1, value4'],
      [
        'new_front = string.sub(new_front or string.sub(raw, FRONT + 1), (PAGE',
        'new_front = string.sub(string.sub(raw, FRONT + 1), (PAGE',
      ],
      ['elseif taken > 0 then\n', 'elseif false then\n'],
      [
        'older = string.sub(raw, from + 1, from + back * WIDTH) end',
        'older = string.sub(raw, BACK + 1, BACK + back * WIDTH) end',
      ],
    ],
    'histories 1 > bursts': [
      [
        'EDGES + (head + page) % slots * PAGE_WIDTH\n    local found',
        'EDGES + page % slots * PAGE_WIDTH\n    local found',
      ],
      ['3 * WIDTH, 1, page', '3 * WIDTH, 0, page'],
      ['base, pages, front = before, pages - taken, rest', 'base, pages, front = before, pages, rest'],
      ['new_front, head = records, (head + taken) % slots', 'new_front = records'],
      ['elseif pages < slots then\n          page,', 'elseif false then\n          page,'],
      ['page, pages, back = EDGES + (head + pages) % slots', 'page, pages, back = EDGES + pages % slots'],
      ['* PAGE_WIDTH, pages + 1, 0', '* PAGE_WIDTH, pages, 0'],
    ],
    'redis/damaged-state > a sliding window among others > cut off at any place it does not trouble the requests beside it: 41 requests':
      [
        ['if #found < PAGE_WIDTH then return nil end', ''],
        [
          'STAMP, gone, stamp)\n      if not before then return nil, DAMAGED_WINDOW end',
          'STAMP, gone, stamp)',
        ],
      ],
    'conformance > after a small step back keys that are asked together are told apart': [
      ['if column == STAMP then value1, value2, value3, value4 = stamp1, stamp2, stamp3, stamp4 end', ''],
    ],
    'redis/stored-format > a window log of all parts': [
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
      ['reply[filled + 2] = -1 - used, retry, reset', 'reply[filled + 2] = -1 - used, reset, retry'],
      ['answer, filled = answer + 1, filled + 2', 'answer = answer + 1'],
      ['new_front, head = records, (head + taken) % slots', 'head = (head + taken) % slots'],
      ["LAST_OF_EDGES = '146'", "LAST_OF_EDGES = '145'"],
      ['(size < EDGES or front > PAGE)', '(size <= EDGES or front > PAGE)'],
      ['if leased > 0 or new_front then\n', 'if leased > 0 then\n'],
      ['if new_front then value = value .. new_front end', ''],
    ],
    'conformance > leased units count for the window and the lease': [
      ['(leased - stamp < lease and leased - stamp or lease)', 'lease'],
      ['if leased > 0 and now < leased + window then window = window + lease end', ''],
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
    'conformance > a lease is honoured by every limiter on the key': [
      ['(window < keep and window or keep)', 'window'],
    ],
    'limits/every-kind > a sliding window in Redis > refuses "what is no log" in its place, and leaves it as it is':
      [["if raw ~= '' then return nil, raw.err or NO_WINDOW end", '']],
    'redis/state-errors > a sliding window': [['return nil, raw.err or NO_WINDOW', 'return nil, NO_WINDOW']],
    'limits/every-kind > a sliding window in Redis > refuses "\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000" in its place, and leaves it as it is':
      [['if format ~= FORMAT then return nil, NO_WINDOW end', '']],
    'history/stored-form > a large ring is given back when its log has run empty, a small one kept: the usual way':
      [
        ['KEPT_SLOTS = 64', 'KEPT_SLOTS = 0'],
        ['if not (is_new or ring) then', 'if not ring then'],
        ["call_redis('SET', key, value, 'PX', ttl)", "call_redis('SET', key, value)"],
        [
          'is_new = size == 0 or is_restamped or is_empty and slots > KEPT_SLOTS',
          'is_new = size == 0 or is_restamped',
        ],
        [
          'is_new = size == 0 or is_restamped or is_empty and slots > KEPT_SLOTS',
          'is_new = size == 0 or is_restamped or is_empty',
        ],
        ['if is_new then slots = 0 end', ''],
        ['math.min(math.max(2 * pages, 1), most)', 'most'],
        [
          'PUSH_FORMAT, base, total, new_stamp, front, back, head, pages, older, newest_total, stamp',
          'PUSH_FORMAT, base, total, new_stamp, front, back, pages, head, older, newest_total, stamp',
        ],
      ],
    'conformance > a small step back holds time until the clock has caught up': [
      ['if stamp <= clock + MAX_AHEAD', 'if stamp < clock + MAX_AHEAD'],
      ['is_empty = stamp <= gone', 'is_empty = stamp < gone'],
    ],
    'histories 3 > sliding, clock set back': [
      ['0, 0, 0, 0, true\n', '0, 0, 0, 0, false\n'],
      ['elseif above >= total then', 'elseif false then'],
      ['elseif above >= total then', 'elseif above > total then'],
      ['retry = reset', ''],
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 then'],
    ],
    'redis/damaged-state > a window log whose oldest total is above its newest is no log of ours': [
      ['if used < 0 then return nil, DAMAGED_WINDOW end', ''],
    ],
    'conformance > a count of requests is decided like as many single ones': [
      ['or (free - free % cost) / cost', 'or free / cost'],
      ['if over > 0 then', 'if over >= 0 then'],
    ],
    'histories 1 > one short log': [
      ['if is_empty then keep, lease, leased = 0, 0, 0 end', ''],
      ['if is_empty then keep, lease, leased = 0, 0, 0 end', 'if is_empty then lease, leased = 0, 0 end'],
      [
        'log.keep, log.lease, log.leased, log.ttl = kept, lease, leased, ttl_of(kept, clock ~= reply[1])',
        'log.lease, log.leased, log.ttl = lease, leased, ttl_of(kept, clock ~= reply[1])',
      ],
    ],
    'conformance > denials bring on a ban, the last of them says so': [
      ['if op and op.bans and not is_shadow then op.denied[k] = true end', ''],
    ],
    'limits/ban > what does not count as a denial > a denial by the limits of another part, though a shadow limit of this one has no room':
      [['if op and op.bans and not is_shadow then', 'if op and op.bans then']],
    'conformance > peek writes nothing': [
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 or is_restamped then'],
    ],
    'conformance > a refund takes nothing that was charged after a reset': [
      [
        'since, base, total, head, pages, front, back = now, 0, 0, 0, 0, 0, 0',
        'base, total, head, pages, front, back = 0, 0, 0, 0, 0, 0',
      ],
      ['stamp = at_ms - at_ms % words[p + 1]', 'stamp = at_ms'],
      [
        'if at_ms < log.since or stamp <= now - log.keep then return 0 end',
        'if stamp <= now - log.keep then return 0 end',
      ],
    ],
    'conformance > ops of a list are decided in its order': [
      ['if stamp ~= new_stamp then\n', 'if true then\n'],
    ],
    'conformance > what a longer window needs is kept, however busy the shorter one is': [
      ['if pages >= most then most = MAX_PAGES end', ''],
      [
        "if page then call_redis('SETRANGE', key, string.format('%d', page), string.sub(raw, BACK + 1, LEASES)) end",
        '',
      ],
    ],
    'limits/every-kind > a sliding window in Redis > has one key, which expires a while after it is empty': [
      ['elseif ttl then\n      call', 'elseif false then\n      call'],
    ],
    'limits/logs > Redis > packed > a whole request is returned once, and makes room at once': [
      ['if log.total == log.base then\n    call_redis', 'if false then\n    call_redis'],
      ['then low = middle + 1 else', 'then low = middle + 2 else'],
    ],
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        ['stamp, total - before', 'stamp, total'],
        ['if log.stamp > now then return { now - now % words[p + 1], log.total - log.base } end', ''],
        ['cut = now - math.min(window, log.keep)', 'cut = now - log.keep'],
        ['if log.stamp <= cut then return {} end', ''],
        ['math.max(first_above(log, STAMP, cut), newest + 1 - most)', 'math.max(0, newest + 1 - most)'],
        ['local before = total_before(log, from)', 'local before = log.base'],
        ['for index = from, newest do', 'for index = from, newest - 1 do'],
        ['stamp, total - before, total\n', 'stamp, total, total\n'],
        ['stamp, total - before, total\n', 'stamp, total - before, before\n'],
      ],
    'conformance > a refund returns no more than was charged at its instant': [
      ['returned = math.min(units, held)', 'returned = units'],
    ],
    'redis/stored-format > a window log with a lease': [
      ['HAS_LEASES = 16', 'HAS_LEASES = 32'],
      ['LEASES = 87', 'LEASES = 75'],
      ['if front >= HAS_LEASES and size >= FRONT then', 'if false then'],
      [
        'front, lease, leased = front - HAS_LEASES, struct_unpack(RECORD_FORMAT, raw, LEASES + 1)',
        'front = front - HAS_LEASES',
      ],
      [
        'front, lease, leased = front - HAS_LEASES, struct_unpack',
        'front, leased, lease = front - HAS_LEASES, struct_unpack',
      ],
      [
        'front, lease, leased = front - HAS_LEASES, struct_unpack',
        'front, lease, leased = front, struct_unpack',
      ],
      ['if reset < 0 then reset = 0 end', 'reset = 0'],
    ],
    'redis/ttl > the lifetime is not renewed by denials, peeks and refunds, and not by every admission': [
      ["HOT_OFFSET = '15'", "HOT_OFFSET = '21'"],
      [
        'ttl = (is_due or is_new) and ttl_of(kept, clock ~= reply[1])',
        'ttl = ttl_of(kept, clock ~= reply[1])',
      ],
    ],
    'limits/big-logs > Redis > beyond its bound the oldest records are merged: under, never over': [
      ['MAX_RECORDS = 65536', 'MAX_RECORDS = 131072'],
      ['if back >= PAGE or is_rare or pages > MANY_PAGES then', 'if back >= PAGE or is_rare then'],
      ['if back >= PAGE or is_rare or pages > MANY_PAGES then', 'if is_rare or pages > MANY_PAGES then'],
    ],
    'limits/big-logs > Redis > a refund far back in a large log is exact, and further back than 4,096 records it is none':
      [
        ['MAX_REFUND_RECORDS = 4096', 'MAX_REFUND_RECORDS = 65536'],
        ['MAX_REFUND_RECORDS = 4096', 'MAX_REFUND_RECORDS = 4095'],
      ],
    'redis/damaged-state > a sliding window > with any number of its header at its extremes it does not trouble the requests beside it':
      [['if front >= HAS_LEASES and size >= FRONT then', 'if front >= HAS_LEASES then']],
    'redis/damaged-state > a sliding window > cut off while it is short it does not trouble the requests beside it either':
      [
        [
          'if front > 0 and (size < EDGES or front > PAGE) or back > 0 and size < BACK + back * WIDTH then',
          'if front > 0 and (size < EDGES or front > PAGE) then',
        ],
      ],
    'redis/damaged-state > a window log cut off in its leases > each operation is rejected and leaves the log alone':
      [
        [
          'if front > 0 and (size < EDGES or front > PAGE) or back > 0 and size < BACK + back * WIDTH then',
          'if back > 0 and size < BACK + back * WIDTH then',
        ],
        ['if front >= HAS_LEASES and #raw >= FRONT then', 'if front >= HAS_LEASES then'],
      ],
    'conformance > a denial charges nothing': [
      [
        'if front > 0 and (size < EDGES or front > PAGE) or back > 0 and size < BACK + back * WIDTH then',
        'if front > 0 and (size < EDGES or front > PAGE) or back > 0 and size <= BACK + back * WIDTH then',
      ],
    ],
    'redis/damaged-state > a window log cut off in its front > each operation is rejected and leaves the log alone':
      [
        ['(size < EDGES or front > PAGE)', 'front > PAGE'],
        ['or front > 0 and #raw < EDGES\n', '\n'],
      ],
    'redis/damaged-state > a window log with a front that is longer than a page > each operation is rejected and leaves the log alone':
      [
        ['(size < EDGES or front > PAGE)', 'size < EDGES'],
        ['if not is_whole or front > PAGE or back > PAGE or', 'if not is_whole or back > PAGE or'],
      ],
    'limits/logs > Redis > packed > set back by an hour, what counted counts from the grain of now on': [
      [
        'stamp, slots, head, pages, front, back, is_restamped = now - now % words[p + 1],',
        'stamp, slots, head, pages, front, back, is_restamped = now,',
      ],
      ['units, new_stamp = cost * mine, now - now % words[p + 1]', 'units, new_stamp = cost * mine, now'],
      [
        'if newest_total and not (new_front or is_due) and lease_ms == 0 then',
        'if not (new_front or is_due) and lease_ms == 0 then',
      ],
      ['return { now - now % words[p + 1], log.total - log.base }', 'return { now, log.total - log.base }'],
    ],
    "conformance > a reservation with a key that was reset isn't settled, even if the clock was set back": [
      ['now - now % words[p + 1], 0, 0, 0, 0, 0, true', 'now - now % words[p + 1], 0, 0, 0, 0, 0, false'],
      ['now - now % words[p + 1], 0, 0, 0, 0, 0, true', 'now - now % words[p + 1], 0, 0, 0, 0, back, true'],
      ['new_stamp = new_stamp or stamp\n', '\n'],
      ["if raw == '' then return nil end", ''],
      [
        'local is_whole = log.slots == 0 or #raw == EDGES + log.slots * PAGE_WIDTH',
        'local is_whole = #raw == EDGES + log.slots * PAGE_WIDTH',
      ],
    ],
    'limits/logs > Redis > packed > set back by an hour, a log of many requests refunds those that come then':
      [
        [
          'now - now % words[p + 1], 0, 0, 0, 0, 0, true',
          'now - now % words[p + 1], slots, 0, 0, 0, 0, true',
        ],
        [
          'now - now % words[p + 1], 0, 0, 0, 0, 0, true',
          'now - now % words[p + 1], 0, 0, 0, front, 0, true',
        ],
        [
          'now - now % words[p + 1], 0, 0, 0, 0, 0, true',
          'now - now % words[p + 1], 0, 0, pages, 0, 0, true',
        ],
        ['ring = string.sub(raw, BACK + 1, LEASES)', "ring = ''"],
        ['if pages > 0 then\n            ring', 'if false then\n            ring'],
        [
          'if newest_total and not (new_front or is_due) and lease_ms == 0 then',
          'if newest_total and not is_due and lease_ms == 0 then',
        ],
        [
          'PUSH_FORMAT, base, total, new_stamp, front, back, head, pages, older, newest_total, stamp',
          'PUSH_FORMAT, base, total, new_stamp, front, back, head, pages, older, newest_total, new_stamp',
        ],
        [
          'PUSH_FORMAT, base, total, new_stamp, front, back, head, pages, older, newest_total, stamp',
          'PUSH_FORMAT, base, total, stamp, front, back, head, pages, older, newest_total, stamp',
        ],
        [
          'string.sub(raw, EDGES - front * WIDTH + 1, EDGES) .. string.sub(ring, 1, pages * PAGE_WIDTH)',
          'string.sub(ring, 1, pages * PAGE_WIDTH)',
        ],
        ['if count > PAGE then', 'if false then'],
        [
          'front, pages = PAGE, math.floor(count / PAGE) - 1',
          'front, pages = PAGE, math.floor(count / PAGE)',
        ],
        [
          'front, pages = PAGE, math.floor(count / PAGE) - 1',
          'front, pages = 0, math.floor(count / PAGE) - 1',
        ],
        [
          'slots = (front + pages * PAGE) * WIDTH, math.max(log.slots, pages)',
          'slots = (front + pages * PAGE) * WIDTH, log.slots',
        ],
        [
          'HEADER_FORMAT, FORMAT, log.since, slots, log.keep,',
          'HEADER_FORMAT, FORMAT, log.since, log.slots, log.keep,',
        ],
        ['count - front - pages * PAGE, 0, pages', 'count - front, 0, pages'],
        ['if log.leased > 0 or front > 0 or slots > 0 then', 'if log.leased > 0 or slots > 0 then'],
        [
          "string.rep('\\0', LEASES - #value) .. struct_pack(RECORD_FORMAT, log.lease",
          'struct_pack(RECORD_FORMAT, log.lease',
        ],
        [
          ".. string.rep('\\0', PAGE_WIDTH - front * WIDTH) .. string.sub(records, 1, split)",
          '.. string.sub(records, 1, split)',
        ],
        ['.. string.sub(records, 1, split)\n', '.. string.sub(records, 1, front * WIDTH)\n'],
        ['if index * WIDTH == #log.records then return log.total, log.stamp end', ''],
        [
          '(column == TOTAL and total or stamp) <= bound then low',
          '(column == TOTAL and total or stamp) < bound then low',
        ],
        ['if is_gone and index == newest and index > 0 then', 'if index == newest and index > 0 then'],
      ],
    'limits/logs > Redis > packed > after more than 2^46 units the newest count, also when the clock was set back':
      [
        ['if since > now then since = now end', ''],
        [
          'if (fitting > 0 or op and op.is_forced) and not is_empty then',
          'if fitting > 0 and not is_empty then',
        ],
        ["if is_restamped then log.records, log.slots, log.since, log.stamp = '', 0, since, stamp end", ''],
        [
          "log.records, log.slots, log.since, log.stamp = '', 0, since, stamp end",
          "log.records, log.slots, log.since = '', 0, since end",
        ],
        [
          "log.records, log.slots, log.since, log.stamp = '', 0, since, stamp end",
          "log.records, log.slots, log.stamp = '', 0, stamp end",
        ],
        [
          "log.records, log.slots, log.since, log.stamp = '', 0, since, stamp end",
          'log.slots, log.since, log.stamp = 0, since, stamp end',
        ],
        ['tables.commit(log, now, gone, new_stamp, units)', 'tables.commit(log, now, gone, now, units)'],
        [
          'return index == 0 and log.base or (at(log, index - 1))',
          'return index <= 1 and log.base or (at(log, index - 1))',
        ],
        ['log.base, log.records = total_before(log, index), string.sub', 'log.records = string.sub'],
        ['index = index - 1\n', '\n'],
        ['log.total, log.stamp = at(log, index)\n', '\n'],
      ],
    'conformance > a clock that was set back does not make a lease longer': [
      ['if leased > now + lease then leased = now + lease end', ''],
      [
        'if leased > now + lease then leased = now + lease end',
        'if leased > now + lease then leased = now end',
      ],
      ['newest = new_stamp\n', '\n'],
      ['lease_ms = op.lease_ms\n', '\n'],
      ['if leased > 0 then front = front + HAS_LEASES end', ''],
      [
        'HEADER_FORMAT, FORMAT, since, slots, kept, base, total, new_stamp, front, back, head, pages',
        'HEADER_FORMAT, FORMAT, since, slots, keep, base, total, new_stamp, front, back, head, pages',
      ],
      [
        'HEADER_FORMAT, FORMAT, since, slots, kept, base, total, new_stamp, front, back, head, pages',
        'HEADER_FORMAT, FORMAT, since, slots, kept, base, total, stamp, front, back, head, pages',
      ],
      ['if leased > 0 or new_front then\n', 'if new_front then\n'],
      [
        "string.rep('\\0', LEASES - #value) .. struct_pack(RECORD_FORMAT, lease, leased)\n    end\n    if new",
        'struct_pack(RECORD_FORMAT, lease, leased)\n    end\n    if new',
      ],
      [
        'struct_pack(RECORD_FORMAT, lease, leased)\n    end\n    if new',
        'struct_pack(RECORD_FORMAT, leased, lease)\n    end\n    if new',
      ],
    ],
    'conformance > a longer window begins with what the shorter ones have kept': [
      [
        'local before, _, oldest_total, oldest_stamp = base, nil, nil, nil',
        'local before, _, oldest_total, oldest_stamp = 0, nil, nil, nil',
      ],
    ],
    'redis/damaged-state > a window log that is cut off where a shorter window begins does not trouble the requests beside it':
      [['if not before_window then return nil, DAMAGED_WINDOW end', '']],
    'redis/ttl > the TTL of a window log, by the clock of Redis > a charge to more than 2^46 units sets the TTL, and a refund does not':
      [
        ['is_rare = total > MAX_UNITS', 'is_rare = total > 2 * MAX_UNITS'],
        [
          'log.keep, log.lease, log.leased, log.ttl = kept, lease, leased, ttl_of(kept, clock ~= reply[1])',
          'log.keep, log.lease, log.leased = kept, lease, leased',
        ],
        ['if log.ttl then\n', 'if false then\n'],
        ["call_redis('SET', log.key, value, 'PX', log.ttl)", "call_redis('SET', log.key, value, 'KEEPTTL')"],
        ["call_redis('SET', log.key, value, 'KEEPTTL')", "call_redis('SET', log.key, value)"],
        ['if at_ms < log.since or stamp', 'if stamp < log.since or stamp'],
      ],
    'redis/damaged-state > a window log with a back that is longer than a page > each operation is rejected and leaves the log alone':
      [
        [
          'if back > PAGE or pages > slots or front == 0 and pages > 0 then',
          'if pages > slots or front == 0 and pages > 0 then',
        ],
        ['if not is_whole or front > PAGE or back > PAGE or', 'if not is_whole or front > PAGE or'],
      ],
    'redis/damaged-state > a window log with more pages than there is room for > each operation is rejected and leaves the log alone':
      [
        [
          'if back > PAGE or pages > slots or front == 0 and pages > 0 then',
          'if back > PAGE or front == 0 and pages > 0 then',
        ],
        ['or pages > log.slots or pages > 0', 'or pages > 0'],
      ],
    'redis/damaged-state > a window log with pages, but no front > each operation is rejected and leaves the log alone':
      [
        [
          'if back > PAGE or pages > slots or front == 0 and pages > 0 then',
          'if back > PAGE or pages > slots then',
        ],
        ['or pages > 0 and front == 0 or', 'or'],
      ],
    'redis/damaged-state > a window log of more than 2^46 units, cut off, is left alone': [
      ['if slots > 0 and #all ~= EDGES + slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end', ''],
    ],
    'redis/damaged-state > a window log with a byte too many > each operation is rejected and leaves the log alone':
      [
        ['if #old ~= slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end', ''],
        [
          'local is_whole = log.slots == 0 or #raw == EDGES + log.slots * PAGE_WIDTH',
          'local is_whole = true',
        ],
        [
          'local is_whole = log.slots == 0 or #raw == EDGES + log.slots * PAGE_WIDTH',
          'local is_whole = log.slots == 0 or #raw >= EDGES + log.slots * PAGE_WIDTH',
        ],
      ],
    'limits/logs > leases of limiters with windows of their own count alike in all stores': [
      ['kept = keep - lease\n', 'kept = keep\n'],
      [
        'if lease_ms > lease or now >= leased + keep then lease = lease_ms end',
        'if lease_ms > lease then lease = lease_ms end',
      ],
      ['now >= leased + keep then', 'now >= leased then'],
      ['if leased < now + lease_ms then leased = now + lease_ms end', 'leased = now + lease_ms'],
      ['tables.commit(log, now, gone, new_stamp, units)', 'tables.commit(log, now, 0, new_stamp, units)'],
      [
        'log.keep, log.lease, log.leased, log.ttl = kept, lease, leased, ttl_of(kept, clock ~= reply[1])',
        'log.keep, log.leased, log.ttl = kept, leased, ttl_of(kept, clock ~= reply[1])',
      ],
      [
        'log.keep, log.lease, log.leased, log.ttl = kept, lease, leased, ttl_of(kept, clock ~= reply[1])',
        'log.keep, log.lease, log.ttl = kept, lease, ttl_of(kept, clock ~= reply[1])',
      ],
      [
        'if back > 0 and (newest_total or new_front or leased > 0) then older',
        'if back > 0 and (newest_total or new_front) then older',
      ],
      [
        'if newest_total and not (new_front or is_due) and lease_ms == 0 then',
        'if newest_total and not (new_front or is_due) then',
      ],
      ['if front >= HAS_LEASES and #raw >= FRONT then', 'if false then'],
      [
        'front, log.lease, log.leased = front - HAS_LEASES, struct',
        'front, log.leased, log.lease = front - HAS_LEASES, struct',
      ],
      ['log.leased > 0 and front + HAS_LEASES or front, count', 'front, count'],
      ['if log.leased > 0 or front > 0 or slots > 0 then', 'if front > 0 or slots > 0 then'],
      [
        'struct_pack(RECORD_FORMAT, log.lease, log.leased)',
        'struct_pack(RECORD_FORMAT, log.leased, log.lease)',
      ],
      ['drop(log, first_above(log, STAMP, gone))', ''],
      [
        'if found ~= stamp or newest - index > most then return 0 end',
        'if newest - index > most then return 0 end',
      ],
      ['local is_gone = returned == held', 'local is_gone = units == held'],
      [
        'return { now - now % words[p + 1], log.total - log.base }',
        'return { now - now % words[p + 1], log.total }',
      ],
      ['if now < log.leased + window then window = window + log.lease end', ''],
    ],
    'limits/logs > Redis > packed > charges beyond the limit, and beyond what a log keeps, are waited for': [
      ['if lease_ms > 0 then\n', 'if true then\n'],
    ],
    'redis/ttl > the TTL of a window log, by the clock of Redis > counts leases': [
      [
        'if lease_ms > lease or now >= leased + keep then lease = lease_ms end',
        'if now >= leased + keep then lease = lease_ms end',
      ],
      ['local is_due = now - now % part > stamp or keep ~= kept', 'local is_due = now - now % part > stamp'],
      [
        'ttl = (is_due or is_new) and ttl_of(kept, clock ~= reply[1])',
        'ttl = (is_due or is_new) and ttl_of(kept - lease, clock ~= reply[1])',
      ],
    ],
    'conformance > of leases that overlap the longer counts': [
      ['if lease_ms > lease or now >= leased + keep then lease = lease_ms end', 'lease = lease_ms'],
      [
        'if leased < now + lease_ms then leased = now + lease_ms end',
        'if leased == 0 then leased = now + lease_ms end',
      ],
      [
        'if leased > 0 then front = front + HAS_LEASES end',
        'if lease_ms > 0 then front = front + HAS_LEASES end',
      ],
    ],
    'limits/logs > Redis, the rare way alone > packed > part of a request is returned': [
      ['if mine > 0 and is_rare then', 'if is_rare then'],
    ],
    'redis/ttl > the TTL of a window log, by the clock of Redis > a request after the clock was set back sets the TTL':
      [
        [
          'is_new = size == 0 or is_restamped or is_empty and slots > KEPT_SLOTS',
          'is_new = size == 0 or is_empty and slots > KEPT_SLOTS',
        ],
        [
          'ttl = (is_due or is_new) and ttl_of(kept, clock ~= reply[1])',
          'ttl = is_due and ttl_of(kept, clock ~= reply[1])',
        ],
      ],
    'history/stored-form > a large ring is given back when its log has run empty, a small one kept: the rare way alone':
      [
        ['if is_new then slots = 0 end', 'slots = 0'],
        [
          'slots = (front + pages * PAGE) * WIDTH, math.max(log.slots, pages)',
          'slots = (front + pages * PAGE) * WIDTH, pages',
        ],
        ['if log.leased > 0 or front > 0 or slots > 0 then', 'if log.leased > 0 or front > 0 then'],
      ],
    'history/stored-form > what is stored stays sound: the usual way': [
      ['front, back = rest, 0\n', 'front, back = rest, back\n'],
      [
        'ring = string.sub(old, head * PAGE_WIDTH + 1) .. string.sub(old, 1, head * PAGE_WIDTH) .. ring',
        'ring = old .. ring',
      ],
      ['.. string.sub(old, 1, head * PAGE_WIDTH) .. ring', '.. ring'],
      [
        'head, slots = 0, math.min(math.max(2 * pages, 1), most)',
        'slots = math.min(math.max(2 * pages, 1), most)',
      ],
      ['math.min(math.max(2 * pages, 1), most)', 'math.max(2 * pages, 1)'],
      [
        'if back > 0 and (newest_total or new_front or leased > 0) then older',
        'if back > 0 and (newest_total or leased > 0) then older',
      ],
      ['local split = EDGES + head * PAGE_WIDTH', 'local split = EDGES'],
      [
        'return index == 0 and log.base or (at(log, index - 1))',
        'return index == 0 and 0 or (at(log, index - 1))',
      ],
      ['if is_gone and index == newest and index > 0 then', 'if false then'],
      ['log.records = string.sub(log.records, 1, index * WIDTH)\n', '\n'],
    ],
    'limits/logs > Redis > packed > a request is returned while no more than 256 were charged since, however few it may hold':
      [
        ['MIN_REFUND_RECORDS = 256', 'MIN_REFUND_RECORDS = 3'],
        ["ring = ring .. string.rep('\\0', (slots - pages) * PAGE_WIDTH)", ''],
        [
          'string.sub(raw, EDGES - front * WIDTH + 1, EDGES) .. string.sub(ring, 1, pages * PAGE_WIDTH)',
          'string.sub(raw, EDGES - front * WIDTH + 1, EDGES) .. ring',
        ],
        [".. string.rep('\\0', (slots - pages) * PAGE_WIDTH)\n  end", '\n  end'],
        [
          'math.min(MAX_REFUND_RECORDS, math.max(MIN_REFUND_RECORDS, records_of(words, p, log.last)))',
          'MAX_REFUND_RECORDS',
        ],
        ['math.max(MIN_REFUND_RECORDS, records_of(words, p, log.last))', 'records_of(words, p, log.last)'],
        [
          'if found ~= stamp or newest - index > most then return 0 end',
          'if found ~= stamp then return 0 end',
        ],
        [
          'if found ~= stamp or newest - index > most then return 0 end',
          'if found ~= stamp or newest - index >= most then return 0 end',
        ],
        ['local held = total - total_before(log, index)', 'local held = total - log.base'],
        ['lowered(log, is_gone and index + 1 or index, returned)', 'lowered(log, index, returned)'],
        ['is_gone and index + 1 or index, returned)', 'is_gone and index + 1 or index, held)'],
      ],
    'redis/ttl > the TTL of a window log, by the clock of Redis > only the first request in a part of its slack sets the TTL: a window of 3600000 ms':
      [
        ['local is_due = now - now % part > stamp or keep ~= kept', 'local is_due = keep ~= kept'],
        ['local is_due = now - now % part > stamp or', 'local is_due = now - part > stamp or'],
        ['local is_due = now - now % part > stamp or', 'local is_due = now - now % part < stamp or'],
        [
          'if newest_total and not (new_front or is_due) and lease_ms == 0 then',
          'if newest_total and not new_front and lease_ms == 0 then',
        ],
        [
          'ttl = (is_due or is_new) and ttl_of(kept, clock ~= reply[1])',
          'ttl = is_new and ttl_of(kept, clock ~= reply[1])',
        ],
        ["if ttl then call_redis('PEXPIRE', key, ttl) end", ''],
      ],
    'redis/ttl > the TTL of a window log, by the clock of Redis > only the first request in a part of its slack sets the TTL: a window of 10000 ms':
      [['kept < 20000 and 4000 or', 'kept < 20000 and 400 or']],
    'conformance > a request that came twice is returned once': [
      [
        'HEADER_FORMAT, FORMAT, since, slots, kept, base, total, new_stamp, front, back, head, pages',
        'HEADER_FORMAT, FORMAT, now, slots, kept, base, total, new_stamp, front, back, head, pages',
      ],
    ],
    'redis/ttl > a key that is charged when the clock says 0 has a time to live, too': [
      [
        'ttl = (is_due or is_new) and ttl_of(kept, clock ~= reply[1])',
        'ttl = (is_due or is_new) and ttl_of(kept)',
      ],
    ],
    'redis/ttl > a log that outgrows its ring keeps its lifetime, set rarely': [
      ["call_redis('SET', key, value, 'KEEPTTL')", "call_redis('SET', key, value)"],
    ],
    'redis/ttl > the lifetime is renewed by a request that it would not outlast': [
      ['elseif ttl then\n      call', 'elseif is_new then\n      call'],
    ],
    'redis/damaged-state > a sliding window > a list in its place is unavailable, and left alone': [
      ['if raw.err then return raw.err end', ''],
    ],
    'redis/damaged-state > a window log of another format > each operation is rejected and leaves the log alone':
      [
        [
          'if string.byte(raw) ~= FORMAT or #raw < BACK then return NO_WINDOW end',
          'if #raw < BACK then return NO_WINDOW end',
        ],
      ],
    'redis/damaged-state > a window log cut off in its header > each operation is rejected and leaves the log alone':
      [
        [
          'if string.byte(raw) ~= FORMAT or #raw < BACK then return NO_WINDOW end',
          'if string.byte(raw) ~= FORMAT then return NO_WINDOW end',
        ],
      ],
    'redis/damaged-state > a window log cut off in its back > each operation is rejected and leaves the log alone':
      [['or back > PAGE or #raw < BACK + back * WIDTH or front', 'or back > PAGE or front']],
    'redis/damaged-state > a window log with a total that is below its base > each operation is rejected and leaves the log alone':
      [['or log.base > log.total then return', 'then return']],
    'limits/logs > Redis, the rare way alone > packed > each cost waits for the request that is in its way': [
      [
        'string.sub(raw, EDGES - front * WIDTH + 1, EDGES) .. string.sub(ring',
        'string.sub(raw, FRONT + 1, FRONT + front * WIDTH) .. string.sub(ring',
      ],
    ],
    'redis/ttl > what is refunded or reset to nothing leaves no key behind': [
      [
        "if log.total == log.base then\n    call_redis('DEL', log.key)",
        "if false then\n    call_redis('DEL', log.key)",
      ],
      ['if is_gone and index == newest and index > 0 then', 'if is_gone and index == newest then'],
    ],
    'histories 1 > long logs': [
      ['HEADER_FORMAT, FORMAT, log.since, slots, log.keep,', 'HEADER_FORMAT, FORMAT, 0, slots, log.keep,'],
      ['lowered(log, is_gone and index + 1 or index, returned)', 'lowered(log, index + 1, returned)'],
    ],
    'conformance > after a refund all that came later leaves in its own time': [
      [
        'return struct_unpack(RECORD_FORMAT, log.records, index * WIDTH + 1)',
        'return struct_unpack(RECORD_FORMAT, log.records, 1)',
      ],
      ['else high = middle end', 'else high = low end'],
      ['for index = first, #log.records / WIDTH - 1 do', 'for index = first, #log.records / WIDTH - 2 do'],
      [
        'for index = first, #log.records / WIDTH - 1 do',
        'for index = first + 1, #log.records / WIDTH - 1 do',
      ],
      ['struct_pack(RECORD_FORMAT, total - units, stamp)', 'struct_pack(RECORD_FORMAT, total, stamp)'],
      [
        'local index, newest = first_above(log, STAMP, stamp - 1), #log.records / WIDTH',
        'local index, newest = first_above(log, STAMP, stamp), #log.records / WIDTH',
      ],
      ['if is_gone and index == newest and index > 0 then', 'if is_gone and index > 0 then'],
      ['log.records = string.sub(log.records, 1, index * WIDTH) .. lowered', 'log.records = lowered'],
      ['log.total = log.total - returned\n', '\n'],
    ],
    'limits/logs > Redis, the rare way alone > packed > after more than 2^46 units those that count leave one by one':
      [
        ['(column == TOTAL and total or stamp) <= bound then low', 'stamp <= bound then low'],
        [
          'log.records, log.base, log.total = lowered(log, 0, shift), 0, log.total - shift',
          'log.base, log.total = 0, log.total - shift',
        ],
      ],
    'limits/numbers > Redis > totals that grow for long, since the log is never empty, stay exact': [
      ['shift = math.max(log.base, log.total + units - MAX_UNITS)', 'shift = log.total + units - MAX_UNITS'],
    ],
    'limits/logs > Redis, the rare way alone > packed > set back by half a second, time stands still until it has caught up':
      [['elseif log.stamp ~= stamp then', 'else']],
    'conformance > a refund mints nothing where the charge is gone': [
      ['or stamp <= now - log.keep then return 0 end', 'or stamp < now - log.keep then return 0 end'],
    ],
    'conformance > of many limits it tells fewer charges of each': [
      ['math.max(first_above(log, STAMP, cut), newest + 1 - most)', 'first_above(log, STAMP, cut)'],
      ['newest + 1 - most)', 'newest - most)'],
    ],
  },
}
