-- rw/acquire: read, write or upgrade; or wait in the queue for that, or learn what prevents it. Also the poll of a
-- waiter.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants  7 gap (only of a lock that other programs use, too),
--       or before the notes the lock again  8 notes (only if the caller has a note, or met a holder that has one)
-- ARGV  1 hold id  2 fence retention ms  3 preference: arrival, readers or writers
--       4 wants: r, w, or u (the caller reads, and wants to write too)  5 lease ms  6 token floor
--       7 wake-up channel, empty: do not wait  8 ticket of an earlier answer, or 0  9 poll interval ms
--       10 how long queue and waiters keep without a poll, ms  11 for u: the token of the hold to upgrade
--       12 proposed token, or 0  13 token of the caller's grant that it gives up for the waiters before it, or 0
--       14 ms: 0 if a try asks nobody for the lock (healing), otherwise missing, or 1  15 note; missing: none
-- Returns  {1, token, clock, cut} the caller has what it wants; its lease is full again
--          {1, token, clock, cut, ceiling, waiters} the same for a marked id (common/kept.lua)
--          {0, ms left, holder, reason} it does not wait. Reason: reading, writing (others do), reserved (a waiting
--              writer is first), deadlock (two upgrades would wait for each other), mode (it holds the other mode)
--          {0, ms left, holder, reason, kept} the same; the holders were told that they are wanted, and nobody waits
--          {0, ms left, holder, reason, '', note} the same, and the holder's note
--          {2, ms left, holder, ticket, position from 0, fence, ms until the first holder may be gone, clock, cut} it
--              waits
--          {2, ..., clock, cut, note} the same, and the holder's note
--          {-1} the hold to upgrade is over, or lost
-- ms left: until the last holder's lease ends; -1: one of them has no end. In a gap there is no holder (an empty text),
-- and the ms are those of the gap. clock: this server's, in us, and only if a token was proposed. cut: the ms that were
-- left of the hash's expiry, if another program set it to less than our leases; then an empty text replaces a missing
-- clock. Renewals must come more often than that.
-- Repeatable: the same hold id again refreshes its lease, or its position in the queue.

local id, prefer, wants = ARGV[1], ARGV[3], ARGV[4]
local channel, ticket = ARGV[7], ARGV[8]
local keep_queue = channel == '' and '1' or ARGV[10]
local retention, lease, floor, interval = ARGV[2], ARGV[5], ARGV[6], ARGV[9]
-- One match and one comparison for all numbers: that is faster than one for each.
if not (interval and keep_queue and string.find(wants .. ' ' .. retention .. ' ' .. lease .. ' ' .. floor .. ' '
    .. ticket .. ' ' .. interval .. ' ' .. keep_queue, '^[rwu] [1-9]%d* [1-9]%d* %d+ %d+ %d+ [1-9]%d*$')
    and math.max(retention, lease, floor, ticket, interval, keep_queue) < 9007199254740992) then
    return redis.error_reply('ERR holdfast: wants, lease, floor, ticket or interval out of range')
end

-- The fast path: the lock is free, or others read it who are all ours, and nobody waits. It reads fewer keys than the
-- general path, leaves everything unusual to it (also marked ids: common/hold_id.lua, and notes), and writes what it would write,
-- in the same order.
if wants ~= 'u' and string.byte(id, 21) ~= 48 and not KEYS[8] then
    local now_us, now_text, mark
    local proposal = string.find(ARGV[12] or '', '^0*[1-9]%d*$') and tonumber(ARGV[12])
    local hash = redis.call('HMGET', KEYS[1], 'mode', 'rcount', 'writer', 'wcount', 'r:' .. id)
    local is_free = hash[1] == false and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6]) == 0
    local holders = hash[1] == 'read' and wants == 'r' and not (hash[3] or hash[4] or hash[5])
        and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 and not redis.call('HGET', KEYS[6], id)
        and redis.call('HLEN', KEYS[1]) - 2 or 0
    if holders > 0 and hash[2] ~= string.format('%.0f', holders) then holders = 0 end
--@include rw/common/plain_leases.lua
    if is_free then
--@paste common/steps/read_clock.lua
    end
    if is_free or agree then
--@paste common/steps/read_mark.lua
--@paste common/steps/take_token.lua
        local ends = math.floor(now_us / 1000) + lease
        local last = string.format('%.0f', math.max(ends, latest[#latest] or 0))
        if holders > 0 then
            redis.call('HSET', KEYS[1], 'r:' .. id, 1, 'rcount', string.format('%.0f', holders + 1))
        elseif wants == 'r' then
            redis.call('HSET', KEYS[1], 'r:' .. id, 1, 'mode', 'read', 'rcount', 1)
        else
            redis.call('HSET', KEYS[1], 'writer', id, 'wcount', 1, 'mode', 'write')
        end
        redis.call('ZADD', KEYS[5], 'GT', string.format('%.0f', ends), id)
        redis.call('HSET', KEYS[6], id, wants .. ' ' .. mark)
        redis.call('PEXPIREAT', KEYS[1], last)
        redis.call('PEXPIREAT', KEYS[5], last)
        redis.call('PEXPIREAT', KEYS[6], last)
--@paste common/steps/remember_token.lua
        return {1, mark, proposal and now_text or nil}
    end
end
--@include common/queue.lua
--@include common/enqueue.lua
lease, proposal = tonumber(lease), whole(ARGV[12], 1)
local upgrades = whole(ARGV[11], 0) or 0
--@include rw/common/gap.lua
--@include rw/common/holders.lua
--@include rw/common/serve.lua
--@include common/kept.lua
--@include rw/common/notes.lua
local note = notes and ARGV[15]

local function granted(shape)
    step_out()
    local token = take_token(floor, shape ~= 'r' and is_marked(id))
    admit(id, shape, lease, token)
    settle()
    remember_token(retention)
    if queued > 0 then hurry_first_waiter(lease) end
    if note then keep_note(note, lease) end
    return held_answer(token, writer == id, cut_ms)
end

local function queue_up()
    if must_pass then redis.call('ZREM', KEYS[5], '') end
    ticket = enqueue(id, ticket, entry_text(ARGV[5], interval, now_text, floor, wants, channel), keep_queue,
        wants == 'u')
    if note then keep_note(note, lease + keep_queue) end
end

local function refused(reason, kept)
    settle()
    if foreign and has_gap then saw_foreign_holder() end
    local left, holder = standing(reason ~= 'mode' and id)
    local holders_note = note_of(holder)
    return {0, left, holder, reason, kept or holders_note and '', holders_note}
end

-- A late copy of a request whose hold was lost since. It changes nothing: the client learns of the loss at its next
-- renewal or release.
if my_lost_grant and wants ~= 'u' and (writer == id or reads(id)) then my_grant = my_lost_grant end

-- The caller gives its grant up for the first waiter, which may be the caller itself.
if my_grant and wants ~= 'u' and token_of(my_grant) == ARGV[13] then
    remove(id)
    my_grant = false
end

-- The hold to upgrade writes already, with no newer token: a downgrade has not arrived yet, or was lost. That downgrade
-- names this grant's token and must not end what the caller gets now. So the caller gets a new token.
if my_grant and wants == 'u' and writer == id and tonumber(token_of(my_grant)) <= upgrades then return granted('b') end

-- The caller holds it already. A late copy of its first request does not add to what that request got.
if my_grant and (wants == 'r' or writer == id) then
    refresh(wants == 'r' and writer == id and 'b' or shape_of(my_grant), lease)
    serve()
    settle()
    if note then keep_note(note, lease) end
    return held_answer(token_of(my_grant), writer == id, cut_ms)
end
if my_grant and wants == 'w' then return refused('mode') end
if wants == 'u' and not (my_grant and token_of(my_grant) == ARGV[11]) then
    answer_tells = false
    serve()
    settle()
    return {-1}
end

-- Nobody holds it in another mode, and nobody waits.
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
        ticket = string.format('%.0f', now_us) -- all others leave the queue
        queue_up()
    end
    return due
end
local blocker, blocked_by = serve()
if has_it() then return held_answer(token_of(my_grant), writer == id, cut_ms) end
if wants == 'u' and blocker == 'u' and blocked_by ~= id then
    leave_queue(id)
    return refused('deadlock')
end
if not writer and not blocker and (wants == 'r' or readers == 0) then return granted(wants) end

if channel ~= '' and ticket == '0' then queue_up() end
settle()
local is_kept = false
if (has_kept or writer and is_marked(writer)) and ARGV[14] ~= '0' then
--@paste rw/common/steps/marked_holders.lua
--@paste common/steps/ask_back.lua
end
if channel == '' then
    local reason = writer and 'writing' or (wants == 'r' or blocker == 'gap') and 'reserved' or 'reading'
    return refused(reason, is_kept and 'kept' or nil)
end
if foreign and has_gap then saw_foreign_holder() end
local left, holder, soonest = standing(id)
local clock, holders_note = clock_told(), note_of(holder)
if holders_note then
    return {2, left, holder, ticket, position_of(id), mark or '0', soonest, clock or '', cut_ms or '', holders_note}
end
return {2, left, holder, ticket, position_of(id), mark or '0', soonest, clock or cut_ms and '', cut_ms}
