-- mutex/release: end one grant and hand the lock over to the next living waiter, or free it; or leave the queue.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 gap (only of a lock that other programs use, too), or before the notes
--       the lock again  6 notes (only if the hold has a note)
-- ARGV  1 hold id  2 token of the grant that is meant (of a marked id: one of its block); 0: any grant of this id and
--       its position in the queue (giving up an acquisition: the client never uses that id again)
--       3 fence retention ms  4 proposed token, or 0
--       5 ms of handing over before other programs get a turn; 0: they get none
-- Returns  {1, waiters left} released | {0} not held by anybody | {-1, holder's ms left, holder} held by another, or
--          by another grant of the same id
-- Repeatable: a second call after a lost reply answers {0} or {-1} and changes nothing.

-- Fast path: the caller holds this grant, and nobody waits. It comes before everything else because it is so common.
local is_held = ARGV[2] ~= '0' and redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('GET', KEYS[4]) == ARGV[2]
if is_held and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 then
    if KEYS[6] then redis.call('DEL', KEYS[6]) end -- any other note there is of a hold that is over
    redis.call('DEL', KEYS[1])
    return {1, 0}
end
--@include common/entry.lua
--@include common/channel.lua

local id, token, retention = ARGV[1], ARGV[2], ARGV[3]
if not (string.find(retention, '^[1-9]%d*$') and #retention < 16) then
    return redis.error_reply('ERR holdfast: fence retention out of range')
end

-- Fast path: the caller holds this grant, and the first waiter is alive. It reads two waiters at once: the second may
-- have to poll. Everything unusual is left to the general path.
if is_held and (ARGV[4] or '0') == '0' and not KEYS[5] then
    local now_us, now_text, proposal
    local waiting = redis.call('ZRANGE', KEYS[2], 0, 1)
    local first, second = waiting[1], waiting[2]
--@paste common/steps/read_clock.lua
    local found = redis.call('HMGET', KEYS[3], first or '', second or '', 'watch')
    local lease, interval, seen, floor, _, channel = string.match(found[1] or '', entry_form)
    local mark = tonumber(token) or 2 ^ 53
    if first and lease and not found[3] and string.byte(first, 21) ~= 48 and #lease < 16 and #interval < 16
        and math.max(mark, floor, seen) < now_us and now_us - seen <= 2000 * interval and is_listened_to(channel) then
        local _, next_interval, _, _, _, next_channel = string.match(found[2] or '', entry_form)
        redis.call('ZREM', KEYS[2], first)
        redis.call('HDEL', KEYS[3], first)
        redis.call('SET', KEYS[1], first, 'PX', lease)
--@paste common/steps/take_token.lua
--@paste common/steps/remember_token.lua
        tell(channel, 'grant ' .. first .. ' ' .. mark)
        if next_interval and tonumber(next_interval) > tonumber(lease) then tell(next_channel, 'poll ' .. second) end
        return {1, second and redis.call('ZCARD', KEYS[2]) or 0}
    end
end
--@include common/queue.lua
proposal = whole(ARGV[4], 1)
--@include mutex/common/gap.lua
--@include mutex/common/hand_over.lua
--@include common/meant.lua

local was_first = false
if token == '0' then
    was_first = position_of(id) == 0
    leave_queue(id)
end

if holder == id and token ~= '0' and mark and not is_meant(id, token, mark) then
    return {-1, redis.call('PTTL', KEYS[1]), holder}
end
if KEYS[6] and not (entries > 0 and redis.call('HEXISTS', KEYS[3], id) == 1) then
    redis.pcall('HDEL', KEYS[6], id) -- a late copy does not take the note of a waiter
end

if holder == id then
    local gap_us = gap_due(mark, whole(ARGV[5], 1))
    local first, wants = nil, nil
    if gap_us then first, wants = first_living_waiter() end
    if first then
        redis.call('DEL', KEYS[1])
        begin_gap(gap_us, first, wants)
        if watch then tell_watchers() end
    elseif not promote_next_waiter(nil, retention) then
        redis.call('DEL', KEYS[1])
        if watch then tell_watchers() end
    end
    return {1, queued}
end

-- The holder's lease ended before its release: the script that finds this out serves the queue. In a gap the first
-- waiter does so, when the gap is over.
if not holder then
    if watch then tell_watchers() end
    if gap_left_ms() == 0 then
        promote_next_waiter(nil, retention)
    elseif was_first then
        hurry_first_waiter(-1)
    end
    return {0}
end

-- Only the first waiter knows the holder's deadline, or polls often beside a foreign holder: the new first one must,
-- too.
if was_first then hurry_first_waiter(-1) end
return {-1, redis.call('PTTL', KEYS[1]), holder}
