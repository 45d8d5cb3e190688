-- Shared by the read-write scripts: the deadlines in the leases, and whose clock they go by.
--
-- A deadline is a moment of the server's clock. When a Cluster moves the key to another member, it is still one of the
-- old member's clock; but the key's expiry went along as a span, and is right by the new one. Nobody but our scripts
-- sets that expiry, and always to the last deadline: so what the two differ by is what the clocks differ by. After a
-- failover or a restart, or when a clock was set, they are equal as ever, because then an expiry is a moment, too.
--
-- The script has set: now_ms.

local function append(list, ...)
    for _, item in ipairs({...}) do list[#list + 1] = item end
end

-- A few hundred at a time: Lua's stack has an end. Returns how many were added or removed.
local function write_all(command, key, list, option)
    local changed = 0
    for first = 1, #list, 500 do
        local last = math.min(first + 499, #list)
        changed = changed + (option and redis.call(command, key, option, unpack(list, first, last))
            or redis.call(command, key, unpack(list, first, last)))
    end
    return changed
end

local function later_ms()
    local clock = redis.call('TIME')
    return math.floor((clock[1] * 1000000 + clock[2]) / 1000)
end

-- True if a key of which so much is left ends with that deadline (nil: there is none). What is left was measured at
-- some time after our look at the clock; newer servers measure from the script's start, which may be in the ms before.
-- The window is no wider than that: an expiry that another program set a few ms after ours, at every one of its
-- renewals, must not be taken for ours.
local function ends_with(deadline, left_ms)
    if not deadline or left_ms < 0 then return false end
    local measured_after_ms = deadline - left_ms - now_ms
    if measured_after_ms <= 0 then return measured_after_ms >= -1 end
    return measured_after_ms <= later_ms() - now_ms
end

-- How much later the deadlines in that key are by this server's clock, if that is ahead of the one they were made by.
-- If it is behind, leases last longer than they would, and that is all: so no lease is ever cut short here, whatever
-- the key looks like. What is not known of the moment of the measurement makes them later, too.
local function clock_ahead_by(leases_key, last_deadline)
    local at_least = now_ms + redis.call('PTTL', leases_key) - last_deadline
    return at_least > 1 and at_least + later_ms() - now_ms or 0
end

-- Removing nothing is a write that a full server lets pass, and then the rest may follow.
local function shift_deadlines(leases_key, by_ms)
    local shifted, all = {}, redis.call('ZRANGE', leases_key, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do append(shifted, string.format('%.0f', all[i + 1] + by_ms), all[i]) end
    redis.call('ZREM', leases_key, '')
    write_all('ZADD', leases_key, shifted)
end
