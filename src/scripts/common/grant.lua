-- Shared by the mutex scripts: tokens, and handing the lock to the next living waiter.
--
-- A waiter's entry in the hash KEYS[3] is one string of five words:
--   lease ms, poll interval ms, server time of its last poll in us, its token floor, its wake-up channel

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]

-- A token larger than every earlier one for this lock: the server's time, unless the clock was set back or two grants
-- fall into one microsecond (then the mark in KEYS[4] remembers), or the data was lost (then `floor` does).
-- %.0f, never tostring(): that writes 1.7e+15.
local function next_token(floor, retention_ms)
    local last = tonumber(redis.call('GET', KEYS[4]) or 0) or 0
    local token = math.max(now_us, last + 1, floor + 1)
    local text = string.format('%.0f', token)
    local keep_ms = math.floor((token - now_us) / 1000) + retention_ms
    return text, keep_ms
end

-- Makes `id` the holder. The lock key comes first: a server out of memory refuses the first write and nothing is changed.
local function grant(id, lease_ms, floor, retention_ms)
    local token, keep_ms = next_token(floor, retention_ms)
    redis.call('SET', KEYS[1], id, 'PX', lease_ms)
    redis.call('SET', KEYS[4], token, 'PX', string.format('%.0f', keep_ms))
    return token
end

-- True if the waiter's process listens and it has polled within its last two intervals. The count of listeners is
-- NUMSUB's and not PUBLISH's, which would count pattern subscribers too.
local function is_alive(interval_ms, seen_us, channel)
    if now_us - seen_us > 2000 * interval_ms then return false end
    return redis.call('PUBSUB', 'NUMSUB', channel)[2] > 0
end

-- A waiter that polls more rarely than the new holder's lease lasts would learn too late that the holder died: the
-- first in line is told to poll now, so that it knows the deadline.
local function warn_first_in_line(lease_ms)
    local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    local entry = first and redis.call('HGET', KEYS[3], first)
    if not entry then return end
    local interval, channel = string.match(entry, '^%d+ (%d+) %d+ %d+ (.+)$')
    if tonumber(interval) > tonumber(lease_ms) then redis.pcall('PUBLISH', channel, 'poll ' .. first) end
end

-- The lock is free: hands it to the first living waiter and tells it so. `caller` needs no telling, it is asking.
-- Returns the new holder and its token, or nil if nobody waits. The dead are dropped; one that was only unreachable
-- comes back with its ticket.
local function promote_next_waiter(caller, retention_ms)
    while true do
        local id = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
        if not id then return nil end
        local entry = redis.call('HGET', KEYS[3], id)
        redis.call('ZREM', KEYS[2], id)
        redis.call('HDEL', KEYS[3], id)
        if entry then
            local lease, interval, seen, floor, channel = string.match(entry, '^(%d+) (%d+) (%d+) (%d+) (.+)$')
            if id == caller or is_alive(tonumber(interval), tonumber(seen), channel) then
                local token = grant(id, lease, tonumber(floor), retention_ms)
                if id ~= caller then redis.pcall('PUBLISH', channel, 'grant ' .. id .. ' ' .. token) end
                warn_first_in_line(lease)
                return id, token
            end
        end
    end
end
