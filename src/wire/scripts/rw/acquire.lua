-- rw/acquire: read, write or upgrade; or stand in the queue for that, or learn what is in the way. Also the poll of one who
-- stands in the queue.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants  7 gap (only of a lock that other programs use, too)
-- ARGV  1 hold id  2 fence retention ms  3 preference: arrival, readers or writers
--       4 wants: r, w, or u (the caller reads, and wants to write too)  5 lease ms  6 token floor
--       7 wake-up channel, empty: do not wait  8 ticket of an earlier answer, or 0  9 poll interval ms
--       10 how long queue and waiters keep without a poll, ms  11 for u: the token of the hold that is to be upgraded
--       12 proposed token, or 0  13 token of the caller's grant that it gives up for whoever is before it in the queue, or 0
-- Returns  {1, token, clock, cut} the caller has what it wants; its lease is full again
--          {0, ms left, holder, why not} it does not wait. Why: reading, writing (others do), reserved (a writer who
--              waits is first), deadlock (two upgraders would wait for each other), mode (it holds the other mode)
--          {2, ms left, holder, ticket, place from 0, fence, ms until the first holder may be gone, clock, cut} it stands
--              in the queue
--          {-1} the hold that was to be upgraded is over, or lost
-- ms left: until the last holder's lease ends; -1: one of them has no end. In a gap nobody holds it (an empty text), and
-- the ms are those of the gap. clock: this server's, in us; only where a token
-- was proposed. cut: if another program has set the hash's expiry, and to less than our leases, the ms that were left of
-- it, and then something stands in the clock's place, too: renewals must come more often than that.
-- Repeatable: the same hold id again refreshes the lease it has, or its place in the queue.

-- Free, or read by others who are all ours, and nobody in the queue: the common cases, and so they come before all that the
-- others need. Whatever looks odd here is left to what follows, which knows what to do about it. All keys are read
-- before one is written, and what is written, and in which order, is what would be written there. The token is put
-- together from the clock's two texts: that costs less than to format it.
do
    local id, wants, keep_queue = ARGV[1], ARGV[4], ARGV[7] == '' and '1' or ARGV[10]
    local is_sound = (wants == 'r' or wants == 'w') and ARGV[9] and keep_queue and string.find(ARGV[2] .. ' ' .. ARGV[5]
        .. ' ' .. ARGV[6] .. ' ' .. ARGV[8] .. ' ' .. ARGV[9] .. ' ' .. keep_queue .. ' ' .. (ARGV[12] or '0'),
        '^[1-9]%d* [1-9]%d* %d+ %d+ %d+ [1-9]%d* %d+$')
        and math.max(ARGV[2], ARGV[5], ARGV[8], ARGV[9], keep_queue) < 9007199254740992
    local hash = is_sound and redis.call('HMGET', KEYS[1], 'mode', 'rcount', 'writer', 'wcount', 'r:' .. id) or {}
    local is_free = hash[1] == false and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6]) == 0
    local holders = hash[1] == 'read' and wants == 'r' and not (hash[3] or hash[4] or hash[5])
        and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 and not redis.call('HGET', KEYS[6], id)
        and redis.call('HLEN', KEYS[1]) - 2 or 0
    if holders > 0 and hash[2] ~= string.format('%.0f', holders) then holders = 0 end
--@include common/plain_leases.lua
    if is_free then clock = redis.call('TIME') end
    local past = (is_free or agree) and redis.call('GET', KEYS[4])
    if (is_free or agree) and (not past or string.find(past, '^[1-9]%d*$')) then
        local time_us, proposed = clock[1] * 1000000 + clock[2], tonumber(ARGV[12])
        local former = math.max(past or 0, ARGV[6])
        if time_us > former then
            local fits = proposed and proposed > former and math.abs(proposed - time_us) <= 1000000
            local token = fits and string.format('%.0f', proposed)
                or clock[1] .. string.sub('000000', #clock[2] + 1) .. clock[2]
            local retention = fits and proposed > time_us
                and string.format('%.0f', math.ceil((proposed - time_us) / 1000) + ARGV[2]) or ARGV[2]
            local ends = math.floor(time_us / 1000) + ARGV[5]
            local last = string.format('%.0f', math.max(ends, latest[#latest] or 0))
            if holders > 0 then
                redis.call('HSET', KEYS[1], 'r:' .. id, 1, 'rcount', string.format('%.0f', holders + 1))
            elseif wants == 'r' then
                redis.call('HSET', KEYS[1], 'r:' .. id, 1, 'mode', 'read', 'rcount', 1)
            else
                redis.call('HSET', KEYS[1], 'writer', id, 'wcount', 1, 'mode', 'write')
            end
            redis.call('ZADD', KEYS[5], 'GT', string.format('%.0f', ends), id)
            redis.call('HSET', KEYS[6], id, wants .. ' ' .. token)
            redis.call('PEXPIREAT', KEYS[1], last)
            redis.call('PEXPIREAT', KEYS[5], last)
            redis.call('PEXPIREAT', KEYS[6], last)
            redis.call('SET', KEYS[4], token, 'PX', retention)
            return {1, token, proposed and proposed > 0 and string.format('%.0f', time_us) or nil}
        end
    end
end
--@include common/queue.lua
--@include common/enqueue.lua

local id, retention, prefer = ARGV[1], whole(ARGV[2], 1), ARGV[3]
local wants, lease, floor = ARGV[4], whole(ARGV[5], 1), whole(ARGV[6], 0)
local channel, ticket, keep_queue = ARGV[7], ARGV[8], ARGV[10]
local upgrades = whole(ARGV[11], 0) or 0
proposal = whole(ARGV[12], 1)

if not (retention and lease and floor and whole(ticket, 0) and whole(ARGV[9], 0)
    and (channel == '' or whole(keep_queue, 1)) and string.find(wants, '^[rwu]$')) then
    return redis.error_reply('ERR holdfast: wants, lease, floor, ticket or interval out of range')
end
local gap_key = KEYS[7]
--@include common/gap.lua
--@include common/rw.lua
--@include common/rw_queue.lua

-- What ends an answer. An empty text keeps the clock's place if only the cut is told.
local function clock_and_cut()
    if not cut_ms then return clock_told() end
    return clock_told() or '', cut_ms
end

local function granted(shape)
    step_out()
    admit(id, shape, lease, take_token(floor))
    settle()
    remember_token(retention)
    if queued > 0 then hurry_first_waiter(lease) end
    return {1, mark, clock_and_cut()}
end

local function queue_up()
    local entry = ARGV[5] .. ' ' .. ARGV[9] .. ' ' .. string.format('%.0f', now_us) .. ' ' .. ARGV[6] .. ' ' .. wants
        .. ' ' .. channel
    if must_pass then redis.call('ZREM', KEYS[5], '') end
    ticket = enqueue(id, ticket, entry, keep_queue, wants == 'u')
end

local function refused(why)
    settle()
    if foreign and gap_key then saw_foreign_holder() end
    local left, holder = standing(why ~= 'mode' and id)
    return {0, left, holder, why}
end

-- A late copy of the request that got a hold which was lost since. It changes nothing of that: the caller is told at its
-- next renewal or release.
if my_lost_grant and wants ~= 'u' and (writer == id or reads(id)) then my_grant = my_lost_grant end

-- Given up for whoever is first; that may be the caller.
if my_grant and wants ~= 'u' and token_of(my_grant) == ARGV[13] then
    remove(id)
    my_grant = false
end

-- What is to be upgraded writes already, by no newer token: a downgrade of it has not come through yet, or was lost. It
-- names this grant's token, and must not hit what the caller is told now.
if my_grant and wants == 'u' and writer == id and tonumber(token_of(my_grant)) <= upgrades then return granted('b') end

-- The caller holds it already. What its first request got is not made more by a copy of it that runs late.
if my_grant and (wants == 'r' or writer == id) then
    refresh(wants == 'r' and writer == id and 'b' or shape_of(my_grant), lease)
    serve()
    settle()
    return {1, token_of(my_grant), clock_and_cut()}
end
if my_grant and wants == 'w' then return refused('mode') end
if wants == 'u' and not (my_grant and token_of(my_grant) == ARGV[11]) then
    answer_tells = false
    serve()
    settle()
    return {-1}
end

-- Nobody is in the way and nobody was before us: the common case.
if wants == 'u' then
    if not writer and readers == 1 then return granted('b') end
elseif not writer and queued == 0 and (wants == 'r' or readers == 0) then
    return granted(wants)
end

local function has_it() return my_grant and (wants ~= 'u' or writer == id) end

if ticket ~= '0' and channel ~= '' then queue_up() end
enqueue_if_due = function()
    local due = ticket == '0' and channel ~= '' and not has_it() and (writer or wants ~= 'r' and readers > 0)
    if due then
        ticket = string.format('%.0f', now_us) -- the queue is as good as empty
        queue_up()
    end
    return due
end
local blocker, blocked_by = serve()
if has_it() then return {1, token_of(my_grant), clock_and_cut()} end
if wants == 'u' and blocker == 'u' and blocked_by ~= id then
    leave_queue(id)
    return refused('deadlock')
end
if not writer and not blocker and (wants == 'r' or readers == 0) then return granted(wants) end

if channel == '' then
    return refused(writer and 'writing' or (wants == 'r' or blocker == 'gap') and 'reserved' or 'reading')
end
if ticket == '0' then queue_up() end
settle()
if foreign and gap_key then saw_foreign_holder() end
local left, holder, soonest = standing(id)
return {2, left, holder, ticket, position_of(id), mark or '0', soonest, clock_and_cut()}
