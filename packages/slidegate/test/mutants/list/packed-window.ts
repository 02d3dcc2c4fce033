import type { Mutants } from '../mutant.ts'

export const packedWindow: Mutants = {
  part: 'limits/packed-window.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > a refund takes nothing that was charged after a reset': [
      ['if at_ms < log.since or', 'if'],
    ],
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        [
          'newest_after(log, now - span_of(log, params.windows[i], now), most)',
          'newest_after(log, now - log.keep, most)',
        ],
      ],
    'conformance > a lease is honoured by every limiter on the key': [
      ['if now < log.leased + window then window = window + log.lease end', ''],
      ['if now < log.leased +', 'if now <= log.leased +'],
      ['return window < log.keep and window or log.keep', 'return window < log.keep or window or log.keep'],
      ['if log.leased > stamp then window = window + math.min(log.lease, log.leased - stamp) end', ''],
      ['math.min(log.lease,', 'math.max(log.lease,'],
      ['(window < log.keep and window or', '(window < log.keep or window or'],
      ['packed_window.load = load_log', ''],
      ['packed_window.save = save_log', ''],
      ['if lease > 0 then', 'if false then'],
      ['log.lease = in_force and math.max(log.lease, lease) or lease', ''],
      ['log.leased = math.max(log.leased, now + lease)', ''],
      ['math.max(log.leased,', 'math.min(log.leased,'],
      ['log.keep = longest + log.lease', ''],
      ['math.max(log.keep - log.lease,', 'math.min(log.keep - log.lease,'],
      ['append(log, now, now - now % params.precision, math.min(units, MAX_UNITS))', ''],
      ['params.precision, math.min(units,', 'params.precision, math.max(units,'],
      ['log.stamp) - now', 'log.stamp) + now'],
      ['0 and reset or 0', '0 and reset and 0'],
    ],
    'conformance > a denial, too, sets the times right, so that the wait is not begun anew': [
      ['merge(log, now - now % params.precision)', ''],
      ['cost > limit then', 'cost >= limit then'],
      ['index, STAMP)) - now', 'index, STAMP)) + now'],
    ],
    'conformance > a clock that was set back does not make a lease longer': [
      ['log.leased = math.min(log.leased, now + log.lease)', ''],
      ['math.min(log.leased,', 'math.max(log.leased,'],
    ],
    'conformance > a longer window begins with what the shorter ones have kept': [['trim(log, now)', '']],
    'conformance > of leases that overlap the longer counts': [
      ['if lease > 0 then', 'if true then'],
      ['log.leased + log.keep', 'log.leased - log.keep'],
      ['cost - limit - 1)', 'cost - limit)'],
    ],
    'histories 3 > sliding, clock set back': [
      ['if cost > limit then return NEVER end', ''],
      ['if at_ms < log.since or stamp <= now - log.keep then return 0 end', ''],
    ],
    'histories 2 > sliding': [['= at_ms - at_ms %', '= at_ms + at_ms %']],
  },
}
