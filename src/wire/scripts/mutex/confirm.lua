-- mutex/confirm: is it held still, here? If so something is written that changes nothing. For WAIT, which tells what
-- replicas have of its own link's writes: who has this one has the hold.
-- KEYS  1 lock  2 fence, or none
-- ARGV  1 hold id  2 with the fence: token of the grant
-- Returns  ms that are left of its lease | 0 not held, or not for another millisecond
-- Repeatable. Runs on a full server, and where the slot is moving as long as its keys are there.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if KEYS[2] and redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
-- None left would end it, and so would less than none, which is how a lock without an end is shown.
local left = redis.call('PTTL', KEYS[1])
if left < 1 then return 0 end
redis.call('PEXPIRE', KEYS[1], left)
return left
