-- mutex/renew: make a hold's lease full again.
-- KEYS  1 lock  2 notes  3 fence (both only if the hold has a note, and not while the slot moves): who asks for the
--       note of a long hold, such as a leader's, is told its token, too
-- ARGV  1 hold id  2 lease ms  3 delay ms, part of that lease: with no more left the hold has expired; missing: 0
-- Returns  {1} renewed | {0} not held by anybody, or expired | {-1, holder's ms left, holder} held by another
-- Repeatable. Never shortens a lease, and never revives a hold.

local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
    local left = redis.call('PTTL', KEYS[1])
    local lease, delay = tonumber(ARGV[2]), tonumber(ARGV[3] or 0)
    if not (lease and delay) then return redis.error_reply('ERR holdfast: lease or delay out of range') end
    if ARGV[3] and left >= 0 and left <= delay then return {0} end
    if left < lease then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
    if KEYS[2] and redis.call('PTTL', KEYS[2]) < lease then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
    if KEYS[3] and redis.call('PTTL', KEYS[3]) < lease then redis.call('PEXPIRE', KEYS[3], ARGV[2]) end
    return {1}
end
if not holder then return {0} end
return {-1, redis.call('PTTL', KEYS[1]), holder}
