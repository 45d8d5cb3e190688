-- mutex/acquire: acquire the lock, or wait in the queue for it, or learn who holds it. Also the poll of a waiter.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 gap (only of a lock that other programs use, too), or before the notes
--       the lock again  6 notes (only if the caller has a note, or met a holder that has one; common/notes.lua)
-- ARGV  1 hold id  2 lease ms  3 token floor  4 fence retention ms  5 wake-up channel, empty: do not wait
--       6 ticket of an earlier answer, or 0  7 poll interval ms  8 how long queue and waiters keep without a poll, ms
--       9 proposed token, or 0  10 token of the caller's grant that it gives up for the waiters before it, or 0; of a
--       marked id: its ceiling  11 ms: 0 if a try asks nobody for the lock (healing), otherwise missing, or 1
--       12 note; missing: none
-- Returns  {1, token, clock} the caller holds it; its lease is full again
--          {1, token, clock, '', ceiling, waiters} the same for a marked id (common/kept.lua)
--          {0, holder's ms left, holder} somebody else holds it, and the caller does not wait (ms left -1: no expiry)
--          {0, ms left, holder, held, kept} the same; the holder was told that it is wanted, and nobody waits
--          {0, ms left, holder, held, '', note} the same, and the holder's note
--          {2, holder's ms left, holder, ticket, position from 0, fence, holder's ms left, clock} the caller waits
--          {2, ..., clock, '', note} the same, and the holder's note
-- In a gap there is no holder (an empty text), and the ms left are those of the gap.
-- clock: this server's, in us, and only if a token was proposed; without it {2} ends before the second ms left.
-- Repeatable: the same hold id again refreshes its lease, or its position in the queue.

local id, lease, floor, retention, channel, ticket = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
if not (string.find(lease .. ' ' .. ARGV[3] .. ' ' .. retention, '^[1-9]%d* %d+ [1-9]%d*$')
    and #lease < 16 and #retention < 16 and floor < 9007199254740992) then
    return redis.error_reply('ERR holdfast: lease, floor, ticket or interval out of range')
end
local holder = redis.call('GET', KEYS[1])

-- Fast path: the lock is free and nobody waits. Marked ids (common/hold_id.lua) and notes take the general path.
if not holder and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 and string.byte(id, 21) ~= 48 and not KEYS[6] then
    local now_us, now_text, mark
    local proposal = string.find(ARGV[9] or '', '^0*[1-9]%d*$') and tonumber(ARGV[9])
--@paste common/steps/read_mark.lua
--@paste common/steps/read_clock.lua
    redis.call('SET', KEYS[1], id, 'PX', lease)
--@paste common/steps/take_token.lua
--@paste common/steps/remember_token.lua
    return {1, mark, proposal and now_text or nil}
end
--@include common/entry.lua

local interval, keep_queue = ARGV[7], channel == '' and '1' or ARGV[8]
local is_sound = string.find(ticket .. ' ' .. interval .. ' ' .. keep_queue, '^%d+ %d+ [1-9]%d*$')
    and tonumber(ticket) < 9007199254740992 and #interval < 16 and #keep_queue < 16
if not is_sound then return redis.error_reply('ERR holdfast: lease, floor, ticket or interval out of range') end

-- Fast path: somebody holds the lock, and the caller comes to the end of the queue. The general path gets everything
-- unusual, also a full server's refusal. NX: a waiter that is in the queue already keeps its position.
if holder and holder ~= id and channel ~= '' and ticket == '0' and (ARGV[9] or '0') == '0'
    and (not KEYS[5] or string.sub(holder, 1, 3) == 'hf_') and string.byte(holder, 21) ~= 48 and not KEYS[6] then
    local now_us, now_text, mark
    -- As many in the queue as there are entries: then this is the last one, or nothing of an empty queue. That shows
    -- watchers (common/watchers.lua) and other programs' waiters. Both together it does not show, but the last waiter is
    -- not ours then; and who comes behind one of ours need not know its position exactly.
    local entries = redis.call('HLEN', KEYS[3])
    local last = redis.call('ZRANGE', KEYS[2], math.max(entries - 1, 0), entries, 'WITHSCORES')
--@paste common/steps/read_mark.lua
--@paste common/steps/read_clock.lua
    local left = redis.call('PTTL', KEYS[1])
    if #last == (entries > 0 and 2 or 0) and string.sub(last[1] or 'hf_', 1, 3) == 'hf_'
        and now_us > tonumber(last[2] or 0) and redis.pcall('ZADD', KEYS[2], 'NX', now_text, id) == 1 then
        redis.call('HSET', KEYS[3], id, entry_text(lease, interval, now_text, ARGV[3], 'w', channel))
        -- Both keys get their expiry together.
        if redis.call('PTTL', KEYS[2]) < tonumber(keep_queue) then
            redis.call('PEXPIRE', KEYS[2], keep_queue)
            redis.call('PEXPIRE', KEYS[3], keep_queue)
        end
        return {2, left, holder, now_text, entries, mark or '0'}
    end
end
--@include common/queue.lua
--@include common/enqueue.lua
proposal = whole(ARGV[9], 1)
--@include mutex/common/gap.lua
--@include mutex/common/hand_over.lua
--@include common/kept.lua
--@include mutex/common/notes.lua

local note, lease_ms = notes and ARGV[12], tonumber(lease)
local gap_ms = holder and 0 or gap_left_ms()

-- The caller gives its grant up for the first waiter, which may be the caller itself. Somebody gets the lock in any
-- case, so the key stays. A full server accepts a write that removes nothing, and then the other writes.
if holder == id and mark and mark == ARGV[10] then
    redis.call('HDEL', KEYS[3], '')
    holder = false
end

if holder == id then
    -- Never shorter: another program may have set a longer lease. A hold with a delay (renew.lua) may have expired. A
    -- late copy then blocks the lock once more, but nobody else was let in, and nobody believes it.
    if redis.call('PTTL', KEYS[1]) < tonumber(lease) then redis.call('PEXPIRE', KEYS[1], lease) end
    if not mark then
        take_token(floor)
        remember_token(retention)
    end
    if note then keep_note(note, lease_ms) end
    return held_answer(mark, true)
end

if not holder and queued == 0 then
    local token = grant(id, lease, floor, retention)
    if note then keep_note(note, lease_ms) end
    return held_answer(token, true)
end

if channel ~= '' then
    ticket = enqueue(id, ticket, entry_text(lease, interval, now_text, ARGV[3], 'w', channel), keep_queue, false)
    if note then keep_note(note, lease_ms + keep_queue) end
end

if not holder and gap_ms == 0 then
    holder = promote_next_waiter(id, retention)
    if not holder or holder == id then
        local token = grant(id, lease, floor, retention)
        hurry_first_waiter(lease_ms)
        if note then keep_note(note, lease_ms) end
        return held_answer(token, true)
    end
end

if holder and has_gap and not is_ours(holder) then saw_foreign_holder() end
local marked, alone, is_kept = holder and is_marked(holder) and ARGV[11] ~= '0' and {holder} or {}, true, false
--@paste common/steps/ask_back.lua
local left = holder and redis.call('PTTL', KEYS[1]) or gap_ms
if channel == '' and is_kept then return {0, left, holder, 'held', 'kept'} end
local holders_note = note_of(holder)
if channel == '' and holders_note then return {0, left, holder, 'held', '', holders_note} end
if channel == '' then return {0, left, holder or ''} end
local position, clock_now = position_of(id), clock_told()
if holders_note then
    return {2, left, holder, ticket, position, mark or '0', left, clock_now or '', '', holders_note}
end
return {2, left, holder or '', ticket, position, mark or '0', clock_now and left, clock_now}
