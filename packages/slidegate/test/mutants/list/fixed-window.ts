import type { Mutants } from '../mutant.ts'

export const fixedWindow: Mutants = {
  part: 'limits/fixed-window.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > a charge counts in every limit, shadow and fixed too': [
      ["counter.stamp, counter.units, counter.fresh = 0, 0, raw == ''", ''],
      ["if raw == '' then return nil end", ''],
      ['is_clock_given)\n  if counter.units == 0 then', 'is_clock_given)\n  if true then'],
      ['if not is_open(counter, params, now) then', 'if false then'],
      ['counter.units = math.min(counter.units + units, MAX_UNITS)', ''],
    ],
    'limits/fixed-window > the clock of this process may differ from that of Redis, > but not by -4: nobody is told anything then, and nothing is charged':
      [
        ['of Redis and of this', 'of Redis or of this'],
        ['if now < edges[1] or now >= edges[#edges] then error({ unusable = CLOCKS_APART }) end', ''],
      ],
    'limits/every-kind > a window of the calendar in Redis > leaves no key behind where nothing is left in it':
      [
        ['do i = i - 1 end', 'do i = i + 1 end'],
        ['if since < edges[i] then return edges[i] end', ''],
        ['_, counter.stamp, counter.units = struct_unpack(COUNTER_FORMAT, raw)', ''],
        ["call_redis('DEL', counter.key)", ''],
        ['counter.stamp, counter.units, counter.fresh = now, 0, true', ''],
        ['counter.units = counter.units - returned', ''],
      ],
    'conformance > a fixed window opens at its edge, aligned to the epoch': [
      ['1 or now - now %', '1 or now + now %'],
      ['params.fromFirstHit and since or since - since %', 'params.fromFirstHit or since or since - since %'],
      ["call_redis('SET', counter.key, raw, 'KEEPTTL')", ''],
      ['if not is_open(counter, params, now) then', 'if true then'],
      ['return end_of(params, counter.stamp) - now', 'return end_of(params, counter.stamp) + now'],
      ['now) and end_of(params,', 'now) or end_of(params,'],
    ],
    'traps/what-is-wrong > a fixed window': [
      ["if type(raw) ~= 'string' then return raw.err end", ''],
      ['counter.units or 0', 'counter.units and 0'],
    ],
    'limits/fixed-window > a key lives for the rest of its window and a quarter more, at least 4 s > a week in which the clock is set':
      [['counter.stamp) - counter.stamp', 'counter.stamp) + counter.stamp']],
    'conformance > what was charged before the window of now is not returned to it': [
      ["call_redis('SET', counter.key, raw, 'PX', ttl_of(left, is_clock_given))", ''],
      [
        'if not is_open(counter, params, now) or at_ms < stamp or at_ms >= end_of(params, stamp) then return 0 end',
        '',
      ],
    ],
    'conformance > after the clock was set back, a window from the first hit on begins now': [
      ['counter.stamp, counter.fresh = now, true', ''],
    ],
    'conformance > a refund answers the least over the enforced limits': [
      ['= math.min(units,', '= math.max(units,'],
    ],
    'histories 1 > fixed': [
      ['  if not edges then\n    return params', '  if edges then\n    return params'],
      ['since - since % params.precision) + params.precision', 'since - since % params.precision)'],
    ],
  },
}
