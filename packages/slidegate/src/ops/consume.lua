-- How an op is decided by one log: a template, into which embed-lua.js inserts the steps for each kind. The function loads
-- and checks its log, calls the next log's function with the requests admitted so far, and writes when that call returns.
--
-- - `words`: the numbers for all logs. This log's numbers begin at `p`. The first one is the place of the log's last
--   number, negated for a shadow limit's log. The kind defines the numbers after the first.
-- - `k`, `place`: where the log's key is in KEYS, and where its answer starts in `reply`
-- - `admitted`: requests that the previous logs admit
-- - `now`, `clock`: the time at which the op is decided, and the current time
-- - `op`: the op's uncommon fields, or nil if it has none, like most ops
--
-- Returns the number of requests that all logs admit, and the last place in the reply. If a log can't be used, returns
-- nil and the reason. If a log's stamp is slightly later than `now`, returns nil and the stamp; the op is then decided
-- again at that time.
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
  -- A shadow limit is charged only for the requests that fit within it. Most kinds don't need all of these variables.
  -- luacheck: push ignore 231 311
  local mine, asked, is_look = fitting < all and fitting or all, wanted, false
  -- luacheck: pop
  if op then
    -- A look doesn't restamp logs. Renewing or releasing an entry does, and so does a denial.
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
