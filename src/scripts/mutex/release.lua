-- mutex/release: end one grant and hand the lock to the next living waiter, or free it; or leave the line.
-- KEYS  1 lock  2 queue  3 waiters  4 fence
-- ARGV  1 hold id  2 token of the grant that is meant; 0: any grant of this id and its place in line (giving up an
--       acquisition: nobody will ever believe in that id again)  3 fence retention ms  4 proposed token, or 0
-- Returns  {1, waiters left} released | {0} not held by anybody | {-1, holder's ms left, holder} held by another, or
--          by another grant of the same id
-- Repeatable: a second call after a lost reply answers {0} or {-1} and changes nothing.

-- The caller's grant, and nobody in line: the common case, and so it comes before all that the others need.
if ARGV[2] ~= '0' and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 and redis.call('GET', KEYS[1]) == ARGV[1]
    and redis.call('GET', KEYS[4]) == ARGV[2] then
    redis.call('DEL', KEYS[1])
    return {1, 0}
end
--@include common/line.lua
--@include common/mutex.lua

local id, token, retention = ARGV[1], ARGV[2], whole(ARGV[3], 1)
if not retention then return redis.error_reply('ERR holdfast: fence retention out of range') end
proposal = whole(ARGV[4], 1)

local was_first = false
if token == '0' then
    was_first = redis.call('ZRANK', KEYS[2], id) == 0
    leave_line(id)
end

if holder == id then
    if token ~= '0' and mark and mark ~= token then return {-1, redis.call('PTTL', KEYS[1]), holder} end
    if not promote_next_waiter(nil, retention) then redis.call('DEL', KEYS[1]) end
    return {1, in_line}
end

-- The holder's lease ended before it could release: whoever finds that out serves the line.
if not holder then
    promote_next_waiter(nil, retention)
    return {0}
end

-- Only the first in line knows the holder's deadline, or looks often at a foreign holder: the new first must, too.
if was_first then hurry_first_in_line(-1) end
return {-1, redis.call('PTTL', KEYS[1]), holder}
