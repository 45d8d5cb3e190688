-- mutex/release_alone: end a hold and say no word to those in the queue. For a slot that is moving: the other keys may be
-- elsewhere already, and a script that names them would not run. A release in full has to follow, and serves the queue.
-- KEYS  1 lock
-- ARGV  1 hold id
-- Returns  {2} released, the queue is still to be served | {0} not held by anybody
--          {-1, holder's ms left, holder} held by another
-- Repeatable. No token says which grant is meant, because the fence is one of the other keys: it ends any grant of this
-- id. So it is only for who asked for a release of this hold already and will never again acquire by this id.

local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return {2}
end
if not holder then return {0} end
return {-1, redis.call('PTTL', KEYS[1]), holder}
