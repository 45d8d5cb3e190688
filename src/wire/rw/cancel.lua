-- rw/cancel: stop waiting for an upgrade. The read hold stays as it is.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants  7 gap (only of a lock that other programs use, too)
-- ARGV  1 hold id  2 fence retention ms  3 preference  4 proposed token, or 0
-- Returns  {1, shape, token} what the id holds now | {0} nothing, or what is lost
--          {1, shape, token, '', token, waiters} the same for a marked id: who waits was behind it, and asked nobody
-- Repeatable. It ends no grant: a late copy might hit the grant of a later upgrade. A client that finds its upgrade
-- granted gives that grant back by its token.
--@include common/queue.lua

local id, retention, prefer = ARGV[1], whole(ARGV[2], 1), ARGV[3]
if not retention then return redis.error_reply('ERR holdfast: retention out of range') end
proposal = whole(ARGV[4], 1)
--@include rw/common/gap.lua
--@include rw/common/holders.lua
--@include rw/common/serve.lua

step_out()
serve()
settle()
if not my_grant then return {0} end
if is_marked(id) then return {1, shape_of(my_grant), token_of(my_grant), '', token_of(my_grant), queued} end
return {1, shape_of(my_grant), token_of(my_grant)}
