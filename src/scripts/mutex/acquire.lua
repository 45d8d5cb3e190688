-- mutex/acquire: take the lock, or stand in line for it, or learn who has it. Also the poll of one who stands in line.
-- KEYS  1 lock  2 queue  3 waiters  4 fence
-- ARGV  1 hold id  2 lease ms  3 token floor  4 fence retention ms  5 wake-up channel, empty: do not wait
--       6 ticket of an earlier answer, or 0  7 poll interval ms  8 how long queue and waiters keep without a poll, ms
-- Returns  {1, token} the caller holds it; its lease is full again
--          {0, holder's ms left, holder} somebody else does, and the caller does not wait (ms left -1: no expiry)
--          {2, holder's ms left, holder, ticket, place from 0, fence} the caller stands in line
-- Repeatable: the same hold id again refreshes the lease it has, or its place in line.
--@include common/grant.lua

local id, lease, floor, retention = ARGV[1], ARGV[2], whole(ARGV[3], 0), whole(ARGV[4], 1)
local channel, ticket, keep_line = ARGV[5], ARGV[6], ARGV[8]

if not (whole(lease, 1) and floor and retention and whole(ticket, 0) and whole(ARGV[7], 0)
    and (channel == '' or whole(keep_line, 1))) then
    return redis.error_reply('ERR holdfast: lease, floor, ticket or interval out of range')
end

-- Never shortens: a foreign program, a longer earlier lease or a more patient waiter may have given it more.
local function keep_for(key, ms)
    if redis.call('PTTL', key) < tonumber(ms) then redis.call('PEXPIRE', key, ms) end
end

-- A place that is there already is made anew: removed first, so that a full server does not refuse a poll.
local function stand_in_line()
    local place = redis.call('ZSCORE', KEYS[2], id)
    if ticket == '0' then
        local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
        ticket = place or string.format('%.0f', math.max(now_us, last + 1))
    end
    if place then redis.call('HDEL', KEYS[3], id) end
    -- Entries without a queue: it was evicted, and nobody would ever remove them.
    if in_line == 0 and entries > 0 then redis.call('DEL', KEYS[3]) end
    redis.call('ZADD', KEYS[2], ticket, id)
    redis.call('HSET', KEYS[3], id,
        lease .. ' ' .. ARGV[7] .. ' ' .. string.format('%.0f', now_us) .. ' ' .. ARGV[3] .. ' ' .. channel)
    keep_for(KEYS[2], keep_line)
    keep_for(KEYS[3], keep_line)
end

if holder == id then
    keep_for(KEYS[1], lease)
    return {1, mark or next_token(floor, retention)}
end

-- Free, and nobody before us: the common case.
if not holder and in_line == 0 then return {1, grant(id, lease, floor, retention)} end

if channel ~= '' then stand_in_line() end

if not holder then
    holder = promote_next_waiter(id, retention)
    if not holder or holder == id then
        local token = grant(id, lease, floor, retention)
        hurry_first_in_line(tonumber(lease))
        return {1, token}
    end
end

local left = redis.call('PTTL', KEYS[1])
if channel == '' then return {0, left, holder} end
return {2, left, holder, ticket, redis.call('ZRANK', KEYS[2], id), mark or '0'}
