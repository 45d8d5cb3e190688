-- Shared by the scripts of kinds with several holders: the deadlines in the leases, and the clock that they belong to.
--
-- A deadline is a time of the server's clock. When a Cluster moves the key to another member, the deadlines are still
-- times of the old member's clock; but the key's expiry moved as a duration and is right at the new member. Only our
-- scripts set that expiry, always to the last deadline, so the two differ by as much as the clocks. After a failover or
-- a restart, or when a clock was set, they do not differ, because then the expiry is an absolute time, too.
--
-- The script has set: now_ms.

local function append(list, ...)
    for _, item in ipairs({...}) do list[#list + 1] = item end
end

-- A few hundred at a time: Lua's stack is limited. Returns the number of added or removed items.
local function write_all(list, write)
    local changed = 0
    for first = 1, #list, 500 do changed = changed + write(unpack(list, first, math.min(first + 499, #list))) end
    return changed
end

-- The lease that ends last, its id and its deadline; empty: there is none. A deadline that is no time is nobody's: no
-- script writes one, and none could set it as an expiry.
local function newest_lease(key)
    local newest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
    while newest[1] and not (math.abs(tonumber(newest[2]) or 2 ^ 53) < 2 ^ 53) do
        redis.call('ZREM', key, newest[1])
        newest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
    end
    return newest
end

local function later_ms()
    local clock = redis.call('TIME')
    return math.floor((clock[1] * 1000000 + clock[2]) / 1000)
end

-- True if a key with that TTL expires at that deadline (nil: there is none). PTTL measured some time after the script
-- read the clock; newer servers measure from the script's start, which may be in the ms before. The window is no wider
-- than that: an expiry that another program set a few ms after ours must not count as ours.
local function ends_with(deadline, left_ms)
    if not deadline or left_ms < 0 then return false end
    local measured_after_ms = deadline - left_ms - now_ms
    if measured_after_ms <= 0 then return measured_after_ms >= -1 end
    return measured_after_ms <= later_ms() - now_ms
end

-- How much this server's clock is ahead of the clock of the deadlines; 0 if it is behind. Then leases only last longer.
-- So this never cuts a lease short, whatever the key looks like. The uncertainty of the measurement makes them later,
-- too.
local function clock_ahead_by(leases_left_ms, last_deadline)
    local at_least = now_ms + leases_left_ms - last_deadline
    return at_least > 1 and at_least + later_ms() - now_ms or 0
end

-- The leases with later deadlines, as ZADD takes them.
local function shifted(leases, by_ms)
    local later = {}
    for i = 1, #leases, 2 do append(later, string.format('%.0f', leases[i + 1] + by_ms), leases[i]) end
    return later
end
