import type { Mutants } from '../mutant.ts'

export const slidingCounter: Mutants = {
  part: 'limits/sliding-counter.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > a refund takes nothing that was charged after a reset': [
      ['if at_ms < counter.since then return 0 end', ''],
      ['if counter.current == 0 and counter.previous == 0 then counter.since = now end', ''],
    ],
    'conformance > a sliding counter forgets what two windows have left behind': [
      ['0, counter.stamp ==', '0, counter.stamp ~='],
    ],
    'conformance > after a small step back over an edge a sliding counter waits for the clock': [
      ['return ms - ms %', 'return ms + ms %'],
      ['if counter.stamp == start then return current, previous end', ''],
      ['counter.stamp, counter.fresh = start, true', ''],
      ['- math.floor(room', '- math.ceil(room'],
      ['params.precision or params.window', 'params.precision and params.window'],
      [
        "counter.stamp, counter.current, counter.previous, counter.since, counter.fresh = 0, 0, 0, 0, raw == ''",
        '',
      ],
      ["if raw == '' then return nil end", ''],
      ['string.byte(raw) ==', 'string.byte(raw) ~='],
      [
        '_, counter.stamp, counter.current, counter.previous, counter.since = struct_unpack(TWO_WINDOWS_FORMAT, raw)',
        '',
      ],
      ['params.window ==', 'params.window ~='],
      ['if is_aligned and math.max(counter.current, counter.previous) <= MOST_UNITS then return nil end', ''],
      [
        'is_clock_given)\n  if counter.current == 0 and counter.previous == 0 then',
        'is_clock_given)\n  if counter.current == 0 or counter.previous == 0 then',
      ],
      ["call_redis('SET', counter.key, raw, 'PX', ttl_of(2 * counter.params.window, is_clock_given))", ''],
      ["call_redis('SET', counter.key, raw, 'KEEPTTL')", ''],
      ['roll(counter, params, start_of(now, params.window))', ''],
      ['counter.current = math.min(counter.current + units, params.mostUnits)', ''],
      ['params.limits[i] - cost', 'params.limits[i] + cost'],
      ['if current <= room then return start + fades_in(previous, room - current, params) - now end', ''],
      ['return start + params.window', 'return start - params.window'],
    ],
    "traps/ttl > the first charge in a window gives a key its time, and no other does: 'counter'": [
      ['if counter.stamp == start then return end', ''],
      ['if counter.fresh then', 'if true then'],
      ['if counter.fresh then', 'if true then'],
    ],
    'conformance > a sliding counter admits one less than twice its limit in a window': [
      ['counter.current, counter.previous = units_at(counter, params, start)', ''],
      ['math.floor(previous', 'math.ceil(previous'],
    ],
    'traps/ttl > a sliding counter lives until its window and the next are over': [
      ['counter.stamp, counter.fresh = start, true', 'counter.stamp = start'],
      ['ttl_of(2 * counter.params.window,', 'ttl_of(counter.params.window,'],
      ['  roll(counter, params, start)', '  '],
    ],
    'traps/numbers > Redis > sliding counters of 2^40 units in 366 days are counted to the last': [
      [
        'elapsed < params.grains and elapsed * params.precision or params.window',
        'elapsed * params.precision',
      ],
      [
        '== 0 and counter.previous == 0 then counter.stamp',
        '== 0 and counter.previous ~= 0 then counter.stamp',
      ],
    ],
    'conformance > a sliding counter counts no more units than its limit can tell apart': [
      [
        'local current, previous = math.min(counter.current, params.mostUnits)',
        'local current, previous = counter.current',
      ],
      [', math.min(counter.previous, params.mostUnits)', ', counter.previous'],
      ['params.window and current or 0', 'params.window and counter.current or 0'],
      ['math.min(counter.current, params.mostUnits)', 'math.max(counter.current, params.mostUnits)'],
      ['math.min(counter.previous, params.mostUnits)', 'math.max(counter.previous, params.mostUnits)'],
      ['counter.previous) <= MOST_UNITS', 'counter.previous) <= params.mostUnits'],
    ],
    'traps/damaged-state > units beyond all that may be is no log of ours': [
      ['is_aligned and math.max(counter.current, counter.previous) <= MOST_UNITS then', 'is_aligned then'],
      ['MOST_UNITS = 2 ^ 52', 'MOST_UNITS = 2 ^ 53'],
      ['math.max(counter.current, counter.previous) <=', 'counter.previous <='],
    ],
    'traps/damaged-state > more units before is no log of ours': [
      ['math.max(counter.current, counter.previous) <=', 'counter.current <='],
    ],
    'traps/what-is-wrong > a sliding counter': [["if type(raw) ~= 'string' then return raw.err end", '']],
    'limits/every-kind > a sliding counter in Redis > leaves no key behind where nothing is left in it': [
      ["call_redis('DEL', counter.key)", ''],
      ['0\n  if charged_in == start then', '0\n  if false then'],
      ['held = current', ''],
      ['counter.current = counter.current - returned', ''],
    ],
    'limits/every-kind > a sliding counter in Redis > has one key, which expires a while after it is empty': [
      ['if counter.fresh then', 'if false then'],
    ],
    'histories 2 > counter, great': [
      ['counter.stamp, counter.fresh = start_of(now, params.window), true', ''],
      ['counter.fresh = start_of(now, params.window),', 'counter.fresh = now,'],
      ['= math.floor((now - start) / params.precision)', '= (now - start) / params.precision'],
      ['= math.floor((now', '= math.ceil((now'],
      ['if room < 0 then return NEVER end', ''],
      ['if current > 0 then return start + 2 * params.window - now end', ''],
      ['previous > 0 and', 'previous >= 0 and'],
    ],
    'conformance > after a large step back all that a sliding counter holds is of this window': [
      [
        'counter.current, counter.previous = math.min(counter.current + counter.previous, params.mostUnits), 0',
        '',
      ],
      ['counter.previous = math.min(counter.current +', 'counter.previous = math.max(counter.current +'],
      ['if room < 0 then', 'if room <= 0 then'],
    ],
    'histories 2 > counter, clock set back': [
      [
        'math.min(counter.current + counter.previous, params.mostUnits), 0',
        'counter.current, counter.previous',
      ],
    ],
    'histories 2 > counter, charged beyond all': [
      ['= math.min(counter.current + units, params.mostUnits)', '= counter.current + units'],
    ],
    'conformance > a sliding counter returns units to the window that they came in': [
      ['== start - params.window then', '== start + params.window then'],
      ['held = previous', ''],
      ['= math.min(units,', '= math.max(units,'],
      ['start)\n  if charged_in == start then', 'start)\n  if true then'],
      ['counter.previous = counter.previous - returned', ''],
    ],
  },
}
