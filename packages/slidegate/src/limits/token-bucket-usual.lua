-- A usual op on a token bucket: see stores/redis/usual.lua. Its numbers are its refill and the parts of a token, then the
-- debt at which a charge saturates, and the capacity.

--- load
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_BUCKET)
local refill, parts, limit = numbers[p + 1], numbers[p + 2], numbers[p + 4]
local rate, debt, since, last_refill = refill, 0, 0, refill
if raw ~= '' then
  if #raw ~= BUCKET_SIZE then return nil end
  local format, stamp
  format, stamp, debt, since, last_refill = struct_unpack(BUCKET_FORMAT, raw)
  if format ~= 1 or debt > MOST_PARTS or stamp > now then return nil end
  if last_refill > refill then rate = last_refill end
  debt = debt - (now - stamp) * rate
  if debt < 0 then debt = 0 end
end
--- check
local used = math.ceil(debt / parts)
local free = limit - used
if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
answer = answer + 3
--- answer
if mine > 0 then
  if debt == 0 or last_refill ~= refill then since = now end
  debt, rate = debt + cost * mine * parts, refill
  if debt > numbers[p + 3] then debt = numbers[p + 3] end
end
local retry = 0
if mine < wanted and used + cost * mine + cost > limit then
  retry = cost > limit and NEVER or math.ceil((debt - (limit - cost) * parts) / rate)
end
reply[place], reply[place + 1], reply[place + 2] = used, retry, math.ceil(debt / rate)
--- commit
call_redis(
  'SET', key, struct_pack(BUCKET_FORMAT, 1, now, debt, since, refill), 'PX', ttl_of(math.ceil(debt / refill), is_clock_given)
)
