-- mutex/release: end one grant and hand the lock to the next living waiter, or free it; or leave the queue.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 gap (only of a lock that other programs use, too)
-- ARGV  1 hold id  2 token of the grant that is meant; 0: any grant of this id and its place in the queue (giving up an
--       acquisition: nobody will ever believe in that id again)  3 fence retention ms  4 proposed token, or 0
--       5 ms of handing over before other programs get a turn; 0: they get none
-- Returns  {1, waiters left} released | {0} not held by anybody | {-1, holder's ms left, holder} held by another, or
--          by another grant of the same id
-- Repeatable: a second call after a lost reply answers {0} or {-1} and changes nothing.

-- The caller's grant, and nobody in the queue, or first in the queue one who lives: the common cases, and so they come before all
-- that the others need. Whatever looks odd here is left to what follows, which knows what to say about it. As there,
-- everything is read before anything is written, the next in the queue included: to whom it falls to poll in time.
if ARGV[2] ~= '0' and redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('GET', KEYS[4]) == ARGV[2] then
    if redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 then
        redis.call('DEL', KEYS[1])
        return {1, 0}
    end
--@include common/entry.lua
    local line, clock = redis.call('ZRANGE', KEYS[2], 0, 1), redis.call('TIME')
    local first, second = line[1], line[2]
    local wishes = redis.call('HMGET', KEYS[3], first or '', second or '')
    local lease, interval, seen, floor, _, channel = string.match(wishes[1] or '', entry_form)
    local time_us, last = clock[1] * 1000000 + clock[2], math.max(tonumber(ARGV[2]) or 2 ^ 53, floor or 0)
    local is_plain = lease and #lease < 16 and #interval < 16 and string.find(ARGV[3], '^[1-9]%d*$') and #ARGV[3] < 16
        and (ARGV[4] or '0') == '0'
    local lives = is_plain and time_us >= tonumber(seen) and time_us - seen <= 2000 * interval
    if first and lives and time_us > last and not KEYS[5] and is_listened_to(channel) then
        local token = clock[1] .. string.sub('000000', #clock[2] + 1) .. clock[2]
        local _, rarely, _, _, _, next_channel = string.match(wishes[2] or '', entry_form)
        redis.call('ZREM', KEYS[2], first)
        redis.call('HDEL', KEYS[3], first)
        redis.call('SET', KEYS[1], first, 'PX', lease)
        redis.call('SET', KEYS[4], token, 'PX', ARGV[3])
        tell(channel, 'grant ' .. first .. ' ' .. token)
        if rarely and tonumber(rarely) > tonumber(lease) then tell(next_channel, 'poll ' .. second) end
        return {1, second and redis.call('ZCARD', KEYS[2]) or 0}
    end
end
--@include common/queue.lua
local gap_key = KEYS[5]
--@include common/gap.lua
--@include common/mutex.lua

local id, token, retention = ARGV[1], ARGV[2], whole(ARGV[3], 1)
if not retention then return redis.error_reply('ERR holdfast: fence retention out of range') end
proposal = whole(ARGV[4], 1)

local was_first = false
if token == '0' then
    was_first = position_of(id) == 0
    leave_queue(id)
end

if holder == id then
    if token ~= '0' and mark and mark ~= token then return {-1, redis.call('PTTL', KEYS[1]), holder} end
    local gap_us = gap_due(mark, whole(ARGV[5], 1))
    local first, wants = nil, nil
    if gap_us then first, wants = first_living_waiter() end
    if first then
        redis.call('DEL', KEYS[1])
        begin_gap(gap_us, first, wants)
    elseif not promote_next_waiter(nil, retention) then
        redis.call('DEL', KEYS[1])
    end
    return {1, queued}
end

-- The holder's lease ended before it could release: whoever finds that out serves the queue. In a gap the first in the queue
-- does, when it is over.
if not holder then
    if gap_left_ms() == 0 then
        promote_next_waiter(nil, retention)
    elseif was_first then
        hurry_first_waiter(-1)
    end
    return {0}
end

-- Only the first in the queue knows the holder's deadline, or looks often at a foreign holder: the new first must, too.
if was_first then hurry_first_waiter(-1) end
return {-1, redis.call('PTTL', KEYS[1]), holder}
