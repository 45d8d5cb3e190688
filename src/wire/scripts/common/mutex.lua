-- Shared by the mutex scripts: the lock as it stands, and handing it to the next living waiter.

local holder = redis.call('GET', KEYS[1])

-- Makes `id` the holder. The lock key comes first: a server out of memory refuses the first write and nothing is changed.
local function grant(id, lease, floor, retention_ms)
    redis.call('SET', KEYS[1], id, 'PX', lease)
    take_token(floor)
    remember_token(retention_ms)
    return mark
end

-- The lock is free, or its holder lets go of it: hands it to the first living waiter, whose id takes the place of the
-- former one's, and tells it so. Returns the new holder, or nil if nobody waits. The dead are dropped; one that was only
-- unreachable comes back with its ticket. If the turn is the caller's, it is taken out of the queue and returned, and
-- gets nothing: it knows best what it asks for.
-- A waiter that polls more rarely than the new holder's lease lasts would learn too late that the holder died; so the
-- next in the queue is told to poll, and then knows the deadline.
local function promote_next_waiter(caller, retention_ms)
    while true do
        local id, wants = first_waiter()
        if not id then return nil end
        leave_queue(id)
        if id == caller then return id end
        if wants and is_alive(wants) then
            local token = grant(id, wants.lease, wants.floor, retention_ms)
            tell(wants.channel, 'grant ' .. id .. ' ' .. token)
            hurry_first_waiter(tonumber(wants.lease))
            return id
        end
    end
end
