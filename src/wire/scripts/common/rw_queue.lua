-- Shared by the read-write scripts: letting in those in the queue whose turn it is.
--
-- Readers come in together. An upgrader, who reads and waits for the other readers to leave, is before everybody. Then
-- by preference: `arrival` keeps the order of the queue; with `writers` the next living writer is before all readers;
-- with `readers` a writer comes in when no reader is left.

-- Whoever stands in the queue, in order, with what it wants: for id, wants in waiting() do ... A few at a time are fetched.
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

-- The caller leaves the queue if it stands there. serve() comes after. Nothing is written for one who does not: on a
-- full server even a write that removes nothing opens the door to those that add.
local function step_out()
    local place = position_of(id)
    if not place then return end
    first_has_left = place == 0
    leave_queue(id)
end

-- False in a script whose answer does not say what the caller was given from its place in the queue (a late copy of an
-- earlier request came just when its upgrade was due): then the caller is told as everybody is.
local answer_tells = true

-- Set by a script that may put the caller in the queue: does so if it has to wait, and tells whether it did. Where all
-- others leave, it must have its place before they go, or the queue would be empty in between (see queue.lua).
local enqueue_if_due

-- True if nobody is in the queue any more, but perhaps the caller, who learns from its answer what others are told.
local function leave_queue_together(leaving)
    local all_leave = #leaving == queued
    if all_leave and enqueue_if_due and enqueue_if_due() then
        for i = #leaving, 1, -1 do
            if leaving[i] == id then table.remove(leaving, i) end
        end
    end
    queued = queued - write_all('ZREM', KEYS[2], leaving)
    if entries > 0 then entries = entries - write_all('HDEL', KEYS[3], leaving) end
    return all_leave
end

-- Grants what they asked for, and tells every process once. They leave the queue when they have it. Tokens are
-- remembered as soon as they are given: whatever ends the script after that, the next one is greater.
local function admit_all(coming, leaving)
    must_pass = true
    local told, channels, shortest = {}, {}, nil
    for _, one in ipairs(coming) do
        local lease, channel = tonumber(one.wants.lease), one.wants.channel
        admit(one.who, one.shape, lease, take_token(one.wants.floor))
        shortest = math.min(shortest or lease, lease)
        if one.who == id then my_grant = one.shape .. ' ' .. mark end
        if one.who ~= id or not answer_tells then
            if not told[channel] then append(channels, channel) end
            told[channel] = (told[channel] or 'grant') .. ' ' .. one.who .. ' ' .. mark
        end
    end
    settle()
    remember_token(retention)
    local all_left = leave_queue_together(leaving)
    for _, channel in ipairs(channels) do tell(channel, told[channel]) end
    if not all_left then hurry_first_waiter(foreign and -1 or shortest) end
    first_has_left, somebody_left = false, false
end

-- Lets in everyone who may come in now, and tells them. Returns what the first one wants who may not (w or u; nil:
-- there is none), and who that is; or `gap`: nobody comes in before the gap is over. The caller is not told if it has its answer. What it got is in my_grant.
local function let_in_who_may()
    if writer or queued == 0 then return nil end
    if readers == 0 and gap_left_ms() > 0 then return 'gap', nil end
    local leaving, coming, held_back, blocker, blocked_by = {}, {}, {}, nil, nil
    local next_writer, first

    -- Who reads by a lost grant is told so, and not given more.
    local function can_upgrade(who) return reads(who) and shape_of(grant_of(who)) end

    -- Who reads already has come back into the queue with data that a failover lost and a move brought back: a new token
    -- would only take the hold away from the one who has it by the old one. Without a grant there is none to lose.
    local function let_in(who, wants, shape)
        append(leaving, who)
        if shape == 'r' and reads(who) and shape_of(grant_of(who)) then return end
        append(coming, {who = who, wants = wants, shape = shape})
        place(who, shape)
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

-- As let_in_who_may(). settle() comes after it: all who come and go in a script are written together. Only the first in
-- line knows when the holders' leases end, or looks often at a holder of another program. It does not know yet if it was
-- not the first until now, or if a holder of ours has left and those of other programs, who announce nothing, stay, or a
-- gap is to end first.
local function serve()
    local blocker, blocked_by = let_in_who_may()
    if first_has_left or somebody_left and (foreign or blocker == 'gap') then hurry_first_waiter(-1) end
    return blocker, blocked_by
end
