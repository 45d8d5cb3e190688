-- Shared by the read-write scripts: serving the queue.
--
-- Readers come in together. An upgrade, which reads and waits for the other readers to leave, is first. Then the
-- preference decides: `arrival` keeps the order of the queue; with `writers` the next living writer is before all
-- readers; with `readers` a writer comes in when no reader is left.

-- The waiters in order, with their entries: for id, wants in waiting() do ... It fetches 32 at a time.
local function waiting()
    local rank, ids, wishes = 0, {}, {}
    return function()
        local at = rank % 32 + 1
        if at == 1 then
            ids = redis.call('ZRANGE', KEYS[2], rank, rank + 31)
            wishes = ids[1] and entries > 0 and redis.call('HMGET', KEYS[3], unpack(ids)) or {}
        end
        rank = rank + 1
        return ids[at], read_entry(wishes[at])
    end
end

local first_has_left = false

-- The caller leaves the queue if it is there. serve() must follow. If it is not there, nothing is written: on a full
-- server even a write that removes nothing would let other writes pass.
local function step_out()
    local position = position_of(id)
    if not position then return end
    first_has_left = position == 0
    leave_queue(id)
end

-- False in a script whose answer does not tell what the queue granted to the caller (a late copy of an earlier request
-- came just when its upgrade was due). Then the caller gets a message like everybody.
local answer_tells = true

-- Set by a script that may put the caller in the queue: enqueues the caller if it has to wait, and tells whether it
-- did. If all others leave, the caller must be in the queue before they go, or the queue would be empty (see
-- queue.lua).
local enqueue_if_due

-- True if nobody is in the queue any more, except perhaps the caller, which gets an answer instead of a message.
local function leave_queue_together(leaving)
    local all_leave = #leaving == queued
    if all_leave and enqueue_if_due and enqueue_if_due() then
        for i = #leaving, 1, -1 do
            if leaving[i] == id then table.remove(leaving, i) end
        end
    end
    queued = queued - write_all(leaving, function(...) return redis.call('ZREM', KEYS[2], ...) end)
    if entries > 0 then
        entries = entries - write_all(leaving, function(...) return redis.call('HDEL', KEYS[3], ...) end)
    end
    return all_leave
end

-- Grants what they wait for, and tells every process once (twice if some ids are marked and some are
-- not). They leave the queue after the grant. The mark is written
-- right after the grants: whatever ends the script then, the next token is greater.
local function admit_all(coming, leaving)
    must_pass = true
    local told, shortest = {}, nil
    for _, one in ipairs(coming) do
        local lease = tonumber(one.wants.lease)
        one.token = take_token(one.wants.floor, one.shape ~= 'r' and is_marked(one.who))
        admit(one.who, one.shape, lease, one.token)
        shortest = math.min(shortest or lease, lease)
        if one.who == id then my_grant = one.shape .. ' ' .. one.token end
        if one.who ~= id or not answer_tells then append(told, one) end
    end
    settle()
    remember_token(retention)
    local all_left = leave_queue_together(leaving)
    local texts, messages = {}, {}
    for _, one in ipairs(told) do
        local who, token, exclusive = one.who, one.token, one.shape ~= 'r'
--@paste common/steps/news.lua
        local name = verb .. one.wants.channel
        if not texts[name] then append(messages, {one.wants.channel, name}) end
        texts[name] = (texts[name] or verb) .. news
    end
    for _, message in ipairs(messages) do tell(message[1], texts[message[2]]) end
    if not all_left then hurry_first_waiter(foreign and -1 or shortest) end
    first_has_left, somebody_left = false, false
end

-- Grants to every waiter whose turn it is, and tells them. Returns what the first other waiter wants (w or u; nil:
-- there is none) and its id; or `gap`: nobody comes in before the gap is over. The caller gets no message if its answer
-- tells it; its grant is in my_grant.
local function let_in_who_may()
    if writer or queued == 0 then return nil end
    if readers == 0 and gap_left_ms() > 0 then return 'gap', nil end
    local leaving, coming, held_back, blocker, blocked_by = {}, {}, {}, nil, nil
    local next_writer, first

    -- A lost grant is not upgraded.
    local function can_upgrade(who) return reads(who) and shape_of(grant_of(who)) end

    -- A reader that holds already came back into the queue with data that a failover lost and a move brought back. A
    -- new token would end the hold that it has by the old one. Without a grant there is nothing to end.
    local function let_in(who, wants, shape)
        append(leaving, who)
        if shape == 'r' and reads(who) and shape_of(grant_of(who)) then return end
        append(coming, {who = who, wants = wants, shape = shape})
        set_shape(who, shape)
    end

    for who, wants in waiting() do
        first = first or who
        if not wants or who ~= id and not is_alive(wants) or wants.kind == 'u' and not can_upgrade(who) then
            append(leaving, who)
        elseif wants.kind == 'r' then
            if prefer == 'writers' then append(held_back, {who, wants}) else let_in(who, wants, 'r') end
        elseif wants.kind == 'w' and prefer == 'readers' then
            next_writer = next_writer or {who, wants}
        elseif readers == (wants.kind == 'u' and 1 or 0) then
            let_in(who, wants, wants.kind == 'u' and 'b' or 'w')
            break
        else
            blocker, blocked_by = wants.kind, who
            break
        end
    end
    if not writer and not blocker then
        for _, reader in ipairs(held_back) do let_in(reader[1], reader[2], 'r') end
        if readers == 0 and next_writer then let_in(next_writer[1], next_writer[2], 'w') end
    end

    first_has_left = first_has_left or first == leaving[1]
    if #coming > 0 then
        admit_all(coming, leaving)
    elseif leave_queue_together(leaving) then
        first_has_left, somebody_left = false, false
    end
    return blocker, blocked_by
end

-- As let_in_who_may(). settle() must follow: it writes all changes of a script together. Only the first waiter knows
-- when the holders' leases end, or polls often beside a foreign holder. It has to poll now if it was not the first
-- until now, or if a holder of ours left and foreign ones, which announce nothing, stay, or if a gap has to end first.
local function serve()
    local blocker, blocked_by = let_in_who_may()
    if first_has_left or somebody_left and (foreign or blocker == 'gap') then hurry_first_waiter(-1) end
    return blocker, blocked_by
end
