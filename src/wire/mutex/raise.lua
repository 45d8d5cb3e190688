-- mutex/raise: replace a grant's token by the one that a majority of servers is to have.
-- KEYS  1 lock  2 queue  3 waiters  4 fence
-- ARGV  1 hold id  2 token of the grant that is meant  3 its token from now on, greater  4 fence retention ms
-- Returns  {1} done | {0} not held by anybody | {-1, holder's ms left, holder} held by another, or by another grant of
--          the same id
-- The grant of a marked id is named by its ceiling, exactly; the new token is its ceiling, too.
-- Repeatable: a second call finds the new token and answers {1}.
--@include common/queue.lua
--@include mutex/common/tell_watchers.lua

local id, token, to, retention = ARGV[1], whole(ARGV[2], 1), whole(ARGV[3], 1), whole(ARGV[4], 1)
if not (token and to and retention and to > token) then
    return redis.error_reply('ERR holdfast: token or retention out of range')
end

local holder = redis.call('GET', KEYS[1])
if holder == id and (not mark or mark == ARGV[2] or mark == ARGV[3]) then
    mark = ARGV[3]
    remember_token(retention)
    if watch then tell_watchers() end
    return {1}
end
return holder and {-1, redis.call('PTTL', KEYS[1]), holder} or {0}
