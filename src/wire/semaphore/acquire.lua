-- semaphore/acquire: acquire permits, or wait in the queue for them, or learn what prevents it. Also the poll of a
-- waiter.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants
-- ARGV  1 hold id  2 fence retention ms  3 limit that the caller declares  4 permits  5 lease ms  6 token floor
--       7 wake-up channel, empty: do not wait  8 ticket of an earlier answer, or 0  9 poll interval ms
--       10 how long queue and waiters keep without a poll, ms  11 proposed token, or 0
-- Returns  {1, token, clock} the caller has the permits; its lease is full again
--          {0, ms left, holder, reason} it does not wait. Reason: held (too few permits are free), reserved (a waiter
--              goes first)
--          {0, ms left, holder, 'permits', limit} it asks for more permits than the limit
--          {0, ms left, holder, 'limit', declared} others hold or wait, and declared another limit
--          {2, ms left, holder, ticket, position from 0, fence, ms until the first holder may be gone, clock} it waits
-- ms left: until the last holder's lease ends. clock: this server's, in us, and only if a token was proposed.
-- Repeatable: the same hold id again refreshes its lease, or its position in the queue.

local id, channel, ticket = ARGV[1], ARGV[7], ARGV[8]
local retention, lease, floor, interval = ARGV[2], ARGV[5], ARGV[6], ARGV[9]
local keep_queue = channel == '' and '1' or ARGV[10]
-- One match and one comparison for all numbers: that is faster than one for each.
if not (interval and keep_queue and string.find(ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. retention .. ' ' .. lease .. ' '
    .. floor .. ' ' .. ticket .. ' ' .. interval .. ' ' .. keep_queue,
    '^[1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d* %d+ %d+ %d+ [1-9]%d*$')
    and math.max(ARGV[3], ARGV[4], retention, lease, floor, ticket, interval, keep_queue) < 9007199254740992) then
    return redis.error_reply('ERR holdfast: limit, permits, lease, floor, ticket or interval out of range')
end
local asked, permits = tonumber(ARGV[3]), tonumber(ARGV[4])
--@include common/queue.lua
--@include common/enqueue.lua
local caller = id
retention, lease, proposal = tonumber(retention), tonumber(lease), whole(ARGV[11], 1)
--@include semaphore/common/holders.lua
--@include semaphore/common/serve.lua

-- Nobody waits.
local function granted()
    local token = take_token(floor)
    admit(id, permits, lease, token)
    finish()
    remember_token(retention)
    return {1, token, clock_told()}
end

local function refused(reason, number)
    finish()
    local left, holder = standing()
    return {0, left, holder, reason, number}
end

if my_grant then
    refresh(lease)
    serve()
    finish()
    return {1, token_of(my_grant), clock_told()}
end

if declared ~= asked then
    step_out(id)
    serve() -- dead waiters do not count
    if holders > 0 or queued > 0 then return refused('limit', declared) end
    declare()
end
if permits > limit then
    step_out(id)
    serve()
    return refused('permits', limit)
end
if queued == 0 and out + permits <= limit then return granted() end

if channel ~= '' then
    if must_pass then redis.call('ZREM', KEYS[5], '') end
    ticket = enqueue(id, ticket, entry_text(ARGV[5], interval, now_text, ARGV[6], ARGV[4], channel), keep_queue, false)
end
serve()
if my_token then
    finish()
    return {1, my_token, clock_told()}
end
local fits = out + permits <= limit
if channel == '' then
    if fits and queued == 0 then return granted() end
    return refused(fits and 'reserved' or 'held')
end
finish()
local left, holder, soonest = standing()
return {2, left, holder, ticket, position_of(id), mark or '0', soonest, clock_told()}
