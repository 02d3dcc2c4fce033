-- The twin of token-bucket.ts.
--
-- Reads and writes: one string per log: format (1 byte, 1), time of the last charge (6 bytes, milliseconds), debt at
-- that time (7 bytes, parts of a token, of which params.parts make one), time of the first charge since the bucket was
-- full or its refill changed (6 bytes), refill at the last charge (6 bytes); unsigned, big-endian.
-- TTL: set whenever it is written, to the time in which the debt is paid at that refill + slack.
-- Invariants: 0 < debt <= 2^52; a bucket without debt is no key at all.


local token_bucket = {}

-- The refill since the last charge.
local function refill_of(bucket, params)
  return math.max(bucket.refill, params.refill)
end

-- Parts of tokens that the bucket lacks.
local function debt_at(bucket, params, now)
  return math.max(0, bucket.debt - math.max(0, now - bucket.stamp) * refill_of(bucket, params))
end

function token_bucket.load(bucket)
  local raw = pcall_redis('GETRANGE', bucket.key, '0', LAST_OF_BUCKET)
  if type(raw) ~= 'string' then return raw.err end
  bucket.stamp, bucket.debt, bucket.since, bucket.refill = 0, 0, 0, 0
  if raw == '' then return nil end
  if #raw == BUCKET_SIZE and string.byte(raw) == 1 then
    local _
    _, bucket.stamp, bucket.debt, bucket.since, bucket.refill = struct_unpack(BUCKET_FORMAT, raw)
    if bucket.debt <= MOST_PARTS then return nil end
  end
  return 'not a token bucket of format 1'
end

function token_bucket.save(bucket, _, is_clock_given)
  if bucket.debt == 0 then
    call_redis('DEL', bucket.key)
    return
  end
  local raw = struct_pack(BUCKET_FORMAT, 1, bucket.stamp, bucket.debt, bucket.since, bucket.refill)
  local keep = math.ceil(bucket.debt / bucket.refill)
  call_redis('SET', bucket.key, raw, 'PX', ttl_of(keep, is_clock_given))
end

function token_bucket.restamp(bucket, _, now)
  bucket.stamp, bucket.since = now, math.min(bucket.since, now)
end

function token_bucket.check(bucket, params, now, used)
  local tokens = math.ceil(debt_at(bucket, params, now) / params.parts)
  for i = 1, #params.limits do used[i] = tokens end
end

function token_bucket.commit(bucket, params, now, units)
  local debt = debt_at(bucket, params, now)
  if debt == 0 or bucket.refill ~= params.refill then bucket.since = now end
  bucket.debt = math.min(debt + units * params.parts, params.mostDebt)
  bucket.stamp, bucket.refill = now, params.refill
end

function token_bucket.retry_after(bucket, params, i, now, cost)
  local left = params.limits[i] - cost
  if left < 0 then return NEVER end
  return math.ceil((debt_at(bucket, params, now) - left * params.parts) / refill_of(bucket, params))
end

function token_bucket.reset_after(bucket, params, _, now)
  return math.ceil(debt_at(bucket, params, now) / refill_of(bucket, params))
end

function token_bucket.refund(bucket, params, now, at_ms, units)
  if at_ms > bucket.stamp or at_ms < bucket.since or bucket.refill ~= params.refill then return 0 end
  local owed = units * params.parts - math.max(0, now - at_ms) * params.refill
  local debt = debt_at(bucket, params, now)
  local returned = math.max(0, math.min(owed, debt))
  if returned == 0 then return 0 end
  bucket.debt = debt - returned
  bucket.stamp = bucket.debt == 0 and 0 or math.max(bucket.stamp, now)
  return math.ceil(returned / params.parts)
end

return token_bucket
