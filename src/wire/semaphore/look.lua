-- semaphore/look: the limit, the holders and the number of waiters. Reads only.
-- KEYS  1 lock  2 queue  3 leases  4 grants
-- ARGV  none
-- Returns  {server time us, {declared, limit, version}, leases with deadlines in ms, grants, waiters}

local clock = redis.call('TIME')
return {string.format('%.0f', clock[1] * 1000000 + clock[2]),
    redis.call('HMGET', KEYS[1], 'declared', 'limit', 'version'), redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'),
    redis.call('HGETALL', KEYS[4]), redis.call('ZCARD', KEYS[2])}
