-- rw/release: end a grant, or a part of it, and serve the queue. With `r` left it is the downgrade.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants  7 gap (only of a lock that other programs use, too),
--       or before the notes the lock again  8 notes (only if the hold has a note)
-- ARGV  1 hold id  2 fence retention ms  3 preference
--       4 token of the grant that is meant; 0: any grant of this id (giving up: the client never uses that id again)
--       5 what is left: nothing (empty; its position in the queue goes too), r or w  6 lease ms of what is left
--       7 proposed token, or 0
--       8 ms of handing over before other programs get a turn; 0: they get none
-- Returns  {1, waiters left, number of holders now} | {0} not held by anybody, or lost: the hash lacked it for a while
--          {-1, ms left, holder} held by others, or by another grant of the same id
-- Repeatable: a second call finds that it is done, and changes nothing.

local id, prefer, token, left_over = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local retention, lease = ARGV[2], ARGV[6]
if not (lease and string.find(token .. ' ' .. retention .. ' ' .. lease .. ' ' .. left_over, '^%d+ [1-9]%d* %d+ [rw]?$')
    and math.max(retention, lease) < 9007199254740992) then
    return redis.error_reply('ERR holdfast: retention, lease or what is left out of range')
end

-- The fast path: the caller reads or writes by the grant that is meant, nothing of it stays, all holders are ours, and
-- nobody waits. It reads fewer keys than the general path (the fence only because a fence of another type is an error
-- there), leaves everything unusual to it, and writes what it would write, in the same order.
if left_over == '' and token ~= '0' and not KEYS[8] and redis.call('EXISTS', KEYS[2], KEYS[3]) == 0 then
    local now_us, now_text
    local grant = redis.call('HGET', KEYS[6], id)
    local hash = redis.call('HMGET', KEYS[1], 'mode', 'rcount', 'writer', 'wcount', 'r:' .. id)
    local holders = redis.call('HLEN', KEYS[1]) - 2
    local reads = grant == 'r ' .. token and hash[1] == 'read' and hash[5] and not (hash[3] or hash[4])
        and hash[2] == string.format('%.0f', holders)
    local writes = grant == 'w ' .. token and hash[1] == 'write' and hash[3] == id and hash[4] and holders == 1
    if not (reads or writes) then holders = 0 end
--@include rw/common/plain_leases.lua
    if agree then
        redis.call('GET', KEYS[4])
        if holders == 1 then
            redis.call('DEL', KEYS[1], KEYS[5], KEYS[6])
            return {1, 0, 0}
        end
        local last = string.format('%.0f', latest[3] == id and latest[2] or latest[4])
        redis.call('ZREM', KEYS[5], id)
        redis.call('HSET', KEYS[1], 'rcount', string.format('%.0f', holders - 1))
        redis.call('HDEL', KEYS[1], 'r:' .. id)
        redis.call('PEXPIREAT', KEYS[1], last)
        redis.call('PEXPIREAT', KEYS[5], last)
        redis.call('PEXPIREAT', KEYS[6], last)
        redis.call('HDEL', KEYS[6], id)
        return {1, 0, holders - 1}
    end
end
--@include common/queue.lua
proposal = whole(ARGV[7], 1)
--@include rw/common/gap.lua
--@include rw/common/holders.lua
--@include rw/common/serve.lua

local mine = my_grant or my_lost_grant
local is_named = mine and (token == '0' or token_of(mine) == token)
local meant = my_grant and is_named
if is_named and left_over == '' then
    remove(id)
elseif meant then
    if left_over == 'r' and writer == id then stop_writing() end
    if left_over == 'w' and writer == id then stop_reading(id) end
    refresh(writer == id and left_over or 'r', tonumber(lease))
end
if left_over == '' and (is_named or not mine) then step_out() end
local nobody = my_lost_grant or not writer and readers == 0
answer_tells = false
local gap_us = is_named and left_over == '' and not writer and readers == 0
    and gap_due(token_of(mine), whole(ARGV[8], 1))
local first, first_wants = nil, nil
if gap_us then first, first_wants = first_living_waiter() end
if not first then serve() end
settle()
if first then begin_gap(gap_us, first, first_wants) end
if KEYS[8] and left_over == '' and (is_named or not mine) then redis.pcall('HDEL', KEYS[8], id) end

if meant then return {1, queued, readers + (writer and not reads(writer) and 1 or 0)} end
if nobody then return {0} end
local left, holder = standing()
return {-1, left, holder}
