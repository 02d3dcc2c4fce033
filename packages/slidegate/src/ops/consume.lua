-- How an op decides one log: a template, into which embed-lua.js inserts the steps of each kind. The function loads and checks
-- its log, calls the next log's function with the number of requests that it would admit, and writes when that call returns.
--
-- - `words`: the numbers of all logs. `p` is the place of this log's numbers. The first number is the place of the last one,
--   and is negative for the log of a shadow limit. The kind defines the other numbers.
-- - `k`, `place`: the places of its key and of its answer in the reply
-- - `admitted`: requests that the previous logs admit
-- - `now`, `clock`: the time at which the op is decided, and the current time
-- - `op`: the op's uncommon fields, or nil for most ops
--
-- Returns the number of requests that all logs admit, and the end of the reply. Otherwise, returns nil and the reason why the log
-- can't be used, or nil and a later time at which to decide the op again.
function(words, p, k, place, admitted, now, clock, cost, wanted, reply, kinds, op)
  local key, last, is_shadow = KEYS[k], words[p], false
  if last < 0 then last, is_shadow = -last, true end
  --- load
  -- luacheck: push ignore 311
  local fitting, answer = admitted, place
  -- luacheck: pop
  --- check
  local all, filled = is_shadow and admitted or fitting, answer - 1
  if op and op.is_forced then fitting, all = wanted, wanted end
  local next_log = kinds[LATER + last]
  if next_log then
    all, filled = next_log(words, last + 1, k + 1, answer, all, now, clock, cost, wanted, reply, kinds, op)
    if not all then return nil, filled end
  end
  -- A shadow limit without room is charged less. Most kinds don't need all of these variables.
  -- luacheck: push ignore 231 311
  local mine, asked, is_look = fitting < all and fitting or all, wanted, false
  -- luacheck: pop
  if op then
    -- Renewing or releasing an entry restamps all logs, like a denial.
    is_look = op.is_look and not op.hold
    if op.again_at and not op.is_blocked then
      mine, asked = 0, 0
    elseif op.is_look then
      mine = 0
    end
  end
  --- up
  return all, filled
end
