-- Shared by the mutex scripts: the lock as it stands, tokens, and handing the lock to the next living waiter.
--
-- A script that fails half-way is not rolled back. So everything is read before anything is written, and a key of
-- another type fails here, with nothing changed. What somebody else may have written into our keys is never computed
-- with before it was looked at: a mark that is no token is no mark, an entry that makes no sense is a dead waiter's.
--
-- A waiter's entry in the hash KEYS[3] is one string of five words:
--   lease ms, poll interval ms, server time of its last poll in us, its token floor, its wake-up channel

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local holder = redis.call('GET', KEYS[1])
local in_line = redis.call('ZCARD', KEYS[2])
local entries = redis.call('HLEN', KEYS[3])
local mark = redis.call('GET', KEYS[4])

-- The text as a whole number from `least` on, or nil. Lua's numbers are doubles: from 2^53 on, one more is the same.
local function whole(text, least)
    local number = text and string.find(text, '^%d+$') and tonumber(text)
    if number and number >= least and number < 9007199254740992 then return number end
    return nil
end

-- "007" and "0" are not of our making either, and tokens are compared as texts.
if mark and not (whole(mark, 1) and string.find(mark, '^[1-9]')) then mark = false end

-- Remembers a token larger than every earlier one for this lock: the server's time, unless the clock was set back or
-- two grants fall into one microsecond (then the mark knows), or the data was lost (then `floor` does).
-- %.0f, never tostring(): that writes 1.7e+15.
local function next_token(floor, retention_ms)
    local token = math.max(now_us, (mark or 0) + 1, floor + 1)
    local keep_ms = math.ceil((token - now_us) / 1000) + retention_ms
    mark = string.format('%.0f', token)
    redis.call('SET', KEYS[4], mark, 'PX', string.format('%.0f', keep_ms))
    return mark
end

-- Makes `id` the holder. The lock key comes first: a server out of memory refuses the first write and nothing is changed.
local function grant(id, lease, floor, retention_ms)
    redis.call('SET', KEYS[1], id, 'PX', lease)
    return next_token(floor, retention_ms)
end

-- What a waiter wants, or nil.
local function entry_of(id)
    local entry = redis.call('HGET', KEYS[3], id)
    if not entry then return nil end
    local lease, interval, seen, floor, channel = string.match(entry, '^(%d+) (%d+) (%d+) (%d+) (.+)$')
    local wants = {lease = lease, interval_ms = whole(interval, 0), seen_us = whole(seen, 0), floor = whole(floor, 0),
        channel = channel}
    if whole(lease, 1) and wants.interval_ms and wants.seen_us and wants.floor then return wants end
    return nil
end

-- True if the waiter's process listens and it has polled within its last two intervals. The count of listeners is
-- NUMSUB's and not PUBLISH's, which would count pattern subscribers too. Where that may not be asked, its polls must do.
local function is_alive(wants)
    if now_us - wants.seen_us > 2000 * wants.interval_ms then return false end
    local listening = redis.pcall('PUBSUB', 'NUMSUB', wants.channel)
    return listening.err ~= nil or listening[2] > 0
end

local function leave_line(id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('HDEL', KEYS[3], id)
end

-- Tells the first in line to poll if it would not do so within the next `within_ms`.
local function hurry_first_in_line(within_ms)
    local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    local wants = first and entry_of(first)
    if wants and wants.interval_ms > within_ms then redis.pcall('PUBLISH', wants.channel, 'poll ' .. first) end
end

-- The lock is free: hands it to the first living waiter and tells it so. Returns the new holder, or nil if nobody
-- waits. The dead are dropped; one that was only unreachable comes back with its ticket. If the turn is the caller's,
-- it is taken out of the line and returned, and gets nothing: it knows best what it asks for.
-- A waiter that polls more rarely than the new holder's lease lasts would learn too late that the holder died; so the
-- next in line is told to poll, and then knows the deadline.
local function promote_next_waiter(caller, retention_ms)
    while true do
        local id = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
        if not id then return nil end
        local wants = entry_of(id)
        leave_line(id)
        if id == caller then return id end
        if wants and is_alive(wants) then
            local token = grant(id, wants.lease, wants.floor, retention_ms)
            redis.pcall('PUBLISH', wants.channel, 'grant ' .. id .. ' ' .. token)
            hurry_first_in_line(tonumber(wants.lease))
            return id
        end
    end
end
