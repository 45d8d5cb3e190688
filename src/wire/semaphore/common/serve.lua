-- Shared by the semaphore's scripts: serving the queue.
--
-- Strictly in the order of the queue: a waiter whose permits do not fit holds back all behind it, so a request for many
-- permits is never overtaken. One script admits all who fit, and tells every process once.
--
-- The script may set: caller (the id whose own answer tells what it gets from the queue).
-- A waiter's entry is as in common/entry.lua, but its fifth word is the number of permits that it wants.
entry_form = '^([1-9]%d*) (%d+) (%d+) (%d+) ([1-9]%d*) (.+)$'

local my_token          -- of the caller, if it was admitted from the queue
local first_has_left = false

-- Leaves the queue if it is there. serve() must follow.
local function step_out(who)
    local position = position_of(who)
    if not position then return end
    first_has_left = first_has_left or position == 0
    leave_queue(who)
end

-- The waiters in order, with their entries and grants: for who, wants, grant in waiting() do ... It fetches two, then
-- eight, then 32 at a time: mostly one is admitted and one is not.
local function waiting()
    local from, size, at, ids, wishes, held = 0, 2, 0, {}, {}, {}
    return function()
        if at == #ids then
            from, size, at = from + #ids, from == 0 and 2 or math.min(4 * size, 32), 0
            ids = redis.call('ZRANGE', KEYS[2], from, from + size - 1)
            if not ids[1] then return nil end
            wishes = entries > 0 and redis.call('HMGET', KEYS[3], unpack(ids)) or {}
            held = grants > 0 and redis.call('HMGET', KEYS[6], unpack(ids)) or {}
        end
        at = at + 1
        return ids[at], read_entry(wishes[at]), held[at]
    end
end

-- The new holders leave the queue after their grants are written, and the mark is written right after the grants:
-- whatever ends the script then, the next token is greater.
local function serve()
    local leaving, admitted, shortest = {}, 0, nil
    local texts, channels = {}, {}
    local function news(wants, text, verb)
        local name = wants.channel
        if not texts[name] then append(channels, name) end
        texts[name] = (texts[name] or verb) .. text
    end

    if queued > 0 and out < limit then
        for who, wants, grant in waiting() do
            local permits = wants and tonumber(wants.kind)
            -- One that holds already came back with data that a failover lost and a move brought back.
            local holds = permits_of(grant) and not gone[who]
            if not wants or who ~= caller and not is_alive(wants) or holds or permits > limit then
                append(leaving, who)
                -- Its own request is told that it can never be admitted.
                if wants and permits > limit and who ~= caller then tell(wants.channel, 'poll ' .. who) end
            elseif out + permits <= limit then
                local lease = tonumber(wants.lease)
                local token = take_token(wants.floor)
                admit(who, permits, lease, token)
                append(leaving, who)
                admitted, shortest = admitted + 1, math.min(shortest or lease, lease)
                if who == caller then my_token = token else news(wants, ' ' .. who .. ' ' .. token, 'grant') end
            else
                break
            end
        end
    end
    if admitted > 0 then
        settle()
        remember_token(retention)
    end
    if leaving[1] then
        queued = queued - write_all(leaving, function(...) return redis.call('ZREM', KEYS[2], ...) end)
        if entries > 0 then
            entries = entries - write_all(leaving, function(...) return redis.call('HDEL', KEYS[3], ...) end)
        end
    end
    for _, name in ipairs(channels) do tell(name, texts[name]) end
    -- Only the first waiter knows when the leases end. It has to poll now if others left before it, and in time if new
    -- ones were admitted: for the first lease that ends, which may be an older one.
    if admitted > 0 then
        if queued > 0 and holders > admitted then
            local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
            shortest = math.min(shortest, math.max(first - now_ms, 0))
        end
        hurry_first_waiter(shortest)
    elseif leaving[1] or first_has_left then
        hurry_first_waiter(-1)
    end
    first_has_left = false
end
