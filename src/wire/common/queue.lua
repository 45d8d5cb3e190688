-- Shared by the lock scripts, behind their fast paths: the state of the queue, and what every script does with it.
--
-- A script that fails half-way is not rolled back. So it reads everything before it writes anything, and a key of
-- another type fails here, with nothing changed. Other programs may have written into our keys: a script checks a value
-- before it computes with it. A mark that is no token counts as no mark, an entry that makes no sense as a dead waiter.
--
-- While a Cluster moves a slot, its old owner runs a script only if it has all the script's keys, and stops it at the
-- first call that touches a missing key, also one that the script itself has just emptied. So a script does not touch a
-- key that it has emptied: `queued` and `entries` are always what the queue has now.

--@include common/token.lua
--@include common/entry.lua
--@include common/channel.lua

local queued = redis.call('ZCARD', KEYS[2])
local entries = redis.call('HLEN', KEYS[3])

-- The entry as a table, or nil if it makes no sense.
local function read_entry(entry)
    if not entry then return nil end
    local lease, interval, seen, floor, kind, channel = string.match(entry, entry_form)
    local wants = {lease = lease, interval_ms = whole(interval, 0), seen_us = whole(seen, 0), floor = whole(floor, 0),
        kind = kind, channel = channel}
    if whole(lease, 1) and wants.interval_ms and wants.seen_us and wants.floor then return wants end
    return nil
end

-- A waiter is alive if it polled within its last two intervals and its client listens.
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

-- The first in the queue, and its entry; nil for what is not there.
local function first_waiter()
    local first = queued > 0 and redis.call('ZRANGE', KEYS[2], 0, 0)[1] or nil
    return first, first and entries > 0 and read_entry(redis.call('HGET', KEYS[3], first)) or nil
end

-- The position of `id` among the waiters with an entry, from 0; false if it is not in the queue. go-redislock's fair
-- lock keeps its own waiters in the same key, always in front of ours. They poll and do not count.
local function position_of(id)
    local rank = queued > 0 and redis.call('ZRANK', KEYS[2], id)
    if not rank or rank == 0 or queued == entries then return rank end
    local position = 0
    for from = 0, rank - 1, 500 do
        local before = redis.call('ZRANGE', KEYS[2], from, math.min(from + 499, rank - 1))
        for _, entry in ipairs(entries > 0 and redis.call('HMGET', KEYS[3], unpack(before)) or {}) do
            if entry then position = position + 1 end
        end
    end
    return position
end

-- Tells the first waiter to poll if it would not do so within the next `within_ms`.
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
