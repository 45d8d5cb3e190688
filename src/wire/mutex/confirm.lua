-- mutex/confirm: tell whether a hold still exists at this server. If it does, write something that changes nothing:
-- WAIT counts the replicas that have this write, and a replica that has it has the hold, too.
-- KEYS  1 lock  2 fence, or none
-- ARGV  1 hold id  2 with the fence: token of the grant
-- Returns  ms left of its lease | 0 not held, or for less than a millisecond
-- The token may be any of the block of a marked id.
-- Repeatable. Runs on a full server, and while the slot moves as long as its keys are here.

--@include common/meant.lua

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if KEYS[2] and not is_meant(ARGV[1], ARGV[2], redis.call('GET', KEYS[2]) or '0') then return 0 end
-- PEXPIRE with a TTL of zero or less would delete the key. A key without an expiry has a negative TTL.
local left = redis.call('PTTL', KEYS[1])
if left < 1 then return 0 end
redis.call('PEXPIRE', KEYS[1], left)
return left
