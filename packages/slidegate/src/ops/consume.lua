-- How an op decides one log: the text of a function, once for all kinds. A kind's file has the text of each step, and
-- embed-lua.js puts it where the step's name is. The function loads and checks its log, calls the function of the next
-- log with what it would admit, and writes on the way back.
--
-- words        the numbers of all logs. `p` is the place of this log's: first the place of the last, below 0 for a log in
--              shadow, then what its kind says
-- k, place     the places of its key and of its answer in the reply
-- admitted     requests that the logs before it admit
-- now, clock   the instant that counts for the op, and the time
-- op           what is unusual about the op. nil for most
-- Returns how many requests all logs admit, and where the reply now ends. Or nil and the reason why the log cannot be used,
-- or nil and an instant: it has to be decided again at that one, which is a little later than `now`.
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
  -- A shadow limit without room is charged less. Few kinds need all of these.
  -- luacheck: push ignore 231 311
  local mine, asked, is_look = fitting < all and fitting or all, wanted, false
  -- luacheck: pop
  if op then
    -- A renewal or a return of an entry restamps all logs, like a denial.
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
