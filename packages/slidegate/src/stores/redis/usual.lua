-- How a usual op decides one log: the text of a function, once. A kind's file has what it does at each step, and
-- embed-lua.js puts it in the place of the step's name. It checks on the way down and commits on the way up: it calls the
-- function of the next log with what it would admit, and answers how many all logs admit. Nothing, and nothing is written,
-- if the general driver is needed.
--
-- `p` is the place of the log's numbers: its code, two numbers, and two for each limit, as its kind knows them. The code is
-- the number of its kind, SHADOW, MORE if another log follows, and how many limits read it, and parts precede its own. The
-- answer begins at `place` of the reply.
function(numbers, p, key_place, place, admitted, clock, cost, wanted, reply)
  local key, code = KEYS[key_place], numbers[p]
  local last, is_shadow = p + 1 + 2 * ((code % PART - code % LIMIT) / LIMIT), code % MORE >= SHADOW
  --- load
  local fitting, answer = admitted, place
  --- check
  local all = is_shadow and admitted or fitting
  if code % OVERRIDABLE >= MORE then
    all = kinds[numbers[last + 2] % SHADOW](
      numbers, last + 2, key_place + 1, answer, all, clock, cost, wanted, reply
    )
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
