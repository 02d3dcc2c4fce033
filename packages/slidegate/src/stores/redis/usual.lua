-- How a usual op decides one log: the text of a function, once. A kind's file has what it does at each step, and
-- embed-lua.js puts it in the place of the step's name. It checks on the way down and commits on the way up. It calls the
-- function of the next log with what it would admit, and answers how many all logs admit, and where the reply now ends. Nothing, and nothing is written,
-- if the general driver is needed.
--
-- `p` is the place of the log's numbers: the place of the last one, below 0 if it is a shadow limit's log, two numbers, and
-- two for each limit, as its kind knows them. The answer begins at `place` of the reply.
function(numbers, p, key_place, place, admitted, now, cost, wanted, reply, kinds, is_clock_given)
  -- Arguments are cheaper than captured values.
  local key, last, is_shadow = KEYS[key_place], numbers[p], false
  if last < 0 then last, is_shadow = -last, true end
  --- load
  local fitting, answer = admitted, place
  --- check
  local all, filled = is_shadow and admitted or fitting, answer - 1
  if numbers[last + 1] then
    all, filled = kinds[LATER + last](
      numbers, last + 1, key_place + 1, answer, all, now, cost, wanted, reply, kinds, is_clock_given
    )
    if not all then return nil end
  end
  -- A shadow limit without room is charged less.
  local mine = fitting < all and fitting or all
  --- answer
  if mine > 0 then
    --- commit
  end
  return all, filled
end
