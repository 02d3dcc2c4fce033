-- The twin of override.ts: a key's override, stored next to the key's logs.
--
-- Names (text that the process sends): for each part that may have an override, its limits, then a `|`. A limit is written as
-- `/name position maximum`. The position is place * 65536 + offset * 16 + kind. `place` is where the words of the limit's log
-- begin, `offset` is the limit's distance from there, and `kind` is the number of its kind. A single limit is listed again
-- without a name.
-- Stored: one string per key: `1 blocked ends rule`, a line feed, and the caller's key, if it is stored hashed. The 1
-- is the version of the format. `blocked` and `ends` are when the block and the rule end, in epoch milliseconds: 0 if
-- not set, or FOREVER if there is no end. The rule is empty, `exempt`, or JSON with numbers by limit name.
-- Index: per bucket, a sorted set of the keys that have an override, in byte order. Listing or writing overrides
-- removes some keys whose override is gone.
-- TTL: none if the override never ends, otherwise the time until block and rule have ended, plus slack. The index has
-- the longest TTL of its overrides.

-- 2^52, because node-redis misreads 2^53 - 1.
local FOREVER = 4503599627370496
local LARGEST = 1099511627776
local SHORTEST_WINDOW = 10
local LONGEST_WINDOW = 31622400000
local OVERRIDES_PAGE = 250
local PAGE_BYTES = 65536
-- The length of '~overrides' in an index's key, and the suffix of an override's key.
local INDEX_LENGTH = 10
local OVERRIDE_END = ':o'
-- The first line to assume if nothing is stored.
local NOTHING = '1 0 0 \n'
local NO_OVERRIDE = 'not an override of format 1'

--- override
-- Applies the overrides for an op's parts and returns the resulting words. `stored` has the first lines of all overrides.
-- `is_blocked` is set if any override blocks its key. On failure, returns nil and the error.
function(stored, words, names, clock)
  local changed, at, last = { unpack(words) }, 1, 0
  repeat
    -- `mark` has the characters after a name or a number.
    local blocked, ends, mark, behind = string.match(stored, '^1 (%d+) (%d+) ({?}?["\n]?)()', at)
    if not mark then return nil, NO_OVERRIDE end
    local first, is_named = last + 1, false
    blocked, ends, at, last = blocked + 0, ends + 0, behind, string.find(names, '|', first, true) or 0
    if blocked > FOREVER or ends > FOREVER then return nil, NO_OVERRIDE end
    if blocked > clock then changed.is_blocked = true end
    if mark == '' then
      mark, at = string.match(stored, '^exempt(\n)()', at)
      if ends > clock then
        for where in string.gmatch(string.sub(names, first, last), ' (%d+) ') do
          local p = (where - where % 65536) / 65536
          changed[p] = -math.abs(changed[p])
        end
      end
    end
    while mark == '{"' or mark == '},"' do
      local name, field, digits, limit, window, capacity, refill
      name, field, digits, mark, behind = string.match(stored, '^([%w._-]*)":{"(%a+)":([1-9]%d*)(}?[,}]["\n])()', at)
      if not name then name, mark, behind = string.match(stored, '^([%w._-]*)":{(}[,}]["\n])()', at) end
      while field do
        digits = digits + 0
        if digits > LARGEST then return nil, NO_OVERRIDE end
        if field == 'limit' then
          limit = digits
        elseif field == 'windowMs' then
          window = digits
        elseif field == 'capacity' then
          capacity = digits
        elseif field == 'refill' then
          refill = digits
        else
          return nil, NO_OVERRIDE
        end
        field = nil
        if mark == ',"' then
          field, digits, mark, behind = string.match(stored, '^(%a+)":([1-9]%d*)(}?[,}]["\n])()', behind)
        end
      end
      at = behind
      -- An empty name means the only limit, if that limit has no name.
      local _, found = nil, nil
      if mark and ends > clock and (name ~= '' or not is_named) then
        _, found = string.find(names, '/' .. name .. ' ', first, true)
      end
      if found and found < last then
        is_named = name ~= ''
        local where, most = string.match(names, '^(%d+) (%d+)', found + 1)
        where = where + 0
        local kind = where % 16
        local p = (where - where % 65536) / 65536
        local place = p + (where % 65536 - kind) / 16
        -- A limit ignores numbers that don't apply to its kind or don't fit its log.
        if kind == 1 then
          local precision, units, length = words[p + 1], limit or words[place + 1], words[place]
          -- The window in `words` is longer than the limit's own window, by `precision - 1`.
          if window then length = window + precision - 1 end
          local grains = (length - length % precision) / precision
          if capacity or refill or length < precision + SHORTEST_WINDOW - 1 or length >= precision + LONGEST_WINDOW
            or length < 2 * precision - 1 or grains >= 65536 and units > 65536 then
            length, units = words[place], words[place + 1]
          end
          changed[place], changed[place + 1] = length, units
        elseif kind == 2 then
          local parts = words[p + 2]
          capacity, refill = capacity or words[p + 4], refill or words[p + 1]
          if limit or window or capacity > most + 0 or capacity * parts / refill > LONGEST_WINDOW then
            capacity, refill = words[p + 4], words[p + 1]
          end
          local debt = math.min(2 ^ 52, MAX_UNITS * parts, refill * LONGEST_WINDOW)
          changed[p + 1], changed[p + 4] = refill, capacity
          changed[p + 3] = math.max(debt - debt % parts, capacity * parts)
        else
          local is_fitting = limit and limit <= most + 0 and not (window or capacity or refill)
          changed[place] = is_fitting and limit or words[place]
        end
      end
    end
    if mark ~= '\n' and mark ~= '{}\n' and mark ~= '}}\n' then return nil, NO_OVERRIDE end
  until at > #stored
  return changed
end
--- records
local function key_of(index, name)
  return string.sub(index, 1, -1 - INDEX_LENGTH) .. name .. OVERRIDE_END
end

-- Returns when an override's block and rule end (0 if not in force), the rule, and the caller's key. On failure, returns
-- nil and the error.
local function read_override(raw, clock)
  if raw.err then return nil, raw.err end
  local line, given = string.match(raw, '^([^\n]*\n)(.*)$')
  local words, damage = in_force(line or '', {}, '', clock)
  if not words then return nil, damage end
  local blocked, ends, rule = string.match(line, '^1 (%d+) (%d+) (.*)\n')
  blocked, ends = blocked + 0, ends + 0
  if rule == '' or ends <= clock then ends, rule = 0, '' end
  return blocked > clock and blocked or 0, ends, rule, given
end
