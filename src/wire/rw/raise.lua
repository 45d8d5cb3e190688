-- rw/raise: replace a grant's token by the one that a majority of servers is to have.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants  7 gap (only of a lock that other programs use, too)
-- ARGV  1 hold id  2 fence retention ms  3 preference  4 token of the grant that is meant
--       5 its token from now on, greater
-- Returns  {1, shape, token} what is held now | {0} not held by anybody, or lost
--          {-1, ms left, holder} held by others, or by another grant of the same id
-- Repeatable: a second call finds the new token and answers {1}.
--@include common/queue.lua

local id, retention, prefer, token, to = ARGV[1], whole(ARGV[2], 1), ARGV[3], whole(ARGV[4], 1), whole(ARGV[5], 1)
if not (retention and token and to and to > token) then
    return redis.error_reply('ERR holdfast: token or retention out of range')
end
--@include rw/common/gap.lua
--@include rw/common/holders.lua
--@include rw/common/serve.lua

local meant = my_grant and (token_of(my_grant) == ARGV[4] or token_of(my_grant) == ARGV[5])
if meant then
    my_grant = shape_of(my_grant) .. ' ' .. ARGV[5]
    change(grant_changes, id, my_grant)
    touched = true
    settle()
    if tonumber(mark or 0) < to then
        mark = ARGV[5]
        remember_token(retention)
    end
    return {1, shape_of(my_grant), ARGV[5]}
end
answer_tells = false
if others_changed then serve() end
settle()
if my_lost_grant or not writer and readers == 0 then return {0} end
local left, holder = standing()
return {-1, left, holder}
