-- mutex/release_alone: end a hold without serving the queue. For a slot that moves: the other keys may be at the new
-- owner already, and a script that names them would not run. A full release must follow and serves the queue.
-- KEYS  1 lock
-- ARGV  1 hold id
-- Returns  {2} released, the queue is still to be served | {0} not held by anybody
--          {-1, holder's ms left, holder} held by another
-- Repeatable. The fence is one of the other keys, so no token names the grant: this ends any grant of the id. Only for
-- a client that requested a release of this hold already and never acquires by this id again.

local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return {2}
end
if not holder then return {0} end
return {-1, redis.call('PTTL', KEYS[1]), holder}
