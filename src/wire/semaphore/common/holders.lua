-- Shared by the semaphore's scripts, behind queue.lua: the limit, the holders and their permits.
--
-- KEYS[1] is a hash: the limit that the programs declare (`declared`), the limit that counts (`limit`), the permits that
-- are out (`out`), and since a resize the name of the present limit (`version`). KEYS[5] has every holder's deadline,
-- the first ms in which its hold is over; KEYS[6] its grant. The hash goes with the last holder and the last waiter.
-- Once resized it stays for the retention of the fence, because a late copy of that resize must not be carried out again.
--
-- `out` is the sum of the grants. The script believes it if there are as many grants as leases; otherwise it counts
-- again.
--
-- The script collects its changes of these keys, and settle() writes them once. It adds before it removes, so no key is
-- empty in between (see queue.lua for what that would do on a moving slot). If nobody is left, it deletes the keys and
-- does not touch them again.
--
-- A full server refuses a script whose first write adds something. A script that removes something, or only keeps what
-- was there, must pass: it begins with a removal, if only of nothing (ZREM key '').
--
-- The script has set: id, retention, asked (the limit that the caller declares).
local now_ms = math.floor(now_us / 1000)
--@include semaphore/common/grant_text.lua
--@include common/deadlines.lua

local known = redis.call('HMGET', KEYS[1], 'declared', 'limit', 'out', 'version')
local declared, limit, out, version = whole(known[1], 1), whole(known[2], 1), whole(known[3], 0), known[4]
if not (declared and limit) and redis.call('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('WRONGTYPE the key holds a hash that is no semaphore')
end
local is_new = not limit
if is_new then declared, limit = asked, asked end

local newest = newest_lease(KEYS[5])
local leases = newest[1] and redis.call('ZCARD', KEYS[5]) or 0
local grants = redis.call('HLEN', KEYS[6])
local my_grant = grants > 0 and redis.call('HGET', KEYS[6], id) or false
local touched = false         -- settle() has something to write
local must_pass = false       -- a full server must accept it, too
local gone, holders = {}, leases -- id -> true: its hold is removed; how many stay or come
local new_leases, new_grants = {}, {} -- as ZADD and HSET take them
local last = newest[2] or now_ms      -- the last deadline

-- The first script after a move to a member whose clock is ahead corrects all deadlines before it uses them.
if newest[1] and not ends_with(newest[2], redis.call('PTTL', KEYS[5])) then
    local off = clock_ahead_by(redis.call('PTTL', KEYS[5]), newest[2])
    if off > 0 then
        local moved = shifted(redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES'), off)
        redis.call('ZREM', KEYS[5], '') -- a full server accepts that, and then the others
        write_all(moved, function(...) return redis.call('ZADD', KEYS[5], ...) end)
        last = last + off
    end
    touched = true -- the keys are to end with the last deadline again, also at a member whose clock is behind
end

local function remove(who)
    if gone[who] then return end
    gone[who], holders, touched, must_pass = true, holders - 1, true, true
end

-- Leases without a grant, and grants without a lease, are nobody's: keys were evicted, or another program wrote here.
local function count_again()
    local sound, all = {}, redis.call('HGETALL', KEYS[6])
    for i = 1, #all, 2 do sound[all[i]] = permits_of(all[i + 1]) end
    out, touched = 0, true
    for _, who in ipairs(leases > 0 and redis.call('ZRANGE', KEYS[5], 0, -1) or {}) do
        if not sound[who] then remove(who) end
        if sound[who] and not gone[who] then out = out + sound[who] end
        sound[who] = nil
    end
    for i = 1, #all, 2 do
        if not permits_of(all[i + 1]) or sound[all[i]] then gone[all[i]], must_pass = true, true end
    end
end

-- Removes the holds whose lease is over. The cost depends on their number, not on that of the others. A deadline of now
-- is over: a key that is set to expire now is deleted at once.
local ended = leases > 0 and redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', string.format('%.0f', now_ms)) or {}
local agree = out and leases == grants
for _, who in ipairs(ended) do
    remove(who)
    local permits = agree and permits_of(redis.call('HGET', KEYS[6], who))
    if permits then out = out - permits else agree = false end
end
if leases == 0 and grants == 0 then
    touched = touched or not is_new and out ~= 0 -- the keys expired
    out = 0
elseif not agree or out < 0 then
    count_again()
end
if holders == 0 then out = 0 end
if gone[id] or not permits_of(my_grant) then my_grant = false end

-- Nobody holds or waits: what the caller declares counts from now on. A late copy of a resize must not find its version.
local function declare()
    declared, limit, touched = asked, asked, true
    if version then version = id end
end

local function admit(who, permits, lease, token)
    gone[who] = nil
    out, holders, touched = out + permits, holders + 1, true
    append(new_leases, string.format('%.0f', now_ms + lease), who)
    append(new_grants, who, string.format('%.0f', permits) .. ' ' .. token)
end

-- The caller keeps its grant, with a full lease. Never shortens a lease.
local function refresh(lease)
    local ends = math.max(now_ms + lease, tonumber(redis.call('ZSCORE', KEYS[5], id)))
    append(new_leases, string.format('%.0f', ends), id)
    touched, must_pass = true, true
end

local function give_back()
    remove(id)
    out = holders > 0 and out - permits_of(my_grant) or 0
    my_grant = false
end

local function write_limit()
    redis.call('HSET', KEYS[1], 'declared', string.format('%.0f', declared), 'limit', string.format('%.0f', limit),
        'out', string.format('%.0f', out))
    if version then redis.call('HSET', KEYS[1], 'version', version) end
end

-- Writes the changes.
local function settle()
    if not touched then return end
    touched = false
    if must_pass and leases > 0 then redis.call('ZREM', KEYS[5], '') end
    if holders == 0 then
        if leases > 0 or grants > 0 then redis.call('DEL', KEYS[5], KEYS[6]) end
        leases, grants = 0, 0
        if version or queued > 0 then
            write_limit()
        elseif not is_new then
            redis.call('DEL', KEYS[1])
        end
        is_new, last, gone, must_pass = not (version or queued > 0), now_ms, {}, false
        return
    end
    write_limit()
    is_new = false
    local removed = {}
    for who in pairs(gone) do append(removed, who) end
    leases = leases + write_all(new_leases, function(...) return redis.call('ZADD', KEYS[5], ...) end)
    grants = grants + write_all(new_grants, function(...) return redis.call('HSET', KEYS[6], ...) end)
    leases = leases - write_all(removed, function(...) return redis.call('ZREM', KEYS[5], ...) end)
    last = redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
    redis.call('PEXPIREAT', KEYS[5], string.format('%.0f', last)) -- newer servers answer 1.8e+12
    redis.call('PEXPIREAT', KEYS[6], string.format('%.0f', last))
    grants = grants - write_all(removed, function(...) return redis.call('HDEL', KEYS[6], ...) end)
    gone, new_leases, new_grants, must_pass = {}, {}, {}, false
end

-- Every answer comes after it. The hash lives as long as there are holders or waiters, and once resized for the
-- retention.
local function finish()
    settle()
    if is_new then return end
    local waiters_ms = queued > 0 and redis.call('PTTL', KEYS[2]) or 0
    local longest = math.max(last - now_ms, waiters_ms, version and retention or 0)
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', longest))
end

-- The longest time left of a lease, its holder, and the time until the first may be gone. After settle().
local function standing()
    local first = leases > 0 and redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES') or {}
    local last = leases > 0 and redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES') or {}
    if not first[1] then return -1, '', -1 end
    return last[2] - now_ms, last[1], math.max(first[2] - now_ms, 0)
end
