-- rw/renew: make a hold's lease full again.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants  7 gap (only of a lock that other programs use, too,
--       or before the notes)  8 notes (only if the hold has a note)
-- ARGV  1 hold id  2 fence retention ms  3 preference  4 lease ms  5 proposed token, or 0
--       6 of a marked id: token that the caller would like to use up to (mutex/renew_block)
-- Returns  {1, shape, token[, ms]} renewed, and what is held; ms: `cut` of rw/acquire
--          {1, shape, token, cut, ceiling, waiters} the same for a marked id (common/kept.lua)
--          {0} not held by anybody, or lost: the hash lacked it for a while | {-1, ms left, holder} held by others
-- Repeatable. Never shortens a lease, and never revives a hold.
--@include common/queue.lua

local id, retention, prefer, lease = ARGV[1], whole(ARGV[2], 1), ARGV[3], whole(ARGV[4], 1)
if not (retention and lease) then return redis.error_reply('ERR holdfast: retention or lease out of range') end
proposal = whole(ARGV[5], 1)
--@include rw/common/gap.lua
--@include rw/common/holders.lua
--@include rw/common/serve.lua

if my_grant then refresh(shape_of(my_grant), lease) end
if others_changed then serve() end
settle()
if my_grant and KEYS[8] and redis.call('PTTL', KEYS[8]) < lease then redis.call('PEXPIRE', KEYS[8], ARGV[4]) end

local token = my_grant and token_of(my_grant)
if token and is_marked(id) then
--@paste rw/common/steps/renew_block.lua
end
if token then return {1, shape_of(my_grant), token, cut_ms} end
if my_lost_grant or not writer and readers == 0 then return {0} end
local left, holder = standing()
return {-1, left, holder}
