-- mutex/renew: make a hold's lease full again.
-- KEYS  1 lock
-- ARGV  1 hold id  2 lease ms
-- Returns  {1} renewed | {0} not held by anybody | {-1, holder's ms left, holder} held by another
-- Repeatable. Never shortens a lease, and never revives a hold.

local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
    if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
    return {1}
end
if not holder then return {0} end
return {-1, redis.call('PTTL', KEYS[1]), holder}
