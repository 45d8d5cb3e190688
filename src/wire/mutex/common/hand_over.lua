-- Shared by the mutex scripts, behind their fast paths: the holder, and the hand-over to the next living waiter.

--@include common/hold_id.lua

--@include mutex/common/tell_watchers.lua

local holder = redis.call('GET', KEYS[1])

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
