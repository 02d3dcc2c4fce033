-- A usual op on a fixed window: see stores/redis/usual.lua. Its numbers are its length and 1 if it begins with its first
-- charge; then for each limit the length and the limit.

--- load
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER)
local length, from_first_hit = numbers[p + 1], numbers[p + 2] == 1
local start = from_first_hit and now - length + 1 or now - now % length
local since, used, is_new = now, 0, true
if raw ~= '' then
  if #raw ~= COUNTER_SIZE then return nil end
  local format, stamp, units = struct_unpack(COUNTER_FORMAT, raw)
  if format ~= 1 or stamp > now then return nil end
  if stamp >= start and units > 0 then since, used, is_new = stamp, units, false end
end
--- check
for i = p + 3, last, 2 do
  local free = numbers[i + 1] - used
  if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
  answer = answer + 3
end
--- answer
local left = (from_first_hit and since or since - since % length) + length - now
local reset, taken = (used > 0 or mine > 0) and left or 0, used + cost * mine + cost
answer = place
for i = p + 3, last, 2 do
  local limit, retry = numbers[i + 1], 0
  if mine < wanted and taken > limit then retry = cost > limit and NEVER or left end
  reply[answer], reply[answer + 1], reply[answer + 2] = used, retry, reset
  answer = answer + 3
end
--- commit
local units = used + cost * mine
if units > MAX_UNITS then units = MAX_UNITS end
if is_new then
  call_redis('SET', key, struct_pack(COUNTER_FORMAT, 1, since, units), 'PX', ttl_of(left, is_clock_given))
else
  call_redis('SETRANGE', key, '7', struct_pack(NUMBER_FORMAT, units))
end
