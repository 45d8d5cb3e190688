-- tools/look: a lock of any kind as it stands, at one moment. Reads only.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants  7 notes
-- ARGV  none
-- Returns  {server time us, type of the lock key, its ms left, its value or fields, queue with tickets, waiters,
--          fence, leases with deadlines, grants, notes}; a key that is missing, or of another type, is an empty list

local function is(answer, type) return (answer.ok or answer) == type end

local clock, answer, value = redis.call('TIME'), redis.call('TYPE', KEYS[1]), {}
local kind = answer.ok or answer
if kind == 'string' then value = {redis.call('GET', KEYS[1])} end
if kind == 'hash' then value = redis.call('HGETALL', KEYS[1]) end
return {string.format('%.0f', clock[1] * 1000000 + clock[2]), kind, redis.call('PTTL', KEYS[1]), value,
    is(redis.call('TYPE', KEYS[2]), 'zset') and redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES') or {},
    is(redis.call('TYPE', KEYS[3]), 'hash') and redis.call('HGETALL', KEYS[3]) or {},
    is(redis.call('TYPE', KEYS[4]), 'string') and redis.call('GET', KEYS[4]) or {},
    is(redis.call('TYPE', KEYS[5]), 'zset') and redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES') or {},
    is(redis.call('TYPE', KEYS[6]), 'hash') and redis.call('HGETALL', KEYS[6]) or {},
    is(redis.call('TYPE', KEYS[7]), 'hash') and redis.call('HGETALL', KEYS[7]) or {}}
