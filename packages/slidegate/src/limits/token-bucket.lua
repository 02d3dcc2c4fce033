-- The twin of token-bucket.ts: a debt, in parts of a token, that shrinks by the refill each millisecond.
--
-- Words (numbers that the process sends): the refill, the parts of a token, the maximum debt, the capacity.
-- Answer: the debt before the op. If the higher refill of an earlier charge still applies: -1 minus the debt, and that
-- refill.
-- Stored: one string, see docs/state.md.
-- TTL: the time until the debt is gone, plus slack. It is renewed only if it would end before the debt is gone.
-- Invariants: 0 < debt <= 2^52. A bucket without debt has no key.

local BUCKET_FORMAT = '>BI6I7I6I6I6'
local BUCKET_SIZE = 32
local LAST_OF_BUCKET = '32'
local MAX_PARTS = 2 ^ 52
local EMPTY_BUCKET = '\1' .. string.rep('\0', 31)
local NO_BUCKET = 'not a token bucket of format 1'

--- read
local raw = kinds[key]
if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_BUCKET) end
if #raw ~= BUCKET_SIZE then
  if raw ~= '' then return nil, raw.err or NO_BUCKET end
  raw = EMPTY_BUCKET
end
local format, stamp, debt, since, last_refill, expires = struct_unpack(BUCKET_FORMAT, raw)
if format ~= 1 or debt > MAX_PARTS then return nil, NO_BUCKET end
--- load
local refill, parts, capacity = words[p + 1], words[p + 2], words[p + 4]
local rate, is_restamped = refill, false
if last_refill > refill then rate = last_refill end
if stamp <= now then
  debt = debt - (now - stamp) * rate
  if debt < 0 then debt = 0 end
else
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  expires, is_restamped = 0, true
  if since > now then since = now end
end
--- check
local used = debt + parts - 1
used = (used - used % parts) / parts
local free = capacity - used
if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
if rate == refill then
  reply[place], answer = debt, place + 1
else
  reply[place], reply[place + 1], answer = -1 - debt, rate, place + 2
end
--- up
if op and op.bans and not is_shadow and used + cost * mine + cost > capacity then op.denied[k] = true end
if mine > 0 or is_restamped and not is_look then
  local is_first = debt == 0 or last_refill ~= refill
  if mine > 0 then
    if is_first then since = now end
    debt, last_refill = debt + cost * mine * parts, refill
    if debt > words[p + 3] then debt = words[p + 3] end
  end
  local keep = debt + last_refill - 1
  keep = (keep - keep % last_refill) / last_refill
  if expires < now + keep then
    local ttl, lifetime = ttl_of(keep, clock ~= reply[1])
    call_redis(
      'SET', key, struct_pack(BUCKET_FORMAT, 1, now, debt, since, last_refill, clock + lifetime), 'PX', ttl
    )
  else
    local value = struct_pack('>I6I7', now, debt)
    if is_first then value = struct_pack('>I6I7I6I6', now, debt, since, last_refill) end
    call_redis('SETRANGE', key, '1', value)
  end
end
--- tables
local token_bucket = {}

function token_bucket.load(bucket)
  local key = bucket.key
  --- read
  bucket.stamp, bucket.debt, bucket.since, bucket.refill, bucket.expires = stamp, debt, since, last_refill, expires
end

function token_bucket.refund(bucket, words, p, now, at_ms, units)
  local refill, parts = words[p + 1], words[p + 2]
  if at_ms > bucket.stamp or at_ms < bucket.since or bucket.refill ~= refill then return 0 end
  local debt = math.max(0, bucket.debt - math.max(0, now - bucket.stamp) * refill)
  local returned = math.max(0, math.min(units * parts - math.max(0, now - at_ms) * refill, debt))
  if returned == 0 then return 0 end
  if returned == debt then
    call_redis('DEL', bucket.key)
  else
    -- Leaves the TTL unchanged, because it is still long enough.
    call_redis('SETRANGE', bucket.key, '1', struct_pack('>I6I7', math.max(bucket.stamp, now), debt - returned))
  end
  return math.ceil(returned / parts)
end
