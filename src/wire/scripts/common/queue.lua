-- Shared by all lock scripts: the server's time, tokens, and the queue of those who wait.
--
-- A script that fails half-way is not rolled back. So everything is read before anything is written, and a key of
-- another type fails here, with nothing changed. What somebody else may have written into our keys is never computed
-- with before it was looked at: a mark that is no token is no mark, an entry that makes no sense is a dead waiter's.
--
-- A Cluster's member whose slot is moving away runs a script only if it has all of its keys, and stops it at the first
-- call that touches a key which is gone: also one that the script has just emptied. So whoever empties a key knows it,
-- and does not touch it again: queued and entries are always what the queue has now.

--@include common/reading.lua
--@include common/entry.lua

local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local queued = redis.call('ZCARD', KEYS[2])
local entries = redis.call('HLEN', KEYS[3])
local mark = redis.call('GET', KEYS[4])

-- "007" and "0" are not of our making either, and tokens are compared as texts.
if mark and not (whole(mark, 1) and string.find(mark, '^[1-9]')) then mark = false end

-- A token larger than every earlier one for this lock: the server's time, unless the clock was set back or two grants
-- fall into one microsecond (then the mark knows), or the data was lost (then `floor` does).
-- %.0f, never tostring(): that writes 1.7e+15.
-- What the caller would have the next token be, so that several servers give the same one; set by the script, nil if
-- it is all the same. It is taken if it is above all former tokens and within a second of this server's clock: a client
-- with a wrong idea of the time must not carry the tokens away.
local proposal

local function take_token(floor)
    local least = math.max((mark or 0) + 1, floor + 1)
    local fits = proposal and proposal >= least and math.abs(proposal - now_us) <= 1000000
    mark = string.format('%.0f', fits and proposal or math.max(now_us, least))
    if fits then proposal = proposal + 1 end
    return mark
end

-- As long after its own time as after now, whichever is later: a proposed one may be behind the clock.
local function remember_token(retention_ms)
    local keep_ms = math.max(math.ceil((mark - now_us) / 1000), 0) + retention_ms
    redis.call('SET', KEYS[4], mark, 'PX', string.format('%.0f', keep_ms))
end

-- What a waiter wants by its entry, or nil.
local function read_entry(entry)
    if not entry then return nil end
    local lease, interval, seen, floor, kind, channel = string.match(entry, entry_form)
    local wants = {lease = lease, interval_ms = whole(interval, 0), seen_us = whole(seen, 0), floor = whole(floor, 0),
        kind = kind, channel = channel}
    if whole(lease, 1) and wants.interval_ms and wants.seen_us and wants.floor then return wants end
    return nil
end

-- True if the waiter's process listens and it has polled within its last two intervals.
local listened_to = {}
local function is_alive(wants)
    if now_us - wants.seen_us > 2000 * wants.interval_ms then return false end
    if listened_to[wants.channel] == nil then listened_to[wants.channel] = is_listened_to(wants.channel) end
    return listened_to[wants.channel]
end

local function leave_queue(id)
    if queued > 0 then queued = queued - redis.call('ZREM', KEYS[2], id) end
    if entries > 0 then entries = entries - redis.call('HDEL', KEYS[3], id) end
end

-- Who is first in the queue, and what it wants; nil for what is not there.
local function first_waiter()
    local first = queued > 0 and redis.call('ZRANGE', KEYS[2], 0, 0)[1] or nil
    return first, first and entries > 0 and read_entry(redis.call('HGET', KEYS[3], first)) or nil
end

-- The place of `id` among those in the queue who have an entry, from 0; false if it is not there. go-redislock's fair lock keeps
-- its own waiters in the same key, always in front of ours: they poll, and are not in our line.
local function position_of(id)
    local rank = queued > 0 and redis.call('ZRANK', KEYS[2], id)
    if not rank or rank == 0 or queued == entries then return rank end
    local place = 0
    for from = 0, rank - 1, 500 do
        local before = redis.call('ZRANGE', KEYS[2], from, math.min(from + 499, rank - 1))
        for _, entry in ipairs(entries > 0 and redis.call('HMGET', KEYS[3], unpack(before)) or {}) do
            if entry then place = place + 1 end
        end
    end
    return place
end

-- Tells the first of them to poll if it would not do so within the next `within_ms`.
local function hurry_first_waiter(within_ms)
    local first, wants = first_waiter()
    local rank = 0
    while first and not wants and entries > 0 and queued ~= entries do
        rank = rank + 1
        first = redis.call('ZRANGE', KEYS[2], rank, rank)[1]
        wants = first and read_entry(redis.call('HGET', KEYS[3], first))
    end
    if wants and wants.interval_ms > within_ms then tell(wants.channel, 'poll ' .. first) end
end
