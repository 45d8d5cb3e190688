-- mutex/acquire: take the lock, or stand in the queue for it, or learn who has it. Also the poll of one who stands in the queue.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 gap (only of a lock that other programs use, too)
-- ARGV  1 hold id  2 lease ms  3 token floor  4 fence retention ms  5 wake-up channel, empty: do not wait
--       6 ticket of an earlier answer, or 0  7 poll interval ms  8 how long queue and waiters keep without a poll, ms
--       9 proposed token, or 0  10 token of the caller's grant that it gives up for whoever is before it in the queue, or 0
-- Returns  {1, token, clock} the caller holds it; its lease is full again
--          {0, holder's ms left, holder} somebody else does, and the caller does not wait (ms left -1: no expiry)
--          {2, holder's ms left, holder, ticket, place from 0, fence, holder's ms left, clock} the caller stands in the queue
-- In a gap there is no holder (an empty text), and its ms left are those of the gap.
-- clock: this server's, in us; only where a token was proposed, and with it the last two words of {2}.
-- Repeatable: the same hold id again refreshes the lease it has, or its place in the queue.

-- Free and nobody in the queue; or somebody has it, and the caller comes to stand at the end of the queue. These are the common
-- cases, and so they come before all that the others need. Whatever looks odd here is left to what follows, which knows
-- what to say about it. As there, all keys are read before one is written, and the lock key first. Tokens and tickets are
-- put together from the clock's two texts: that costs less than to format them.
do
    local holder = redis.call('GET', KEYS[1])
    if not holder and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0
        and string.find(ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4], '^[1-9]%d* %d+ [1-9]%d*$') then
        local past, clock = redis.call('GET', KEYS[4]), redis.call('TIME')
        local time_us, wish = clock[1] * 1000000 + clock[2], tonumber(ARGV[9])
        local last = math.max(past and tonumber(past) or 0, tonumber(ARGV[3]))
        if time_us > last and #ARGV[2] < 16 and #ARGV[4] < 16 then
            local near = wish and wish > last and math.abs(wish - time_us) <= 1000000 and string.find(ARGV[9], '^%d+$')
            local token = near and ARGV[9] or clock[1] .. string.sub('000000', #clock[2] + 1) .. clock[2]
            redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
            redis.call('SET', KEYS[4], token, 'PX', near and string.format('%.0f', ARGV[4] + 1000) or ARGV[4])
            return {1, token, wish and wish > 0 and string.format('%.0f', time_us) or nil}
        end
    elseif holder and holder ~= ARGV[1] and ARGV[5] ~= '' and ARGV[6] == '0' and (ARGV[9] or '0') == '0'
        and (not KEYS[5] or string.sub(holder, 1, 3) == 'hf_') and #ARGV[2] < 16 and #ARGV[4] < 16 and #ARGV[7] < 16 and #ARGV[8] < 16
        and string.find(ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[7] .. ' ' .. ARGV[8],
        '^[1-9]%d* %d+ [1-9]%d* %d+ [1-9]%d*$') then
        local last, entries = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2], redis.call('HLEN', KEYS[3])
        local past, clock = redis.call('GET', KEYS[4]), redis.call('TIME')
        local left, now = redis.call('PTTL', KEYS[1]), clock[1] .. string.sub('000000', #clock[2] + 1) .. clock[2]
        local time_us = tonumber(now)
        -- The clock is ahead of all that it is compared with, and the queue is whole. NX: who stands in the queue already
        -- keeps its place. A full server's refusal is left to what follows, too, which may have a way around it.
        if time_us > math.max(last or 0, tonumber(ARGV[3])) and (last ~= nil) == (entries > 0)
            and (not past or string.find(past, '^[1-9]%d*$') and tonumber(past) < time_us)
            and redis.pcall('ZADD', KEYS[2], 'NX', now, ARGV[1]) == 1 then
            redis.call('HSET', KEYS[3], ARGV[1],
                ARGV[2] .. ' ' .. ARGV[7] .. ' ' .. now .. ' ' .. ARGV[3] .. ' w ' .. ARGV[5])
            -- Both have always been given their expiry together.
            if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[8]) then
                redis.call('PEXPIRE', KEYS[2], ARGV[8])
                redis.call('PEXPIRE', KEYS[3], ARGV[8])
            end
            return {2, left, holder, now, entries, past or '0'}
        end
    end
end
--@include common/queue.lua
--@include common/enqueue.lua
--@include common/hold_id.lua
local gap_key = KEYS[5]
--@include common/gap.lua
--@include common/mutex.lua

local id, lease, floor, retention = ARGV[1], ARGV[2], whole(ARGV[3], 0), whole(ARGV[4], 1)
local channel, ticket, keep_queue = ARGV[5], ARGV[6], ARGV[8]
proposal = whole(ARGV[9], 1)

if not (whole(lease, 1) and string.find(lease, '^[1-9]') and floor and retention and whole(ticket, 0) and whole(ARGV[7], 0)
    and (channel == '' or whole(keep_queue, 1))) then
    return redis.error_reply('ERR holdfast: lease, floor, ticket or interval out of range')
end

local gap_ms = holder and 0 or gap_left_ms()

-- Free again for whoever is first; that may be the caller. Somebody gets it in any case, and so the key stays. Removing
-- nothing is a write that a full server lets pass, and then the rest may follow.
if holder == id and mark and mark == ARGV[10] then
    redis.call('HDEL', KEYS[3], '')
    holder = false
end

if holder == id then
    keep_for(KEYS[1], lease)
    if not mark then
        take_token(floor)
        remember_token(retention)
    end
    return {1, mark, clock_told()}
end

if not holder and queued == 0 then return {1, grant(id, lease, floor, retention), clock_told()} end

if channel ~= '' then
    local entry = lease .. ' ' .. ARGV[7] .. ' ' .. string.format('%.0f', now_us) .. ' ' .. ARGV[3] .. ' w ' .. channel
    ticket = enqueue(id, ticket, entry, keep_queue, false)
end

if not holder and gap_ms == 0 then
    holder = promote_next_waiter(id, retention)
    if not holder or holder == id then
        local token = grant(id, lease, floor, retention)
        hurry_first_waiter(tonumber(lease))
        return {1, token, clock_told()}
    end
end

if holder and gap_key and not is_ours(holder) then saw_foreign_holder() end
local left = holder and redis.call('PTTL', KEYS[1]) or gap_ms
if channel == '' then return {0, left, holder or ''} end
local place, clock_now = position_of(id), clock_told()
return {2, left, holder or '', ticket, place, mark or '0', clock_now and left, clock_now}
