-- The least that any limiter with a state of its own per key can cost, many keys at a time: each is read and
-- written back.
--
-- KEYS     small strings
-- Reply    1 for each

local reply = {}
for i = 1, #KEYS do
  redis.call('SET', KEYS[i], redis.call('GET', KEYS[i]), 'KEEPTTL')
  reply[i] = 1
end
return reply
