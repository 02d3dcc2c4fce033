import type { Mutants } from '../mutant.ts'

export const tokenBucket: Mutants = {
  part: 'limits/token-bucket.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > a refund takes nothing that was charged after a reset': [
      ['or at_ms < bucket.since', ''],
      ['if debt == 0 or bucket.refill ~= params.refill then bucket.since = now end', ''],
    ],
    'conformance > after a large step back a token bucket counts its debt from then on': [
      ['bucket.stamp, bucket.debt, bucket.since, bucket.refill = 0, 0, 0, 0', ''],
      ["if raw == '' then", "if raw ~= '' then"],
      ['bucket.stamp, bucket.since = now, math.min(bucket.since, now)', ''],
      ['params.limits[i] - cost', 'params.limits[i] + cost'],
    ],
    'conformance > token bucket: what was charged before can be returned after the limit changed': [
      ['now - bucket.stamp)', 'now + bucket.stamp)'],
      ["if raw == '' then return nil end", ''],
      ['_, bucket.stamp, bucket.debt, bucket.since, bucket.refill = struct_unpack(BUCKET_FORMAT, raw)', ''],
      ['bucket.since, bucket.refill = struct_unpack', 'bucket.since = struct_unpack'],
      ['bucket.since, bucket.refill)', 'bucket.since, 0)'],
      ['bucket.stamp, bucket.refill = now, params.refill', 'bucket.stamp = now'],
      ["call_redis('SET', bucket.key, raw, 'PX', ttl_of(keep, is_clock_given))", ''],
      ['bucket.debt = math.min(debt + units * params.parts, params.mostDebt)', ''],
      ['at_ms > bucket.stamp', 'at_ms >= bucket.stamp'],
      ['= math.max(0, math.min(owed,', '= math.min(0, math.min(owed,'],
      ['bucket.debt = debt - returned', ''],
    ],
    'conformance > a refund to a token bucket that was full since mints nothing after the clock was set back':
      [
        ['if debt == 0 or bucket', 'if bucket'],
        ['if debt == 0 or', 'if debt == 0 and'],
      ],
    'histories 1 > reservations under limits that change': [["call_redis('DEL', bucket.key)", '']],
    'conformance > what came back to a bucket at another refill is not returned again': [
      ['if debt == 0 or bucket.refill ~= params.refill then', 'if debt == 0 then'],
      ['or bucket.refill ~= params.refill then return 0 end', 'then return 0 end'],
    ],
    'conformance > the debt of a token bucket saturates, at a smaller refill too: it is paid in 366 days': [
      ['debt <= MOST_PARTS', 'debt < MOST_PARTS'],
    ],
    'traps/damaged-state > a debt beyond all that may be is no log of ours': [
      ['if bucket.debt <= MOST_PARTS then return nil end', 'if true then return nil end'],
    ],
    'traps/ttl > a token bucket that owes more than its refill of now allows lives for 366 days': [
      ['bucket.debt / bucket.refill', 'bucket.debt / bucket.params.refill'],
    ],
    'traps/what-is-wrong > a token bucket': [["if type(raw) ~= 'string' then return raw.err end", '']],
    'traps/damaged-state > a token bucket > cut off while it is short it does not trouble the requests beside it either':
      [['BUCKET_SIZE and string.byte(raw)', 'BUCKET_SIZE or string.byte(raw)']],
    'conformance > a token bucket does not charge denials': [
      ['if #raw == BUCKET_SIZE', 'if #raw ~= BUCKET_SIZE'],
      ['if bucket.debt == 0 then', 'if true then'],
    ],
    'conformance > a refund to a token bucket returns what has not come back by itself': [
      ['if bucket.debt <= MOST_PARTS then return nil end', ''],
      ['bucket.stamp, bucket.refill = now, params.refill', 'bucket.refill = params.refill'],
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
