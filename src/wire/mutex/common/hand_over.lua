-- Shared by the mutex scripts, behind their fast paths: the holder, and the hand-over to the next living waiter.

--@include common/hold_id.lua

-- Watchers (mutex/watch) are an entry that is not in the queue: without it both have the same length.
local watch = entries > 0 and entries ~= queued and redis.call('HGET', KEYS[3], 'watch') or nil
local tell_watchers
if watch then
--@include common/watchers.lua
    entries = entries - 1
    tell_watchers = function()
        for _, _, until_us, who, channel in each_watcher(watch) do
            if until_us > now_us then tell(channel, 'changed ' .. who) end
        end
    end
end

local holder = redis.call('GET', KEYS[1])

-- Entries without a position: the queue was evicted, or expired early, because go-redislock's fair lock queues in the
-- same key and shortens its expiry. They come back in the order of their last polls, which were before any newcomer; the
-- next poll of each brings its own ticket. Positions of ours are times in us, those of the fair lock are smaller.
local with_entry = queued
if has_gap and queued > 0 and entries > 0 and tonumber(redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]) < 1e14 then
    local first = redis.call('ZRANGEBYSCORE', KEYS[2], '1e14', '+inf', 'LIMIT', 0, 1)[1]
    with_entry = first and queued - redis.call('ZRANK', KEYS[2], first) or 0
end
if entries > with_entry then
    local all = redis.call('HGETALL', KEYS[3])
    redis.call('HDEL', KEYS[3], '') -- so that a full server accepts the rest
    for i = 1, #all, 2 do
        local wants = all[i] ~= 'watch' and read_entry(all[i + 1])
        if wants then
            queued = queued + redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', wants.seen_us), all[i])
        end
    end
    if queued > 0 and redis.call('PTTL', KEYS[2]) < 0 then
        redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[3]), 1))
    end
end

-- Makes `id` the holder. The lock key comes first: a full server refuses the first write, and nothing is changed.
local function grant(id, lease, floor, retention)
    redis.call('SET', KEYS[1], id, 'PX', lease)
    local token = take_token(floor, is_marked(id))
    remember_token(retention)
    if watch then tell_watchers() end
    return token
end

-- Makes the first living waiter the holder and tells it. The key is overwritten, never deleted in between. Returns the
-- new holder, or nil if nobody waits. Dead waiters are dropped; one that was only unreachable comes back with its
-- ticket. If the caller is first, it leaves the queue, is returned and gets nothing: the script grants what the caller
-- asks for. A waiter that polls less often than the new lease lasts would learn too late that the holder died. So the
-- next waiter is told to poll: then it knows the deadline.
local function promote_next_waiter(caller, retention)
    while true do
        local who, wants = first_waiter()
        if not who then return nil end
        leave_queue(who)
        if who == caller then return who end
        if wants and is_alive(wants) then
            local token, exclusive = grant(who, wants.lease, wants.floor, retention), true
--@paste common/steps/news.lua
            tell(wants.channel, verb .. news)
            hurry_first_waiter(tonumber(wants.lease))
            return who
        end
    end
end
