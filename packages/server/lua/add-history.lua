-- Adds a batch to records in Redis. Twin of `added` in records.ts.
--
-- KEYS: per limiter, the records of its minute and of its hour.
-- ARGV: the process, the batch's number, the keys per order, and the TTLs of minutes and hours in milliseconds. Then, per
-- limiter: the number of entries, and for each its name, allowed, denied, units, and shadow denials or rank. Writes JSON strings
-- with a TTL, and replaces values that it can't read.

local process, number, per_order = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- By rank, then by requests, then by denials.
local orders = {
  function(e) return e[4], e[1] + e[2] end,
  function(e) return e[1] + e[2], 0 end,
  function(e) return e[2], 0 end,
}

local function busiest(c)
  local rest = {}
  for name in pairs(c) do
    if name ~= '' then rest[#rest + 1] = name end
  end
  if #rest <= per_order then return c end
  local kept = { [''] = c[''] }
  for _, values in ipairs(orders) do
    table.sort(rest, function(a, b)
      local a1, a2 = values(c[a])
      local b1, b2 = values(c[b])
      if a1 ~= b1 then return a1 > b1 end
      if a2 ~= b2 then return a2 > b2 end
      return a < b
    end)
    local others = {}
    for i, name in ipairs(rest) do
      if i <= per_order and values(c[name]) > 0 then kept[name] = c[name] else others[#others + 1] = name end
    end
    rest = others
  end
  return kept
end

local function load(key)
  local ok, record = pcall(cjson.decode, redis.call('MGET', key)[1])
  if not ok or type(record) ~= 'table' or type(record.c) ~= 'table' or type(record.r) ~= 'table' then
    return { c = {}, r = {} }
  end
  for _, e in pairs(record.c) do
    for i = 1, 4 do
      if type(e) ~= 'table' or type(e[i]) ~= 'number' then return { c = {}, r = {} } end
    end
  end
  return record
end

local function add(key, ttl, from, count)
  local record = load(key)
  if (tonumber(record.r[process]) or 0) >= number then return end
  for i = from, from + 5 * (count - 1), 5 do
    local name = ARGV[i]
    local e = record.c[name] or { 0, 0, 0, 0 }
    for j = 1, 3 do e[j] = e[j] + tonumber(ARGV[i + j]) end
    local other = tonumber(ARGV[i + 4])
    if name == '' then e[4] = e[4] + other else e[4] = math.max(e[4], other) end
    record.c[name] = e
  end
  record.c = busiest(record.c)
  record.r[process] = number
  redis.call('SET', key, cjson.encode(record), 'PX', ttl)
end

local at = 6
for i = 1, #KEYS, 2 do
  local count = tonumber(ARGV[at])
  add(KEYS[i], ARGV[4], at + 1, count)
  add(KEYS[i + 1], ARGV[5], at + 1, count)
  at = at + 1 + 5 * count
end
return 1
