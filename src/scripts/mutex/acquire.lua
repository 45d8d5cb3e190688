-- mutex/acquire: take the lock, or stand in line for it, or learn who has it. Also the poll of one who stands in line.
-- KEYS  1 lock  2 queue  3 waiters  4 fence
-- ARGV  1 hold id  2 lease ms  3 token floor  4 fence retention ms  5 wake-up channel, empty: do not wait
--       6 ticket of an earlier answer, or 0  7 poll interval ms  8 how long queue and waiters keep without a poll, ms
-- Returns  {1, token} the caller holds it; its lease is full again
--          {0, holder's ms left, holder} somebody else does, and the caller does not wait (ms left -1: no expiry)
--          {2, holder's ms left, holder, ticket, place from 0, fence} the caller stands in line
-- Repeatable: the same hold id again refreshes the lease it has, or its place in line.
--@include common/grant.lua

local id, lease, floor, retention = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local channel, ticket = ARGV[5], ARGV[6]
local holder = redis.call('GET', KEYS[1])

-- Never shortens: a foreign program, a longer earlier lease or a more patient waiter may have given it more.
local function keep_for(key, ms)
    if redis.call('PTTL', key) < tonumber(ms) then redis.call('PEXPIRE', key, ms) end
end

if holder == id then
    keep_for(KEYS[1], lease)
    return {1, redis.call('GET', KEYS[4]) or grant(id, lease, floor, retention)}
end

-- Free, and nobody before us: the common case, without touching the queue.
if not holder and redis.call('EXISTS', KEYS[2]) == 0 then
    return {1, grant(id, lease, floor, retention)}
end

if channel ~= '' then
    if ticket == '0' then
        ticket = redis.call('ZSCORE', KEYS[2], id)
        if not ticket then
            local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
            ticket = string.format('%.0f', math.max(now_us, last + 1))
        end
    end
    redis.call('ZADD', KEYS[2], ticket, id)
    redis.call('HSET', KEYS[3], id,
        lease .. ' ' .. ARGV[7] .. ' ' .. string.format('%.0f', now_us) .. ' ' .. ARGV[3] .. ' ' .. channel)
    keep_for(KEYS[2], ARGV[8])
    keep_for(KEYS[3], ARGV[8])
end

if not holder then
    local token
    holder, token = promote_next_waiter(id, retention)
    if holder == id then return {1, token} end
    if not holder then return {1, grant(id, lease, floor, retention)} end
end

local left = redis.call('PTTL', KEYS[1])
if channel == '' then return {0, left, holder} end
return {2, left, holder, ticket, redis.call('ZRANK', KEYS[2], id), redis.call('GET', KEYS[4]) or '0'}
