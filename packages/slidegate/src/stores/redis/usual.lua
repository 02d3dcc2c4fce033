-- How a usual op decides one log: the text of a function, once. A kind's file has what it does at each step, and
-- embed-lua.js puts it in the place of the step's name. It checks on the way down and commits on the way up: it calls the
-- function of the next log with what it would admit, and answers how many all logs admit. Nothing, and nothing is written,
-- if the general driver is needed.
--
-- `p` is the place of the log's numbers: its kind, to which SHADOW and its part's number are added, how many limits read
-- it, two numbers and then two for each limit, as its kind knows them. The answer begins at `place` of the reply.
function(p, key_place, place, admitted)
  local key, is_shadow, last = KEYS[key_place], numbers[p] % PART >= SHADOW, p + 2 + 2 * numbers[p + 1]
  --- load
  local fitting, answer = admitted, place
  --- check
  local all, next_log = is_shadow and admitted or fitting, numbers[last + 2]
  if next_log then
    all = kinds[next_log % SHADOW](last + 2, key_place + 1, answer, all)
    if not all then return nil end
  else
    filled = answer - 1
  end
  -- A shadow limit without room is charged less.
  local mine = fitting < all and fitting or all
  --- answer
  if mine > 0 then
    --- commit
  end
  return all
end
