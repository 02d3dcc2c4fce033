import type { Mutants } from '../mutant.ts'

export const tokenBucket: Mutants = {
  part: 'limits/token-bucket.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > a refund takes nothing that was charged after a reset': [
      ['or at_ms < bucket.since', ''],
      ['if debt == 0 then bucket.since = now end', ''],
    ],
    'conformance > after a large step back a token bucket counts its debt from then on': [
      ['BUCKET_SIZE = 20', 'BUCKET_SIZE = 21'],
      ['bucket.stamp, bucket.debt, bucket.since = 0, 0, 0', ''],
      ["if raw == '' then", "if raw ~= '' then"],
      ['bucket.stamp, bucket.since = now, math.min(bucket.since, now)', ''],
      ['params.limits[i] - cost', 'params.limits[i] + cost'],
    ],
    'conformance > another rate of a bucket: what was admitted before can be returned after, to where it was charged':
      [
        ['now - bucket.stamp)', 'now + bucket.stamp)'],
        ["if raw == '' then return nil end", ''],
        ['_, bucket.stamp, bucket.debt, bucket.since = struct_unpack(BUCKET_FORMAT, raw)', ''],
        ["call_redis('DEL', bucket.key)", ''],
        ["call_redis('SET', bucket.key, raw, 'PX', ttl_of(keep, is_clock_given))", ''],
        ['bucket.debt = math.min(debt + units * params.parts, params.mostDebt)', ''],
        ['at_ms > bucket.stamp', 'at_ms >= bucket.stamp'],
        ['= math.max(0, math.min(owed,', '= math.min(0, math.min(owed,'],
        ['bucket.debt = debt - returned', ''],
      ],
    'traps/what-is-wrong > a token bucket': [["if type(raw) ~= 'string' then return raw.err end", '']],
    'traps/damaged-state > a token bucket > cut off while it is short it does not trouble the requests beside it either':
      [['BUCKET_SIZE and string.byte(raw)', 'BUCKET_SIZE or string.byte(raw)']],
    'conformance > a token bucket does not charge denials': [
      ['if #raw == BUCKET_SIZE', 'if #raw ~= BUCKET_SIZE'],
      ['if bucket.debt == 0 then', 'if true then'],
    ],
    'conformance > a refund to a token bucket returns what has not come back by itself': [
      ['if bucket.debt <= bucket.params.mostDebt then return nil end', ''],
      ['params.mostDebt)\n  bucket.stamp = now', 'params.mostDebt)\n  '],
      ['params.parts - math.max(0,', 'params.parts + math.max(0,'],
      ['bucket.stamp = bucket.debt == 0 and 0 or math.max(bucket.stamp, now)', ''],
      ['math.ceil(returned', 'math.floor(returned'],
    ],
    'traps/stored-format > a token bucket': [
      ['math.ceil((debt_at(bucket,', 'math.floor((debt_at(bucket,'],
      ['return math.ceil(debt_at(bucket,', 'return math.floor(debt_at(bucket,'],
    ],
  },
}
